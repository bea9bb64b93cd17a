"""A query that is not the one its checkpoint was begun with."""

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed
from tests.streams import Pipe, at, opened, send


def test_a_window_of_another_size_is_refused_on_an_old_checkpoint(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")

    def counts(*window: str):
        return pipe.read("orders").groupBy(F.window("rowtime", *window)).count().select(F.col("window.end"), "count")

    def rerun(*window: str):
        return Observed(counts(*window), tmp_path)

    with rerun("10 minutes") as query:
        send(orders, ("10:01", "a"), ("10:11", "a"), promise="10:12")
        assert query.step() == [("10:10", 1)]
    file = tmp_path / "checkpoint" / "rowtime-times.json"
    left = file.rename(file.with_name(f"{file.name}.new"))  # as a crash leaves it that ends a replacement in its middle
    for other in (["5 minutes"], ["10 minutes", "5 minutes"], ["10 minutes", "10 minutes", "1 minute"]):
        with pytest.raises(Exception, match="its checkpoint was begun with") as refused, rerun(*other) as query:
            send(orders, promise="10:12:30")
            query.step()
        assert "was begun with [10 minutes]" in str(refused.value)
        sizes = other if len(set(other)) > 1 else other[:1]
        assert f"keeps its state by [{', '.join(sizes)}]" in str(refused.value)
    left.rename(file)
    with rerun("10 minutes") as query:
        send(orders, promise="10:20")
        assert query.step() == [("10:20", 1)]
    assert json.loads(file.read_text()) == {"times": ["600000000L"]}


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


def windows(pipe: Pipe, sizes: str):
    counts = [pipe.read("orders").groupBy(F.window("rowtime", *s.split(", "))).count() for s in sizes.split(" and ")]
    return reduce(DataFrame.union, counts)


def sessions(pipe: Pipe, gaps: str):
    of_a, of_others = gaps.split(", ")
    gap = f"CASE WHEN k = 'a' THEN '{of_a}' ELSE '{of_others}' END"
    return pipe.read("orders").groupBy(F.session_window("rowtime", F.expr(gap)), "k").count()


def grouped(pipe: Pipe, time: str):
    return pipe.read("orders").groupBy(F.expr(time).alias("t")).count()


DAY = "to_timestamp(to_date(rowtime))"
BELOW = {
    "the start of a window": (
        windows,
        "1 hour, 1 hour, 30 minutes",
        "1 hour, 30 minutes",
        "1 hour, 1 hour, 30 minutes]",
    ),
    "the windows of two parts of a union": (
        windows,
        "1 hour and 30 minutes",
        "30 minutes and 1 hour",
        "1 hour, 30 min",
    ),
    "the gaps of two keys": (sessions, "5 minutes, 30 minutes", "30 minutes, 5 minutes", "CASE WHEN (time k = 'a')"),
    "a day that Spark replaces": (grouped, DAY, "rowtime", "CAST(CAST(time AS DATE) AS TIMESTAMP)"),
    "a unit below a window": (rounded, "HOUR", "DAY", "10 minutes of date_trunc('HOUR', time)"),
    "the direction of a shift": (shifted, "+", "-", "10 minutes of time + INTERVAL '01' HOUR"),
    "a shift in the second part of a union": (second_part, "1 HOUR", "2 HOURS", "time + INTERVAL '01' HOUR"),
    "a shift below a join": (joined, "1 HOUR", "2 HOURS", "time, time + (- INTERVAL '01' HOUR)"),
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


def test_another_column_of_the_stream_is_refused(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "created TIMESTAMP"), "p")

    def counts(column: str):
        return pipe.read("orders").withWatermark(column, "0 seconds").groupBy(F.window(column, "1 hour")).count()

    with Observed(counts("created"), tmp_path) as query:
        send(orders, ("10:01", at("9:01")), promise="10:02")
        query.step()
    with (
        pytest.raises(Exception, match=r"begun with \[1 hour of time created\]"),
        Observed(counts("rowtime"), tmp_path) as query,
    ):
        send(orders, promise="10:03")
        query.step()


def rewrite(file: Path, value: Any) -> None:
    """Writes a file of a checkpoint as another version does; its checksum goes."""
    file.write_text(json.dumps(value))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


OLD = {
    "windows": (
        lambda p: windows(p, "1 hour, 1 hour, 30 minutes and 30 minutes"),
        ["1800000000L", "1800000000L", "1800000000L, 3600000000L"],
    ),
    "sessions": (lambda p: sessions(p, "5 minutes, 30 minutes"), ["'30 minutes', '5 minutes', 'a'"]),
    "a day": (lambda p: grouped(p, DAY), []),
}


@pytest.mark.long
@pytest.mark.parametrize("case", OLD)
def test_files_of_the_first_form_are_taken_once_and_replaced(pipe: Pipe, tmp_path, case: str) -> None:
    build, times = OLD[case]
    orders = opened(pipe.create("orders", "k STRING"), "p")
    files = [tmp_path / "checkpoint" / f"rowtime-{name}.json" for name in ("times", "bounds")]

    def run(minute: str) -> list:
        with Observed(build(pipe), tmp_path) as query:
            send(orders, (minute, "a"), promise=minute)
            query.step()
        return [json.loads(file.read_text()) for file in files]

    new = run("10:01")
    rewrite(files[0], times)
    files[1].unlink()
    assert run("10:02") == new
    assert run("10:03") == new
    rewrite(files[0], [*times, "1L"])
    with pytest.raises(Exception, match="its checkpoint was begun with"):
        run("10:04")


@pytest.mark.long
def test_the_first_form_of_what_was_promised_is_taken_once_and_replaced(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    file = tmp_path / "checkpoint" / "rowtime-bounds.json"
    former = {"the time t": "time", "the time gone": "date_trunc('HOUR', time)"}
    for text in (former, None):
        with Observed(pipe.read("orders").selectExpr(f"{DAY} AS t"), tmp_path) as query:
            send(orders, ("10:01", "a"), promise="10:01")
            query.step()
        if text:
            rewrite(file, text)
    assert json.loads(file.read_text()) == {
        "2: the time t": "CAST(CAST(time AS DATE) AS TIMESTAMP)",
        "the time gone": "date_trunc('HOUR', time)",
    }
    rewrite(file, {"the time t": "time - INTERVAL '01' HOUR"})
    with (
        pytest.raises(Exception, match="its checkpoint was begun with time - "),
        Observed(pipe.read("orders").selectExpr(f"{DAY} AS t"), tmp_path) as query,
    ):
        send(orders, promise="10:02")
        query.step()


@pytest.mark.long
def test_other_names_below_are_no_other_times(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    for number, name in enumerate(["t", "u"]):
        below = pipe.read("orders").select(F.date_trunc("HOUR", "rowtime").alias(name)).alias(f"from_{name}")
        with Observed(below.groupBy(F.window(name, "10 minutes")).count(), tmp_path) as query:
            send(orders, (f"10:0{number}", "a"), promise=f"10:0{number}:30")
            query.step()


def near(pipe: Pipe, interval: str, time: str = "r.rowtime"):
    pipe.read("orders").createOrReplaceTempView("orders")
    return pipe.spark.sql(
        f"SELECT {time} AS rowtime FROM orders l JOIN orders r ON l.k = r.k"
        f" WHERE r.rowtime BETWEEN l.rowtime AND l.rowtime + INTERVAL {interval}"
    )


def until(pipe: Pipe, interval: str):
    """A join whose range is a column that is computed above it."""
    pipe.read("orders").createOrReplaceTempView("orders")
    return pipe.spark.sql(
        f"SELECT y FROM (SELECT l.rowtime AS x, r.rowtime AS y, l.rowtime + INTERVAL {interval} AS until FROM orders l "
        "JOIN orders r ON l.k = r.k AND r.rowtime >= l.rowtime) WHERE y <= until"
    )


def later(pipe: Pipe, sides: str):
    """The same source on both sides, compared by columns that are computed above the join."""
    pipe.read("orders").createOrReplaceTempView("orders")
    near = "l.k = r.k AND r.rowtime BETWEEN l.rowtime - INTERVAL 1 HOUR AND l.rowtime + INTERVAL 1 HOUR"
    second = "rowtime + INTERVAL 1 SECOND"
    return pipe.spark.sql(
        f"WITH o AS (SELECT * FROM orders), j AS (SELECT l.{second} AS x, r.{second} AS y FROM o l JOIN o r ON {near}) "
        f"SELECT y FROM j WHERE unix_micros({sides[0]}) - unix_micros({sides[-1]}) >= 0"
    )


def by_name(pipe: Pipe, interval: str):
    """A condition above a name of WITH, which Spark makes one of the join."""
    pipe.read("orders").createOrReplaceTempView("orders")
    return pipe.spark.sql(
        "WITH j AS (SELECT l.rowtime AS x, r.rowtime AS y FROM orders l JOIN orders r ON l.k = r.k AND r.rowtime >= "
        f"l.rowtime) SELECT y FROM j WHERE y <= x + INTERVAL {interval}"
    )


def hours(pipe: Pipe, field: str):
    return pipe.read("orders").groupBy(F.window("rowtime", "1 hour").alias("w")).count().select(f"w.{field}")


def named(pipe: Pipe, sides: str):
    pipe.read("orders").createOrReplaceTempView("orders")
    one, other = sides.split()
    return pipe.spark.sql(
        "WITH x AS (SELECT * FROM orders) SELECT l.rowtime AS a, r.rowtime AS b FROM x l JOIN x r ON l.k = r.k"
        f" AND {one}.rowtime BETWEEN {other}.rowtime AND {other}.rowtime + INTERVAL 1 HOUR"
    )


PROMISED = {
    "a day that Spark replaces": (lambda p, time: p.read("orders").selectExpr(f"{time} AS t"), "rowtime", DAY),
    "the sides of a join of a name of WITH": (named, "r l", "l r"),
    "a shift": (lambda p, time: p.read("orders").selectExpr(f"{time} AS t"), "rowtime", "rowtime - INTERVAL 1 HOUR"),
    "a time that has no bound": (
        lambda p, time: p.read("orders").selectExpr(f"{time} AS t"),
        "rowtime",
        "timestamp_micros(unix_micros(rowtime) - 1)",
    ),
    "a field": (
        lambda p, time: p.read("orders").selectExpr(f"struct(struct({time} AS t) AS s) AS s").select("s.s.t"),
        "date_trunc('MINUTE', rowtime)",
        "date_trunc('HOUR', rowtime)",
    ),
    "the start of a window": (lambda p, field: hours(p, field).toDF("t"), "end", "start"),
    "a wider join": (near, "10 MINUTES", "30 MINUTES"),
    "a narrower join": (near, "30 MINUTES", "10 MINUTES"),
    "a wider join by a column": (until, "10 MINUTES", "30 MINUTES"),
    "the sides by columns": (later, "x y", "y x"),
    "a wider join above a name": (by_name, "10 MINUTES", "30 MINUTES"),
    "the time of the other side": (lambda p, time: near(p, "10 MINUTES", time), "r.rowtime", "l.rowtime"),
}


@pytest.mark.parametrize("case", PROMISED)
def test_another_time_of_the_output_is_refused(pipe: Pipe, tmp_path, case: str) -> None:
    build, old, new = PROMISED[case]
    orders = opened(pipe.create("orders", "k STRING"), "p")
    for minutes in ("10:02", "10:04"):
        with Observed(build(pipe, old), tmp_path) as query:
            send(orders, (minutes, "a"), promise=minutes)
            query.step()
    with (
        pytest.raises(Exception, match="its checkpoint was begun with"),
        Observed(build(pipe, new), tmp_path) as query,
    ):
        send(orders, promise="10:05")
        query.step()


@pytest.mark.long
def test_what_is_not_promised_can_change(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    free = "timestamp_micros(unix_micros(rowtime) {}) AS free"
    for columns in (["rowtime", free.format("- 7")], ["rowtime AS Rowtime", free.format("+ 7"), "k"], ["k"]):
        with Observed(pipe.read("orders").selectExpr(*columns).where("k <> 'b'"), tmp_path) as query:
            send(orders, ("10:01", "a"), promise="10:01")
            assert len(query.step()) == 1


@pytest.mark.long
def test_a_time_that_was_promised_later_counts_from_then_on(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    for columns in (["k"], ["rowtime"], ["k"]):
        with Observed(pipe.read("orders").selectExpr(*columns), tmp_path) as query:
            send(orders, ("10:01", "a"), promise="10:01")
            query.step()
    earlier = pipe.read("orders").selectExpr("rowtime - INTERVAL 1 HOUR AS rowtime")
    with pytest.raises(Exception, match=r"the time rowtime: time .* INTERVAL"), Observed(earlier, tmp_path) as query:
        send(orders, promise="10:02")
        query.step()


@pytest.mark.long
def test_the_projection_of_a_query_whose_output_stays(pipe: Pipe, tmp_path) -> None:
    """A checkpoint that was begun without the file gets it at its next start."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    for shift in ("1 HOUR", "2 HOURS"):
        with Observed(pipe.read("orders").selectExpr(f"rowtime + INTERVAL {shift} AS rowtime"), tmp_path) as query:
            send(orders, ("10:01", "a"), promise="10:01")
            query.step()
        (tmp_path / "checkpoint" / "rowtime-bounds.json").unlink()


@pytest.mark.long
def test_a_query_with_the_current_time_goes_on_where_an_earlier_version_left_it(pipe: Pipe, tmp_path: Path) -> None:
    """Its file has ``now()``, of which the batch's time is made now."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    pipe.read("orders").createOrReplaceTempView("orders")
    text = (
        "SELECT l.rowtime FROM orders l LEFT JOIN orders r ON l.k = r.k AND r.rowtime BETWEEN l.rowtime AND "
        "l.rowtime + INTERVAL 1 HOUR WHERE r.rowtime <= l.rowtime + (now() - TIMESTAMP '2026-01-01')"
    )
    file = tmp_path / "checkpoint" / "rowtime-bounds.json"
    for minute in ("10:02", "10:04"):
        with Observed(pipe.spark.sql(text), tmp_path) as query:
            send(orders, (minute, "a"), promise=minute)
            query.step()
        assert "current_timestamp()" in file.read_text()
        file.write_text(file.read_text().replace("current_timestamp()", "now()"))
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)


@pytest.mark.long
def test_a_threshold_of_a_result_above_a_join_may_change(pipe: Pipe, tmp_path: Path) -> None:
    """By it no row is freed."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    pipe.read("orders").createOrReplaceTempView("orders")
    for least in (10, 20):
        delays = pipe.spark.sql(
            "SELECT w.end, d FROM (SELECT window(l.rowtime, '1 minute') AS w, avg(unix_micros(r.rowtime) - "
            "unix_micros(l.rowtime)) AS d FROM orders l JOIN orders r ON l.k = r.k AND r.rowtime BETWEEN l.rowtime AND "
            f"l.rowtime + INTERVAL 1 HOUR GROUP BY window(l.rowtime, '1 minute')) WHERE d > {least}"
        )
        with Observed(delays, tmp_path) as query:
            send(orders, (f"10:{least}", "a"), promise=f"10:{least}")
            query.step()
