"""Bounds of times that depend on the time zone: where clocks go back, and when a query's zone is changed."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed
from tests.spark.zones import Bounds, transitions, values
from tests.streams import Pipe, opened, send

ZONE = "spark.sql.session.timeZone"
MINUTE = 60_000_000


@pytest.fixture(autouse=True)
def utc_again(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.set(ZONE, "UTC")


def at(text: str) -> str:
    return f"{text}Z"


BACK = {
    # The hour of 03:00 is followed by that of 02:00: at 14:00 UTC 03:45 becomes 02:45.
    "HOUR": ("Pacific/Chatham", "2024-04-06T12:30:00", "2024-04-06T13:59:30", "2024-04-06T14:05:00"),
    # The 7th is followed by the 6th: at 02:31 UTC 00:01 becomes 23:01 of the day before.
    "DAY": ("America/St_Johns", "2010-11-07T02:00:00", "2010-11-07T02:30:30", "2010-11-07T02:40:00"),
}


@pytest.mark.parametrize("unit", BACK)
def test_no_row_is_late_where_clocks_go_back_by_a_step_that_is_not_aligned(pipe: Pipe, tmp_path: Path, unit) -> None:
    zone, *times = BACK[unit]
    pipe.spark.conf.set(ZONE, zone)
    rows = opened(pipe.create("a", "k STRING"), "p")
    pipe.read("a").createOrReplaceTempView("a")
    grouped = pipe.spark.sql(
        f"SELECT unix_micros(date_trunc('{unit}', rowtime)) AS t, count(*) FROM a"
        f" GROUP BY date_trunc('{unit}', rowtime)"
    )
    with Observed(grouped, tmp_path) as query:
        for time in times:
            rows.sendRows([(at(time), "k")])
            rows.flush()
            query.step()
        rows.sendRowtimeBound(at("2026-01-01T00:00:00"))
        rows.flush()
        query.step()
        streamed = sorted(row for batch in query.batches.values() for row in batch)
    batch = (
        pipe.spark.read.format("rowtime")
        .load(pipe.path("a"))
        .groupBy(F.expr(f"date_trunc('{unit}', rowtime)").alias("t"))
    )
    assert streamed == sorted(tuple(row) for row in batch.count().select(F.unix_micros("t"), "count").collect())
    assert sum(count for _, count in streamed) == len(times)


ZONES = [
    "Pacific/Chatham", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca", "Antarctica/Troll", "Asia/Kathmandu",
    "America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Atlantic/Azores", "Asia/Manila",
]  # fmt: skip
UNITS = ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"]
ROUNDED = {unit: f"date_trunc('{unit}', rowtime)" for unit in UNITS} | {
    "date": "CAST(rowtime AS DATE)",
    "midnight": "CAST(CAST(rowtime AS DATE) AS TIMESTAMP)",
}
MONOTONIC = {
    "month": "CAST(trunc(CAST(rowtime AS DATE), 'MONTH') AS TIMESTAMP)",
    "+": "rowtime + INTERVAL '23:59:59.999999' HOUR TO SECOND",
    "-": "rowtime - INTERVAL 23 HOURS",
    "add": "timestampadd(HOUR, 30, rowtime)",
    "hour later": "date_trunc('HOUR', rowtime + INTERVAL 30 MINUTES)",
    "hour, shifted": "date_trunc('HOUR', rowtime) - INTERVAL 1 HOUR",
    "day of the hour": "date_trunc('DAY', date_trunc('HOUR', rowtime))",
    "least": "least(rowtime, date_trunc('HOUR', rowtime))",
}


def looked_at(spark: SparkSession, zone: str) -> tuple[list[int], list[int]]:
    """Floors around a few transitions, odd ones first, and times to compare with; in microseconds."""
    known = transitions(spark, zone)
    odd = [t for t in known if t.is_odd]
    some = [t.at * 1_000_000 for t in {*odd[:2], *odd[-2:], known[0], known[len(known) // 2], *known[-2:]}]
    near = [0, 1, -1, -29 * MINUTE, -90 * MINUTE, 20 * MINUTE, 70 * MINUTE]
    floors = sorted({t + step for t in some for step in near})
    around = {t + step * 10 * MINUTE for t in some for step in range(-20, 20)}
    return floors, sorted({*floors, *around, *(t.at * 1_000_000 for t in known)})


@pytest.mark.parametrize("zone", ZONES)
def test_no_later_time_has_a_value_below_the_bound(spark: SparkSession, zone: str) -> None:
    spark.conf.set(ZONE, zone)
    floors, times = looked_at(spark, zone)
    expressions = ROUNDED | MONOTONIC
    found = values(spark, expressions, times)
    frame = spark.range(1).select(F.timestamp_micros("id").alias("rowtime"))
    bounds = Bounds(frame.select(*(F.expr(text).alias(name) for name, text in expressions.items())))
    asked = {floor: bounds.of(floor) for floor in floors}
    for name in expressions:
        least = least_later(name, times, [row[name] for row in found])
        told = {floor: asked[floor][name] for floor in floors}
        wrong = {floor: (bound, least[floor]) for floor, bound in told.items() if bound > least[floor]}
        assert not wrong, f"{name} in {zone}"
        assert name not in ROUNDED or told == {floor: least[floor] for floor in floors}, f"{name} in {zone}"
        assert list(told.values()) == sorted(told.values()), "it does not fall when the floor rises"


def least_later(name: str, times: list[int], found: list[int]) -> dict[int, int]:
    """By time, the least value of any time from it on. A rounding may be later than its time: then at most that."""
    here = [
        min(value, time) if name in ROUNDED and name != "date" else value
        for time, value in zip(times, found, strict=True)
    ]
    return dict(zip(reversed(times), accumulate(reversed(here), min), strict=True))


DAILY = "date_trunc('DAY', rowtime)"


def daily(pipe: Pipe, zone: str, text: str = DAILY) -> DataFrame:
    pipe.spark.conf.set(ZONE, zone)
    return pipe.read("a").select(F.expr(text).alias("rowtime"))


def days_of_windows(pipe: Pipe, zone: str) -> DataFrame:
    pipe.spark.conf.set(ZONE, zone)
    hours = pipe.read("a").groupBy(F.window("rowtime", "1 hour")).count()
    return hours.select(F.expr("date_trunc('DAY', window_time(window))").alias("rowtime"))


def days_that_spark_replaces(pipe: Pipe, zone: str) -> DataFrame:
    return daily(pipe, zone, "to_timestamp(to_date(rowtime))")


@pytest.mark.long
@pytest.mark.parametrize("build", [daily, days_of_windows, days_that_spark_replaces])
def test_a_query_is_not_started_again_in_another_time_zone(pipe: Pipe, tmp_path: Path, build: Any) -> None:
    rows = opened(pipe.create("a", "k STRING"), "p")
    query = Observed(build(pipe, "Etc/UTC"), tmp_path)
    with query:
        send(rows, ("12:10", "a"), promise="12:20")
        query.step()
    query.frame = build(pipe, "America/New_York")
    with (
        pytest.raises(Exception, match=r"in the time zone Etc/UTC, this run computes them in\s+America/New_York"),
        query,
    ):
        query.step()
    query.frame = build(pipe, "UTC")
    with query:
        send(rows, promise="13:20")
        query.step()
        assert query.promised == {"rowtime": "00:00"}, "another name of the same zone"


DAYS_APART = {
    "in the condition": "SELECT l.rowtime AS rowtime FROM a l JOIN b r ON l.k = r.k AND {}",
    "in a filter that Spark makes a part of it": "SELECT l.rowtime AS rowtime FROM a l JOIN b r ON l.k = r.k WHERE {}",
}


@pytest.mark.long
@pytest.mark.parametrize("text", DAYS_APART.values(), ids=DAYS_APART)
def test_a_join_by_days_is_not_started_again_in_another_time_zone(pipe: Pipe, tmp_path: Path, text: str) -> None:
    sinks = [opened(pipe.create(name, "k STRING"), "p") for name in ("a", "b")]

    def run(zone: str, interval: str, clock: str) -> None:
        pipe.spark.conf.set(ZONE, zone)
        for name in ("a", "b"):
            pipe.read(name).createOrReplaceTempView(name)
        sql = text.format(f"r.rowtime BETWEEN l.rowtime AND l.rowtime + INTERVAL {interval}")
        with Observed(pipe.spark.sql(sql), tmp_path / interval) as query:
            for sink in sinks:
                send(sink, (clock, "a"))
            query.step()

    run("UTC", "1 DAY", "12:10")
    with pytest.raises(Exception, match=r"in the time zone (Etc/)?UTC, this run computes them in\s+Europe/Berlin"):
        run("Europe/Berlin", "1 DAY", "12:20")
    run("UTC", "23 HOURS", "12:30")
    run("Europe/Berlin", "23 HOURS", "12:40")


@pytest.mark.long
def test_a_query_that_depends_on_no_zone_runs_in_any(pipe: Pipe, tmp_path: Path) -> None:
    rows = opened(pipe.create("a", "k STRING"), "p")
    query = Observed(daily(pipe, "Asia/Kathmandu", "rowtime + INTERVAL 1 HOUR"), tmp_path)
    for zone in ("Asia/Kathmandu", "America/New_York"):
        query.frame = daily(pipe, zone, "rowtime + INTERVAL 1 HOUR")
        with query:
            send(rows, promise="12:20")
            query.step()
            assert query.promised == {"rowtime": "13:20"}
    assert not (query.checkpoint / "rowtime-zones").exists()


@pytest.mark.long
def test_a_first_run_that_logged_no_batch_does_not_decide_the_zone(pipe: Pipe, tmp_path: Path) -> None:
    opened(pipe.create("a", "k STRING"), "p")
    query = Observed(daily(pipe, "Asia/Kathmandu"), tmp_path)
    query.checkpoint.mkdir()
    (query.checkpoint / "rowtime-zones").write_text("Asia/Kathmandu")
    query.frame = daily(pipe, "America/New_York")
    with query:
        query.step()
    assert (query.checkpoint / "rowtime-zones").read_text() == "America/New_York"
    assert not (query.checkpoint / "rowtime-zones.new").exists()
