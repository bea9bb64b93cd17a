"""Apache Calcite's examples of streaming SQL, as Spark SQL over rowtime streams."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame

import spark_rowtime as rt
from tests.spark.operator_streams import kept
from tests.sparksession import running
from tests.streams import Pipe, at, bound, drained, opened, send

ORDERS = "productId INT, orderId INT, units INT"


class Shop:
    """Orders and shipments, and SQL over them by these names."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.orders = opened(pipe.create("orders", ORDERS))
        self.shipments = opened(pipe.create("shipments", "orderId INT"))
        for name in ("orders", "shipments"):
            pipe.read(name).createOrReplaceTempView(name)

    def sql(self, text: str) -> DataFrame:
        return self.pipe.spark.sql(text)

    def run(self, text: str) -> None:
        self.pipe.run(self.sql(text))

    def step(self) -> list[tuple[Any, ...]]:
        """What is new in the output, sorted where the order is free."""
        return sorted(self.pipe.step(), key=lambda row: [(value is not None, value) for value in row])

    def refusal(self, text: str) -> str:
        """What Spark says against a query in append mode; empty if it takes it."""
        writer = self.sql(text).writeStream.format("noop")
        try:
            with running(writer.option("checkpointLocation", self.pipe.path("refused")).start()) as query:
                query.processAllAvailable()
        except Exception as error:
            return str(error)
        return ""


@pytest.fixture
def shop(pipe: Pipe) -> Iterator[Shop]:
    yield Shop(pipe)
    for name in ("orders", "shipments", "large", "products", "prices"):
        pipe.spark.catalog.dropTempView(name)


@pytest.mark.long
def test_c1_filter_project_having_subquery_view(shop: Shop) -> None:
    shop.sql("SELECT * FROM orders WHERE units > 2").createOrReplaceTempView("large")
    shop.run("""
        SELECT window.end AS rowtime, productId, sum(units) AS units
        FROM (SELECT rowtime, productId, units FROM large)
        GROUP BY window(rowtime, '1 hour'), productId HAVING sum(units) > 10""")
    send(shop.orders, ("10:05", 10, 1, 8), ("10:20", 10, 2, 4), ("10:30", 10, 3, 2), ("10:40", 20, 4, 9))
    assert shop.step() == []
    send(shop.orders, promise="11:00")
    assert shop.step() == [("11:00", 10, 12)]
    assert shop.pipe.bound == bound("11:00", strict=True), "also of the products that HAVING leaves out"


def test_c2_tumbling_windows(shop: Shop) -> None:
    """Half hours, aligned to 0:12."""
    shop.run("""
        SELECT window.end AS rowtime, productId, count(*) AS c, sum(units) AS units FROM orders
        GROUP BY window(rowtime, '30 minutes', '30 minutes', '12 minutes'), productId""")
    send(shop.orders, ("10:11", 10, 1, 1), ("10:12", 10, 2, 2), ("10:20", 10, 3, 4), ("10:45", 10, 4, 8))
    assert shop.step() == [("10:12", 10, 1, 1), ("10:42", 10, 2, 6)]
    send(shop.orders, promise="11:12")
    assert shop.step() == [("11:12", 10, 1, 8)]


@pytest.mark.long
def test_c3_hopping_windows(shop: Shop) -> None:
    """Emit each hour, keep three."""
    shop.run("""
        SELECT window.end AS rowtime, count(*) AS c, sum(units) AS units FROM orders
        GROUP BY window(rowtime, '3 hours', '1 hour')""")
    send(shop.orders, ("10:18", 10, 1, 5))
    for hour in ("11:00", "12:00", "13:00"):
        send(shop.orders, promise=hour)
        assert shop.step() == [(hour, 1, 5)]
    send(shop.orders, promise="16:00")
    assert shop.step() == []


WINDOWED = "(SELECT window(rowtime, '1 hour') AS w, productId, units FROM orders)"


def test_c4_grouping_sets(shop: Shop) -> None:
    shop.run(f"""
        SELECT w.end AS rowtime, productId, sum(units) AS units FROM {WINDOWED}
        GROUP BY GROUPING SETS ((w, productId), (w))""")
    send(shop.orders, ("10:05", 10, 1, 3), ("10:20", 20, 2, 4), promise="11:00")
    assert shop.step() == [("11:00", None, 7), ("11:00", 10, 3), ("11:00", 20, 4)]
    assert shop.pipe.bound == bound("11:00", strict=True)


LOST_TOTALS = ("CUBE (w, productId)", "ROLLUP (w, productId)", "GROUPING SETS ((w, productId), (productId))")


def test_c4_cube_and_rollup_are_refused(shop: Shop) -> None:
    for groups in LOST_TOTALS:
        text = f"SELECT w.end AS rowtime, productId, sum(units) AS units FROM {WINDOWED} GROUP BY {groups}"
        assert "A grouping set without the event time column is never complete" in shop.refusal(text), groups


def test_c7_stream_to_table(shop: Shop) -> None:
    products = [(10, "Oats"), (20, "Rye")]
    prices = [(10, at("0:00"), at("11:00"), 30), (10, at("11:00"), at("23:59"), 35), (20, at("0:00"), at("23:59"), 7)]
    shop.pipe.spark.createDataFrame(products, "productId INT, name STRING").createOrReplaceTempView("products")
    priced = shop.pipe.spark.createDataFrame(prices, "productId INT, start STRING, end STRING, price INT")
    priced.selectExpr(
        "productId", "to_timestamp(start) AS start", "to_timestamp(end) AS end", "price"
    ).createOrReplaceTempView("prices")
    shop.run("""
        SELECT o.rowtime, name, units * price AS paid FROM orders o
        JOIN products p ON o.productId = p.productId
        JOIN prices v ON o.productId = v.productId AND o.rowtime >= v.start AND o.rowtime < v.end""")
    send(shop.orders, ("10:59", 10, 1, 2), ("11:00", 10, 2, 2), ("11:30", 20, 3, 1), ("11:40", 30, 4, 1))
    assert shop.step() == [("10:59", "Oats", 60), ("11:00", "Oats", 70), ("11:30", "Rye", 7)]
    assert shop.pipe.bound == bound("11:40"), "a table keeps nothing back"


def test_c8_stream_to_stream(shop: Shop) -> None:
    """Shipped within an hour of the order."""
    shop.run("""
        SELECT o.rowtime, o.orderId, s.rowtime AS shipped FROM orders o JOIN shipments s
        ON o.orderId = s.orderId AND s.rowtime BETWEEN o.rowtime AND o.rowtime + INTERVAL 1 HOUR""")
    send(shop.orders, ("10:00", 10, 1, 1), ("10:30", 10, 2, 1))
    send(shop.shipments, ("10:45", 1))
    shop.step()
    written = rt.openReader(shop.pipe.path("out"), order="arrival")
    assert drained(written) == [("10:00", 1, datetime.fromisoformat(at("10:45")))]
    assert kept(shop.pipe) == 3
    send(shop.shipments, promise="11:15")
    shop.step()
    assert kept(shop.pipe) == 2, "the order of 10:00 can no longer be shipped within its hour"
    send(shop.shipments, ("11:31", 2))
    send(shop.orders, promise="12:00")
    send(shop.shipments, promise="13:00:00.001")
    shop.step()
    assert drained(written) == [], "shipped too late"
    assert kept(shop.pipe) == 0


def test_c9_order_by_rowtime(shop: Shop) -> None:
    """ORDER BY is how a stream is read; UNION ALL is merged by rowtime."""
    assert "Sorting is not supported on streaming" in shop.refusal("SELECT * FROM orders ORDER BY rowtime")
    shop.run("SELECT rowtime, orderId FROM orders UNION ALL SELECT rowtime, orderId FROM shipments")
    send(shop.orders, ("10:00", 10, 1, 1), ("10:30", 10, 2, 1), promise="11:00")
    send(shop.shipments, ("10:45", 1), ("11:10", 2))
    assert shop.pipe.step() == [("10:00", 1), ("10:30", 2), ("10:45", 1)], "11:10 waits for orders"
    send(shop.orders, promise="11:10")
    assert shop.pipe.step() == [("11:10", 2)]


UNSORTED = ["10:10", "10:05", "10:20", "10:15", "11:01", "10:59", "11:10"]
SORTABLE = {"punctuated": {"rowsImplyBounds": False}, "t-sorted": {"lateness": "10 minutes"}, "k-sorted": {"kSort": 1}}


@pytest.mark.long
@pytest.mark.parametrize("kind", SORTABLE)
def test_c10_sortable_streams(pipe: Pipe, kind: str) -> None:
    path = pipe.create("orders", ORDERS)
    hourly = "SELECT window.end AS rowtime, count(*) AS c FROM {orders} GROUP BY window(rowtime, '1 hour')"
    pipe.run(pipe.spark.sql(hourly, orders=pipe.read("orders")))
    with opened(path, **SORTABLE[kind]) as sink:
        for number, time in enumerate(UNSORTED):
            send(sink, (time, 10, number, 1))
        if kind == "punctuated":
            send(sink, promise="11:00")
        assert pipe.step() == [("11:00", 5)], "10:59 came after 11:01"
        in_order = [time for time, *_ in drained(rt.openReader(path))]
    assert in_order == sorted(UNSORTED)[: len(in_order)]
    assert drained(rt.openReader(path, order="arrival")) != drained(rt.openReader(path))
    assert rt.describeStream(path).rejected == 0


REFUSED = {
    "SELECT productId, count(*) FROM orders GROUP BY productId": "aggregation without watermark",
    "SELECT DISTINCT productId FROM orders": "aggregation without watermark",
    "SELECT date_format(rowtime, 'H'), count(*) FROM orders GROUP BY 1": "aggregation without watermark",
    "SELECT * FROM orders o LEFT JOIN shipments s ON o.orderId = s.orderId": (
        "not supported without a watermark in the join keys, or a watermark on the nullable side and an appropriate "
        "range condition"
    ),
    "SELECT sum(units) OVER (ORDER BY rowtime) FROM orders": "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
}


@pytest.mark.long
def test_c11_no_monotonic_expression(shop: Shop) -> None:
    for query, said in REFUSED.items():
        assert said in shop.refusal(query), query


MONOTONIC = {
    "GROUP BY": "SELECT date_trunc('HOUR', rowtime) AS rowtime, productId, count(*) AS c FROM orders GROUP BY 1, 2",
    "as a column": """
        SELECT rowtime, productId, count(*) AS c
        FROM (SELECT date_trunc('HOUR', rowtime) AS rowtime, productId FROM orders) GROUP BY rowtime, productId""",
}


@pytest.mark.parametrize("form", MONOTONIC)
def test_c11_a_monotonic_expression(shop: Shop, form: str) -> None:
    shop.run(MONOTONIC[form])
    send(shop.orders, ("10:05", 10, 1, 3), ("10:20", 10, 2, 4), promise="11:00")
    assert shop.step() == [("10:00", 10, 2)]


@pytest.mark.long
def test_c11_an_inner_join_without_time_keeps_all_and_promises_nothing(shop: Shop) -> None:
    """Spark takes it: no result is wrong, but its state only grows."""
    shop.run("SELECT o.rowtime, o.orderId FROM orders o JOIN shipments s ON o.orderId = s.orderId")
    send(shop.orders, ("10:00", 10, 1, 1), promise="12:00")
    send(shop.shipments, ("10:45", 1), promise="12:00")
    shop.step()
    assert drained(rt.openReader(shop.pipe.path("out"), order="arrival")) == [("10:00", 1)]
    assert kept(shop.pipe) == 2
    assert shop.pipe.bound is None
