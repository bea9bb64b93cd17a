"""Late rows: which rows of a call are late, whose bound they fell below, the log messages, and the error."""

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bounds.disorder import Verdict
from spark_rowtime.bounds.origin import PRODUCER, BoundOrigin, origin_values
from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import LateRowError
from spark_rowtime.store.admission import whose_bound
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Rejected
from spark_rowtime.types.timestamps import SECOND_MICROS, show_micros

LATE_LOG = logging.getLogger("spark_rowtime.laterow")


class BoundOwner:
    """Finds out whose bound the late rows of one producer fell below."""

    def __init__(self, store: Store, producer: str) -> None:
        self._store, self._producer = store, producer
        self._last: tuple[int, BoundOrigin] | None = None

    def of(self, bound: int, known: int | None, said: int | None) -> BoundOrigin:
        """Returns the owner of ``bound``.

        ``known``: the bound in force before the call; the rows of the call imply what is above it. ``said``: what the
        producer's sink has promised itself. Only a bound of which neither tells needs a look into the log.
        """
        if known is None or bound > known or (said is not None and bound <= said):
            return BoundOrigin(PRODUCER, self._producer)
        if self._last is None or self._last[0] != bound:
            self._last = bound, whose_bound(self._store, self._producer, bound)
        return self._last[1]


class LateReport:
    """Reports the late rows of one sink: it logs them and, if ``raises``, has calls raise LateRowError for them.

    It logs the 1st, 10th, 100th, ... of a producer, and every one at DEBUG, like s-Server's trace log. With the first
    one it says what takes such rows.
    """

    def __init__(self, producer: str, seen: int, postponed: list[Rejected], *, raises: bool) -> None:
        """``seen``: the number of rejected rows so far. ``postponed``: the outbox's ``late``."""
        self._producer, self._seen, self._postponed, self.raises = producer, seen, postponed, raises

    def note(self, late: Sequence[Rejected]) -> None:
        """Counts more rejected rows, and logs them."""
        for rejected in late:
            before, self._seen = self._seen, self._seen + rejected.rows.num_rows
            if len(str(before)) < len(str(self._seen)) or before == 0:
                more = "" if before else f". It is recorded as rejected, as further ones are. {_remedy(rejected)}"
                LATE_LOG.warning("%s (%d so far)%s", show_late(self._producer, rejected), self._seen, more)
            elif LATE_LOG.isEnabledFor(logging.DEBUG):
                LATE_LOG.debug("%s: %s", show_late(self._producer, rejected), rejected.rows.to_pylist())

    def raise_postponed(self, groups: int | None = None) -> None:
        """Raises LateRowError for the first ``groups`` of the postponed rows (None: for all), if late rows raise."""
        if not self._postponed:
            return
        late = self._postponed[:groups]
        del self._postponed[:groups]
        if late and self.raises:
            raise self.error(late, "An earlier call's rows became late before their commit")

    def error(self, late: list[Rejected], note: str, below: str = "") -> LateRowError:
        """The error about late rows. ``note`` is a sentence on why it is raised now.

        ``below`` names what the first of them fell below, where that is the producer's own.
        """
        first = late[0].origin
        if below and (first is None or first.owner == PRODUCER):
            note = f"A row must not be below {below}. {note}"
        groups = "; ".join(show_late(self._producer, rejected) for rejected in late[:3])
        more = f" and {len(late) - 3} more groups" if len(late) > 3 else ""
        return LateRowError(
            f"{groups}{more}. {note}. They are recorded as rejected (view=rejected shows them). "
            f"{_unit_hint(late[0])}{_remedy(late[0])}, or "
            "open the sink with onLate='reject' (`rowtime send --on-late reject`) to continue without them.",
            producer=self._producer,
            rows=sum(rejected.rows.num_rows for rejected in late),
            bound=late[0].bound,
            **origin_values(first),
        )


def late_rows(
    batch: pa.RecordBatch, verdict: Verdict, producer: str, whose: Callable[[int], BoundOrigin]
) -> list[Rejected]:
    """The late rows of a call in their order, each group with the bound in force for it, and whose it was."""
    assert verdict.bounds is not None, "where rows are late, a verdict says what they fell below"
    late = pc.invert(verdict.fits)
    rows, bounds = batch.filter(late), verdict.bounds.filter(late)
    declared = pa.repeat(pa.scalar(False), len(bounds)) if verdict.declared is None else verdict.declared.filter(late)
    ends, found, start = sorted({*_run_ends(bounds), *_run_ends(declared)}), [], 0
    for end in ends:
        bound = bounds[start].as_py()
        own = declared[start].as_py() or bound is None
        origin = BoundOrigin(PRODUCER, producer) if own else whose(bound)
        found.append(Rejected("late", bound, rows.slice(start, end - start), origin))
        start = end
    return found


def _run_ends(values: pa.Array) -> list[int]:
    """Where the runs of equal values end."""
    ends: list[int] = pc.run_end_encode(values).run_ends.to_pylist()
    return ends


def late_before_sent(producer: str, micros: int, bound: int, origin: BoundOrigin | None) -> LateRowError:
    """The error for a row that goes elsewhere, as into a Kafka topic, and was found late before it was sent.

    ``origin`` is None for the producer's own bound.
    """
    origin = origin or BoundOrigin(PRODUCER, producer)
    return LateRowError(
        f"A row of producer {producer!r} at {show_micros(micros)} lies below the bound {show_micros(bound)}, {origin}. "
        "It was not sent. Send rows before the bound that they belong to.",
        producer=producer,
        rows=1,
        bound=bound,
        **origin_values(origin),
    )


_TEN_YEARS = 3653 * 24 * 3600 * SECOND_MICROS


def _unit_hint(rejected: Rejected) -> str:
    if rejected.reason != "late" or rejected.bound is None:
        return ""
    if rejected.bound - Timed(rejected.rows).least <= _TEN_YEARS:
        return ""
    return "The earliest of these rows is more than 10 years below: check the unit of its time (s, ms, us since 1970). "


def _remedy(rejected: Rejected) -> str:
    """What a user can do about such rows, other than to leave them out."""
    if rejected.reason != "late":
        return "Correct the clock of the feed, give the stream a larger maxAhead (alterStream)"
    if rejected.origin is None or rejected.origin.owner == PRODUCER:
        return "Send rows in order, declare a lateness or kSort that covers their disorder"
    return (
        "The stream waits only for producers that are attached or expected: name this one in "
        "createStream(..., producers=[...]), open it before the others have passed its rows"
    )


def show_late(producer: str, rejected: Rejected) -> str:
    """One line about rejected rows, for logs and errors."""
    timed = Timed(rejected.rows)
    first, last = show_micros(timed.least), show_micros(timed.largest)
    span = first if first == last else f"{first} .. {last}"
    origin = f", {rejected.origin}" if rejected.origin else ""
    rows = f"{rejected.rows.num_rows} {rejected.reason} row(s) of producer {producer!r} at {span}"
    return f"{rows}, {_limit(rejected)}{origin}"


def _limit(rejected: Rejected) -> str:
    if rejected.bound is None:  # see ``show_number``
        return "below the largest value of a column of whole numbers less its lateness"
    if rejected.reason == "late":
        return f"below the bound {show_micros(rejected.bound)}"
    return f"beyond {show_micros(rejected.bound)} (now plus maxAhead)"
