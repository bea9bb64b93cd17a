"""slidingAggregate: for each row, aggregates over the rows of the last interval."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.operators.build import aggregated
from spark_rowtime.operators.frames import Frame, LastRows, Sliding
from spark_rowtime.types.arguments import is_whole
from spark_rowtime.types.timestamps import to_interval


def slidingAggregate(
    df: DataFrame,
    by: str | Sequence[str] = (),
    *,
    interval: str | timedelta | None = None,
    rows: int | None = None,
    following: str | timedelta | None = None,
    aggregates: Mapping[str, tuple[str, str]],
    rowtime: str = "rowtime",
    buckets: int = 8,
) -> DataFrame:
    """One row for each row, with aggregates over the rows of the same key in the last ``interval``.

    As ``RANGE BETWEEN INTERVAL ... PRECEDING AND CURRENT ROW`` in SQL: both ends are in, and so are
    other rows at the row's own time. ``by``: columns that make the key; none for all rows together.
    ``aggregates``: name of the result to (function, column). The functions are count, sum, avg, min,
    max; first and last, the value of the first and the last row; median; and rank, 1 and the number of
    values that are smaller than the row's own. ``("count", "*")`` counts rows.

    ``rows``, instead of ``interval``: the last so many rows of the key, the row itself among them, as
    ``ROWS BETWEEN rows - 1 PRECEDING AND CURRENT ROW``. ``following``: also the rows up to so long
    after the row. ``buckets``: into how many parts the keys go, which is the most tasks that work at
    once; it belongs to the checkpoint, as shuffle partitions do.

        slidingAggregate(orders, by="product", interval="1 hour", aggregates={"avgUnits": ("avg", "units")})

    A row at r comes out when the floor is above r: with a non-strict bound 12:00 the row at 12:00
    waits, since another of 12:00 may follow; with a strict one it comes. With ``following`` it comes
    out when the floor is above r + ``following``, and the output's bound is the input's less that.

    Rows of one key and time count in the order of their other columns, where their order matters:
    with ``rows``, and for first and last.

    State: whole rows until they come out; for ``interval`` and an eighth of it after that, the
    columns ``by``, ``rowtime`` and those aggregated. A bound alone frees it. A batch reads what is
    kept of the buckets that have complete rows. With ``rows``, the last ``rows`` - 1 of each key are
    kept for good: no bound says that a key does not come again.
    """
    return aggregated(df, by, _frame(interval, rows, following), aggregates, rowtime, buckets)


def _frame(interval: str | timedelta | None, rows: int | None, following: str | timedelta | None) -> Frame:
    before, after = to_interval(interval, "interval"), to_interval(following, "following")
    if (before is None) == (rows is None):
        raise InvalidOptionError(
            f"interval={interval!r} and rows={rows!r}: give one of them, either how long before a row others count "
            "(interval='1 hour') or how many (rows=10)."
        )
    if before is not None:
        return Sliding(before, after or 0)
    if after is not None:
        raise InvalidOptionError(
            "following is for interval, not for rows: nothing says when the next row of a key comes."
        )
    if not is_whole(rows) or rows < 1:
        raise InvalidOptionError(f"rows={rows!r} must be a whole number from 1 on.")
    return LastRows(rows)
