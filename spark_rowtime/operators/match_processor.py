"""The state function of matchRecognize: it holds rows until they are complete and no match can have them."""

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
from spark_rowtime.operators.frames import MINUTE_MICROS
from spark_rowtime.operators.match_rows import Matches
from spark_rowtime.operators.row_state import RowState
from spark_rowtime.operators.timers import batch_floor, wake_at
from spark_rowtime.operators.waiting_rows import WaitingRows
from spark_rowtime.spark.versioned_pickle import VersionedPickle
from spark_rowtime.types.timestamps import LARGEST


class MatchProcessor(VersionedPickle, StatefulProcessor):
    """Spark creates one in each task. A group is a bucket of keys; its rows arrive and leave as chunks.

    Laws: with floor f, a row is complete when its time is before f. Complete rows are matched in the order of time. The
    state keeps the rows that are not complete ("waiting", with all columns) and those that a later match may have
    ("kept"). One timer per group wakes groups that get no rows.
    """

    def __init__(self, matches: Matches) -> None:
        self._matches = matches

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task, before any group."""
        self._handle = handle
        self._waiting = WaitingRows(handle, "waiting", MINUTE_MICROS, self._matches.rowtime)
        self._kept = RowState(handle, "kept", LARGEST)

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
        self._kept.open()
        floor = batch_floor(timers.getCurrentWatermarkInMs())
        complete = self._waiting.take(new, floor)
        rows = self._kept.take_until(2 * LARGEST)
        if complete is not None and complete.num_rows:
            rows.append(self._matches.opened(complete))
        due = None
        if rows:
            found, kept = self._matches.advance(pa.concat_tables(rows), floor)
            for chunk in pieces(found):
                yield pd.DataFrame({CHUNK: [chunk]})
            self._kept.add(kept, self._matches.rowtime)
            due = self._matches.due(kept, floor)
        earliest = self._waiting.earliest()
        floors = [floor for floor in (due, None if earliest is None else earliest + 1) if floor is not None]
        wake_at(self._handle, min(floors, default=None), fired)
