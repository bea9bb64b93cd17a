"""What the state functions of the operators have in common: packed rows, a floor, and one timer of each group."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from spark_rowtime.operators.chunks import CHUNK, from_bytes, pieces
from spark_rowtime.spark.output_bound import local_property
from spark_rowtime.spark.versioned_pickle import VersionedPickle

INPUT_FLOOR = "rowtime.inputFloor"
"""The local property in which the extension stores the exact floor for the watermark of operators on raw times."""


def batch_floor(watermark_ms: int) -> int:
    """Returns the least rowtime that a later row may have, from the operator's watermark and the local property.

    Spark's watermark W is in whole milliseconds below the floor, so the floor is above W * 1000. This is
    exact for times in whole milliseconds. The local property has the exact microseconds. It is used only if
    it belongs to this watermark, because an operator above another one may have a weaker watermark.
    """
    exact = local_property(INPUT_FLOOR)
    if exact is not None and (int(exact) - 1) // 1000 == watermark_ms:
        return int(exact)
    return max(0, watermark_ms) * 1000 + 1


def due_ms(floor: int) -> int:
    """Returns the first watermark, in milliseconds, at which ``floor`` may have been reached."""
    return (floor - 1) // 1000


class GroupProcessor(VersionedPickle, StatefulProcessor):
    """Spark creates one in each task. A group is a bucket of keys; its rows arrive and leave as chunks.

    One timer per group wakes groups that get no rows.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task, before any group."""
        self._handle = handle
        self._start(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[pd.DataFrame]:
        """Called once per batch for each group with new rows."""
        del key
        return self._advance(list(rows), batch_floor(timerValues.getCurrentWatermarkInMs()), None)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        """Called once per batch, after all rows, for each group whose timer is due."""
        del key
        floor = batch_floor(timerValues.getCurrentWatermarkInMs())
        return self._advance([], floor, expiredTimerInfo.getExpiryTimeInMs())

    def _start(self, handle: StatefulProcessorHandle) -> None:
        """Creates the states of the groups."""
        raise NotImplementedError

    def _advance(self, new: list[pd.DataFrame], floor: int, fired: int | None) -> Iterator[pd.DataFrame]:
        """Takes the ``new`` rows of a group, and yields what is complete. ``fired``: the timer that woke the group."""
        raise NotImplementedError

    def _wake_at(self, floor: int | None, fired: int | None) -> None:
        """Sets the group's only timer, to ``floor``, or none.

        Spark deletes the timer that fired after this call, so its time is not used again.
        """
        for old in list(self._handle.listTimers()):
            if old != fired:
                self._handle.deleteTimer(old)
        if floor is not None:
            at = due_ms(floor)
            self._handle.registerTimer(at - 1 if at == fired else at)


def unpacked(frames: list[pd.DataFrame]) -> list[pa.Table]:
    """Returns the rows that arrive as chunks."""
    return [from_bytes(chunk) for frame in frames for chunk in frame[CHUNK]]


def chunked(rows: pa.Table) -> Iterator[pd.DataFrame]:
    """Yields the rows as chunks, in which they leave."""
    return (pd.DataFrame({CHUNK: [chunk]}) for chunk in pieces(rows))
