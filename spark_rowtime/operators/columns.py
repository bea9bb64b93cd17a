"""The columns of the operators' DataFrames, what is required of them, and their metadata, which the extension reads."""

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.operators.chunks import CHUNK
from spark_rowtime.spark.with_bounds import UNMARKED
from spark_rowtime.types.arguments import to_count
from spark_rowtime.types.extras import import_extra
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import DAY_MICROS

WATERMARK = "spark.watermarkDelayMs"
"""The metadata key with which Spark marks the column that carries the watermark."""
FOLLOWS = "rowtime.follows"
"""A metadata key for a column that a Python function produces. It names a column of the function's input, and states
that times in later batches are at or above that column's floor. The extension reads it, as it cannot analyse Python."""
KEPT_BY = "rowtime.keptBy"
"""Another one, for a state function: for how long it keeps which rows."""
MOST_DAYS = 40
"""For how many days a row may wait for those after it."""
_SORTABLE = (NumericType, StringType, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)


def quoted(names: Sequence[str]) -> list[Column]:
    """Returns the columns of these names, which may contain any character but a backtick."""
    return [F.col(f"`{name}`") for name in names]


def sequence_of(schema: StructType, rowtime: str) -> list[str]:
    """Returns the columns that order rows of one key and time. Any order will do, but it must always be the same."""
    return [f.name for f in schema.fields if isinstance(f.dataType, _SORTABLE) and f.name != rowtime]


def chunk_field(follows: str, more: Mapping[str, str] = MappingProxyType({})) -> StructField:
    """Returns the column of packed rows, whose times follow the column of that name, with ``more`` metadata."""
    return StructField(CHUNK, BinaryType(), False, {FOLLOWS: follows, **more})


def kept_field(how: str, buckets: int) -> StructField:
    """Returns the column of packed rows behind a state function.

    The extension refuses a checkpoint whose rows were kept otherwise, or by other keys. ``how``: for how long, with
    microseconds as 5L.
    """
    return chunk_field(CHUNK, {KEPT_BY: f"{how} in {buckets} buckets"})


def unpacked_fields(rows: StructType, rowtime: str) -> list[StructField]:
    """Returns the columns of rows that are unpacked. Of several watermarked ones, only ``rowtime`` stays marked."""
    return [StructField(f.name, f.dataType, f.nullable, _metadata(f, rowtime)) for f in rows.fields]


def in_arrow(schema: StructType) -> pa.Schema:
    """Returns the Arrow schema of rows of that type, with times in UTC."""
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)


def unmarked(field: StructField) -> dict[str, object]:
    """Returns the metadata of a column without the mark of a watermark."""
    return {key: value for key, value in field.metadata.items() if key not in (WATERMARK, FOLLOWS)}


def _metadata(field: StructField, rowtime: str) -> dict[str, object]:
    return {**field.metadata, FOLLOWS: CHUNK} if field.name == rowtime else unmarked(field)


def earlier(rowtime: str, micros: int) -> Column:
    """Subtracts ``micros`` again, since rows leave Python with the time at which they are complete.

    The subtraction is an expression from which the extension derives the bound. It consists of intervals of less
    than a day: Spark treats an interval of a day as one of the session's time zone, which may have 23 hours. It cannot
    plan many more than MOST_DAYS of them.
    """
    if micros > MOST_DAYS * DAY_MICROS:
        raise InvalidOptionError(
            f"A row would wait {micros / DAY_MICROS:g} days for those after it; in a stream {MOST_DAYS} days at most "
            "are possible. Choose a shorter following, within or tolerance.",
        )
    time, left = F.col(f"`{rowtime}`"), micros
    while left:
        part = min(left, DAY_MICROS - 1)
        time, left = time - F.expr(f"INTERVAL {part} MICROSECONDS"), left - part
    return time


_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def keys_of(by: str | Sequence[str]) -> list[str]:
    """Returns the names of the key's columns."""
    if isinstance(by, str):
        return [by]
    if isinstance(by, Sequence) and all(isinstance(name, str) for name in by):
        return list(by)
    raise InvalidOptionError(f"{short_repr(by)} is no key. Give the name of a column, or a list of them.", option="by")


def check_columns(schema: StructType, by: list[str], rowtime: str, reserved: str) -> None:
    """Raises SchemaMismatchError if a column is missing or not unique, or its type or name cannot be used."""
    for name in (*by, rowtime):
        if schema.names.count(name) != 1:
            raise SchemaMismatchError(f"There must be one column {name!r}; the columns are {schema.names}.")
    if not isinstance(schema[rowtime].dataType, TimestampType):
        kind = schema[rowtime].dataType.simpleString()
        raise SchemaMismatchError(f"{rowtime!r} must be TIMESTAMP, but is {kind}.", column=rowtime)
    if reserved in schema.names:
        raise SchemaMismatchError(f"A column has the reserved name {reserved!r}. Rename it.", column=reserved)
    for name in by:
        _check_key(name, schema[name].dataType)


def twice(names: Iterable[str], others: Iterable[str]) -> str | None:
    """The first of ``names`` that occurs again in them, or in ``others``, in any case of letters; None if none does."""
    taken = {name.lower() for name in others}
    for name in names:
        if name.lower() in taken:
            return name
        taken.add(name.lower())
    return None


def _check_key(name: str, kind: DataType) -> None:
    if isinstance(kind, (ArrayType, MapType, StructType, VariantType)):
        raise SchemaMismatchError(
            f"by: {name!r} is {kind.simpleString()}, which cannot be a key. Select its fields as columns of their own.",
            column=name,
        )
    if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
        raise SchemaMismatchError(
            f"by: {name!r} is {kind.simpleString()}, but keys are compared byte by byte. Select lower(...) of it, or "
            "cast it to STRING COLLATE UTF8_BINARY.",
            column=name,
        )


def check_streaming(df: DataFrame, rowtime: str, buckets: int) -> None:
    """Raises an error if the session or the DataFrame cannot have a state function by ``rowtime``."""
    to_count(buckets, "buckets", 1)
    import_extra("google.protobuf", "operators", "Spark's transformWithState")
    if df.schema[rowtime].metadata == UNMARKED:
        raise InvalidOptionError(
            "This operator needs Spark's extension (spark_rowtime.configure): withBounds closes windows alone. Where "
            "no jar can be installed, group by the window, or compute this in another session.",
            column=rowtime,
        )
    if WATERMARK not in df.schema[rowtime].metadata:
        raise InvalidOptionError(
            f"{rowtime!r} has no watermark, so no row would ever be complete. Read with format('rowtime') and "
            "keep its rowtime column, or call withWatermark before. The rows of a slidingAggregate with following come "
            "later than their time: write its rows to a rowtime stream, and read that stream.",
            column=rowtime,
        )
    provider = df.sparkSession.conf.get(_PROVIDER) or ""
    if "RocksDB" not in provider:
        raise InvalidOptionError(
            f"Spark's transformWithState needs the RocksDB state store, but {_PROVIDER} is {provider}. Set it to "
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider.",
            provider=provider,
        )
