"""Output: the query under test, and what it has written."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.reader.reader import openReader
from spark_rowtime.stream import createStream
from spark_rowtime.stream_description import describeStream
from spark_rowtime.testing.times import Times
from spark_rowtime.types.schema import batch_to_schema, rows_to_batch, stream_schema

Row = tuple[Any, ...]


class Output:
    """Runs the query that ``frame`` returns, from a checkpoint in the folder into a stream in the folder."""

    def __init__(self, frame: Callable[[], DataFrame], folder: Path, times: Times) -> None:
        self._frame, self._times = frame, times
        self.path, self._checkpoint = str(folder / "output.rowtime"), str(folder / "checkpoint")
        first = frame()
        self._schema = stream_schema(first.schema)
        createStream(self.path, self._schema, maxAhead=None)
        self._reader, self._unseen = openReader(self.path), list[Row]()
        self.query = self._start(first)

    def restart(self) -> None:
        """Stops the query, and starts it from its checkpoint."""
        self.query.stop()
        self.query = self._start(self._frame())

    def new_rows(self) -> list[Row]:
        """The rows since the last call, once the query has processed everything."""
        self._catch_up()
        rows, self._unseen = self._unseen, []
        return rows

    def bound(self) -> RowtimeBound | None:
        """The bound on what the query has still to write, once it has processed everything."""
        self._catch_up()
        return self._reader.getRowtimeBound()

    def waiting(self) -> list[str]:
        """A line about the rows that are written, and not yet released; none if there are no such rows."""
        info = describeStream(self.path)
        if not info.rowsHeldBack:
            return []
        bound = info.bound or "none"
        return [f"{self.path}: {info.rowsHeldBack} more row(s) are written, and wait for the output's bound: {bound}"]

    def all_rows(self) -> list[Row]:
        """All rows that the query has written, once it has processed everything."""
        self.query.processAllAvailable()
        with openReader(self.path, order="arrival") as reader:
            return [row for train in reader for row in _tuples(train.rows)]

    def rows_of(self, batch: DataFrame) -> list[Row]:
        """The rows of a batch DataFrame with the same columns."""
        return _tuples(batch_to_schema(batch.toArrow(), self._schema))

    def as_rows(self, rows: Sequence[Any]) -> list[Row]:
        """Rows as a test gives them, with the values that a reader of the output gives."""
        return _tuples(rows_to_batch([self._times.row(row, self._schema) for row in rows], self._schema))

    def close(self) -> None:
        """Stops the query."""
        self.query.stop()
        self._reader.close()

    def _start(self, frame: DataFrame) -> StreamingQuery:
        writer = frame.writeStream.format("rowtime").option("checkpointLocation", self._checkpoint)
        return writer.start(self.path)

    def _catch_up(self) -> None:
        self.query.processAllAvailable()
        self._unseen += [row for train in self._reader for row in _tuples(train.rows)]


def _tuples(rows: Any) -> list[Row]:
    return [tuple(row.values()) for row in rows.to_pylist()]
