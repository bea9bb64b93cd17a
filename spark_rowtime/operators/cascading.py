"""cascadingAggregate: for each row, a running total that restarts with each window."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.operators.build import aggregated
from spark_rowtime.operators.frames import Cascading
from spark_rowtime.types.arguments import known_keywords
from spark_rowtime.types.timestamps import to_interval, to_required_interval


@known_keywords
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
    """Adds aggregates to each row, over the rows of the same key since the row's window began.

    The result is a running total that resets, for example, on the hour: the first row of an hour starts
    again. It equals ``OVER (PARTITION BY key, hour ORDER BY rowtime)`` in SQL. Rows with the same time
    count for each other. A row is emitted when the floor is above its time, as by
    :func:`slidingAggregate`.

    The state holds whole rows from the floor on. Of the window that contains the floor, it holds the
    columns ``by``, ``rowtime`` and those aggregated, until the floor reaches the end of the window.

    Args:
        df: A streaming DataFrame with a watermarked TIMESTAMP column ``rowtime``, or a batch DataFrame.
        by: The column or columns that form the key. By default, all rows have the same key.
        window: The length of the windows: an interval such as ``"1 hour"``, or a timedelta, longer than zero.
        aggregates: The name of each result, mapped to (function, column), as for :func:`slidingAggregate`.
        rowtime: The name of the column with the event time.
        startTime: An interval or a timedelta. The windows start at 1970-01-01T00:00:00Z + ``startTime``, as Spark's do.
        buckets: The number of parts into which the keys are divided, which limits the number of parallel
            tasks. It belongs to the checkpoint, as the number of shuffle partitions does.

    Returns:
        A DataFrame with one row for each row of ``df``: all its columns, and one for each aggregate.

    Raises:
        InvalidOptionError: An argument is not possible, ``rowtime`` has no watermark, or the session does not
            use the RocksDB state store.
        SchemaMismatchError: A column is missing or not unique, or its type or name cannot be used.
        ExtraNotInstalledError: The pip extra ``operators`` is not installed.

    Example:
        ```python
        cascadingAggregate(orders, by="product", window="1 hour", aggregates={"soFar": ("sum", "units")})
        ```
    """
    size, origin = to_required_interval(window, "window"), to_interval(startTime, "startTime")
    if not size:
        raise InvalidOptionError(
            f"window must be longer than 0, but is {window!r}.", option="window", value=repr(window)
        )
    return aggregated(df, by, Cascading(size, origin or 0), aggregates, rowtime, buckets)
