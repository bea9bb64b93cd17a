"""The as-of join of batch DataFrames, with SQL window functions."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_rowtime.operators.asof_match import AsOf
from spark_rowtime.operators.columns import quoted

_LEFT, _RIGHT, _TIME, _PLACE, _FOUND = "left", "right", "time", "place", "found"


def joined_in_batch(left: DataFrame, right: DataFrame, asof: AsOf, added: list[str], *, inner: bool) -> DataFrame:
    """Returns ``left`` with the columns ``added`` of ``right``, which has no nulls in its keys and times."""
    both = _side(left, asof, _LEFT).unionByName(_side(right, asof, _RIGHT), allowMissingColumns=True)
    rows = both.withColumn(_FOUND, _found(asof)).where(F.col(_LEFT).isNotNull())
    if inner:
        rows = rows.where(F.col(_FOUND).isNotNull())
    return rows.select(*_taken(_LEFT, left.columns), *_taken(_FOUND, added))


def _side(df: DataFrame, asof: AsOf, name: str) -> DataFrame:
    """Returns the rows of a side as structs, with their key and time, and their place in the order of arrival."""
    keys = [column.alias(f"key{number}") for number, column in enumerate(quoted(asof.by))]
    time = F.unix_micros(F.col(f"`{asof.on}`")).alias(_TIME)
    place = F.monotonically_increasing_id().alias(_PLACE)
    return df.select(*keys, time, place, F.struct(time, F.struct(*quoted(df.columns)).alias("row")).alias(name))


def _taken(side: str, names: list[str]) -> list[Column]:
    return [F.col(f"{side}.row.`{name}`").alias(name) for name in names]


def _found(asof: AsOf) -> Column:
    before, after = (_within(asof, _last(asof, order)) for order in (F.col(_TIME).asc(), F.col(_TIME).desc()))
    if asof.direction != "nearest":
        return before if asof.direction == "backward" else after
    return F.when(_far(before) <= F.coalesce(_far(after), _far(before)), before).otherwise(after)


def _last(asof: AsOf, order: Column) -> Column:
    """Returns the last right row up to a row in this order; of one time, the one that arrived last."""
    keys = Window.partitionBy(*(f"key{number}" for number in range(len(asof.by))))
    rows = keys.orderBy(order, F.col(_LEFT).isNotNull(), _PLACE).rowsBetween(Window.unboundedPreceding, 0)
    return F.last(_RIGHT, ignorenulls=True).over(rows)


def _within(asof: AsOf, found: Column) -> Column:
    """Returns null for a row without a time, and for a match that is too far."""
    near = F.col(_TIME).isNotNull()
    return F.when(near if asof.tolerance is None else near & (_far(found) <= asof.tolerance), found)


def _far(found: Column) -> Column:
    return F.abs(F.col(_TIME) - found[_TIME])
