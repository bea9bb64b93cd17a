"""WaitingRows: the rows of a group that are not complete, with all their columns."""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from spark_rowtime.operators.chunks import micros, nullable_micros
from spark_rowtime.operators.row_state import RowState


class WaitingRows(RowState):
    """Laws: ``take`` returns each row once, in the first call whose time is above the row's own.

    Rows of one time are returned in the order in which they were given. A row without a time is returned at once.
    """

    def __init__(self, handle: StatefulProcessorHandle, name: str, width: int, time: str) -> None:
        super().__init__(handle, name, width)
        self._time = time
        self._until = 0
        self._put_back: list[int] = []

    def take(self, new: list[pa.Table], until: int) -> pa.Table | None:
        """Removes and returns the rows before ``until``, those of ``new`` last; keeps the others. None without rows."""
        rows = [*self.take_until(until), *new]
        self._until, self._put_back = until, []
        if not rows:
            return None
        table = pa.concat_tables(rows)
        complete = pa.array(nullable_micros(table, self._time) < until)
        self._wait(table.filter(pc.invert(complete)))
        return table.filter(complete)

    def earliest(self) -> int | None:
        """Returns a time, after ``take``: no row that waits has an earlier one. None if none waits."""
        # The start of a slot that was not read is early enough for its rows.
        unread = [start for start in self.starts()[:1] if start >= self._until]
        return min(self._put_back + unread, default=None)

    def _wait(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self.add(rows, self._time)
            self._put_back = [int(micros(rows, self._time).min())]
