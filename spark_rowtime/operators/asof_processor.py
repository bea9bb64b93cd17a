"""The state function of as-of joins: it holds the rows of both sides until they are complete, and then matches them."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from spark_rowtime.operators.asof_match import AsOf
from spark_rowtime.operators.asof_pack import LEFT, PLACE, RIGHT, SIDE
from spark_rowtime.operators.chunks import CHUNK, from_bytes, together
from spark_rowtime.operators.current_rows import HASH, CurrentRows
from spark_rowtime.operators.group_processor import GroupProcessor, chunked
from spark_rowtime.operators.row_state import WaitingRows
from spark_rowtime.operators.sorted_rows import Index
from spark_rowtime.types.timestamps import MINUTE_MICROS


class AsOfProcessor(GroupProcessor):
    """Matches the rows of one bucket of keys.

    Laws: with floor f of both sides, a left row is complete when its time is before f less ``following``. It is emitted
    once, in the first batch in which it is complete, after all earlier ones of its bucket. The state keeps the rows of
    both sides that are not complete, and the last complete right row of each key.
    """

    def __init__(self, asof: AsOf, added: pa.Schema, *, inner: bool) -> None:
        """``added``: the columns that a left row gets of its right row."""
        self._asof, self._added, self._inner = asof, added, inner

    def _start(self, handle: StatefulProcessorHandle) -> None:
        self._left = WaitingRows(handle, "left", MINUTE_MICROS, self._asof.on)
        self._right = WaitingRows(handle, "right", MINUTE_MICROS, self._asof.on)
        self._current = CurrentRows(handle, "current", self._asof)

    def _advance(self, new: list[pd.DataFrame], floor: int, fired: int | None) -> Iterator[pd.DataFrame]:
        for state in (self._left, self._right, self._current):
            state.open()
        (left, right), until = _sides(new), floor - self._asof.following
        complete, settled = self._left.take(left, until), self._right.take(right, until)
        fresh = [settled] if settled is not None and settled.num_rows else []
        if complete is not None and complete.num_rows:
            yield from self._emit(complete, fresh)
        if fresh and self._asof.direction != "forward":
            self._current.put(fresh[0])
        self._current.close(until)
        self._rest(fired)

    def _emit(self, complete: pa.Table, fresh: list[pa.Table]) -> Iterator[pd.DataFrame]:
        """Emits complete left rows, in the order of their times, each with its right row."""
        times = self._asof.times(complete)
        complete = complete.take(pa.array(np.argsort(times, kind="stable")))
        right = [*self._current.of(complete.column(HASH).to_numpy()), *fresh, *self._later(times)]
        yield from chunked(self._joined(complete, together(right) if right else None))

    def _later(self, times: Index) -> Iterator[pa.Table]:
        """Returns the waiting right rows that count for left rows of these times."""
        following = self._asof.following
        return self._right.between(int(times.max()), int(times.max()) + following) if following else iter(())

    def _joined(self, left: pa.Table, right: pa.Table | None) -> pa.Table:
        rows = left.drop_columns([HASH])
        if right is None:
            nulls = self._added.empty_table().take(pa.nulls(rows.num_rows, pa.int64()))
            return _side_by_side(rows.slice(0, 0) if self._inner else rows, nulls.slice(0, 0) if self._inner else nulls)
        found = self._asof.matches(left, right)
        joined = _side_by_side(rows, right.select(self._added.names).combine_chunks().take(found))
        return joined.filter(found.is_valid()) if self._inner else joined

    def _rest(self, fired: int | None) -> None:
        """Sets the timer for what is left."""
        due = [time + 1 for time in (self._left.earliest(), self._right.earliest()) if time is not None]
        sweep = self._current.due()
        floors = due if sweep is None else [*due, sweep]
        self._wake_at(min(floors) + self._asof.following if floors else None, fired)


def _sides(new: list[pd.DataFrame]) -> tuple[list[pa.Table], list[pa.Table]]:
    """Returns the rows of the left and of the right side, each in the order of their input."""
    if not new:
        return [], []
    chunks = pd.concat(new).sort_values(PLACE, kind="stable")
    left, right = ([from_bytes(chunk) for chunk in chunks[CHUNK][chunks[SIDE] == side]] for side in (LEFT, RIGHT))
    return left, right


def _side_by_side(left: pa.Table, right: pa.Table) -> pa.Table:
    for name in right.column_names:
        left = left.append_column(right.schema.field(name).with_nullable(True), right.column(name))
    return left
