"""punctuate: the rows of a Kafka topic get the watermark of the bounds of a stream beside it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, StructField, TimestampType

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.spark.options import BESIDE
from spark_rowtime.types.schema import ROWTIME


def punctuate(df: DataFrame, column: str, *, bounds: str) -> DataFrame:
    """Gives a time column of a Kafka topic the watermark of the bounds of a rowtime stream beside it.

    Spark's own Kafka source reads the rows, and they stay where they are. The stream has the bounds, each with a
    ``cut`` of offsets that it follows (``RowSink.sendRowtimeBound``). A bound counts in a batch whose end offsets have
    reached its cut in every partition that it names, so a window closes in that batch.

    A row below the bound that was in force at the start of its batch is late. It does not reach the operators. The
    query's progress counts it (``rowsLate`` in the metrics of the source of the bounds), and the stream keeps it in
    ``view=rejected``: the columns of the stream, as far as the DataFrame or the topic has a column of that name and
    type.

    Args:
        df: A streaming DataFrame of ``format("kafka")``, with projections and filters alone: ``select``,
            ``withColumn``, ``from_json``, ``where``. Joins, aggregations and all else come after this call.
        column: The time column of type TIMESTAMP. It must not be NULL: parse, then
            ``.where("ts IS NOT NULL")``.
        bounds: The path of the rowtime stream with the bounds.

    Returns:
        The DataFrame with the same columns, of which ``column`` has the watermark.

    Raises:
        InvalidOptionError: ``df`` is not streaming, or has no such column.
        StreamNotFoundError: There is no stream at ``bounds``.

    Example:
        ```python
        orders = spark.readStream.format("kafka").options(**topic).load()
        parsed = orders.select(f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, shop STRING").alias("o"))
        rows = rt.punctuate(parsed.select("o.*").where("ts IS NOT NULL"), "ts", bounds="orders-bounds.rowtime")
        rows.groupBy(f.window("ts", "1 hour"), "shop").count()
        ```
    """
    _check(df, column)
    reader = df.sparkSession.readStream.format("rowtime").option(BESIDE, column).option("watermark", "none")
    fields = [_of_bounds(field, column) for field in df.schema]
    rows = df.where(f.lit(True))  # Spark makes one union of two that follow each other; a filter keeps them apart
    punctuated: DataFrame = reader.load(bounds).where(f.lit(False)).select(*fields).unionAll(rows)
    return punctuated.where(f.lit(True))


def _of_bounds(field: StructField, column: str) -> Column:
    """The stream's column in the place of a column of the rows: its rowtime, or NULL. Its rows are not read."""
    if field.name == column:
        return f.col(ROWTIME).alias(column, metadata=field.metadata)
    kind: DataType = field.dataType
    return f.lit(None).cast(kind).alias(field.name, metadata=field.metadata)


def _check(df: DataFrame, column: str) -> None:
    if not df.isStreaming:
        raise InvalidOptionError(
            "punctuate is for a streaming DataFrame of format('kafka') (spark.readStream): a batch has no watermark."
        )
    found = [field for field in df.schema if field.name == column]
    if len(found) != 1 or not isinstance(found[0].dataType, TimestampType):
        raise InvalidOptionError(
            f"punctuate needs exactly one column {column!r} of type TIMESTAMP, but the columns are "
            f"{df.schema.simpleString()}. Select it under that name, and cast it.",
            column=column,
        )
