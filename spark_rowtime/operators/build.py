"""Builds the DataFrame with the aggregates from a DataFrame and a frame."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    IntegerType,
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
from spark_rowtime.operators.aggregates import IN_SEQUENCE, Aggregate, aggregates
from spark_rowtime.operators.chunks import BUCKET, CHUNK, pack, unpacker
from spark_rowtime.operators.frames import Cascading, Frame, LastRows, Sliding
from spark_rowtime.operators.processor import FrameProcessor
from spark_rowtime.spark.versioned_pickle import versioned
from spark_rowtime.types.arguments import to_count
from spark_rowtime.types.extras import import_extra

WATERMARK = "spark.watermarkDelayMs"
"""The metadata key with which Spark marks the column that carries the watermark."""
FOLLOWS = "rowtime.follows"
"""A metadata key for a column that a Python function produces. It names a column of the function's input, and states
that times in later batches are at or above that column's floor. The extension reads it, as it cannot analyse Python."""
_SORTABLE = (NumericType, StringType, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)
_DAY_MICROS = 86_400_000_000
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def aggregated(
    df: DataFrame,
    by: str | Sequence[str],
    frame: Frame,
    asked: Mapping[str, tuple[str, str]],
    rowtime: str,
    buckets: int,
) -> DataFrame:
    """Returns ``df`` with the aggregates over each row's frame."""
    keys = [by] if isinstance(by, str) else list(by)
    _check_columns(df.schema, keys, rowtime)
    what = aggregates(asked, df.schema)
    if not df.isStreaming:
        return _in_batch(df, keys, frame, what, rowtime)
    _check_streaming(df, rowtime, buckets)
    return _streaming(df, keys, frame, what, rowtime, buckets)


def _streaming(
    df: DataFrame, by: list[str], frame: Frame, what: list[Aggregate], rowtime: str, buckets: int
) -> DataFrame:
    """Packs the rows into chunks by bucket of keys, passes these through the state function, and unpacks them again."""
    bucket = F.pmod(F.hash(*_quoted(by)), F.lit(buckets)) if by else F.lit(0)
    packed = StructType([StructField(BUCKET, IntegerType(), False), _chunk(rowtime)])
    chunks = df.select(*_quoted(df.columns), bucket.cast("int").alias(BUCKET)).mapInArrow(versioned(pack), packed)
    sequence = _sequence(df.schema, rowtime) if _needs_sequence(frame, what) else []
    processor, complete = FrameProcessor(by, rowtime, frame, what, sequence), StructType([_chunk(CHUNK)])
    finished = chunks.groupBy(BUCKET).transformWithStateInPandas(processor, complete, "Append", "EventTime")
    schema = _output(df.schema, what, rowtime)
    unpacked = finished.mapInArrow(versioned(unpacker(schema.names, rowtime, frame.following)), schema)
    return unpacked.withColumn(rowtime, _earlier(rowtime, frame.following)) if frame.following else unpacked


def _earlier(rowtime: str, micros: int) -> Column:
    """Subtracts ``following`` again, since rows leave Python with the time at which they are complete.

    The subtraction is an expression from which the extension derives the bound. It consists of intervals of less
    than a day: Spark treats an interval of a day as one of the session's time zone, which may have 23 hours.
    """
    time, left = F.col(f"`{rowtime}`"), micros
    while left:
        part = min(left, _DAY_MICROS - 1)
        time, left = time - F.expr(f"INTERVAL {part} MICROSECONDS"), left - part
    return time


def _needs_sequence(frame: Frame, what: list[Aggregate]) -> bool:
    return frame.in_sequence or any(a.function in IN_SEQUENCE for a in what)


def _sequence(schema: StructType, rowtime: str) -> list[str]:
    """Returns the columns that order rows of one key and time. Any order will do, but it must always be the same."""
    return [f.name for f in schema.fields if isinstance(f.dataType, _SORTABLE) and f.name != rowtime]


def _chunk(follows: str) -> StructField:
    return StructField(CHUNK, BinaryType(), False, {FOLLOWS: follows})


def _output(rows: StructType, what: list[Aggregate], rowtime: str) -> StructType:
    """Returns the rows' columns and the aggregates. Of several watermarked columns, only ``rowtime`` stays marked."""
    fields = [StructField(f.name, f.dataType, f.nullable, _metadata(f, rowtime)) for f in rows.fields]
    return StructType(fields + [StructField(a.name, a.result, a.function != "count") for a in what])


def _metadata(field: StructField, rowtime: str) -> dict[str, object]:
    if field.name == rowtime:
        return {**field.metadata, FOLLOWS: CHUNK}
    return {key: value for key, value in field.metadata.items() if key not in (WATERMARK, FOLLOWS)}


def _in_batch(df: DataFrame, by: list[str], frame: Frame, what: list[Aggregate], rowtime: str) -> DataFrame:
    """Computes the same on a batch DataFrame, with SQL window functions."""
    time = F.unix_micros(F.col(f"`{rowtime}`"))
    sequence = [time, *_quoted(_sequence(df.schema, rowtime))]
    window = Window.partitionBy(*_quoted(by))
    if isinstance(frame, Sliding):
        window = window.orderBy(time).rangeBetween(-frame.interval, frame.following)
    elif isinstance(frame, LastRows):
        window = window.orderBy(*sequence).rowsBetween(1 - frame.count, Window.currentRow)
    elif isinstance(frame, Cascading):
        start = time - F.pmod(time - frame.origin, F.lit(frame.size))
        window = Window.partitionBy(*_quoted(by), start).orderBy(time)
    return df.select("*", *(_plain(a, window, sequence).alias(a.name) for a in what))


def _plain(aggregate: Aggregate, window: WindowSpec, sequence: list[Column]) -> Column:
    column = F.lit(1) if aggregate.column == "*" else F.col(f"`{aggregate.column}`")
    match aggregate.function:
        case "first":
            return F.min_by(column, F.struct(*sequence)).over(window)
        case "last":
            return F.max_by(column, F.struct(*sequence)).over(window)
        case "median":
            return F.percentile(column, 0.5).over(window)
        case "rank":
            smaller = F.filter(F.collect_list(column).over(window), lambda other: other < column)
            return F.when(column.isNotNull(), F.size(smaller).cast("bigint") + 1)
    found: Column = getattr(F, aggregate.function)(column)
    return found.over(window)


def _quoted(names: Sequence[str]) -> list[Column]:
    return [F.col(f"`{name}`") for name in names]


def _check_columns(schema: StructType, by: list[str], rowtime: str) -> None:
    for name in (*by, rowtime):
        if schema.names.count(name) != 1:
            raise SchemaMismatchError(f"There must be one column {name!r}; the columns are {schema.names}.")
    if not isinstance(schema[rowtime].dataType, TimestampType):
        kind = schema[rowtime].dataType.simpleString()
        raise SchemaMismatchError(f"{rowtime!r} must be TIMESTAMP, but is {kind}.", column=rowtime)
    if BUCKET in schema.names:
        raise SchemaMismatchError(f"A column has the reserved name {BUCKET!r}. Rename it.", column=BUCKET)
    for name in by:
        if isinstance(schema[name].dataType, (ArrayType, MapType, StructType, VariantType)):
            kind = schema[name].dataType.simpleString()
            raise SchemaMismatchError(
                f"by: {name!r} is {kind}, which cannot be a key. Select its fields as columns of their own.",
                column=name,
            )


def _check_streaming(df: DataFrame, rowtime: str, buckets: int) -> None:
    to_count(buckets, "buckets", 1)
    import_extra("google.protobuf", "operators", "Spark's transformWithState")
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
