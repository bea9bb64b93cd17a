"""punctuate: the rows of a Kafka topic get the watermark of the bounds of a stream beside it."""

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, StructField, TimestampType

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.spark.options import BESIDE, WATCH
from spark_rowtime.types.schema import ROWTIME


def punctuate(df: DataFrame, column: str, *, bounds: str, watch: Mapping[str, str] | None = None) -> DataFrame:
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
            ``.where("ts IS NOT NULL")``. With ``watch``, rows without a time are left out, as ``window`` does.
        bounds: The path of the rowtime stream with the bounds.
        watch: The bounds are derived from the topic itself: the driver hosts a ``KafkaWatch`` (pip extra ``kafka``)
            while the query runs, and fails with it. The stream at ``bounds`` is created if there is none. These are
            arguments of ``KafkaWatch`` as texts, above all "lateness" and "delay". Servers, topics and security come
            from the Kafka source, and the field with the time from the expression of ``column``; where that is not
            known, "rowtime" names it. {}: each partition is in order. None: others send the bounds.

    Returns:
        The DataFrame with the same columns, of which ``column`` has the watermark.

    Raises:
        InvalidOptionError: ``df`` is not streaming, or has no such column; or ``watch`` is no mapping of texts. What is
            wrong in it, Spark raises as AnalysisException, or as the error of the query when it starts.
        StreamNotFoundError: There is no stream at ``bounds``, and no ``watch``.

    Example:
        ```python
        orders = spark.readStream.format("kafka").options(**topic).load()
        parsed = orders.select(f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, shop STRING").alias("o"))
        rows = rt.punctuate(parsed.select("o.*").where("ts IS NOT NULL"), "ts", bounds="orders-bounds.rowtime")
        rows.groupBy(f.window("ts", "1 hour"), "shop").count()
        ```

        Without any change of the producers, in the place of ``withWatermark("ts", "1 minute")``:

        ```python
        declared = {"lateness": "1 minute", "delay": "5 minutes"}
        rows = rt.punctuate(parsed, "ts", bounds="orders-bounds.rowtime", watch=declared)
        ```
    """
    _check(df, column)
    reader = df.sparkSession.readStream.format("rowtime").option(BESIDE, column).option("watermark", "none")
    if watch is not None:
        reader = reader.option(WATCH, json.dumps(_texts(watch)))
    fields = [_of_bounds(field, column) for field in df.schema]
    timed = f.lit(True) if watch is None else f.col(f"`{column}`").isNotNull()
    rows = df.where(timed)  # Spark makes one union of two that follow each other; a filter keeps them apart
    punctuated: DataFrame = reader.load(bounds).where(f.lit(False)).select(*fields).unionAll(rows)
    return punctuated.where(f.lit(True))


def _of_bounds(field: StructField, column: str) -> Column:
    """The stream's column in the place of a column of the rows: its rowtime, or NULL. Its rows are not read."""
    if field.name == column:
        return f.col(ROWTIME).alias(column, metadata=field.metadata)
    kind: DataType = field.dataType
    return f.lit(None).cast(kind).alias(field.name, metadata=field.metadata)


def _texts(watch: Mapping[str, str]) -> dict[str, str]:
    if isinstance(watch, Mapping) and all(isinstance(part, str) for pair in watch.items() for part in pair):
        return dict(watch)
    raise InvalidOptionError(
        "watch must have names and texts, such as {'lateness': '1 minute', 'delay': '5 minutes'}. (Its values are not "
        "shown: they may be secret.)",
        option="watch",
    )


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
