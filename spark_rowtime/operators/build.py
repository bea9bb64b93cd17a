"""Builds the DataFrame with the aggregates from a DataFrame and a frame."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from spark_rowtime.operators.aggregates import IN_SEQUENCE, Aggregate, aggregates
from spark_rowtime.operators.bucketed import packed, passed
from spark_rowtime.operators.chunks import BUCKET
from spark_rowtime.operators.columns import (
    check_columns,
    check_streaming,
    kept_field,
    keys_of,
    quoted,
    sequence_of,
    unpacked_fields,
)
from spark_rowtime.operators.frames import Cascading, Frame, LastRows, Sliding
from spark_rowtime.operators.processor import FrameProcessor


def aggregated(
    df: DataFrame,
    by: str | Sequence[str],
    frame: Frame,
    asked: Mapping[str, tuple[str, str]],
    rowtime: str,
    buckets: int,
) -> DataFrame:
    """Returns ``df`` with the aggregates over each row's frame."""
    keys = keys_of(by)
    check_columns(df.schema, keys, rowtime, BUCKET)
    what = aggregates(asked, df.schema)
    if not df.isStreaming:
        return _in_batch(df, keys, frame, what, rowtime)
    check_streaming(df, rowtime, buckets)
    return _streaming(df, keys, frame, what, rowtime, buckets)


def _streaming(
    df: DataFrame, by: list[str], frame: Frame, what: list[Aggregate], rowtime: str, buckets: int
) -> DataFrame:
    sequence = sequence_of(df.schema, rowtime) if _needs_sequence(frame, what) else []
    processor = FrameProcessor(by, rowtime, frame, what, sequence)
    chunks = packed(df, by, rowtime, buckets)
    kept = kept_field(str(frame), buckets)
    return passed(chunks, processor, kept, _output(df.schema, what, rowtime), rowtime, frame.following)


def _needs_sequence(frame: Frame, what: list[Aggregate]) -> bool:
    return frame.in_sequence or any(a.function in IN_SEQUENCE for a in what)


def _output(rows: StructType, what: list[Aggregate], rowtime: str) -> StructType:
    """Returns the rows' columns and the aggregates."""
    return StructType(
        unpacked_fields(rows, rowtime) + [StructField(a.name, a.result, a.function != "count") for a in what]
    )


def _in_batch(df: DataFrame, by: list[str], frame: Frame, what: list[Aggregate], rowtime: str) -> DataFrame:
    """Computes the same on a batch DataFrame, with SQL window functions."""
    time = F.unix_micros(F.col(f"`{rowtime}`"))
    sequence = [time, *quoted(sequence_of(df.schema, rowtime))]
    window = Window.partitionBy(*quoted(by))
    if isinstance(frame, Sliding):
        window = window.orderBy(time).rangeBetween(-frame.interval, frame.following)
    elif isinstance(frame, LastRows):
        window = window.orderBy(*sequence).rowsBetween(1 - frame.count, Window.currentRow)
    elif isinstance(frame, Cascading):
        start = time - F.pmod(time - frame.origin, F.lit(frame.size))
        window = Window.partitionBy(*quoted(by), start).orderBy(time)
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
