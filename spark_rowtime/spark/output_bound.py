"""currentRowtimeBound: the output bound of the running batch, inside any task."""

import json
from collections.abc import Callable

from pyspark import SparkContext, TaskContext

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.types.schema import ROWTIME

OUTPUT_BOUNDS = "rowtime.outputBounds"
"""The local property in which the extension puts the floors of the output's columns, as JSON."""

SPARK_QUERY_ID, BOUNDS_QUERY_ID = "sql.streaming.queryId", "rowtime.query"
"""The local properties of the running query's id, as Spark has it, and of the query whose bounds are told."""


def floors_said(said: Callable[[str], str | None]) -> dict[str, int]:
    """The floor in microseconds of each output column that carries a bound, by its path (``path_of``).

    A field of a struct is ``window.end``. ``said`` gives a local property.
    """
    text = of_this_query(OUTPUT_BOUNDS, said)
    floors: dict[str, int] = json.loads(text) if text else {}
    return floors


def path_of(column: str) -> str:
    """The path of a whole column: a name with a dot or a backtick in backticks, as in Spark's own expressions."""
    return f"`{column.replace('`', '``')}`" if "." in column or "`" in column else column


def of_this_query(name: str, said: Callable[[str], str | None]) -> str | None:
    """A property of the extension's; None where it is another query's, in whose foreachBatch this one was started."""
    return said(name) if said(BOUNDS_QUERY_ID) == said(SPARK_QUERY_ID) else None


def local_property(name: str) -> str | None:
    """A local property of the query: in a task, or on the driver in a foreachBatch."""
    task = TaskContext.get()
    if task is not None:
        return task.getLocalProperty(name)
    context = SparkContext._active_spark_context  # noqa: SLF001  (PySpark has no public name for it)
    return context.getLocalProperty(name) if context is not None else None


def currentRowtimeBound(column: str = ROWTIME) -> RowtimeBound | None:
    """The bound on what later batches of this query will put out, for one output column.

    Callable in any task of a streaming query (UDFs, Python sinks, mapInArrow) and in a classic
    foreachBatch. ``column``: an output column, or a path such as ``"window.end"``. A column whose
    own name has a dot is written in backticks where there is also a struct of that path:
    ``"`window.end`"``. None where the output carries no bound, and outside a query with a rowtime
    source.
    """
    return as_bound(floors_said(local_property).get(column))
