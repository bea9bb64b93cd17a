"""The streaming read of bounds=markers: rows and bounds in one table, for sessions without the extension.

A batch has the rows that lie below the bound, and one row more, the *marker*, whose time is the bound. So the largest
time that Spark sees in a batch is the bound, and Spark's own watermark for the next batch is the bound, too.

The columns are ``time``, the rowtime or the bound; ``bound``, which only a marker has; and ``row``, the row of the
stream. ``withBounds`` takes the rows out of them.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructField, StructType, TimestampType

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.spark.options import Options
from spark_rowtime.spark.questions import Offset
from spark_rowtime.spark.source import RowtimeStreamReader
from spark_rowtime.types.schema import ROWTIME, TIMESTAMP

TIME, BOUND, ROW = "time", "bound", "row"
RUN = "run"
"""Key in each offset: the run of the query that made it, None before the first bound. See MarkedStreamReader."""
_EMPTY: dict[pa.DataType, Any] = {pa.string(): "", pa.binary(): b"", pa.bool_(): False}


class MarkerPartition(InputPartition):
    """A partition that is read as one marker. ``schema`` is that of the rows."""

    def __init__(self, floor: int, schema: pa.Schema) -> None:
        self.floor, self.schema = floor, schema


class MarkedStreamReader(RowtimeStreamReader):
    """Gives out rows and markers.

    Laws:

    - *rows*: the rows are those of order=rowtime; no row of a later batch lies below the marker of an earlier one.
    - *marker*: a batch has a marker if the bound has moved in it, and where it is the first batch of a run. Spark knows
      each source's watermark only from this run, and takes the least of them.
    - *again*: both follow from the two offsets, so a batch that is run again is the same.
    """

    def __init__(self, options: Options, columns: int) -> None:
        super().__init__(options, columns)
        self._run = uuid4().hex

    def initialOffset(self) -> Offset:
        self._at = self._begun = {**super().initialOffset(), RUN: None}
        return self._at

    def next(self, start: Offset, *, unlimited: bool) -> Offset:
        end = super().next(start, unlimited=unlimited)
        return {**end, RUN: start.get(RUN) if end["floor"] is None else self._run}

    def between(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        rows = super().between(start, end)
        if end["floor"] is None or (end["floor"], end.get(RUN)) == (start["floor"], start.get(RUN)):
            return rows
        return [*rows, MarkerPartition(end["floor"], self._schema)]

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([self._store.schema.field(n) for n in range(self._columns)])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, MarkerPartition):
            yield marker(partition.floor, partition.schema)
        else:
            yield from map(packed, super().read(partition))


def packed_type(rows: StructType) -> StructType:
    """Returns the columns of rows and markers."""
    time = StructField(TIME, TimestampType(), nullable=False)
    return StructType([time, StructField(BOUND, TimestampType()), StructField(ROW, rows, nullable=False)])


def rows_type(packed: StructType) -> StructType:
    """Returns the columns of the rows in ``packed``, the schema of a DataFrame of rows and markers."""
    if packed.names != [TIME, BOUND, ROW]:
        raise InvalidOptionError(f"The columns are {packed.simpleString()}, not those of bounds=markers.")
    row = packed[ROW].dataType
    assert isinstance(row, StructType)
    return row


def packed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows of a stream in the columns of rows and markers."""
    row = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
    return _batch(rows.column(ROWTIME), pa.nulls(rows.num_rows, TIMESTAMP), row)


def marker(floor: int, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the row that marks a bound. Its ``row`` has empty values where NULL is not allowed."""
    time = pa.array([floor], pa.int64()).cast(TIMESTAMP)
    row = pa.array([_empty(pa.struct(list(schema)))], pa.struct(list(schema)))
    return _batch(time, time, row)


def _batch(time: pa.Array, bound: pa.Array, row: pa.StructArray) -> pa.RecordBatch:
    fields = [pa.field(TIME, TIMESTAMP, nullable=False), pa.field(BOUND, TIMESTAMP)]
    schema = pa.schema([*fields, pa.field(ROW, row.type, nullable=False)])
    return pa.RecordBatch.from_arrays([time, bound, row], schema=schema)


def _empty(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {field.name: None if field.nullable else _empty(field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return []
    return _EMPTY.get(kind, 0)
