"""cascadingAggregate: for each row, a running total that starts anew with each window."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.operators.build import aggregated
from spark_rowtime.operators.frames import Cascading
from spark_rowtime.types.timestamps import to_interval


def cascadingAggregate(
    df: DataFrame,
    by: str | Sequence[str] = (),
    *,
    window: str | timedelta,
    aggregates: Mapping[str, tuple[str, str]],
    rowtime: str = "rowtime",
    startTime: str | timedelta = "0 seconds",
    buckets: int = 8,
) -> DataFrame:
    """One row for each row, with aggregates over the rows of the same key since its window began.

    A running total that resets on the hour: the first row of an hour starts anew. Windows are
    Spark's, from 1970-01-01T00:00:00Z + ``startTime`` on. In SQL: ``OVER (PARTITION BY key, hour
    ORDER BY rowtime)``; rows of one time count each other. The other arguments are those of
    :func:`slidingAggregate`, and a row comes out at the same moment: when the floor is above it.

        cascadingAggregate(orders, by="product", window="1 hour", aggregates={"soFar": ("sum", "units")})

    State: whole rows from the floor on; of the floor's window the columns ``by``, ``rowtime`` and
    those aggregated, until the floor has reached its end.
    """
    size, origin = to_interval(window, "window"), to_interval(startTime, "startTime")
    if not size:
        raise InvalidOptionError(f"window must be longer than nothing, but is {window!r}.")
    return aggregated(df, by, Cascading(size, origin or 0), aggregates, rowtime, buckets)
