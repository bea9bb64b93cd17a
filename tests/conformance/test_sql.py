"""Streams in SQL: as a view, as a table, STREAM, WATERMARK, windows; bounds, late rows and producers as tables."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame

import spark_rowtime as rt
from tests.streams import Pipe, at, bound, opened, send

HOURLY = "SELECT window.end AS rowtime, sum(units) AS units FROM {} GROUP BY window(rowtime, '1 hour')"


class Sql:
    """A stream of orders with a late row, and SQL about it."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe, self.path = pipe, pipe.create("orders", "productId INT, units INT")
        self.sink = opened(self.path, "Berlin", onLate="reject")
        send(self.sink, ("10:05", 10, 3), ("10:40", 20, 4), ("10:10", 30, 5), promise="11:00")
        pipe.read("orders").createOrReplaceTempView("orders")
        self(f"CREATE TABLE orders_table USING rowtime OPTIONS (path '{self.path}', order 'rowtime')")

    def __call__(self, text: str) -> DataFrame:
        return self.pipe.spark.sql(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self(text).collect()]

    def streamed(self, text: str) -> list[tuple[Any, ...]]:
        self.pipe.run(self(text))
        return self.pipe.step()


@pytest.fixture
def sql(pipe: Pipe) -> Iterator[Sql]:
    yield Sql(pipe)
    for view in ("orders", "batch", "late"):
        pipe.spark.catalog.dropTempView(view)
    for table in ("orders_table", "elsewhere"):
        pipe.spark.sql(f"DROP TABLE IF EXISTS {table}")


FORMS = {
    "a view": "orders",
    "STREAM": "STREAM orders",
    "STREAM()": "STREAM(orders)",
    "WATERMARK, no delay": "STREAM orders WATERMARK rowtime DELAY OF INTERVAL 0 SECONDS AS o",
    "WATERMARK, a delay": "orders WATERMARK rowtime DELAY OF INTERVAL 1 HOUR AS o",  # it never weakens a bound
    "a table": "STREAM orders_table",
    "a table, WATERMARK": "STREAM orders_table WATERMARK rowtime DELAY OF INTERVAL 1 HOUR AS o",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_in_sql(sql: Sql, form: str) -> None:
    assert sql.streamed(HOURLY.format(FORMS[form])) == [("11:00", 7)]
    assert sql.pipe.bound == bound("11:00", strict=True)


@pytest.mark.long
def test_a_table_has_its_options(sql: Sql) -> None:
    """Spark hands a Python source only what the query says; the extension adds the table's own."""
    found = "SELECT productId, units FROM orders_table {} ORDER BY rowtime"
    assert sql.rows(found.format("")) == [(10, 3), (20, 4)]
    assert sql.rows(found.format(f"WITH (startingPosition='{at('10:30')}')")) == [(20, 4)]
    sql.pipe.run(sql.pipe.spark.readStream.table("orders_table"))
    assert sql.pipe.step() == [("10:05", 10, 3), ("10:40", 20, 4)]
    sql("DROP TABLE orders_table")
    assert rt.describeStream(sql.path).rows == 2, "the stream is not the table's to delete"


@pytest.mark.long
def test_a_table_by_location_and_what_a_query_says_wins(sql: Sql) -> None:
    sql(f"CREATE TABLE elsewhere USING rowtime OPTIONS (view 'rejected') LOCATION '{sql.path}'")
    assert sql.rows("SELECT reason, units FROM elsewhere") == [("late", 5)]
    with pytest.raises(Exception, match=r"nothing at .*nowhere\.rowtime"):
        sql.rows("SELECT productId FROM orders_table WITH (path='nowhere.rowtime')")


@pytest.mark.long
def test_a_batch_view(sql: Sql) -> None:
    sql(f"CREATE TEMPORARY VIEW batch USING rowtime OPTIONS (path '{sql.path}')")
    assert sql.rows(HOURLY.format("batch")) == [(datetime.fromisoformat(at("11:00")[:-1]), 7)]
    with pytest.raises(Exception, match="not a temp view of streaming logical plan"):
        sql("SELECT * FROM STREAM batch")


def test_what_is_late_is_a_table(sql: Sql) -> None:
    sql(f"CREATE TEMPORARY VIEW late USING rowtime OPTIONS (path '{sql.path}', view 'rejected')")
    found = "SELECT producer, reason, date_format(rowtime, 'H:mm'), date_format(bound, 'H:mm'), units FROM late"
    assert sql.rows(found) == [("Berlin", "late", "10:10", "10:40", 5)]


VIEWS = {
    "bounds": (
        "SELECT date_format(max(bound), 'H:mm'), sum(rows) FROM {table} WHERE event = 'sent'",
        [("11:00", 2)],
    ),
    "producers": (
        "SELECT producer, status, date_format(bound, 'H:mm'), accepted, rejected FROM {table}",
        [("Berlin", "attached", "11:00", 2, 1)],
    ),
}


def test_bounds_and_producers_are_tables(sql: Sql) -> None:
    for view, (text, expected) in VIEWS.items():
        table = sql.pipe.spark.read.format("rowtime").option("view", view).load(sql.path)
        assert [tuple(row) for row in sql.pipe.spark.sql(text, table=table).collect()] == expected


def test_other_windows_in_sql(sql: Sql) -> None:
    """HOP and SESSION: hopping windows in test_calcite.py; a session ends five minutes after its last row."""
    sessions = """
        SELECT session_window.end AS rowtime, productId, count(*) AS n FROM orders
        GROUP BY session_window(rowtime, '5 minutes'), productId"""
    assert sql.streamed(sessions) == [("10:10", 10, 1), ("10:45", 20, 1)]
    with pytest.raises(Exception, match="NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING"):
        sql("SELECT sum(units) OVER (ORDER BY rowtime) FROM orders").writeStream.format("noop").start()
