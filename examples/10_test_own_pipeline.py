"""Tests of one's own pipeline, adapter and consumer, with pytest: `pytest examples/10_test_own_pipeline.py`.

`rowtime_test` is a fixture of spark-rowtime; pytest finds it by itself. It drives the query step by step:
windows close with `bound` alone, an expectation waits until the query has processed everything, and
nothing sleeps.
"""

import sys
from pathlib import Path

import pytest
from meter_feed import MeterFeed
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rowtime.testing import AdapterSuite

DAY = "2006-09-11"
ORDERS = "rowtime TIMESTAMP NOT NULL, shop STRING, units INT"


def busiest_shop(orders: DataFrame) -> DataFrame:
    """The pipeline under test: the most units of one order per hour and shop."""
    hours = orders.groupBy(F.window("rowtime", "1 hour"), "shop").agg(F.max("units").alias("units"))
    return hours.select(F.col("window.end").alias("rowtime"), "shop", "units")


def test_an_hour_comes_out_once_its_bound_has_passed(rowtime_test):
    test = rowtime_test(busiest_shop, ORDERS, day=DAY)
    test.rows(("09:10", "Berlin", 3), ("09:50", "Berlin", 5), ("10:20", "Oslo", 1))
    test.expectNothing()  # nobody has promised anything
    test.bound("10:00").expectRows(("10:00", "Berlin", 5))
    test.late(("09:59", "Oslo", 9)).rows(("10:05", "Berlin", 2))
    test.restart().bound("11:00").expectRows(("11:00", "Berlin", 2), ("11:00", "Oslo", 1))
    test.expectSameAsBatch()


class TestMeterFeed(AdapterSuite):
    """The feed sends rows in order, promises a bound, and loses and repeats nothing when it is killed."""

    adapter = MeterFeed


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", str(Path(__file__))]))
