"""A table that is punctuated once and joined with itself is read once: its late rows count once, and are kept once."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.lakehouse.orders import Orders, late

pytestmark = pytest.mark.night

SAME = "l.ts = r.ts AND l.k = r.k"
NEAR = "l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 5 MINUTES"


def plain(orders: Orders) -> DataFrame:
    return orders.rows()


def kept(orders: Orders) -> DataFrame:
    return rt.punctuate(orders.read(), "ts", rejected=orders.rejected)


def selected(orders: Orders) -> DataFrame:
    return rt.punctuate(orders.read().select("k", "ts"), "ts", rejected=orders.rejected)


def joined(rows: DataFrame, condition: str) -> DataFrame:
    return rows.alias("l").join(rows.alias("r"), f.expr(condition)).select("r.ts", "l.k")


@pytest.mark.parametrize("condition", [SAME, NEAR], ids=["same", "near"])
@pytest.mark.parametrize("rows", [plain, kept, selected])
def test_late_rows_are_left_out_on_both_sides_and_counted_once(
    orders: Orders, rows: Callable[[Orders], DataFrame], condition: str
) -> None:
    frame = joined(rows(orders), condition)
    orders.put(("10:10", "a"), bound="11:00")
    with orders.observed(frame) as query:
        assert query.step() == [("10:10", "a")]
        orders.put(("10:50", "late"), ("11:10", "a"))
        assert query.step() == [("11:10", "a")]
        assert late(query) == {0: 0, 1: 1}
        orders.put(("11:20", "b"), bound="11:20")
        query.step()
    query.lose_commit()
    with orders.observed(frame) as query:
        orders.put(("11:10", "later"), ("11:30", "c"))
        assert query.step()[-1] == ("11:30", "c")
        assert sum(late(query).values()) == 1
    if rows is not plain:
        assert sorted(row.k for row in orders.kept().collect()) == ["late", "later"]


def test_windows_joined_with_windows(orders: Orders) -> None:
    hours = kept(orders).groupBy(f.window("ts", "1 hour").alias("w"))
    orders.put(("10:10", "a"), ("10:20", "b"), bound="10:15")
    with orders.observed(hours.count().join(hours.agg(f.max("k").alias("last")), "w").select("count", "last")) as query:
        assert query.step() == []
        orders.put(("10:12", "late"), bound="11:00")
        assert query.step() == [(2, "b")]
        assert sum(late(query).values()) == 1
    assert [row.k for row in orders.kept().collect()] == ["late"]
