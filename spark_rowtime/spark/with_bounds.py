"""withBounds: windows that are closed by a stream's bounds, in a session without the extension."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.spark.marked_source import BOUND, ROW, TIME, rows_type
from spark_rowtime.spark.output_bound import in_backticks
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.timestamps import END

_MARK, _WINDOW, _SESSION = "spark.watermarkDelayMs", "spark.timeWindow", "spark.sessionWindow"
"""Keys of Spark in the metadata of a column: it has a watermark; it is a window; it is a session."""
UNMARKED = {"comment": "the window has the watermark"}
"""Metadata in the place of the mark; PySpark 4.0 does not take empty metadata for a change."""
_ALWAYS = END // 1000
"""The delay in the mark of a window, in milliseconds. dropDuplicatesWithinWatermark alone reads it, and would take the
window for a number and forget its rows at once; with this delay it keeps them."""


def withBounds(df: DataFrame, window: Column) -> DataFrame:
    """Closes windows by a stream's bounds where Spark has no extension.

    With the extension (``configure``) a query needs no such call, knows each bound in the batch in which it comes, and
    may have any operator. Where no jar may be installed, read a stream with ``option("bounds", "markers")``, and give
    the DataFrame and the windows of the query to this call. A window is closed in the batch after the one in which the
    bound came, and its result is that of the query with the extension.

    The window has the watermark, and ``rowtime`` has none. So Spark refuses an aggregation by any other time.

    Args:
        df: What ``spark.readStream.format("rowtime").option("bounds", "markers").load(path)`` returns, as it is.
            Filters and projections come after this call, since they would drop the bounds.
        window: ``window("rowtime", ...)`` or ``session_window("rowtime", ...)``, maybe with an ``alias``.

    Returns:
        The columns of the stream, and a column for the window: ``window`` or ``session_window``, or its alias. Group by
        it.

    Raises:
        InvalidOptionError: ``df`` is not such a DataFrame; ``window`` is no window of rowtime, or has the name of a
            column of the stream.

    Example:
        ```python
        rows = spark.readStream.format("rowtime").option("bounds", "markers").load("orders.rowtime")
        hours = rt.withBounds(rows, f.window("rowtime", "1 hour")).groupBy("window", "ticker").count()
        ```
    """
    names = _columns(df)
    rows = _rows(df, names, "0 seconds")
    column = _window(rows, window, names)
    if _SESSION in column.metadata:  # Spark gives a session a row at its very end, which may be at the bound
        rows = _rows(df, names, "1 millisecond")
    unmarked = f.col(ROWTIME).alias(ROWTIME, metadata=UNMARKED)
    marked = window.alias(column.name, metadata={**column.metadata, _MARK: _ALWAYS})
    return rows.select(*(unmarked if name == ROWTIME else f.col(in_backticks(name)) for name in names), marked)


def _rows(df: DataFrame, names: list[str], delay: str) -> DataFrame:
    """The rows of the stream, with their watermark.

    The filter mentions the time, and is not deterministic for Spark. So neither it nor any filter after it is moved
    below the watermark, where it would drop the markers.
    """
    of_rows = ~f.col(TIME).eqNullSafe(f.col(BOUND)) & (f.spark_partition_id() >= 0)
    values = (f.col(TIME) if name == ROWTIME else f.col(ROW).getField(name) for name in names)
    columns = [value.alias(name) for value, name in zip(values, names, strict=True)]
    return df.withWatermark(TIME, delay).where(of_rows).select(*columns)


def _columns(df: DataFrame) -> list[str]:
    if not df.isStreaming:
        raise InvalidOptionError("withBounds is for a streaming DataFrame: a batch has no watermark.")
    return rows_type(df.schema).names


def _window(rows: DataFrame, window: Column, names: list[str]) -> StructField:
    [column, *more] = rows.select(window).schema.fields
    if more or _MARK not in column.metadata or not column.metadata.keys() & {_WINDOW, _SESSION}:
        raise InvalidOptionError(
            f"{window} is no window of rowtime. Give withBounds window('rowtime', ...) or session_window('rowtime', "
            "...); nothing else can be closed by bounds without Spark's extension (spark_rowtime.configure).",
        )
    if column.name.lower() in map(str.lower, names):
        raise InvalidOptionError(
            f"The stream has a column {column.name!r}, too. Give the window another name by alias(...).",
            column=column.name,
        )
    return column
