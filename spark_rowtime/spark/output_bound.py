"""currentRowtimeBound: the output bound of the running batch, inside any task."""

import json
from collections.abc import Callable

from pyspark import SparkContext, TaskContext

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.types.schema import ROWTIME

OUTPUT_BOUNDS = "rowtime.outputBounds"
"""The local property in which the extension stores the floors of the output columns, as JSON."""

SPARK_QUERY_ID, BOUNDS_QUERY_ID = "sql.streaming.queryId", "rowtime.query"
"""The local properties with the id of the running query, set by Spark, and of the query that the bounds belong to."""


def floors_said(read_property: Callable[[str], str | None]) -> dict[str, int]:
    """Returns the floor in microseconds of each output column that carries a bound, by its path (``path_of``).

    The path of a field of a struct is ``window.end``. ``read_property`` returns the value of a local property.
    """
    text = of_this_query(OUTPUT_BOUNDS, read_property)
    floors: dict[str, int] = json.loads(text) if text else {}
    return floors


def path_of(column: str) -> str:
    """Returns the path of a whole column. A name with a dot or a backtick is put in backticks, as in Spark."""
    return in_backticks(column) if "." in column or "`" in column else column


def in_backticks(name: str) -> str:
    """Returns a name in backticks, so that Spark finds the column, whatever is in its name."""
    return f"`{name.replace('`', '``')}`"


def of_this_query(name: str, read_property: Callable[[str], str | None]) -> str | None:
    """Returns a property that the extension set for this query.

    Returns None if the property is inherited from another query, in whose foreachBatch this query was started.
    """
    return read_property(name) if read_property(BOUNDS_QUERY_ID) == read_property(SPARK_QUERY_ID) else None


def local_property(name: str) -> str | None:
    """Returns a local property of the query, in a task or on the driver in a foreachBatch."""
    task = TaskContext.get()
    if task is not None:
        return task.getLocalProperty(name)
    context = SparkContext._active_spark_context  # noqa: SLF001  (PySpark has no public name for it)
    return context.getLocalProperty(name) if context is not None else None


def currentRowtimeBound(column: str = ROWTIME) -> RowtimeBound | None:
    """Returns the bound on what later batches of this query will emit, for one output column.

    It can be called in any task of a streaming query (UDFs, Python sinks, mapInArrow) and in a
    foreachBatch function of classic Spark.

    Args:
        column: An output column, or a path to a field of a struct such as ``"window.end"``. A column
            whose own name contains a dot is written in backticks if there is also a struct of that
            path: ``"`window.end`"``.

    Returns:
        The bound, or None if the output carries no bound or if there is no query with a rowtime source.

    Example:
        ```python
        def write(batch: DataFrame, batchId: int) -> None:
            batch.write.mode("append").saveAsTable("hourly")
            print("bound:", rt.currentRowtimeBound("window.end"))

        hours.writeStream.foreachBatch(write).start()
        ```
    """
    return as_bound(floors_said(local_property).get(column))
