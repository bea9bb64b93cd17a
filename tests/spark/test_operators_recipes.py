"""Recipes for what needs no operator: the ordered union, and prices that change."""

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from tests.spark.operator_streams import NOON
from tests.streams import Pipe, at, bound, opened, send

PRICES = [("A", 1.0, "0:00", "11:00"), ("A", 2.0, "11:00", "23:00"), ("B", 9.0, "0:00", "23:00")]


def test_an_ordered_union_is_a_union_read_by_rowtime(pipe: Pipe) -> None:
    p, q = (opened(pipe.create(name, "side STRING")) for name in "pq")
    pipe.run(pipe.read("p").unionByName(pipe.read("q")))
    send(p, ("1:00", "P"), ("1:06", "P"))
    send(q, ("1:01", "Q"), ("1:04", "Q"))
    assert pipe.step() == [("01:00", "P"), ("01:01", "Q"), ("01:04", "Q")], "1:06 waits for Q"
    send(q, promise="1:10")
    assert pipe.step() == [("01:06", "P")]


def priced(orders: DataFrame, prices: DataFrame) -> DataFrame:
    """Each order with the price that was valid at its time."""
    valid = expr("o.product = p.product AND o.rowtime >= p.valid_from AND o.rowtime < p.valid_to")
    return orders.alias("o").join(prices.alias("p"), valid).select("o.rowtime", "o.product", "p.price")


@pytest.mark.long
def test_c7_a_versioned_table(pipe: Pipe) -> None:
    orders = pipe.create("orders", "product STRING")
    rows = [(product, price, at(since), at(until)) for product, price, since, until in PRICES]
    table = pipe.spark.createDataFrame(rows, "product STRING, price DOUBLE, since STRING, until STRING")
    prices = table.selectExpr("product", "price", "timestamp(since) AS valid_from", "timestamp(until) AS valid_to")
    pipe.run(priced(pipe.read("orders"), prices))
    with opened(orders) as sink:
        send(sink, ("10:59", "A"), ("11:00", "A"), ("11:01", "B"), promise="12:00")
        assert pipe.step() == [("10:59", "A", 1.0), ("11:00", "A", 2.0), ("11:01", "B", 9.0)]
        assert pipe.bound == bound("12:00")


@pytest.mark.long
def test_c7_a_stream_of_versions(pipe: Pipe) -> None:
    """Orders wait for the prices of their time, where a version has a longest validity."""
    orders = pipe.create("orders", "product STRING")
    pipe.create("prices", "product STRING, price DOUBLE, valid_to TIMESTAMP")
    valid = expr(
        "o.product = p.product AND o.rowtime >= p.rowtime AND o.rowtime < p.valid_to"
        " AND o.rowtime <= p.rowtime + INTERVAL 24 HOURS"
    )
    joined = pipe.read("orders").alias("o").join(pipe.read("prices").alias("p"), valid)
    pipe.run(joined.select("o.rowtime", "o.product", "p.price"))
    with opened(orders) as sink, opened(pipe.path("prices")) as changes:
        send(sink, ("10:59", "A"), ("11:00", "A"), promise="12:00")
        assert pipe.step() == []
        send(changes, ("9:00", "A", 1.0, NOON.replace(hour=11)), ("11:00", "A", 2.0, NOON), promise="12:00")
        assert pipe.step() == [("10:59", "A", 1.0), ("11:00", "A", 2.0)]
