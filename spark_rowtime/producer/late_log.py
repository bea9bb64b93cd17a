"""Late rows: which rows of a call are late, the log messages about them, and the error."""

import logging
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bounds.disorder import Verdict
from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import LateRowError
from spark_rowtime.store.base import Rejected
from spark_rowtime.types.timestamps import show_micros

LATE_LOG = logging.getLogger("spark_rowtime.laterow")


class LateLog:
    """Logs a producer's 1st, 10th, 100th, ... late row, and every one at DEBUG, like s-Server's trace log."""

    def __init__(self, producer: str, seen: int) -> None:
        """``seen``: the number of rejected rows so far."""
        self._producer, self._seen = producer, seen

    def note(self, late: Sequence[Rejected]) -> None:
        """Counts more rejected rows, and logs them."""
        for rejected in late:
            before, self._seen = self._seen, self._seen + rejected.rows.num_rows
            if len(str(before)) < len(str(self._seen)) or before == 0:
                LATE_LOG.warning("%s (%d so far)", show_late(self._producer, rejected), self._seen)
            elif LATE_LOG.isEnabledFor(logging.DEBUG):
                LATE_LOG.debug("%s: %s", show_late(self._producer, rejected), rejected.rows.to_pylist())


class LateReport:
    """Reports the late rows of one sink: it logs them and, if ``raises``, has calls raise LateRowError for them.

    ``postponed``: rows that were late only at a commit; the next call raises for them.
    """

    def __init__(self, producer: str, seen: int, *, raises: bool) -> None:
        """``seen``: the number of rejected rows so far."""
        self._producer, self._log, self.raises = producer, LateLog(producer, seen), raises
        self.postponed: list[Rejected] = []

    def note(self, late: Sequence[Rejected]) -> None:
        """Logs rows that the present call reports."""
        self._log.note(late)

    def postpone(self, late: Sequence[Rejected]) -> None:
        """Logs rows that became late while they waited for their commit, and leaves the error to the next call."""
        self._log.note(late)
        self.postponed += late

    def raise_postponed(self, groups: int | None = None) -> None:
        """Raises LateRowError for the first ``groups`` of the postponed rows (None: for all), if late rows raise."""
        late, self.postponed = self.postponed[:groups], [] if groups is None else self.postponed[groups:]
        if late and self.raises:
            raise self.error(late, "An earlier call's rows became late before their commit")

    def error(self, late: list[Rejected], note: str) -> LateRowError:
        """The error about late rows; ``note`` is a sentence on why it is raised now."""
        return late_error(self._producer, late, note)


def late_rows(batch: pa.RecordBatch, verdict: Verdict) -> list[Rejected]:
    """The late rows of a call in their order, each group with the bound in force for it."""
    assert verdict.bounds is not None, "where rows are late, a verdict says what they fell below"
    late = pc.invert(verdict.fits)
    rows, runs = batch.filter(late), pc.run_end_encode(verdict.bounds.filter(late))
    ends = runs.run_ends.to_pylist()
    spans = zip(runs.values.to_pylist(), [0, *ends], ends, strict=False)
    return [Rejected("late", bound, rows.slice(start, end - start)) for bound, start, end in spans]


def late_error(producer: str, late: list[Rejected], note: str) -> LateRowError:
    """The error about late rows; ``note`` is a sentence on why it is raised now."""
    groups = "; ".join(show_late(producer, rejected) for rejected in late[:3])
    more = f" and {len(late) - 3} groups more" if len(late) > 3 else ""
    return LateRowError(
        f"{groups}{more}. {note}. They are recorded as rejected (view=rejected shows them). Send rows in "
        "order, declare lateness, or open the sink with onLate='reject' to go on without them.",
        producer=producer,
        rows=sum(rejected.rows.num_rows for rejected in late),
        bound=late[0].bound,
    )


def show_late(producer: str, rejected: Rejected) -> str:
    """One line about rejected rows, for logs and errors."""
    timed = Timed(rejected.rows)
    first, last = show_micros(timed.least), show_micros(timed.largest)
    span = first if first == last else f"{first} .. {last}"
    word = "below the bound" if rejected.reason == "late" else "too far ahead of"
    return (
        f"{rejected.rows.num_rows} {rejected.reason} row(s) of producer {producer!r} at {span}, "
        f"{word} {show_micros(rejected.bound)}"
    )
