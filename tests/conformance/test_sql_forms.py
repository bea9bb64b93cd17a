"""The forms of docs/coming-from-sql.md: how the ancestors' documents write it, and what is written here."""

import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from tests.streams import Pipe, at, bound, clock_of, drained, opened, send

ORDERS = "productId INT, orderId INT, units INT"
PRODUCTS = "(VALUES (10, 'Oats'), (20, 'Rye')) AS products(productId, name)"


class Shop:
    """Orders and shipments, and SQL over them by these names."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.path = pipe.create("orders", ORDERS)
        self.orders = opened(self.path)
        self.shipments = opened(pipe.create("shipments", "orderId INT"))
        for name in ("orders", "shipments"):
            pipe.read(name).createOrReplaceTempView(name)

    def run(self, text: str) -> None:
        self.pipe.run(self.pipe.spark.sql(text))

    def step(self) -> list[tuple[Any, ...]]:
        return sorted(self.pipe.step())


@pytest.fixture
def shop(pipe: Pipe) -> Iterator[Shop]:
    yield Shop(pipe)
    for name in ("orders", "shipments"):
        pipe.spark.catalog.dropTempView(name)


ROUNDED = {
    "FLOOR": ("date_trunc('HOUR', rowtime)", [("10:00", 3)]),
    "CEIL": ("date_trunc('HOUR', rowtime + INTERVAL 1 HOUR - INTERVAL 1 MICROSECOND)", [("10:00", 1), ("11:00", 6)]),
}


@pytest.mark.parametrize("form", ROUNDED)
def test_floor_and_ceil(shop: Shop, form: str) -> None:
    """CEIL of a full hour is that hour, as in SQL; the end of a window never is."""
    rounded, expected = ROUNDED[form]
    shop.run(f"SELECT {rounded} AS rowtime, sum(units) AS units FROM orders GROUP BY {rounded}")
    send(shop.orders, ("10:00", 10, 1, 1), ("10:20", 10, 2, 2), ("11:00", 10, 3, 4), promise="11:00:00.001")
    assert shop.step() == expected


@pytest.mark.long
def test_hop_with_alignment(shop: Shop) -> None:
    """HOP(rowtime, INTERVAL '1' HOUR, INTERVAL '2' HOUR, TIME '0:12'); HOP_START and HOP_END."""
    shop.run("""
        SELECT window.end AS rowtime, date_format(window.start, 'HH:mm') AS start, sum(units) AS units FROM orders
        GROUP BY window(rowtime, '2 hours', '1 hour', '12 minutes')""")
    send(shop.orders, ("10:11", 10, 1, 1), ("10:12", 10, 2, 2), promise="12:12")
    assert shop.step() == [("10:12", "08:12", 1), ("11:12", "09:12", 3), ("12:12", "10:12", 2)]


@pytest.mark.long
def test_tumble_start_and_end(shop: Shop) -> None:
    shop.run("""
        SELECT window.start AS rowtime, date_format(window.end, 'HH:mm') AS end, sum(units) AS units FROM orders
        GROUP BY window(rowtime, '1 hour')""")
    send(shop.orders, ("10:59", 10, 1, 1), ("11:00", 10, 2, 2), promise="12:00")
    assert shop.step() == [("10:00", "11:00", 1), ("11:00", "12:00", 2)]
    assert shop.pipe.bound == bound("11:00", strict=True)


def test_values_and_sub_queries(shop: Shop) -> None:
    """VALUES as a table, IN and EXISTS with a table, a scalar sub-query; a row's own time."""
    shop.run(f"""
        SELECT rowtime, name, date_format(rowtime, 'HH:mm') AS row_timestamp
        FROM orders JOIN {PRODUCTS} ON orders.productId = products.productId
        WHERE orders.productId IN (SELECT productId FROM {PRODUCTS} WHERE name <> 'Rye')
        AND EXISTS (SELECT 1 FROM {PRODUCTS} WHERE products.productId = orders.productId)
        AND units > (SELECT max(productId) FROM {PRODUCTS}) - 15""")
    send(shop.orders, ("10:00", 10, 1, 5), ("10:01", 10, 2, 6), ("10:02", 20, 3, 9), ("10:03", 30, 4, 9))
    assert shop.step() == [("10:01", "Oats", "10:01")]
    assert shop.pipe.bound == bound("10:03"), "tables keep nothing back"


def test_limit(shop: Shop) -> None:
    """The first rows that come, and none after them."""
    shop.run("SELECT rowtime, orderId FROM orders LIMIT 2")
    send(shop.orders, ("10:00", 10, 1, 1))
    assert shop.step() == [("10:00", 1)]
    send(shop.orders, ("10:01", 10, 2, 1), ("10:02", 10, 3, 1), promise="11:00")
    assert shop.step() == [("10:01", 2)]


@pytest.mark.long
def test_the_later_side_is_the_rowtime_of_a_join(shop: Shop) -> None:
    shop.run("""
        SELECT greatest(o.rowtime, s.rowtime) AS rowtime, o.orderId FROM orders o JOIN shipments s
        ON o.orderId = s.orderId AND s.rowtime BETWEEN o.rowtime - INTERVAL 1 HOUR AND o.rowtime + INTERVAL 1 HOUR""")
    send(shop.orders, ("10:00", 10, 1, 1), ("10:40", 10, 2, 1), promise="12:00")
    send(shop.shipments, ("10:20", 2), ("10:30", 1), promise="12:00")
    assert shop.step() == [("10:30", 1), ("10:40", 2)]
    assert shop.pipe.bound is not None
    assert shop.pipe.bound > bound("10:40")


DECAYED = """
    SELECT rowtime, orderId, sum(units * weight) / sum(weight) AS decayed FROM
    (SELECT o.rowtime, o.orderId, p.units,
        exp((unix_micros(p.rowtime) - unix_micros(o.rowtime)) / 60e6) AS weight
     FROM orders o JOIN earlier p ON o.productId = p.productId
     AND p.rowtime BETWEEN o.rowtime - INTERVAL 10 MINUTES AND o.rowtime)
    GROUP BY rowtime, orderId"""


@pytest.mark.long
def test_a_decaying_average(shop: Shop) -> None:
    """Each order with those of the ten minutes before it, the older the less they count."""
    shop.pipe.read("orders").createOrReplaceTempView("earlier")
    shop.run(DECAYED)
    send(shop.orders, ("10:00", 10, 1, 8), ("10:01", 10, 2, 2), ("10:30", 10, 3, 4), promise="11:00")
    older = math.exp(-1)
    expected = [("10:00", 1, 8.0), ("10:01", 2, (8 * older + 2) / (older + 1)), ("10:30", 3, 4.0)]
    found = shop.step()
    shop.pipe.spark.catalog.dropTempView("earlier")
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected])


@pytest.mark.long
def test_the_pie_chart_of_the_last_hour(shop: Shop) -> None:
    """A batch read of what is complete; ask again for the next picture."""
    send(shop.orders, ("9:50", 10, 1, 1), ("10:05", 10, 2, 2), ("10:40", 20, 3, 3), ("10:59", 10, 4, 4))
    send(shop.orders, promise="11:00")
    until = rt.describeStream(shop.path).bound
    assert until is not None
    last = shop.pipe.spark.read.format("rowtime").option("startingPosition", at("10:00")).load(shop.path)
    slices = last.where(last.rowtime < until.time).groupBy("productId").sum("units").collect()
    assert sorted(map(tuple, slices)) == [(10, 6), (20, 3)]


@pytest.mark.long
def test_a_standing_upsert(shop: Shop, tmp_path: Path) -> None:
    """A drain: the newest order of each product in a table."""
    table = sqlite3.connect(tmp_path / "latest.db")
    table.execute("CREATE TABLE latest (productId INTEGER PRIMARY KEY, at TEXT, units INTEGER)")
    upsert = (
        "INSERT INTO latest VALUES (:productId, :at, :units) "
        "ON CONFLICT (productId) DO UPDATE SET at = excluded.at, units = excluded.units"
    )
    send(shop.orders, ("10:00", 10, 1, 1), ("10:10", 20, 2, 2), promise="10:30")
    send(shop.orders, ("10:40", 10, 3, 3), promise="11:00")
    with rt.openReader(shop.path, name="latest") as reader:
        for train in reader:
            rows = [{**row, "at": clock_of(row["rowtime"])} for row in train.rows.to_pylist()]
            with table:
                table.executemany(upsert, rows)
    assert table.execute("SELECT * FROM latest ORDER BY 1").fetchall() == [(10, "10:40", 3), (20, "10:10", 2)]
    table.close()


@pytest.mark.long
def test_all_streams(shop: Shop) -> None:
    """The streams of a folder, as a table."""
    send(shop.orders, ("10:00", 10, 1, 1))
    found = [rt.describeStream(path) for path in sorted(shop.pipe.folder.glob("*.rowtime"))]
    assert [(Path(info.path).stem, info.rows) for info in found] == [("orders", 1), ("shipments", 0)]


def test_insert_values(shop: Shop) -> None:
    """INSERT INTO orders VALUES (...): sendRows."""
    shop.orders.sendRows([(at("10:00"), 10, 1, 3), (at("10:05"), 20, 2, 4)])
    shop.orders.flush()
    assert drained(rt.openReader(shop.path)) == [("10:00", 10, 1, 3), ("10:05", 20, 2, 4)]
