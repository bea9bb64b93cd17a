"""Acceptance: decides which rows of a call a sink takes, and puts them into the outbox."""

from collections.abc import Callable
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound, stronger
from spark_rowtime.bounds.disorder import AnyOrder, Disorder, InOrder, InOrderPer
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import BoundRegressionError, InvalidOptionError
from spark_rowtime.producer.intake import Intake
from spark_rowtime.producer.late_log import BoundOwner, LateReport, late_before_sent, late_rows
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.producer.scheduler import CommitScheduler
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Rejected
from spark_rowtime.store.limits import split_ahead
from spark_rowtime.store.reach import Reach, ceiling
from spark_rowtime.types.timestamps import show_micros


class Acceptance:
    """Converts the rows of a call, judges them, and adds those that are in time to the outbox.

    Law: a call that raises has taken nothing; its late rows are recorded. All methods are called under the sink's lock.
    """

    def __init__(
        self,
        intake: Intake,
        disorder: Disorder,
        outbox: Outbox,
        late: LateReport,
        scheduler: CommitScheduler,
        owner: BoundOwner,
        now: Callable[[], int],
    ) -> None:
        """``now``: the wall clock, by which rowtimes may lie ``maxAhead`` ahead."""
        self._now = now
        self._intake, self._disorder, self._outbox = intake, disorder, outbox
        self._late, self._scheduler, self._floors, self._owner = late, scheduler, outbox.floors, owner

    def accept_row(self, row: Any) -> None:
        """Takes one row of any form."""
        self._require_takes_rows()
        row = self._intake.row(row, self._floors.in_force)
        if not self._takes_plain(row):
            self._accept(self._intake.checked(row))

    def accept_rows(self, rows: Any) -> None:
        """Takes many rows of any form."""
        self._require_takes_rows()
        timed = self._intake.rows(rows, self._floors.in_force)
        if timed is not None:
            self._accept(timed)

    def accept_bound(self, bound: RowtimeBound, cut: TopicCut | None = None) -> None:
        """Takes a bound that was sent, and the cut that it follows."""
        self._check_bound(bound, self._floors.promised)
        if cut is not None:
            self.require_cut(cut)
        self._disorder.promise(bound.floor)
        self._outbox.promise(bound.floor, cut)

    def require_in_time(self, micros: int) -> int:
        """Returns the floor in force, 0 for none; raises LateRowError if a row at ``micros`` would be late."""
        floor = self._floors.in_force or 0
        if micros < floor:
            raise late_before_sent(self._outbox.producer, micros, floor, self._whose(floor))
        return floor

    def require_cut(self, cut: TopicCut) -> None:
        """Raises InvalidOptionError if this sink takes no cuts, and CutRegressionError if ``cut`` goes back."""
        require_takes_cuts(self._outbox.store, self._disorder)
        self._outbox.cuts.require_forward(cut)

    def accept_bound_of(self, keys: InOrderPer, key: Any, bound: RowtimeBound) -> None:
        """Takes a bound that was sent for one value of the key column."""
        self._check_bound(bound, stronger(self._floors.promised, keys.said(key)))
        floor = max(bound.floor, self._floors.own or 0)
        self._outbox.change_keys(lambda: keys.promise_of(key, floor))

    def start_fast_path(self) -> None:
        """Starts the fast path for the next calls, unless this sink gives rows their rowtime."""
        if self._disorder.one_by_one and not self._intake.gives:
            self._outbox.start_fast_path(self._ceiling())

    def _require_takes_rows(self) -> None:
        if self._outbox.cuts.active and self._disorder.implies:
            raise InvalidOptionError(
                f"Producer {self._outbox.producer!r} sends bounds with cuts of topics, so it sends no rows that imply "
                "bounds: these would have no cut, and hold for all messages of the topics. Open the sink with "
                "rowsImplyBounds=False, or send rows under another name.",
                option="cut",
                producer=self._outbox.producer,
            )

    def _check_bound(self, bound: RowtimeBound, promised: int | None) -> None:
        reach = Reach(self._outbox.path, self._outbox.store.settings, self._now())
        reach.require(self._outbox.producer, bound.floor, promised)
        if promised is not None and bound.floor < promised:
            raise BoundRegressionError(
                f"The bound '{bound}' is weaker than what this sink has already promised (no row before "
                f"{show_micros(promised)}), by a bound or by its rows. A bound cannot be taken back. Send a later one; "
                "if rows come out of order, open the sink with lateness or rowsImplyBounds=False.",
                bound=bound,
                said=promised,
            )

    def _takes_plain(self, row: Any) -> bool:
        """Takes one row by the fast path, if it needs no further check."""
        if not self._disorder.one_by_one:
            return False
        self._outbox.start_fast_path(self._ceiling())
        plain = self._outbox.rows.take(row)
        self._outbox.end_fast_path()
        if plain:
            self._intake.taken()
        return plain

    def _accept(self, given: Timed) -> None:
        timed, late = self._split_ahead(given)
        if timed is None:
            self._refuse(late, "")
            return
        verdict = self._disorder.judge(timed, self._floors.in_force)
        fitting: Timed | None = timed
        if verdict.fits is not None:
            late += late_rows(timed.rows, verdict, self._outbox.producer, self._whose)
            fitting = timed.where(verdict.fits)
        if late:
            self._refuse(late, verdict.why)
        if fitting is not None:
            self._intake.taken()
            with self._outbox.interrupt_guard:
                self._disorder.take(fitting.rows)
                self._outbox.add_batch(fitting, verdict.floor)

    def _ceiling(self) -> int | None:
        """The largest rowtime that is not too far ahead now; None: no limit."""
        return ceiling(self._outbox.store.settings, self._now())

    def _split_ahead(self, given: Timed) -> tuple[Timed | None, list[Rejected]]:
        """Separates the rows that are not too far ahead, if any, from those to reject."""
        most = self._ceiling()
        if most is None or given.largest <= most:
            return given, []
        near, ahead = split_ahead(given.rows, most)
        return Timed(near) if near.num_rows else None, ahead

    def _refuse(self, late: list[Rejected], below: str) -> None:
        """Records rows as rejected; raises LateRowError under onLate="raise". ``below``: what the rows fell below."""
        self._outbox.reject(late)
        self._late.note(late)
        if self._late.raises:
            self._scheduler.settle()
            raise self._late.error(late, "Nothing of this call was taken", below)

    def _whose(self, bound: int) -> BoundOrigin:
        return self._owner.of(bound, self._floors.in_force, self._floors.promised)


def require_takes_cuts(store: Store, disorder: Disorder) -> None:
    """Raises InvalidOptionError if bounds of this stream, or of this order of rows, cannot be about cuts of topics."""
    settings = store.settings
    why = None
    if settings.maxLag is not None:
        why = "the stream has maxLag, which moves the bound past rows that are in a topic and not read yet"
    elif not settings.boundsBeforeRows:
        why = "the stream has boundsBeforeRows=False, so it waits for a row, but the rows are in a topic"
    elif not isinstance(disorder, AnyOrder | InOrder):
        why = "the sink was opened with lateness, kSort or inOrderPer, whose bounds follow from rows of the stream"
    if why is not None:
        raise InvalidOptionError(
            f"Bounds cannot have a cut here: {why}. Create a stream without these settings for the bounds of topics, "
            "and open its sinks without these options.",
            option="cut",
            path=store.path,
        )
