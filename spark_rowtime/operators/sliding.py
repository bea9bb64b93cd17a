"""slidingAggregate: for each row, aggregates over the rows of the last interval."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame

from spark_rowtime.operators.build import aggregated
from spark_rowtime.operators.frames import Sliding
from spark_rowtime.timestamps import to_interval


def slidingAggregate(
    df: DataFrame,
    by: str | Sequence[str] = (),
    *,
    interval: str | timedelta,
    aggregates: Mapping[str, tuple[str, str]],
    rowtime: str = "rowtime",
    buckets: int = 8,
) -> DataFrame:
    """One row for each row, with aggregates over the rows of the same key in the last ``interval``.

    As ``RANGE BETWEEN INTERVAL ... PRECEDING AND CURRENT ROW`` in SQL: both ends are in, and so are
    other rows at the row's own time. ``by``: columns that make the key; none for all rows together.
    ``aggregates``: name of the result to (function, column), the functions being count, sum, avg,
    min and max; ``("count", "*")`` counts rows. ``buckets``: into how many parts the keys go, which
    is the most tasks that work at once; it belongs to the checkpoint, as shuffle partitions do.

        slidingAggregate(orders, by="product", interval="1 hour", aggregates={"avgUnits": ("avg", "units")})

    A row at r comes out when the floor is above r: with a non-strict bound 12:00 the row at 12:00
    waits, since another of 12:00 may follow; with a strict one it comes.

    State: whole rows from the floor on; for ``interval`` and an eighth of it below the floor, the
    columns ``by``, ``rowtime`` and those aggregated. A bound alone frees it. A batch reads what is
    kept of the buckets that have complete rows.
    """
    size = to_interval(interval, "interval")
    assert size is not None
    return aggregated(df, by, Sliding(size), aggregates, rowtime, buckets)
