"""Train: rows followed by one bound, the unit of writing and reading."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound, stronger
from spark_rowtime.types.html import html_facts, html_table
from spark_rowtime.types.json_values import plain
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.short_repr import short_repr

_SHOWN_ROWS = 20
"""The largest number of rows that a notebook shows of a train."""


@dataclass(frozen=True, slots=True)
class Train:
    """Rows followed by one bound.

    Attributes:
        rows: A pyarrow RecordBatch of the stream's schema; it may have no rows.
        bound: The bound on everything that comes after the train; None while nothing is promised.

    Laws (property tests of the same names in tests/unit/test_train.py):

    - *split*: the first part ends with the strongest bound that is true there: the least rowtime
      in everything that follows in the same train, if the train's own bound is not weaker.
    - *join*: the later bound supersedes the earlier, which is weaker or equal.
    - *split then join* gives the train back.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-train", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-train") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> with rt.openReader("memory://docs-train") as reader:
        ...     train = reader.read()
        >>> train.rows.num_rows, train.bound
        (1, RowtimeBound('2026-01-05T14:30:00Z'))
    """

    rows: pa.RecordBatch
    bound: RowtimeBound | None

    def _repr_html_(self) -> str:
        """The train in a notebook: its first rows, and its bound."""
        shown, count = self.rows.slice(0, _SHOWN_ROWS), self.rows.num_rows
        title = f"{count} row(s)" + (f", the first {_SHOWN_ROWS}" if count > _SHOWN_ROWS else "")
        cells = [[_cell(value) for value in row.values()] for row in shown.to_pylist()]
        bound = "none" if self.bound is None else str(self.bound)
        return html_table(title, self.rows.schema.names, cells) + html_facts("and behind them", [("bound", bound)])

    def split(self, at: int) -> tuple["Train", "Train"]:
        """Splits the train in two.

        Args:
            at: The number of rows of the first part.

        Returns:
            The first ``at`` rows with the strongest bound that is true after them, and the rest with this train's
            bound.

        Example:
            >>> import pyarrow as pa
            >>> import spark_rowtime as rt
            >>> times = pa.array([1_000_000, 2_000_000], pa.timestamp("us", "UTC"))
            >>> train = rt.Train(pa.record_batch({"rowtime": times}), rt.RowtimeBound.fromFloor(3_000_000))
            >>> first, rest = train.split(1)
            >>> first.bound, rest.bound
            (RowtimeBound('1970-01-01T00:00:02Z'), RowtimeBound('1970-01-01T00:00:03Z'))
        """
        rest = self.rows.slice(at)
        first_floor = floors_between([span(rest)], self.bound.floor if self.bound else None, None)[0]
        return Train(self.rows.slice(0, at), as_bound(first_floor)), Train(rest, self.bound)

    def join(self, later: "Train") -> "Train":
        """Joins this train and the one that follows it.

        Args:
            later: The train that follows this one.

        Returns:
            One train with the rows of both. Its bound is that of ``later``, or this train's if ``later`` has none.

        Raises:
            pyarrow.ArrowInvalid: A column of texts would be larger than 2 GiB.

        Example:
            >>> import pyarrow as pa
            >>> import spark_rowtime as rt
            >>> times = pa.array([1_000_000, 2_000_000], pa.timestamp("us", "UTC"))
            >>> train = rt.Train(pa.record_batch({"rowtime": times}), None)
            >>> first, rest = train.split(1)
            >>> first.join(rest) == train
            True
        """
        return Train(one_batch(pa.Table.from_batches([self.rows, later.rows])), later.bound or self.bound)


def _cell(value: Any) -> str:
    """A value as a text for a table; long ones are cut."""
    if value is None:
        return "null"
    known = plain(value)
    return known if isinstance(known, str) and len(known) <= _LONGEST_TEXT else short_repr(known)


_LONGEST_TEXT = 100


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """All rows in one batch. Raises ArrowInvalid if a column of texts would be larger than Arrow's 2 GiB."""
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise pa.ArrowInvalid(f"{rows.num_rows} rows are too many for one batch: a column would be larger than 2 GiB.")
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)


def span(rows: pa.RecordBatch) -> tuple[int, int] | None:
    """The least and the largest rowtime of ``rows``, in microseconds; None without rows."""
    if not rows.num_rows:
        return None
    return Timed(rows).ends


class Timed:
    """At least one row, with facts about the rowtimes that are computed once, in numpy.

    Raises ArrowInvalid if a rowtime is null. For a few rows numpy is several times as fast as Arrow's kernels,
    which take microseconds per call. ``micros``: the rowtimes in microseconds, a view of Arrow's own memory;
    ``rises``: no rowtime is below the one before it; ``least``, ``largest``: the smallest and the largest rowtime.
    """

    __slots__ = ("largest", "least", "micros", "rises", "rows")

    def __init__(self, rows: pa.RecordBatch) -> None:
        column = rows.column(ROWTIME)
        if column.null_count:
            raise pa.ArrowInvalid("A rowtime is null.")
        times = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
        self.rows, self.micros = rows, times
        self.rises = 1 not in (times[1:] < times[:-1]).tobytes()  # for a few rows faster than functions of numpy
        self.least = times.item(0) if self.rises else int(times.min())
        self.largest = times.item(-1) if self.rises else int(times.max())

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest rowtime, in microseconds."""
        return self.least, self.largest

    def where(self, mask: pa.Array) -> "Timed | None":
        """The rows for which ``mask`` is true; None if there are none."""
        rows = self.rows.filter(mask)
        return Timed(rows) if rows.num_rows else None


def floors_between(later: Sequence[tuple[int, int] | None], final: int | None, before: int | None) -> list[int | None]:
    """The floor that holds before each of the spans ``later``, and after the last.

    Law 5: the least rowtime in everything that follows in the same commit, if the commit's own
    floor ``final`` is not weaker; and never below ``before``, the floor that held already. The last entry
    is ``final``, or ``before`` if that is stronger.
    """
    floors = [stronger(before, final)]
    least = final
    for ends in reversed(later):
        if ends is not None and least is not None:
            least = min(least, ends[0])
        floors.append(stronger(before, least))
    return floors[::-1]
