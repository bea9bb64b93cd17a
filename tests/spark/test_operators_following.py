"""slidingAggregate by a number of rows, and with rows that follow; first, last, rank and median."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, expr, window

import spark_rowtime as rt
from spark_rowtime.operators import slidingAggregate
from spark_rowtime.operators.columns import MOST_DAYS
from tests.spark.operator_streams import after_noon, kept, output, restart, told
from tests.spark.query_output import Watched
from tests.spark.test_operators_sliding import assert_same_rows
from tests.streams import Pipe, bound, opened, send

COLUMNS = "product STRING, units INT"


@pytest.mark.long
def test_the_last_rows_of_a_key(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    asked = {"units3": ("sum", "units"), "before": ("first", "units")}
    pipe.run(slidingAggregate(pipe.read("orders"), "product", rows=3, aggregates=asked))
    with opened(orders) as sink:
        send(sink, ("9:00", "A", 1), ("9:30", "B", 50), ("10:00", "A", 2), ("11:00", "A", 4), promise="12:00")
        early = [("09:00", "A", 1, 1, 1), ("09:30", "B", 50, 50, 50), ("10:00", "A", 2, 3, 1), ("11:00", "A", 4, 7, 1)]
        assert told(pipe) == early
        send(sink, ("12:00", "A", 16), ("12:00", "A", 8), promise="13:00")
        late = [("12:00", "A", 8, 14, 2), ("12:00", "A", 16, 28, 4)]
        assert told(pipe) == early + late, "rows of one time count in the order of their columns, not of arrival"
        assert pipe.step() == early + late
        assert pipe.bound == bound("13:00")


@pytest.mark.long
def test_the_longest_wait_that_is_possible(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    longest = {"interval": "1 hour", "following": f"{MOST_DAYS} days", "aggregates": {"n": ("count", "*")}}
    pipe.run(slidingAggregate(pipe.read("orders"), "product", **longest))
    with opened(orders) as sink:
        sink.sendRow(("2026-01-05T10:00:00Z", "A", 1))
        sink.sendRowtimeBound("2026-02-15T00:00:00Z")
        sink.flush()
        assert [row["n"] for row in output(pipe)] == [1]


def test_a_row_with_rows_that_follow_comes_out_when_the_bound_has_passed_them(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    asked = {"units": ("sum", "n"), "next": ("last", "n")}
    around = {"interval": "10 minutes", "following": "5 minutes", "aggregates": asked}
    pipe.run(slidingAggregate(pipe.read("orders").withColumnRenamed("units", "n"), "product", **around))
    with opened(orders) as sink:
        send(sink, ("12:00", "A", 1), ("12:04", "A", 2), promise="12:05")
        assert pipe.step() == [], "12:05 may still come"
        send(sink, ("12:05", "A", 4))
        assert pipe.step() == []
        send(sink, promise="12:05", strict=True)
        assert pipe.step() == [("12:00", "A", 1, 7, 4)]
        assert pipe.bound == bound("12:00", strict=True), "five minutes below the input's, strictness and all"
        send(sink, ("12:09:00.000001", "A", 8), promise="12:20")
        assert pipe.step() == [("12:04", "A", 2, 7, 4), ("12:05", "A", 4, 15, 8), ("12:09:00.000001", "A", 8, 15, 8)]
        assert pipe.bound == bound("12:15")
        send(sink, promise="13:00")
        pipe.step()
        assert kept(pipe) == 0


@pytest.mark.long
def test_days_of_following_rows_where_days_have_23_hours(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    before = pipe.spark.conf.get("spark.sql.session.timeZone")
    pipe.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        three = {"interval": "0 s", "following": "3 days", "aggregates": {"n": ("count", "*")}}
        pipe.run(slidingAggregate(pipe.read("orders"), **three))
        with opened(orders) as sink:
            for day in (24, 25, 27, 28):
                sink.sendRow((f"2006-03-{day}T00:30:00Z", "A", day))
            sink.sendRowtimeBound("2006-03-28T00:30:00.000001Z")
            sink.flush()
            assert [(row["rowtime"].isoformat(), row["n"]) for row in output(pipe)] == [
                ("2006-03-24T00:30:00+00:00", 3),
                ("2006-03-25T00:30:00+00:00", 3),
            ]
            pipe.step()
            assert pipe.bound == rt.RowtimeBound("2006-03-25T00:30:00.000001Z"), "three times 24 hours"
    finally:
        pipe.spark.conf.set("spark.sql.session.timeZone", str(before))


ASKED = {
    f"{function}_{column}": (function, column)
    for function, columns in (("first", "units weight product"), ("last", "units weight"), ("rank", "units weight"))
    for column in columns.split()
} | {"median": ("median", "weight"), "total": ("sum", "units"), "n": ("count", "*")}


@pytest.mark.long
@pytest.mark.parametrize("frame", [{"rows": 4}, {"interval": "10 minutes", "following": "7 minutes"}])
def test_equal_to_batch_with_a_restart_ties_and_any_bounds(pipe: Pipe, frame: dict[str, Any]) -> None:
    orders, chance = pipe.create("orders", "product STRING, units INT, weight DOUBLE"), random.Random(4711)

    def averaged(df: DataFrame) -> DataFrame:
        return slidingAggregate(df, by="product", aggregates=ASKED, buckets=2, **frame)

    pipe.run(averaged(pipe.read("orders")))
    with opened(orders, rowsImplyBounds=False) as sink:
        for step in range(4):
            minutes = [10 * step + chance.randrange(25) for _ in range(60)]
            sink.sendRows([order(chance, minute) for minute in minutes])
            sink.sendRowtimeBound(after_noon(minutes=10 * step + 10))
            sink.flush()
            following = 7 if "following" in frame else 0
            due = after_noon(minutes=10 * step + 10 - following)
            assert all(row["rowtime"] < due for row in output(pipe)), "none comes too early"
            if step == 1:
                restart(pipe, averaged(pipe.read("orders")))
        sink.sendRowtimeBound(after_noon(hours=3))
        sink.flush()
        found = output(pipe)
    assert_same_rows(found, averaged(pipe.spark.read.format("rowtime").load(orders)))


def order(chance: random.Random, minute: int) -> tuple[Any, ...]:
    """Times of whole minutes, so that there are many of one time."""
    weight = chance.choice((None, float("nan"), chance.uniform(-9, 9), chance.randrange(3) * 1.0))
    return (after_noon(minutes=minute), chance.choice("AB"), chance.choice((None, chance.randrange(4))), weight)


@pytest.mark.long
def test_an_aggregate_per_row_and_one_that_resets_in_one_query(pipe: Pipe) -> None:
    """Each order with the hour before it, counted by hour."""
    orders = pipe.create("orders", COLUMNS)
    sliding = slidingAggregate(pipe.read("orders"), "product", interval="1 hour", aggregates={"last": ("max", "units")})
    hours = sliding.where("units = last").groupBy(window("rowtime", "1 hour"), "product").agg(count("*").alias("peaks"))
    pipe.run(hours.select(col("window.end").alias("rowtime"), "product", "peaks"))
    with opened(orders) as sink:
        send(sink, ("10:10", "A", 5), ("10:20", "A", 3), ("10:50", "A", 6), ("11:15", "A", 4), promise="11:30")
        assert pipe.step() == [("11:00", "A", 2)]
        send(sink, ("11:55", "A", 5), promise="12:00")
        assert pipe.step() == [("12:00", "A", 1)], "at 11:55 the order of 10:50 no longer counts"
        assert pipe.bound == bound("12:00", strict=True)


NO_WATERMARK = "aggregation without watermark"
ABOVE: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "window": (lambda df: df.groupBy(window("rowtime", "1 hour")).count(), NO_WATERMARK),
    "date_trunc": (lambda df: df.groupBy(expr("date_trunc('HOUR', rowtime)")).count(), NO_WATERMARK),
    "sliding": (
        lambda df: slidingAggregate(df, interval="1 hour", aggregates={"again": ("count", "*")}),
        "write its rows to a rowtime stream",
    ),
}


def test_an_operator_above_rows_that_follow_is_refused(pipe: Pipe) -> None:
    """Their time is earlier than the watermark, by which it would drop them."""
    orders = pipe.create("orders", COLUMNS)
    asked = {"n": ("count", "*")}
    around = slidingAggregate(pipe.read("orders"), interval="0 s", following="5 minutes", aggregates=asked)
    with opened(orders) as sink:
        send(sink, ("11:58", "A", 1), promise="13:00")
        for above, said in ABOVE.values():
            with pytest.raises(Exception, match=said):
                Watched().start(above(around)).step()
