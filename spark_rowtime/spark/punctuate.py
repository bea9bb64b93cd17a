"""punctuate: the rows of a Kafka topic, or of a table, get the watermark of bounds that are beside or in it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import DataType, StructField, TimestampType

from spark_rowtime.errors import InvalidOptionError, ShimMissingError
from spark_rowtime.spark.options import TOPIC_TIME, WATCH
from spark_rowtime.spark.output_bound import in_backticks
from spark_rowtime.spark.session import EXTENSION, extensions
from spark_rowtime.spark.table_watch import NOTHING, Declared, declared
from spark_rowtime.types.arguments import to_texts
from spark_rowtime.types.schema import ROWTIME

TABLES = ("delta", "iceberg")
"""The formats of tables; a name has one before its colon, as in ``TableName``."""
_NAMES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""The setting with which each source of a query has a name."""
_IN_PIPELINE = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
_IN_TIME = "rowtime_in_time"
"""The extension's function that tells whether a row of a table is not late."""


def punctuate(
    df: DataFrame,
    column: str,
    *,
    bounds: str | None = None,
    watch: Mapping[str, str] | None = None,
    rejected: str | None = None,
) -> DataFrame:
    """Gives a time column of a Kafka topic, or of a table, the watermark of bounds that are beside or in it.

    **A topic.** Spark's own Kafka source reads the rows, and they stay where they are. A rowtime stream has the bounds,
    each with a ``cut`` of offsets that it follows (``RowSink.sendRowtimeBound``). A bound counts in a batch whose end
    offsets have reached its cut in every partition that it names, so a window closes in that batch.

    A row below the bound that was in force at the start of its batch is late. It does not reach the operators. The
    query's progress counts it (``rowsLate`` in the metrics of the source of the bounds), and the stream keeps it in
    ``view=rejected``: the columns of the stream, as far as the DataFrame or the topic has a column of that name and
    type.

    Where sources have names (``readStream.name``), the stream of bounds has that of the topic's source with ``_bounds``
    behind it, so a query finds both again under its checkpoint.

    **A table.** A drain, ``tableWriter`` or a query has written bounds into the commits of a Delta or Iceberg table.
    The format's own source reads the rows. A bound counts in a batch whose end offset has passed its commit entirely.
    There is no stream of bounds. A row of another writer's commit that is below the bound in force at the start of its
    batch is late: it does not reach the operators, the progress counts it (``rowsLate``), and the table ``rejected``
    keeps it; without one the query warns once.

    Args:
        df: A streaming DataFrame of ``format("kafka")``, ``format("delta")`` or ``format("iceberg")``, or of such a
            table by its name (``readStream.table``), with projections and filters alone: ``select``, ``withColumn``,
            ``from_json``, ``where``. Joins, aggregations and all else come after this call.
        column: The time column of type TIMESTAMP. It must not be NULL: parse, then
            ``.where("ts IS NOT NULL")``. With ``watch``, rows without a time are left out, as ``window`` does.
        bounds: Of a topic, the path of the rowtime stream with the bounds. Of a table nothing, or its name, which must
            be that of the table that is read: ``delta:PATH``, ``iceberg:CATALOG.NAMESPACE.TABLE`` as Spark names it.
        watch: Of a table in whose commits nobody writes bounds, what you know of it; no row is read for it.
            {"lateness": "1 hour"}: the bound is the largest time of the rows so far less that, by the statistics that
            the table has of its files. {"delay": "5 minutes"} with it: no row is committed later than this after its
            time, so the bound is at least the latest time of the commits so far less that, also where no rows come.
            {"bounds": "append-time", "delay": "5 minutes"}: the times of the commits alone. Without both, lateness
            is 0. Of a topic, the bounds are derived from the topic itself: the driver hosts a ``KafkaWatch`` (pip extra
            ``kafka``) while the query runs, and fails with it. The stream at ``bounds`` is created if there is none.
            These are arguments of ``KafkaWatch`` as texts, above all "lateness" and "delay". Servers, topics and
            security come from the Kafka source, and the field with the time from the expression of ``column``; where
            that is not known, "rowtime" names it. {}: each partition is in order. None: others send the bounds.
        rejected: Of a table, the name of another one in the same form, which gets the late rows: the columns of
            ``df``, and ``belowBound``, the bound that they lie below. It is made if there is none. The rows pass
            through the driver. A topic's late rows are in the stream of bounds.

    Returns:
        The DataFrame with the same columns, of which ``column`` has the watermark.

    Raises:
        InvalidOptionError: ``df`` is not streaming, or has no such column; or an argument has a value that cannot be
            used. What is wrong in ``watch``, Spark raises as AnalysisException, or as the error of the query when it
            starts.
        StreamNotFoundError: There is no stream at ``bounds``, and no ``watch``.
        ShimMissingError: The table is read in a session without the extension.

    Example:
        ```python
        orders = spark.readStream.format("kafka").options(**topic).load()
        parsed = orders.select(f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, shop STRING").alias("o"))
        rows = rt.punctuate(parsed.select("o.*").where("ts IS NOT NULL"), "ts", bounds="orders-bounds.rowtime")
        rows.groupBy(f.window("ts", "1 hour"), "shop").count()

        orders = spark.readStream.format("delta").load("/lake/orders")
        rt.punctuate(orders, "rowtime").groupBy(f.window("rowtime", "1 hour"), "shop").count()
        ```

        Without any change of the producers, in the place of ``withWatermark("ts", "1 minute")``:

        ```python
        declared = {"lateness": "1 minute", "delay": "5 minutes"}
        rows = rt.punctuate(parsed, "ts", bounds="orders-bounds.rowtime", watch=declared)
        ```
    """
    if bounds is None or _is_table(bounds):
        with _unless_in_pipeline():
            _check(df, column)
        return _of_table(df, column, bounds, rejected, NOTHING if watch is None else declared(to_texts(watch, "watch")))
    _check(df, column)
    if EXTENSION not in extensions(df.sparkSession):
        raise _no_extension()
    if rejected is not None:
        raise InvalidOptionError(
            f"rejected={rejected!r} is for tables: the stream of bounds {bounds} keeps the late rows of a topic. Read "
            "them with option('view', 'rejected').",
            option="rejected",
        )
    reader = _named(df).format("rowtime").option(TOPIC_TIME, column).option("watermark", "none")
    if watch is not None:
        reader = reader.option(WATCH, json.dumps(to_texts(watch, "watch")))
    fields = [_of_bounds(field, column) for field in df.schema]
    timed = f.lit(True) if watch is None else f.col(in_backticks(column)).isNotNull()
    rows = df.where(timed)  # Spark makes one union of two that follow each other; a filter keeps them apart
    punctuated: DataFrame = reader.load(bounds).where(f.lit(False)).select(*fields).unionAll(rows)
    return punctuated.where(f.lit(True))


def _named(df: DataFrame) -> DataStreamReader:
    """A reader of the bounds. Where sources have names, the extension gives it that of the topic and ``_bounds``.

    A topic may then come to a query that runs already, which takes the bounds that are there for its first offsets.
    """
    reader = df.sparkSession.readStream
    if not _has_names(df):
        return reader
    named: DataStreamReader = reader.name(f"bounds_{uuid4().hex}").option("startingPosition", "latest")
    return named


def _has_names(df: DataFrame) -> bool:
    return hasattr(DataStreamReader, "name") and str(df.sparkSession.conf.get(_NAMES, "false")).lower() == "true"


def _is_table(name: str) -> bool:
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind in TABLES


def _of_table(df: DataFrame, column: str, bounds: str | None, rejected: str | None, watch: Declared) -> DataFrame:
    if rejected is not None and not _is_table(rejected):
        raise InvalidOptionError(
            f"rejected={rejected!r} is no table. Give delta:PATH or iceberg:CATALOG.NAMESPACE.TABLE.", option="rejected"
        )
    try:
        return df.where(
            f.call_function(_IN_TIME, f.col(in_backticks(column)), f.lit(bounds), f.lit(rejected), *map(f.lit, watch))
        )
    except AnalysisException as error:
        if error.getCondition() != "UNRESOLVED_ROUTINE":
            raise
        raise _no_extension() from error


def _no_extension() -> ShimMissingError:
    return ShimMissingError(
        "This Spark session does not have the extension that moves the watermark by the bounds of a topic or a table. "
        "Build the session with spark_rowtime.configure(SparkSession.builder), or set spark.jars to what `rowtime jar` "
        "prints and spark.sql.extensions to sparkrowtime.RowtimeExtensions."
    )


def _of_bounds(field: StructField, column: str) -> Column:
    """The stream's column in the place of a column of the rows: its rowtime, or NULL. Its rows are not read."""
    if field.name == column:
        return f.col(ROWTIME).alias(column, metadata=field.metadata)
    kind: DataType = field.dataType
    return f.lit(None).cast(kind).alias(field.name, metadata=field.metadata)


@contextmanager
def _unless_in_pipeline() -> Iterator[None]:
    """The functions of a declarative pipeline must not look at a DataFrame. The extension does when the flow starts."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != _IN_PIPELINE:
            raise


def _check(df: DataFrame, column: str) -> None:
    if not df.isStreaming:
        raise InvalidOptionError(
            "punctuate is for a streaming DataFrame of format('kafka'), format('delta') or format('iceberg') "
            "(spark.readStream): a batch has no watermark."
        )
    found = [field for field in df.schema if field.name == column]
    if len(found) != 1 or not isinstance(found[0].dataType, TimestampType):
        raise InvalidOptionError(
            f"punctuate needs exactly one column {column!r} of type TIMESTAMP, but the columns are "
            f"{df.schema.simpleString()}. Select it under that name, and cast it.",
            column=column,
        )
