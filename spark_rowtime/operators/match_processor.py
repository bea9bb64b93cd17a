"""The state function of matchRecognize: it holds rows until they are complete and no match can have them."""

from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from spark_rowtime.operators.chunks import together
from spark_rowtime.operators.group_processor import GroupProcessor, chunked, unpacked
from spark_rowtime.operators.match_rows import Matches
from spark_rowtime.operators.row_state import RowState, WaitingRows
from spark_rowtime.types.timestamps import LARGEST, MINUTE_MICROS


class MatchProcessor(GroupProcessor):
    """Finds the matches in one bucket of keys.

    Laws: with floor f, a row is complete when its time is before f. Complete rows are matched in the order of time. The
    state keeps the rows that are not complete ("waiting", with all columns) and those that a later match may have
    ("kept").
    """

    def __init__(self, matches: Matches) -> None:
        self._matches = matches

    def _start(self, handle: StatefulProcessorHandle) -> None:
        self._waiting = WaitingRows(handle, "waiting", MINUTE_MICROS, self._matches.rowtime)
        self._kept = RowState(handle, "kept", LARGEST)

    def _advance(self, new: list[pd.DataFrame], floor: int, fired: int | None) -> Iterator[pd.DataFrame]:
        self._waiting.open()
        self._kept.open()
        self._require(self._waiting.first())
        complete = self._waiting.take(unpacked(new), floor)
        rows = self._kept.take_until(2 * LARGEST)
        self._require(*rows)
        if complete is not None and complete.num_rows:
            rows.append(self._matches.opened(complete))
        due = None
        if rows:
            found, kept = self._matches.advance(together(rows), floor)
            yield from chunked(found)
            self._kept.add(kept, self._matches.rowtime)
            due = self._matches.due(kept, floor)
        earliest = self._waiting.earliest()
        floors = [floor for floor in (due, None if earliest is None else earliest + 1) if floor is not None]
        self._wake_at(min(floors, default=None), fired)

    def _require(self, *tables: pa.Table | None) -> None:
        """Refuses rows of a query with other conditions. None are added then, so those of a slot speak for all."""
        for rows in tables:
            if rows is not None:
                self._matches.require(rows)
