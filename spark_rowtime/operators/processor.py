"""The state function of the operators: it holds rows until they are complete, and then aggregates their frames."""

from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from spark_rowtime.operators.aggregates import Aggregate
from spark_rowtime.operators.chunks import micros, together
from spark_rowtime.operators.frames import Frame
from spark_rowtime.operators.group_processor import GroupProcessor, chunked, unpacked
from spark_rowtime.operators.row_state import RowState, WaitingRows
from spark_rowtime.operators.sorted_rows import SortedRows, in_sequence
from spark_rowtime.types.timestamps import LARGEST


class FrameProcessor(GroupProcessor):
    """Aggregates the frames of one bucket of keys.

    Laws: with floor f, a row is complete when its time is before f less the frame's ``following``. It is
    emitted once, in the first batch in which it is complete. The state keeps the rows that are not complete
    ("waiting", with all columns) and those that the frame of a later row can still reach ("past", with only
    the columns needed). Rows of one time are complete in the same batch, so it is enough to put the rows of each batch
    in sequence.
    """

    def __init__(self, by: list[str], time: str, frame: Frame, what: list[Aggregate], sequence: list[str]) -> None:
        """``sequence`` names the columns that order rows of one time; it is empty if their order does not matter."""
        self._by, self._time, self._frame, self._what, self._sequence = by, time, frame, what, sequence
        self._kept = list(dict.fromkeys([*by, time, *(a.column for a in what if a.column != "*")]))

    def _start(self, handle: StatefulProcessorHandle) -> None:
        self._waiting = WaitingRows(handle, "waiting", self._frame.slot, self._time)
        self._past = RowState(handle, "past", self._frame.slot if self._frame.last_rows is None else LARGEST)

    def _advance(self, new: list[pd.DataFrame], floor: int, fired: int | None) -> Iterator[pd.DataFrame]:
        self._waiting.open()
        self._past.open()
        until = floor - self._frame.following
        complete = self._waiting.take(unpacked(new), until)
        if complete is not None:
            yield from self._emit(in_sequence(complete, self._sequence), until)
        self._rest(until, fired)

    def _emit(self, fresh: pa.Table, until: int) -> Iterator[pd.DataFrame]:
        """Emits complete rows with their aggregates, and keeps those as "past" that later rows can reach."""
        if not fresh.num_rows:
            return
        times = micros(fresh, self._time)
        slim = fresh.select(self._kept)
        past = together([*self._past.between(self._frame.since(int(times.min())), until), slim.slice(0, 0)])
        others = together([past, *self._later(int(times.max()))])
        yield from chunked(over_frames(fresh, others, self._by, self._time, self._frame, self._what))
        if self._frame.last_rows is None:
            self._past.add(slim.filter(pa.array(times >= self._frame.since(until))), self._time)
        else:
            self._keep_last(together([past, slim]), self._frame.last_rows)

    def _later(self, last: int) -> list[pa.Table]:
        """Returns the waiting rows that count for rows up to ``last``.

        All of them have arrived, since the floor is above them.
        """
        if not self._frame.following:
            return []
        rows = list(self._waiting.between(last, last + self._frame.following))
        return [in_sequence(together(rows), self._sequence).select(self._kept)] if rows else []

    def _keep_last(self, rows: pa.Table, count: int) -> None:
        self._past.drop_before(2 * LARGEST)
        self._past.add(rows.filter(pa.array(SortedRows(rows, self._by, self._time).among_last(count))), self._time)

    def _rest(self, until: int, fired: int | None) -> None:
        """Frees the rows that no frame reaches any more, and sets the timer for the remaining ones."""
        self._past.drop_before(self._frame.since(until))
        earliest, ends = self._waiting.earliest(), self._past.ends()
        if earliest is not None:
            self._wake_at(earliest + 1 + self._frame.following, fired)
        elif ends and self._frame.last_rows is None:
            self._wake_at(self._frame.free_at(ends[0]) + self._frame.following, fired)
        else:
            self._wake_at(None, fired)


def over_frames(
    fresh: pa.Table, others: pa.Table, by: list[str], time: str, frame: Frame, what: list[Aggregate]
) -> pa.Table:
    """Returns ``fresh`` with a column for each aggregate.

    The rows of ``others`` and ``fresh`` that lie in a row's frame are aggregated.
    ``others`` has the columns ``by``, ``time`` and those that are aggregated. Rows of one key and
    time count in the order in which they are given, those of ``others`` first.
    """
    rows = pa.concat_tables([others, fresh.select(others.column_names)])
    places = SortedRows(rows, by, time, others.num_rows)
    used = list(dict.fromkeys(aggregate.column for aggregate in what if aggregate.column != "*"))
    ranges, ordered = frame.ranges(places), rows.select(used).take(pa.array(places.order))
    for aggregate in what:
        fresh = fresh.append_column(aggregate.name, places.in_row_order(aggregate.over(ordered, ranges)))
    return fresh
