"""The state function of the operators: it holds rows until they are complete, and then aggregates their frames."""

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
from spark_rowtime.operators.places import Places, in_sequence
from spark_rowtime.operators.slots import Slots
from spark_rowtime.spark.shipped import Shipped
from spark_rowtime.types.timestamps import LARGEST


class FrameProcessor(Shipped, StatefulProcessor):
    """Spark creates one in each task. A group is a bucket of keys; its rows arrive and leave as chunks.

    Laws: with floor f, a row is complete when its time is before f less the frame's ``following``. It is
    emitted once, in the first batch in which it is complete. The state keeps the rows that are not complete
    ("waiting", with all columns) and those that the frame of a later row can still reach ("past", with only
    the columns needed). One timer per group wakes groups that get no rows. Rows of one time are complete in
    the same batch, so it is enough to put the rows of each batch in sequence.
    """

    def __init__(self, by: list[str], time: str, frame: Frame, what: list[Aggregate], sequence: list[str]) -> None:
        """``sequence`` names the columns that order rows of one time; it is empty if their order does not matter."""
        self._by, self._time, self._frame, self._what, self._sequence = by, time, frame, what, sequence
        self._kept = list(dict.fromkeys([*by, time, *(a.column for a in what if a.column != "*")]))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task, before any group."""
        self._handle = handle
        self._waiting = Slots(handle, "waiting", self._frame.slot)
        self._past = Slots(handle, "past", self._frame.slot if self._frame.last_rows is None else LARGEST)

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[pd.DataFrame]:
        """Called once per batch for each group with new rows."""
        del key
        new = [from_bytes(chunk) for frame in rows for chunk in frame[CHUNK]]
        return self._advance(new, timerValues, None)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        """Called once per batch, after all rows, for each group whose timer is due."""
        del key
        return self._advance([], timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def _advance(self, new: list[pa.Table], timers: TimerValues, fired: int | None) -> Iterator[pd.DataFrame]:
        self._waiting.open()
        self._past.open()
        until = batch_floor(timers.getCurrentWatermarkInMs()) - self._frame.following
        rows = [*self._waiting.take_until(until), *new]
        due = []
        if rows:
            table = pa.concat_tables(rows)
            complete = pa.array(micros(table, self._time) < until)
            due = self._wait(table.filter(pc.invert(complete)))
            yield from self._emit(in_sequence(table.filter(complete), self._sequence), until)
        self._rest(due, until, fired)

    def _wait(self, rows: pa.Table) -> list[int]:
        """Keeps rows that are not complete. Returns the first of their times, if there are any."""
        if not rows.num_rows:
            return []
        self._waiting.add(rows, self._time)
        return [int(micros(rows, self._time).min())]

    def _emit(self, fresh: pa.Table, until: int) -> Iterator[pd.DataFrame]:
        """Emits complete rows with their aggregates, and keeps those as "past" that later rows can reach."""
        if not fresh.num_rows:
            return
        times = micros(fresh, self._time)
        slim = fresh.select(self._kept)
        past = pa.concat_tables([slim.slice(0, 0), *self._past.between(self._frame.since(int(times.min())), until)])
        others = pa.concat_tables([past, *self._later(int(times.max()))])
        for chunk in pieces(framed(fresh, others, self._by, self._time, self._frame, self._what)):
            yield pd.DataFrame({CHUNK: [chunk]})
        if self._frame.last_rows is None:
            self._keep(slim.filter(pa.array(times >= self._frame.since(until))))
        else:
            self._keep_last(pa.concat_tables([past, slim]), self._frame.last_rows)

    def _later(self, last: int) -> list[pa.Table]:
        """Returns the waiting rows that count for rows up to ``last``.

        All of them have arrived, since the floor is above them.
        """
        if not self._frame.following:
            return []
        rows = list(self._waiting.between(last, last + self._frame.following))
        return [in_sequence(pa.concat_tables(rows), self._sequence).select(self._kept)] if rows else []

    def _keep(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._past.add(rows, self._time)

    def _keep_last(self, rows: pa.Table, count: int) -> None:
        self._past.drop_before(2 * LARGEST)
        self._keep(rows.filter(pa.array(Places(rows, self._by, self._time).among_last(count))))

    def _rest(self, due: list[int], until: int, fired: int | None) -> None:
        """Frees the rows that no frame reaches any more, and sets the timer for the remaining ones."""
        self._past.drop_before(self._frame.since(until))
        # The start of a slot that was not read is early enough for its rows.
        due += [start for start in self._waiting.starts()[:1] if start >= until]
        if due:
            self._wake_at(min(due) + 1 + self._frame.following, fired)
        elif self._past.ends() and self._frame.last_rows is None:
            self._wake_at(self._frame.free_at(self._past.ends()[0]) + self._frame.following, fired)
        else:
            self._wake_at(None, fired)

    def _wake_at(self, floor: int | None, fired: int | None) -> None:
        """Sets the group's only timer.

        Spark deletes the timer that fired after this call, so its time is not used again.
        """
        for old in list(self._handle.listTimers()):
            if old != fired:
                self._handle.deleteTimer(old)
        if floor is not None:
            at = due_ms(floor)
            self._handle.registerTimer(at - 1 if at == fired else at)
