"""Outbox: the rows and bounds that a sink has taken and not yet committed."""

from collections.abc import Callable
from typing import NamedTuple

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.disorder import Disorder, InOrderPer
from spark_rowtime.bounds.topic_cut import CutBound, TopicCut
from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import RowtimeError, StoreUnavailableError
from spark_rowtime.producer.cut_trail import CutTrail
from spark_rowtime.producer.floors import Floors
from spark_rowtime.producer.interrupt_guard import InterruptGuard
from spark_rowtime.producer.row_buffer import RowBuffer
from spark_rowtime.producer.staging import Staging
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Commit, Receipt, Rejected
from spark_rowtime.store.record import Held, ProducerInfo
from spark_rowtime.store.retention import STAGED_ROWS
from spark_rowtime.store.token import FlushMark
from spark_rowtime.types.timestamps import END

LONG_AGO = -(1 << 62)
"""Before any time of the clock, in microseconds."""


class Attempt(NamedTuple):
    """A commit that has not returned, and how many of the pending batches and changes of keys it contains."""

    commit: Commit
    batches: int
    touches: int


class Outbox:
    """Rows, the producer's floors (``floors``), and rejections, in the order of the calls.

    Law (*all or nothing*): a commit that fails leaves everything pending, under the same number. A retry therefore
    lands it once, even if the failed commit had landed but had not returned, as when a signal handler raised.
    All methods are called under the sink's lock.
    """

    def __init__(self, store: Store, info: ProducerInfo, disorder: Disorder, max_train_rows: int, naive: bool) -> None:
        """``naive``: see RowBuffer."""
        self.producer, self.path = info.name, store.path
        self.committed_at = LONG_AGO
        self.store, self._number = store, info.number
        self.held = Held(info.name, info.epoch, info.session)
        self._max_train_rows = max_train_rows
        self._disorder, self._committed_disorder = disorder, info.disorder
        self._keys = disorder if isinstance(disorder, InOrderPer) else None
        self.interrupt_guard = InterruptGuard()
        self.rows = RowBuffer(
            store.schema, rises=disorder.implies, naive=naive, keys=self._keys, guard=self.interrupt_guard
        )
        """The rows that came one by one since the last batch."""
        self._is_fast_path_open = False
        self._batches: list[Timed] = []
        self._staging = Staging(store, max_train_rows)
        self._count = 0
        self.floors = Floors(info.floor, store.head().floor)
        self.cuts = CutTrail(info.name, store.last_cuts(info.name))
        self._rejected: list[Rejected] = []
        self._touches = self._committed_touches = 0
        self._attempt: Attempt | None = None
        self.late: list[Rejected] = []
        """The rows that became late while they waited for their commit: the next call raises for them."""
        self._seq: int | None = None
        self._largest: int | None = None
        self.checkpoint = info.checkpoint
        """The checkpoint that was stored last."""
        self.failing = False
        """Whether the last commit in the background failed, that is, one outside of ``flush`` and ``close``."""

    @property
    def broken(self) -> bool:
        """Whether an interrupt has left the outbox incomplete, so that nothing of it may be used again."""
        return self.interrupt_guard.broken

    @property
    def pending(self) -> bool:
        """Whether there is anything to commit."""
        said = self.floors.pending or self._touches != self._committed_touches
        return said or bool(self.count or self._rejected)

    @property
    def count(self) -> int:
        """The number of rows that are not committed."""
        return self._count + len(self.rows)

    @property
    def full(self) -> bool:
        """Whether the rows fill a train."""
        return self._count + len(self.rows) >= self._max_train_rows

    def start_fast_path(self, ceiling: int | None) -> None:
        """Lets ``rows`` take single rows from the floor in force to ``ceiling``, until one less than fills the train.

        The fast path checks only the row itself. It may stay open while no call has anything else to do.
        """
        self._is_fast_path_open = True  # first: an interrupt may come between any two steps
        left = self._max_train_rows - self._count % self._max_train_rows
        self.rows.open(self.floors.in_force, ceiling, left - 1)

    def end_fast_path(self) -> None:
        """Closes the fast path, and records the floor that its rows imply."""
        if self._is_fast_path_open:
            self.record_implied_floor()
            self.rows.shut()
            self._is_fast_path_open = False

    def record_implied_floor(self) -> None:
        """Records the floor that the rows of the fast path imply so far; the path stays as it is."""
        implies = self._disorder.implies
        self.rows.settle()
        floor = self.rows.last() if implies else self._disorder.weakest()
        if floor is not None:
            self.floors.imply(floor, promised=implies)

    def floor_in_force(self) -> int | None:
        """The floor in force, also behind the rows of the fast path. It changes nothing, and needs no lock.

        Without the lock, rows of the fast path that are in order per value may not count yet.
        """
        try:
            last = self.rows.last() if self._disorder.implies else None
        except IndexError:  # another thread has just taken the rows out
            last = None
        return stronger(self.floors.in_force, last)

    def floor_after_rows(self) -> int | None:
        """The floor in force behind all rows that were taken."""
        if not self.broken:
            self.record_implied_floor()
        return self.floor_in_force()

    def add_batch(self, batch: Timed, floor: int | None = None) -> None:
        """Adds checked rows after all earlier ones. Their types are the stream's; nullability may differ.

        ``floor``: the producer's own floor that the rows imply, if they do.
        """
        self._roll()
        self._batches.append(batch)
        self._count += batch.rows.num_rows
        if floor is not None:
            self.floors.imply(floor, promised=self._disorder.implies)
        if not self._disorder.implies:
            self.record_implied_floor()

    def promise(self, floor: int, cut: TopicCut | None) -> None:
        """Records a bound that was sent, and the cut that it follows.

        If the producer sends cuts, each bound above its own floor becomes an event of its own. The end of time without
        a cut holds from its last cut on.
        """
        cut = self.cuts.end if cut is None and floor >= END else cut
        with self.interrupt_guard:
            own = self.floors.own
            raised = own is None or floor > own
            if raised and cut is not None and not self.cuts.active and own is not None and self.floors.pending:
                self.cuts.pending.append(CutBound(own, None))
            if raised and (cut is not None or self.cuts.active):
                self.cuts.pending.append(CutBound(floor, None if cut is None else self.cuts.advance(cut)))
            self.floors.promise(floor)

    def change_keys(self, change: Callable[[], None]) -> None:
        """Raises the bound of one value, or lets a value go, by ``change``, and records the floor that follows."""
        with self.interrupt_guard:
            change()
            self._touches += 1
            self.record_implied_floor()

    def reject(self, rejected: list[Rejected]) -> None:
        """Adds rows that the next commit records as rejected."""
        self._rejected += rejected

    def failed(self, now: int) -> None:
        """Records that a commit in the background failed; the next call tries again and raises its error."""
        self.failing, self.committed_at = True, now

    def commit(self, checkpoint: str | None, now: int, *, idle: bool = False, behind: TopicCut | None = None) -> None:
        """Commits everything pending, in one commit; ``late`` has the rows that only the commit could reject.

        ``idle``: the stream does not wait for the producer until its next commit. ``behind``: the cut behind its last
        messages, with ``idle``.
        """
        self._settle()
        self._roll()
        trains = self._staging.stage(self._batches)
        self._attempt = Attempt(
            Commit(
                self.producer,
                self.held.epoch,
                self._number + 1,
                trains,
                self.floors.own,
                tuple(self._rejected),
                checkpoint,
                self._disorder.state(),
                keys=self._disorder.changes(),
                bounds=tuple(self.cuts.pending),
                idle=idle,
                behind=None if behind is None else self.cuts.with_(behind),
                session=self.held.session,
            ),
            len(self._batches),
            self._touches,
        )
        receipt = self._sent(self._attempt.commit)
        self._landed(self._attempt, receipt)
        self.committed_at, self.failing = now, False
        self.floors.learn(receipt.floor)

    def _sent(self, commit: Commit) -> Receipt:
        try:
            return self.store.commit(commit)
        except StoreUnavailableError as error:
            if error.values.get("lacks") == STAGED_ROWS:
                self._staging.forget()
            raise

    def _settle(self) -> None:
        """Checks whether a commit that raised has landed nevertheless: no other one could land under its number."""
        attempt = self._attempt
        stored = self.store.producer(self.producer) if attempt else None
        if attempt is None or stored is None or stored.number < attempt.commit.number:
            return
        self._landed(attempt, self.store.commit(attempt.commit))  # repeating it changes nothing

    def _landed(self, attempt: "Attempt", receipt: Receipt) -> None:
        commit = attempt.commit
        for train in commit.trains:
            self._largest = stronger(self._largest, train.largest)
        with self.interrupt_guard:
            self._batches = self._batches[attempt.batches :]
            self._staging.forget()
            self._count = sum(batch.rows.num_rows for batch in self._batches)
            self._rejected = self._rejected[len(commit.rejected) :]
            self.cuts.landed(len(commit.bounds))
            self.floors.committed, self._committed_disorder = commit.floor, commit.disorder
            self._committed_touches = attempt.touches
            if commit.keys is not None:
                self._disorder.landed(commit.keys)
            self.checkpoint = self.checkpoint if commit.checkpoint is None else commit.checkpoint
            self.late += receipt.rejected
            self._number, self._seq, self._attempt = commit.number, receipt.seq, None

    def mark(self) -> FlushMark:
        """Where all that was committed so far lies in the log."""
        seq = self.store.head().seq if self._seq is None else self._seq
        return FlushMark(self.store.stream, seq, self._largest)

    def drop(self) -> None:
        """Drops the rows and bounds that were not committed; rejections stay, and are committed behind what landed."""
        if self._rejected:
            self._settle()
        self.rows.clear()
        self._batches, self._count = [], 0
        self._staging.forget()
        self.floors.drop_pending()
        self.cuts.pending.clear()
        self._touches = self._committed_touches
        parts = self.store.keys(self.producer) if self._keys else ()
        self._disorder.restore(self._committed_disorder, parts)

    def learn_head(self) -> None:
        """Records the stream's floor, after the producer has joined again."""
        self.floors.learn(self.store.head().floor)

    def is_detached(self) -> bool:
        """Whether the stream no longer waits for the producer, which may join again."""
        stored = self.store.producer(self.producer)
        return stored is not None and stored.status is Status.DETACHED

    def join_again(self) -> bool:
        """Joins again if the producer was detached, and returns True; raises ProducerFencedError if it was closed.

        The stream's bound may have passed an idle producer, so the floor in force is found out for it.
        """
        stored = self.store.producer(self.producer)
        if stored is not None and stored.status is Status.IDLE:
            self.learn_head()
        if stored is None or (stored.epoch == self.held.epoch and stored.status is not Status.DETACHED):
            return False
        joined = self.store.renew(self.producer, self.held.epoch, sends=True, session=self.held.session)
        self.learn_head()
        return joined

    def holds_nobody(self) -> bool:
        """Whether somebody has closed the producer, or a newer sink has it. False where the store does not tell."""
        try:
            stored = self.store.producer(self.producer)
        except RowtimeError:
            return False
        if stored is None or stored.status in (Status.LEFT, Status.COMPLETE):
            return True
        return (stored.epoch, stored.session) != (self.held.epoch, self.held.session)

    def leave(self, cut: TopicCut | None = None) -> None:
        """Records that the producer has closed, with the cut that lies behind its last message."""
        until = None if cut is None else self.cuts.with_(cut)
        self.store.leave(self.producer, self.held.epoch, until, session=self.held.session)

    def _roll(self) -> None:
        if len(self.rows):
            with self.interrupt_guard:
                self._count += len(self.rows)
                self._batches += map(Timed, self.rows.drain())
