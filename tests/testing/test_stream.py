"""RowtimeTestStream, used as the tests of a pipeline use it."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from spark_rowtime.testing import RowtimeTestStream

DAY = "2006-09-11"
ORDERS = "rowtime TIMESTAMP NOT NULL, shop STRING, units INT"
Make = Callable[..., RowtimeTestStream]


def hourly(orders: DataFrame) -> DataFrame:
    hours = orders.groupBy(F.window("rowtime", "1 hour"), "shop").agg(F.sum("units").cast("int").alias("units"))
    return hours.select(F.col("window.end").alias("rowtime"), "shop", "units")


def test_steps_and_expectations_of_a_pipeline(rowtime_test: Make) -> None:
    test = rowtime_test(hourly, ORDERS, day=DAY)
    test.expectBound(None).expectNothing()
    test.rows(("9:40", "Berlin", 3), ("9:10", "Berlin", 4), {"rowtime": "10:20", "shop": "Oslo", "units": 1})
    test.expectNothing()
    test.bound("10:00").expectRows(("10:00", "Berlin", 7)).expectBound("10:00", strict=True)
    test.late(("9:59:59.999999", "Berlin", 9)).restart()
    test.bound("11:00").expectRows(Row(units=1, shop="Oslo", rowtime="11:00")).expectSameAsBatch()


def test_a_failure_shows_rows_inputs_and_whom_they_wait_for(rowtime_test: Make) -> None:
    test = rowtime_test(hourly, ORDERS, day=DAY, producers=["north", "south"])
    test.rows(("9:40", "Berlin", 3)).bound("10:00", producer="north")
    with pytest.raises(AssertionError) as missing:
        test.expectRows(("10:00", "Berlin", 3))
    first, *rest, state = str(missing.value).splitlines()
    assert (first, rest) == (
        "expectRows: the query wrote other rows (- missing, + not expected)",
        ["- 2006-09-11T10:00:00Z, Berlin, 3"],
    )
    assert state.endswith("input.rowtime: 1 rows, 0 rejected, bound: none, waits for south")
    test.bound("10:00", producer="south")
    with pytest.raises(AssertionError, match=r"\+ 2006-09-11T10:00:00Z, Berlin, 3"):
        test.expectNothing()
    with pytest.raises(AssertionError, match="expected every later row is at or after 2006-09-11T11:00:00Z; found"):
        test.expectBound("11:00")
    with pytest.raises(AssertionError, match=r"(?s)late: 1 of 1 rows were accepted.*10:20:00, Oslo|10:20, Oslo"):
        test.late(("10:20", "Oslo", 1))
    with pytest.raises(AssertionError, match=r"rows: 1 of 2 rows are late; send such rows with late\(\)"):
        test.rows(("9:00", "Berlin", 1), ("10:30", "Berlin", 1))


def test_a_failure_says_that_rows_are_written_and_wait_for_the_bound(rowtime_test: Make) -> None:
    test = rowtime_test(lambda orders: orders.where("units > 1"), ORDERS, day=DAY)
    test.rows(("9:40", "Berlin", 3), ("9:50", "Oslo", 1))
    with pytest.raises(AssertionError, match=r"1 more row\(s\) are written, and wait for the output's bound: none"):
        test.expectRows(("9:40", "Berlin", 3))
    test.bound("9:41").expectRows(("9:40", "Berlin", 3))


def test_time_passes_when_the_test_says_so(rowtime_test: Make) -> None:
    test = rowtime_test(hourly, ORDERS, day=DAY, producers=["north", "south"], settings={"idleTimeout": "5 hours"})
    test.rows(("9:40", "Berlin", 3)).bound("10:00").rows(("9:50", "Oslo", 1), producer="south").expectNothing()
    test.advanceClock("4 hours").expectNothing()
    test.bound("10:01").advanceClock("2 hours")
    test.expectRows(("10:00", "Berlin", 3), ("10:00", "Oslo", 1))
    test.bound("11:00", producer="south").expectNothing()


def test_the_wall_clock_is_the_tests(rowtime_test: Make) -> None:
    test = rowtime_test(hourly, ORDERS, day=DAY, settings={"maxAhead": "10 minutes"}, now="2006-09-11T09:00:00Z")
    test.late(("9:20", "Berlin", 9)).advanceClock("15 minutes").rows(("9:20", "Berlin", 1))
    test.bound("9:25").late(("9:24", "Berlin", 9))


def test_two_inputs_of_a_join(rowtime_test: Make) -> None:
    def matched(orders: DataFrame, payments: DataFrame) -> DataFrame:
        both = orders.alias("o").join(
            payments.alias("p"), F.expr("o.id = p.id AND p.rowtime BETWEEN o.rowtime AND o.rowtime + INTERVAL 1 HOUR")
        )
        return both.select("o.rowtime", "o.id")

    schema = "rowtime TIMESTAMP NOT NULL, id INT"
    test = rowtime_test(matched, {"orders": schema, "payments": schema}, day=DAY)
    test.rows(("9:00", 1), ("9:30", 2), stream="orders").rows(("9:45", 1), stream="payments")
    test.bound("12:00", stream="orders").bound("12:00", stream="payments")
    test.expectRows(("9:00", 1))
