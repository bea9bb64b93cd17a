"""Train: rows followed by one bound, the unit that is written and read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound, stronger
from spark_rowtime.types.schema import ROWTIME


@dataclass(frozen=True, slots=True)
class Train:
    """Rows followed by one bound.

    ``rows`` is a RecordBatch of the stream's schema, maybe without rows; ``bound`` holds for
    everything after it, None while nothing is promised.

    Laws (property tests of the same names in tests/unit/test_train.py):

    - *split*: the first part ends with the strongest bound that is true there: the least rowtime
      in everything that follows in the same train, if the train's own bound is not weaker.
    - *join*: the later bound supersedes the earlier, which is weaker or equal.
    - *split then join* gives the train back.
    """

    rows: pa.RecordBatch
    bound: RowtimeBound | None

    def split(self, at: int) -> tuple["Train", "Train"]:
        """The first ``at`` rows and the rest."""
        rest = self.rows.slice(at)
        first_floor = floors_between([span(rest)], self.bound.floor if self.bound else None, None)[0]
        return Train(self.rows.slice(0, at), as_bound(first_floor)), Train(rest, self.bound)

    def join(self, later: "Train") -> "Train":
        """This train and the one that follows it, as one."""
        return Train(one_batch(pa.Table.from_batches([self.rows, later.rows])), later.bound or self.bound)


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """All rows in one batch. ArrowInvalid where a column of texts would pass Arrow's 2 GiB."""
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise pa.ArrowInvalid(f"{rows.num_rows} rows are too many for one batch: a column passes 2 GiB.")
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)


def span(rows: pa.RecordBatch) -> tuple[int, int] | None:
    """The least and the largest rowtime of ``rows``, in microseconds; None without rows."""
    if not rows.num_rows:
        return None
    return Timed(rows).ends


class Timed:
    """Rows, of which there is at least one, with what their rowtimes are: looked at once, in numpy.

    ArrowInvalid where one is null. For a few rows numpy is several times as quick as Arrow's kernels, which
    take microseconds a call. ``micros``: the rowtimes in microseconds, over Arrow's own memory; ``rises``:
    none is below the one before it; ``least``, ``largest``: the ends of them.
    """

    __slots__ = ("largest", "least", "micros", "rises", "rows")

    def __init__(self, rows: pa.RecordBatch) -> None:
        column = rows.column(ROWTIME)
        if column.null_count:
            raise pa.ArrowInvalid("A rowtime is null.")
        times = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
        self.rows, self.micros = rows, times
        self.rises = len(times) == 1 or not np.count_nonzero(times[1:] < times[:-1])
        self.least = times.item(0) if self.rises else int(times.min())
        self.largest = times.item(-1) if self.rises else int(times.max())

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest rowtime, in microseconds."""
        return self.least, self.largest

    def where(self, mask: pa.Array) -> "Timed | None":
        """The rows for which ``mask`` is true, if there are any."""
        rows = self.rows.filter(mask)
        return Timed(rows) if rows.num_rows else None


def floors_between(later: Sequence[tuple[int, int] | None], final: int | None, before: int | None) -> list[int | None]:
    """The floor that holds before each of the spans ``later``, and after the last.

    Law 5: the least rowtime in everything that follows in the same commit, where the commit's own
    floor ``final`` is not weaker; and never below ``before``, what held already. The last entry is
    ``final`` itself.
    """
    floors = [stronger(before, final)]
    least = final
    for ends in reversed(later):
        if ends is not None and least is not None:
            least = min(least, ends[0])
        floors.append(stronger(before, least))
    return floors[::-1]
