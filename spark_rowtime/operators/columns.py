"""The columns of the operators' DataFrames, and their metadata, which the extension reads."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_rowtime.operators.chunks import CHUNK

WATERMARK = "spark.watermarkDelayMs"
"""The metadata key with which Spark marks the column that carries the watermark."""
FOLLOWS = "rowtime.follows"
"""A metadata key for a column that a Python function produces. It names a column of the function's input, and states
that times in later batches are at or above that column's floor. The extension reads it, as it cannot analyse Python."""
_DAY_MICROS = 86_400_000_000
_SORTABLE = (NumericType, StringType, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)


def quoted(names: Sequence[str]) -> list[Column]:
    """Returns the columns of these names, which may contain any character but a backtick."""
    return [F.col(f"`{name}`") for name in names]


def sequence_of(schema: StructType, rowtime: str) -> list[str]:
    """Returns the columns that order rows of one key and time. Any order will do, but it must always be the same."""
    return [f.name for f in schema.fields if isinstance(f.dataType, _SORTABLE) and f.name != rowtime]


def chunk_field(follows: str) -> StructField:
    """Returns the column of packed rows, whose times follow the column of that name."""
    return StructField(CHUNK, BinaryType(), False, {FOLLOWS: follows})


def unpacked_fields(rows: StructType, rowtime: str) -> list[StructField]:
    """Returns the columns of rows that are unpacked. Of several watermarked ones, only ``rowtime`` stays marked."""
    return [StructField(f.name, f.dataType, f.nullable, _metadata(f, rowtime)) for f in rows.fields]


def unmarked(field: StructField) -> dict[str, object]:
    """Returns the metadata of a column without the mark of a watermark."""
    return {key: value for key, value in field.metadata.items() if key not in (WATERMARK, FOLLOWS)}


def _metadata(field: StructField, rowtime: str) -> dict[str, object]:
    return {**field.metadata, FOLLOWS: CHUNK} if field.name == rowtime else unmarked(field)


def earlier(rowtime: str, micros: int) -> Column:
    """Subtracts ``micros`` again, since rows leave Python with the time at which they are complete.

    The subtraction is an expression from which the extension derives the bound. It consists of intervals of less
    than a day: Spark treats an interval of a day as one of the session's time zone, which may have 23 hours.
    """
    time, left = F.col(f"`{rowtime}`"), micros
    while left:
        part = min(left, _DAY_MICROS - 1)
        time, left = time - F.expr(f"INTERVAL {part} MICROSECONDS"), left - part
    return time
