"""The state function of as-of joins: it holds the rows of both sides until they are complete, and then matches them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from spark_rowtime.operators.asof_match import AsOf
from spark_rowtime.operators.asof_pack import LEFT, PLACE, RIGHT, SIDE
from spark_rowtime.operators.chunks import CHUNK, from_bytes, pieces
from spark_rowtime.operators.current_rows import HASH, CurrentRows
from spark_rowtime.operators.frames import MINUTE_MICROS
from spark_rowtime.operators.sorted_rows import Index
from spark_rowtime.operators.timers import batch_floor, wake_at
from spark_rowtime.operators.waiting_rows import WaitingRows
from spark_rowtime.spark.versioned_pickle import VersionedPickle


class AsOfProcessor(VersionedPickle, StatefulProcessor):
    """Spark creates one in each task. A group is a bucket of keys; its rows arrive and leave as chunks.

    Laws: with floor f of both sides, a left row is complete when its time is before f less ``following``. It is emitted
    once, in the first batch in which it is complete, after all earlier ones of its bucket. The state keeps the rows of
    both sides that are not complete, and the last complete right row of each key. One timer per group wakes groups that
    get no rows.
    """

    def __init__(self, asof: AsOf, added: pa.Schema, *, inner: bool) -> None:
        """``added``: the columns that a left row gets of its right row."""
        self._asof, self._added, self._inner = asof, added, inner

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task, before any group."""
        self._handle = handle
        self._left = WaitingRows(handle, "left", MINUTE_MICROS, self._asof.on)
        self._right = WaitingRows(handle, "right", MINUTE_MICROS, self._asof.on)
        self._current = CurrentRows(handle, "current", self._asof)

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[pd.DataFrame]:
        """Called once per batch for each group with new rows."""
        del key
        chunks = pd.concat(list(rows)).sort_values(PLACE, kind="stable")
        left, right = ([from_bytes(chunk) for chunk in chunks[CHUNK][chunks[SIDE] == side]] for side in (LEFT, RIGHT))
        return self._advance(left, right, timerValues, None)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        """Called once per batch, after all rows, for each group whose timer is due."""
        del key
        return self._advance([], [], timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def _advance(
        self, left: list[pa.Table], right: list[pa.Table], timers: TimerValues, fired: int | None
    ) -> Iterator[pd.DataFrame]:
        for state in (self._left, self._right, self._current):
            state.open()
        until = batch_floor(timers.getCurrentWatermarkInMs()) - self._asof.following
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
        for chunk in pieces(self._joined(complete, pa.concat_tables(right) if right else None)):
            yield pd.DataFrame({CHUNK: [chunk]})

    def _later(self, times: Index) -> Iterator[pa.Table]:
        """Returns the waiting right rows that count for left rows of these times."""
        following = self._asof.following
        return self._right.between(int(times.max()), int(times.max()) + following) if following else iter(())

    def _joined(self, left: pa.Table, right: pa.Table | None) -> pa.Table:
        rows = left.drop_columns([HASH])
        if right is None:
            nulls = self._added.empty_table().take(pa.nulls(rows.num_rows, pa.int64()))
            return _beside(rows.slice(0, 0) if self._inner else rows, nulls.slice(0, 0) if self._inner else nulls)
        found = self._asof.matches(left, right)
        joined = _beside(rows, right.select(self._added.names).combine_chunks().take(found))
        return joined.filter(found.is_valid()) if self._inner else joined

    def _rest(self, fired: int | None) -> None:
        """Sets the timer for what is left."""
        due = [time + 1 for time in (self._left.earliest(), self._right.earliest()) if time is not None]
        sweep = self._current.due()
        floors = due if sweep is None else [*due, sweep]
        wake_at(self._handle, min(floors) + self._asof.following if floors else None, fired)


def _beside(left: pa.Table, right: pa.Table) -> pa.Table:
    for name in right.column_names:
        left = left.append_column(right.schema.field(name).with_nullable(True), right.column(name))
    return left
