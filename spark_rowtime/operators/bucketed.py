"""Rows on their way through a state function: packed into chunks by bucket of keys, and unpacked behind it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import IntegerType, StructField, StructType

from spark_rowtime.operators.chunks import BUCKET, pack, unpacker
from spark_rowtime.operators.columns import chunk_field, earlier, in_arrow, quoted
from spark_rowtime.spark.versioned_pickle import versioned

BUCKETS = 8
"""The number of parts into which the keys are divided, if the user gives none."""


def packed(rows: DataFrame, by: list[str], rowtime: str, buckets: int) -> DataFrame:
    """Returns the rows as chunks, one for each bucket of keys in a batch of Arrow."""
    bucket = F.pmod(F.hash(*quoted(by)), F.lit(buckets)) if by else F.lit(0)
    schema = StructType([StructField(BUCKET, IntegerType(), False), chunk_field(rowtime)])
    return rows.select(*quoted(rows.columns), bucket.cast("int").alias(BUCKET)).mapInArrow(versioned(pack), schema)


def passed(
    chunks: DataFrame, processor: StatefulProcessor, kept: StructField, schema: StructType, rowtime: str, following: int
) -> DataFrame:
    """Returns the rows that the state function emits in chunks, in the column ``kept``.

    It emits them ``following`` microseconds earlier.
    """
    complete = StructType([kept])
    finished = chunks.groupBy(BUCKET).transformWithStateInPandas(processor, complete, "Append", "EventTime")
    rows = finished.mapInArrow(versioned(unpacker(in_arrow(schema), rowtime, following)), schema)
    return rows.withColumn(rowtime, earlier(rowtime, following)) if following else rows
