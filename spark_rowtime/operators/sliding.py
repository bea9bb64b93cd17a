"""slidingAggregate and cascadingAggregate: for each row, aggregates over the last interval, or since a window began."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.operators.bucketed import BUCKETS
from spark_rowtime.operators.build import aggregated
from spark_rowtime.operators.frames import Cascading, Frame, LastRows, Sliding
from spark_rowtime.types.arguments import known_keywords, to_count
from spark_rowtime.types.timestamps import to_interval, to_required_interval, to_signed_interval


@known_keywords
def slidingAggregate(
    df: DataFrame,
    by: str | Sequence[str] = (),
    *,
    interval: str | timedelta | None = None,
    rows: int | None = None,
    following: str | timedelta | None = None,
    aggregates: Mapping[str, tuple[str, str]],
    rowtime: str = "rowtime",
    buckets: int = BUCKETS,
) -> DataFrame:
    """Adds aggregates to each row, over the rows of the same key in the last ``interval`` or the last ``rows`` rows.

    A row with time r is emitted when the floor is above r. With a non-strict bound of 12:00 a row at
    12:00 waits, since another row at 12:00 may follow; with a strict bound it is emitted. With
    ``following``, a row is emitted when the floor is above r + ``following``, and the output's bound is
    that of the input less ``following``.

    If the order of rows with the same key and time matters (with ``rows``, and for first and last),
    they count in the order of their other columns.

    The state holds whole rows until they are emitted. After that it holds the columns ``by``,
    ``rowtime`` and those aggregated, for ``interval`` and an eighth of it. A bound without rows frees it, too.
    A batch reads the state of those buckets that have complete rows. With ``rows``, the last ``rows`` - 1
    rows of each key are kept forever, because no bound says that a key will not occur again.

    Args:
        df: A streaming DataFrame with a watermarked TIMESTAMP column ``rowtime``, or a batch DataFrame.
        by: The column or columns that form the key. By default, all rows have the same key.
        interval: How long before a row others count for it: an interval such as ``"1 hour"``, or a timedelta.
            As ``RANGE BETWEEN INTERVAL ... PRECEDING AND CURRENT ROW`` in SQL: both ends are included,
            and so are other rows at the row's own time. Give either ``interval`` or ``rows``.
        rows: How many rows of the key count, including the row itself: a whole number of at least 1. As
            ``ROWS BETWEEN rows - 1 PRECEDING AND CURRENT ROW`` in SQL.
        following: How long after a row others still count for it, in the same forms as ``interval``. Only with
            ``interval``.
        aggregates: The name of each result, mapped to (function, column). The functions are count, sum,
            avg, min, max, median, first and last (the value of the first and the last row), and rank (1 + the
            number of values that are smaller than the row's own). ``("count", "*")`` counts rows.
        rowtime: The name of the column with the event time.
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
        slidingAggregate(orders, by="product", interval="1 hour", aggregates={"avgUnits": ("avg", "units")})
        ```
    """
    return aggregated(df, by, _frame(interval, rows, following), aggregates, rowtime, buckets)


def _frame(interval: str | timedelta | None, rows: int | None, following: str | timedelta | None) -> Frame:
    before, after = to_interval(interval, "interval"), to_interval(following, "following")
    if (before is None) == (rows is None):
        raise InvalidOptionError(
            f"interval={interval!r} and rows={rows!r}: give one of them: how far back in time rows count "
            "(interval='1 hour'), or how many rows count (rows=10)."
        )
    if before is not None:
        return Sliding(before, after or 0)
    if after is not None:
        raise InvalidOptionError(
            "following needs interval, not rows: it is not known when the next row of a key comes."
        )
    return LastRows(to_count(rows, "rows", 1))


@known_keywords
def cascadingAggregate(
    df: DataFrame,
    by: str | Sequence[str] = (),
    *,
    window: str | timedelta,
    aggregates: Mapping[str, tuple[str, str]],
    rowtime: str = "rowtime",
    startTime: str | timedelta = "0 seconds",
    buckets: int = BUCKETS,
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
        startTime: An interval or a timedelta, which may be negative. The windows start at 1970-01-01T00:00:00Z +
            ``startTime``, as Spark's do.
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
    size, origin = to_required_interval(window, "window"), to_signed_interval(startTime, "startTime")
    if not size:
        raise InvalidOptionError(
            f"window must be longer than 0, but is {window!r}.", option="window", value=repr(window)
        )
    return aggregated(df, by, Cascading(size, origin), aggregates, rowtime, buckets)
