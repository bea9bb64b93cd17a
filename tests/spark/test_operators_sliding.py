"""slidingAggregate through real streams."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, expr, window

import spark_rowtime as rt
from spark_rowtime.operators import slidingAggregate
from tests.spark.operator_streams import after_noon, kept, output, restart, told
from tests.streams import Pipe, bound, opened, send

COLUMNS = "product STRING, units INT"
AVERAGE = {"avgUnits": ("avg", "units")}


def hourly(pipe: Pipe, **more: Any) -> DataFrame:
    return slidingAggregate(pipe.read("orders"), by="product", interval="1 hour", aggregates=AVERAGE, **more)


@pytest.mark.smoke
def test_s15_a_row_waits_until_the_floor_is_above_it(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    pipe.run(hourly(pipe))
    with opened(orders) as sink:
        send(sink, ("11:00", "A", 1), ("11:30", "A", 2), ("12:00", "A", 6), ("12:00", "B", 7), promise="12:00")
        early = [("11:00", "A", 1, 1.0), ("11:30", "A", 2, 1.5)]
        assert told(pipe) == early
        send(sink, ("12:00", "A", 3))
        assert told(pipe) == early, "another row at 12:00 was still possible, and came"
        send(sink, promise="12:00", strict=True)
        noon = [("12:00", "A", 3, 3.0), ("12:00", "A", 6, 3.0), ("12:00", "B", 7, 7.0)]
        assert told(pipe) == early + noon, "the row at 11:00 counts: both ends are in the window"
        send(sink, ("12:00:00.001", "A", 1), promise="13:00")
        assert told(pipe)[-1] == ("12:00:00.001", "A", 1, 3.0), "and now it does not"


def test_a_row_is_out_as_soon_as_the_floor_is_a_microsecond_above(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    pipe.run(hourly(pipe))
    with opened(orders, rowsImplyBounds=False) as sink:
        sink.sendRows([(after_noon(microseconds=us), "A", us) for us in (400, 500, 600)])
        for floor, there in ((400, []), (500, [400]), (501, [400, 500]), (600, [400, 500]), (601, [400, 500, 600])):
            sink.sendRowtimeBound(after_noon(microseconds=floor))
            sink.flush()
            assert [row["units"] for row in output(pipe)] == there, f"floor {floor}: all of one millisecond"


@pytest.mark.long
def test_without_the_last_digits_of_the_floor_rows_are_a_millisecond_late_at_most(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    pipe.run(hourly(pipe))
    with opened(orders, rowsImplyBounds=False) as sink:
        sink.sendRows([(after_noon(microseconds=us), "A", us) for us in (0, 400, 1000)])
        for floor, least, most in ((400, 1, 1), (1000, 1, 2), (1001, 3, 3)):
            sink.sendRowtimeBound(after_noon(microseconds=floor))
            sink.flush()
            assert least <= len(output(pipe)) <= most


def test_the_output_carries_the_floor(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    pipe.run(hourly(pipe))
    with opened(orders) as sink:
        send(sink, ("11:00", "A", 1), ("12:00", "A", 6), promise="12:00")
        assert pipe.step() == [("11:00", "A", 1, 1.0)]
        assert pipe.bound == bound("12:00")
        send(sink, promise="12:00", strict=True)
        assert pipe.step() == [("12:00", "A", 6, 3.5)]
        assert pipe.bound == bound("12:00", strict=True)


@pytest.mark.long
def test_a_bound_alone_frees_the_state(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    pipe.run(hourly(pipe))
    with opened(orders) as sink:
        for hour in (1, 3, 5):
            for minute in range(0, 60, 10):
                send(sink, *[(f"{hour}:{minute:02}:{s:02}", product, s) for s in range(10) for product in "ABCD"])
            output(pipe)
            assert 0 < kept(pipe) < 60, "slots of the last hour, not rows, and nothing older"
        send(sink, promise="7:20")
        assert len(output(pipe)) == 3 * 6 * 10 * 4
        assert kept(pipe) == 0


@pytest.mark.long
def test_equal_to_sql_in_batch_with_a_restart_and_any_bounds(pipe: Pipe) -> None:
    orders, chance = pipe.create("orders", "product STRING, units INT, weight DOUBLE"), random.Random(4711)
    asked = {f: (f, "weight") for f in ("sum", "avg", "min", "max")} | {
        "n": ("count", "*"),
        "units_sum": ("sum", "units"),
    }
    frame = slidingAggregate(pipe.read("orders"), by=["product"], interval="10 minutes", aggregates=asked, buckets=3)
    pipe.run(frame)
    with opened(orders, rowsImplyBounds=False) as sink:
        for step in range(6):
            low, high = 600 * step, 600 * (step + 1)
            sink.sendRows([random_order(chance, low, high + 900) for _ in range(150)])
            sink.sendRowtimeBound(after_noon(seconds=high))
            sink.flush()
            rows = output(pipe)
            assert all(row["rowtime"] < after_noon(seconds=high) for row in rows), "none comes too early"
            if step == 3:
                restart(pipe, frame)
        sink.sendRowtimeBound(after_noon(hours=3))
        sink.flush()
        found = output(pipe)
    sql = """SELECT *, sum(weight) OVER w AS sum, avg(weight) OVER w AS avg, min(weight) OVER w AS min,
        max(weight) OVER w AS max, count(*) OVER w AS n, sum(units) OVER w AS units_sum FROM {orders} WINDOW w AS
        (PARTITION BY product ORDER BY rowtime RANGE BETWEEN INTERVAL 10 MINUTES PRECEDING AND CURRENT ROW)"""
    batch = pipe.spark.read.format("rowtime").load(orders)
    assert_same_rows(found, pipe.spark.sql(sql, orders=batch))
    assert_same_rows(found, slidingAggregate(batch, by="product", interval="10 minutes", aggregates=asked))


def random_order(chance: random.Random, low: int, high: int) -> tuple[Any, ...]:
    us = chance.randrange(low * 1000, high * 1000) * chance.choice((1, 1000)) % (10**6 * high)
    time = after_noon(microseconds=max(us, low * 10**6))
    weight = chance.choice((None, chance.uniform(-1, 1) * 1e9, chance.random()))
    return (time, chance.choice(("A", "B", None)), chance.choice((None, chance.randrange(9))), weight)


def assert_same_rows(found: list[dict[str, Any]], batch: DataFrame) -> None:
    """Equal, floats up to what another order of adding makes of them."""
    expected = [row.asDict() for row in batch.select(*found[0]).collect()]

    def whole(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(
            round(value, 3) if isinstance(value, float) else value.timestamp() if isinstance(value, datetime) else value
            for value in row.values()
        )

    assert sorted(map(repr, map(whole, found))) == sorted(map(repr, map(whole, expected)))


@pytest.mark.long
def test_c5_the_last_minutes_against_the_last_week(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    by = {"df": pipe.read("orders"), "by": "product"}
    minutes = slidingAggregate(**by, interval="10 minutes", aggregates={"m10": ("avg", "units")})
    week = slidingAggregate(minutes, by="product", interval="7 days", aggregates={"d7": ("avg", "units")})
    pipe.run(week.where("m10 > d7").select("rowtime", "product", "units", "m10", "d7"))
    with opened(orders) as sink:
        send(sink, ("2006-09-04 12:09", "A", 100), ("2006-09-05 12:00", "A", 1), ("12:09", "A", 3))
        send(sink, ("12:10", "A", 5), ("12:20", "A", 4), ("12:40", "B", 9), promise="13:00")
        found = told(pipe)
    at_ten = ("12:10", "A", 5, 4.0, 3.0)
    assert found == [at_ten, ("12:20", "A", 4, 4.5, 3.25)], "a week after it the row of 100 counts, a minute later not"


@pytest.mark.long
def test_the_output_goes_on_into_a_window(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    busy = slidingAggregate(pipe.read("orders"), "product", interval="10 minutes", aggregates={"n": ("count", "*")})
    hours = busy.where("n > 1").groupBy(window("rowtime", "1 hour")).agg(count("*").alias("busy"))
    pipe.run(hours.select(col("window.end").alias("rowtime"), "busy"))
    with opened(orders) as sink:
        send(sink, ("11:00", "A", 1), ("11:05", "A", 1), ("11:59", "A", 1), ("12:00", "A", 1), promise="12:30")
        assert told(pipe) == [("12:00", 1)]
        send(sink, promise="13:30")
        assert told(pipe) == [("12:00", 1), ("13:00", 1)]


@pytest.mark.long
def test_a_window_above_closes_with_the_bound_at_its_end(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    hours = hourly(pipe).groupBy(window("rowtime", "1 hour")).agg(count("*").alias("n"))
    pipe.run(hours.select(col("window.end").alias("rowtime"), "n"))
    with opened(orders) as sink:
        send(sink, ("11:00", "A", 1), ("11:59:59.999", "A", 1), promise="12:00")
        assert pipe.step() == [("12:00", 2)]


@pytest.mark.long
def test_every_type_passes_as_it_is(pipe: Pipe) -> None:
    columns = (
        "big BIGINT, d DECIMAL(20, 3), day DATE, t TIMESTAMP, x DOUBLE, tags ARRAY<STRING>, place STRUCT<lat: INT>"
    )
    path = pipe.create("orders", columns)
    with in_zone(pipe.spark, "Europe/Berlin"):
        pipe.run(slidingAggregate(pipe.read("orders"), interval="1 hour", aggregates={"n": ("count", "*")}))
        with opened(path) as sink:
            times = [datetime(2006, 10, 29, hour, 30, tzinfo=UTC) for hour in (0, 1)]
            rest = (2**62 + 1, Decimal("12345678901234567.891"), date(2006, 1, 2))
            sink.sendRows([(t, *rest, t, float("inf"), ["a"], {"lat": 1}) for t in times])
            sink.sendRows([("2006-10-29T03:00:00Z", *[None] * 7)])
            sink.sendRowtimeBound("2006-10-30T00:00:00Z")
            sink.flush()
            found = output(pipe)
    sent = [row for train in rt.openReader(path, order="arrival") for row in train.rows.to_pylist()]
    assert [row.pop("n") for row in found] == [1, 2, 1], "two half past twos in Berlin's autumn are an hour apart"
    assert found == sent


@contextmanager
def in_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    yield
    spark.conf.set("spark.sql.session.timeZone", str(before))


@pytest.mark.long
def test_rows_with_a_name_of_their_own_for_the_time(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    renamed = pipe.read("orders").withColumnRenamed("rowtime", "ordered at").withColumn("units", expr("units * 2"))
    sums = slidingAggregate(renamed, interval="1 hour", aggregates={"sum": ("sum", "units")}, rowtime="ordered at")
    pipe.run(sums.select(col("`ordered at`").alias("rowtime"), "sum"))
    with opened(orders) as sink:
        send(sink, ("12:00", "A", 1), ("12:30", "B", 2), promise="13:00")
        assert told(pipe) == [("12:00", 2), ("12:30", 6)]


@pytest.mark.long
def test_a_group_that_is_open_within_the_millisecond_of_the_bound_is_not_below_the_promise(pipe: Pipe) -> None:
    orders = pipe.create("orders", COLUMNS)
    moments = pipe.read("orders").groupBy("rowtime", "product").agg(count("*").alias("n"))
    pipe.run(slidingAggregate(moments, "product", interval="10 minutes", aggregates={"sum": ("sum", "n")}))
    with opened(orders) as sink:
        send(sink, ("12:19", "A", 1), ("12:20:00.0002", "A", 1), promise="12:20:00.0005")
        assert pipe.step() == [("12:19", "A", 1, 1)]
        assert pipe.bound == bound("12:19:59.999001"), "the group of 12:20:00.0002 is still open"
        send(sink, promise="12:21")
        assert pipe.step() == [("12:20:00.0002", "A", 1, 2)]
