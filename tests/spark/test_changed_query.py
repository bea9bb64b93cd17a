"""A query that is not the one its checkpoint was begun with."""

import json

import pytest
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send


def test_a_window_of_another_size_is_refused_on_an_old_checkpoint(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")

    def counts(*window: str):
        return pipe.read("orders").groupBy(F.window("rowtime", *window)).count().select(F.col("window.end"), "count")

    def rerun(*window: str):
        return Observed(counts(*window), tmp_path)

    with rerun("10 minutes") as query:
        send(orders, ("10:01", "a"), ("10:11", "a"), promise="10:12")
        assert query.step() == [("10:10", 1)]
    for other in (["5 minutes"], ["10 minutes", "5 minutes"], ["10 minutes", "10 minutes", "1 minute"]):
        with pytest.raises(Exception, match="its checkpoint was begun with") as refused, rerun(*other) as query:
            send(orders, promise="10:12:30")
            query.step()
        assert "[600000000L]" in str(refused.value)
    with rerun("10 minutes") as query:
        send(orders, promise="10:20")
        assert query.step() == [("10:20", 1)]
    assert json.loads((tmp_path / "checkpoint" / "rowtime-times.json").read_text()) == ["600000000L"]


@pytest.mark.long
def test_a_window_of_a_name_of_with_counts_too(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    pipe.read("orders").createOrReplaceTempView("orders")

    def counts(size: str):
        return pipe.spark.sql(
            f"WITH h AS (SELECT window(rowtime, '{size}') AS w FROM orders) SELECT w.end, count(*) FROM h GROUP BY w"
        )

    with Observed(counts("10 minutes"), tmp_path) as query:
        send(orders, ("10:01", "a"), promise="10:12")
        assert query.step() == [("10:10", 1)]
    with (
        pytest.raises(Exception, match="its checkpoint was begun with"),
        Observed(counts("5 minutes"), tmp_path) as query,
    ):
        send(orders, promise="10:20")
        query.step()
    pipe.spark.catalog.dropTempView("orders")


@pytest.mark.long
def test_a_query_whose_first_batch_failed_takes_another_window(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    send(orders, ("10:01", "a"), promise="10:12")

    def counts(size: str):
        return pipe.read("orders").groupBy(F.window("rowtime", size)).count()

    failing = counts("10 minutes").selectExpr("raise_error(concat('window of ', count)) AS n")
    with pytest.raises(Exception, match="window of 1"), Observed(failing, tmp_path) as query:
        query.step()
    with Observed(counts("5 minutes"), tmp_path) as query:
        assert query.step() == [(("10:00", "10:05"), 1)]


def rounded(pipe: Pipe, unit: str):
    below = pipe.read("orders").select(F.date_trunc(unit, "rowtime").alias("rowtime"))
    return below.groupBy(F.window("rowtime", "10 minutes")).count()


def shifted(pipe: Pipe, sign: str):
    below = pipe.read("orders").select(F.expr(f"rowtime {sign} INTERVAL 1 HOUR AS rowtime"))
    return below.groupBy(F.window("rowtime", "10 minutes")).count()


def second_part(pipe: Pipe, shift: str):
    other = pipe.read("orders").select(F.expr(f"rowtime + INTERVAL {shift} AS rowtime"))
    return pipe.read("orders").select("rowtime").union(other).groupBy("rowtime").count()


def joined(pipe: Pipe, shift: str):
    pipe.read("orders").createOrReplaceTempView("orders")
    return pipe.spark.sql(
        f"SELECT l.k FROM orders l JOIN (SELECT rowtime - INTERVAL {shift} AS rowtime, k FROM orders) r"
        " ON l.k = r.k AND r.rowtime BETWEEN l.rowtime - INTERVAL 1 DAY AND l.rowtime"
    )


def deduplicated(pipe: Pipe, unit: str):
    below = pipe.read("orders").select(F.date_trunc(unit, "rowtime").alias("t"), "k")
    return below.withWatermark("t", "1 hour").dropDuplicatesWithinWatermark(["k"])


BELOW = {
    "a unit below a window": (rounded, "HOUR", "DAY", "600000000L of date_trunc('HOUR', time)"),
    "the direction of a shift": (shifted, "+", "-", "600000000L of time + INTERVAL '01' HOUR"),
    "a shift in the second part of a union": (second_part, "1 HOUR", "2 HOURS", "time + INTERVAL '01' HOUR"),
    "a shift below a join": (joined, "1 HOUR", "2 HOURS", "time + (- INTERVAL '01' HOUR)"),
    "a unit below deduplication": (deduplicated, "HOUR", "DAY", "date_trunc('HOUR', time)"),
}


@pytest.mark.parametrize("case", BELOW)
def test_another_time_below_what_keeps_state_is_refused(pipe: Pipe, tmp_path, case: str) -> None:
    build, old, new, said = BELOW[case]
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(build(pipe, old), tmp_path) as query:
        send(orders, ("10:01", "a"), promise="10:02")
        query.step()
    with (
        pytest.raises(Exception, match="its checkpoint was begun with") as refused,
        Observed(build(pipe, new), tmp_path) as query,
    ):
        send(orders, promise="10:03")
        query.step()
    assert f"its checkpoint was begun with [{said}" in str(refused.value)


@pytest.mark.long
def test_other_names_below_are_no_other_times(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    for number, name in enumerate(["t", "u"]):
        below = pipe.read("orders").select(F.date_trunc("HOUR", "rowtime").alias(name)).alias(f"from_{name}")
        with Observed(below.groupBy(F.window(name, "10 minutes")).count(), tmp_path) as query:
            send(orders, (f"10:0{number}", "a"), promise=f"10:0{number}:30")
            query.step()
