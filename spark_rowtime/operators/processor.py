"""The state function behind the operators: rows wait until they are complete, then meet their frame."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from spark_rowtime.operators.aggregates import Aggregate
from spark_rowtime.operators.chunks import CHUNK, from_bytes, micros, pieces
from spark_rowtime.operators.floor import batch_floor, due_ms
from spark_rowtime.operators.framed import framed
from spark_rowtime.operators.frames import Frame
from spark_rowtime.operators.slots import Slots


class FrameProcessor(StatefulProcessor):
    """Spark makes one in each task; a group is a bucket of keys, its rows come and go as chunks.

    Laws: a row at r goes out in the batch whose floor is first above r, once; what is kept are the
    rows at or above the floor ("waiting", whole) and those that a later row's frame can still reach
    ("past", only the columns that count). One timer per group wakes those that get no rows.
    """

    def __init__(self, by: list[str], time: str, frame: Frame, what: list[Aggregate]) -> None:
        self._by, self._time, self._frame, self._what = by, time, frame, what
        self._kept = list(dict.fromkeys([*by, time, *(a.column for a in what if a.column != "*")]))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Once a task, before any group."""
        self._handle = handle
        self._waiting = Slots(handle, "waiting", self._frame.slot)
        self._past = Slots(handle, "past", self._frame.slot)

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[pd.DataFrame]:
        """Once a batch, for each group with new rows."""
        del key
        new = [from_bytes(chunk) for frame in rows for chunk in frame[CHUNK]]
        return self._advance(new, timerValues, None)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        """Once a batch, after all rows, for each group whose timer is due."""
        del key
        return self._advance([], timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def _advance(self, new: list[pa.Table], timers: TimerValues, fired: int | None) -> Iterator[pd.DataFrame]:
        floor = batch_floor(timers.getCurrentWatermarkInMs())
        rows = [*self._waiting.take_until(floor), *new]
        due = []
        if rows:
            table = pa.concat_tables(rows)
            complete = pa.array(micros(table, self._time) < floor)
            due = self._wait(table.filter(pc.invert(complete)))
            yield from self._emit(table.filter(complete), floor)
        self._rest(due, floor, fired)

    def _wait(self, rows: pa.Table) -> list[int]:
        """Keeps rows that are not complete; the first of their times, if there are any."""
        if not rows.num_rows:
            return []
        self._waiting.add(rows, self._time)
        return [int(micros(rows, self._time).min())]

    def _emit(self, fresh: pa.Table, floor: int) -> Iterator[pd.DataFrame]:
        """Complete rows go out with their aggregates, and become past where later rows can reach them."""
        if not fresh.num_rows:
            return
        times = micros(fresh, self._time)
        slim = fresh.select(self._kept)
        kept = self._past.since(self._frame.since(int(times.min())), self._past.starts())
        past = pa.concat_tables([slim.slice(0, 0), *kept])
        for chunk in pieces(framed(fresh, past, self._by, self._time, self._frame, self._what)):
            yield pd.DataFrame({CHUNK: [chunk]})
        still = slim.filter(pa.array(times >= self._frame.since(floor)))
        if still.num_rows:
            self._past.add(still, self._time)

    def _rest(self, due: list[int], floor: int, fired: int | None) -> None:
        """Frees what no frame reaches any more, and sets the timer for what is left."""
        past = self._past.starts()
        past = self._past.drop_before(self._frame.since(floor), past)
        waiting = self._waiting.starts()
        # Slots that were not looked at: their start is early enough.
        due += [first for slot in waiting[:1] if (first := self._waiting.end(slot - 1)) >= floor]
        if due:
            self._wake_at(min(due) + 1, fired)
        elif past:
            self._wake_at(self._frame.free_at(self._past.end(past[0])), fired)
        else:
            self._wake_at(None, fired)

    def _wake_at(self, floor: int | None, fired: int | None) -> None:
        """The group's only timer. Spark deletes the one that fired after this: that time is not taken again."""
        for old in list(self._handle.listTimers()):
            if old != fired:
                self._handle.deleteTimer(old)
        if floor is not None:
            at = due_ms(floor)
            self._handle.registerTimer(at - 1 if at == fired else at)
