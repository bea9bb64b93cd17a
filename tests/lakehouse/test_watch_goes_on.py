"""A query that derives its bounds and goes on: over another table, with another column, or behind another watermark."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import spark_rowtime as rt
from tests.lakehouse.orders import Orders, hourly, late

pytestmark = pytest.mark.night


def test_a_table_that_is_made_again_under_its_query_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"))
    with orders.observed(rt.punctuate(orders.read(), "ts", watch={"lateness": "0 seconds"})) as query:
        query.step()
        made = Path(orders.path, "_delta_log", f"{1:020}.json")
        made.write_text(made.read_text().replace("WRITE", "WRITE "))
        orders.put(("10:30", "a"))
        with pytest.raises(
            StreamingQueryException, match=r"DataLostError.* was deleted and made again: version 1 of its"
        ):
            query.step()


def test_a_query_over_another_column_is_refused(orders: Orders) -> None:
    """Its state would have times of both."""
    orders.sql("ALTER TABLE ORDERS ADD COLUMNS (paid TIMESTAMP)")
    orders.sql("INSERT INTO ORDERS VALUES (TIMESTAMP'2006-09-11 10:00:00', 'a', TIMESTAMP'2006-09-11 10:30:00')")

    def rows(column: str) -> Any:
        times = orders.read().selectExpr(f"{column} AS time", "k").where("time IS NOT NULL")
        return rt.punctuate(times, "time", watch={"lateness": "0 seconds"})

    for column in ("ts", "TS"):
        with orders.observed(rows(column)) as query:
            query.step()
    changed = pytest.raises(StreamingQueryException, match=r"time paid, but its checkpoint was begun with time ts")
    with changed, orders.observed(rows("paid")) as query:
        query.step()


def test_rows_below_the_watermark_that_a_query_had_before_are_late(orders: Orders) -> None:
    """The operators drop them: they are counted and kept, as all late rows are."""
    orders.put(("12:00", "a"))
    with orders.observed(hourly(orders.read().withWatermark("ts", "10 minutes"))) as query:
        query.step()
    orders.put(("10:30", "b"), ("12:10", "b"))
    watched = rt.punctuate(orders.read(), "ts", watch={"lateness": "2 hours"}, rejected=orders.rejected)
    with orders.observed(hourly(watched)) as query:
        query.step()
        assert sum(late(query).values()) == 1
    assert [row.k for row in orders.kept().collect()] == ["b"]
