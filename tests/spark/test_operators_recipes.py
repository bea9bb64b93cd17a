"""Recipes for what needs no operator: the ordered union, and prices that change."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, expr

from tests.streams import Pipe, opened, send

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


def test_c7_a_versioned_table(pipe: Pipe) -> None:
    orders = pipe.create("orders", "product STRING")
    day = "timestamp'2006-09-11 {} UTC'"
    rows = ", ".join(f"('{p}', {x}, {day.format(a)}, {day.format(b)})" for p, x, a, b in PRICES)
    prices = pipe.spark.sql(f"SELECT * FROM VALUES {rows} AS t(product, price, valid_from, valid_to)")
    pipe.run(priced(pipe.read("orders"), prices))
    with opened(orders) as sink:
        send(sink, ("10:59", "A"), ("11:00", "A"), ("11:01", "B"), promise="12:00")
        assert pipe.step() == [("10:59", "A", 1.0), ("11:00", "A", 2.0), ("11:01", "B", 9.0)]
        assert str(pipe.bound) == "every later row is at or after 2006-09-11T12:00:00Z"


def test_c7_a_versioned_stream_read_as_a_table(pipe: Pipe) -> None:
    """Each batch joins the versions that are there when it is planned."""
    orders, versions = pipe.create("orders", "product STRING"), pipe.create("prices", "product STRING, price DOUBLE")
    table = pipe.spark.read.format("rowtime").load(versions)
    until = expr("coalesce(lead(rowtime) OVER (PARTITION BY product ORDER BY rowtime), timestamp'9999-01-01')")
    prices = table.select("product", "price", col("rowtime").alias("valid_from"), until.alias("valid_to"))
    pipe.run(priced(pipe.read("orders"), prices))
    with opened(orders) as sink, opened(versions) as changes:
        send(changes, ("9:00", "A", 1.0))
        send(sink, ("10:00", "A"))
        assert pipe.step() == [("10:00", "A", 1.0)]
        send(changes, ("11:00", "A", 2.0))
        send(sink, ("10:59", "A"), ("11:00", "A"))
        assert pipe.step() == [("10:59", "A", 1.0), ("11:00", "A", 2.0)]


def test_c7_versions_that_are_valid_for_a_limited_time_as_a_stream(pipe: Pipe) -> None:
    """Orders wait for no price: a version comes before the orders of its time, or the bound holds them."""
    orders = pipe.create("orders", "product STRING")
    pipe.create("prices", "product STRING, price DOUBLE, until TIMESTAMP")
    valid = expr(
        "o.product = p.product AND o.rowtime >= p.rowtime AND o.rowtime < p.until"
        " AND o.rowtime <= p.rowtime + INTERVAL 24 HOURS"
    )
    joined = pipe.read("orders").alias("o").join(pipe.read("prices").alias("p"), valid)
    pipe.run(joined.select("o.rowtime", "o.product", "p.price"))
    with opened(orders) as sink, opened(pipe.path("prices")) as changes:
        send(sink, ("10:59", "A"), ("11:00", "A"), promise="12:00")
        assert pipe.step() == []
        changes.sendRow(("2006-09-11T09:00:00Z", "A", 1.0, "2006-09-11T11:00:00Z"))
        changes.sendRow(("2006-09-11T11:00:00Z", "A", 2.0, "2006-09-11T23:00:00Z"))
        changes.sendRowtimeBound("2006-09-11T12:00:00Z")
        changes.flush()
        assert pipe.step() == [("10:59", "A", 1.0), ("11:00", "A", 2.0)]
