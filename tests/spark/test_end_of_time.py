"""Complete producers: every window of a query closes, and the query's own output is complete too."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_rowtime as rt
from spark_rowtime.operators import slidingAggregate
from tests.spark.observed_query import Observed
from tests.sparksession import start
from tests.streams import Pipe, at, drained, opened, send


def hourly(rows: DataFrame) -> DataFrame:
    counts = rows.groupBy(F.window("rowtime", "1 hour"), "k").agg(F.count("*").alias("n"))
    return counts.select(F.col("window.end").alias("rowtime"), "k", "n")


def read_again(path: str) -> list[tuple]:
    with rt.openReader(path) as reader:
        return drained(reader)


def first_feed(pipe: Pipe) -> None:
    """The first of two feeds comes and ends before the second comes, whose rows begin earlier."""
    path = pipe.create("source", "k STRING", producers=["Berlin", "Oslo"])
    berlin = opened(path, "Berlin")
    send(berlin, ("10:10", "b"), ("12:20", "b"))
    berlin.close(complete=True)


def test_the_last_window_comes_out_and_the_output_is_complete(pipe: Pipe, tmp_path: Path) -> None:
    first_feed(pipe)
    query = pipe.run(hourly(pipe.read("source")))
    assert pipe.step() == [], "Oslo is expected"
    with opened(pipe.path("source"), "Oslo") as oslo:
        send(oslo, ("9:30", "o"), promise="11:00")
        assert sorted(pipe.step()) == [("10:00", "o", 1), ("11:00", "b", 1)]
        send(oslo, ("12:40", "o"))
        oslo.close(complete=True)
    assert sorted(pipe.step()) == [("13:00", "b", 1), ("13:00", "o", 1)]
    assert pipe.bound == rt.RowtimeBound.END
    (producer,) = rt.describeStream(pipe.path("out")).producers
    assert producer.status.value == "complete"
    query.stop()
    again = pipe.run(hourly(pipe.read("source")))
    assert pipe.step() == []
    assert again.exception() is None
    with pytest.raises(rt.StreamCompleteError, match="is complete"):
        opened(pipe.path("source"), "Paris")

    once = hourly(pipe.read("source")).writeStream.format("rowtime").trigger(availableNow=True)
    path = str(tmp_path / "once")
    assert once.option("checkpointLocation", str(tmp_path / "checkpoint once")).start(path).awaitTermination(240)
    assert sorted(read_again(path)) == [("10:00", "o", 1), ("11:00", "b", 1), ("13:00", "b", 1), ("13:00", "o", 1)]
    assert rt.describeStream(path).bound == rt.RowtimeBound.END


@pytest.mark.long
def test_a_query_of_windows_of_9999_and_of_a_moved_time_ends_only_with_the_stream(pipe: Pipe, tmp_path: Path) -> None:
    """The bound at the end of the year 9999 is no end; the end closes also the windows that end later than that."""
    path = pipe.create("source", "k STRING", maxAhead=None)
    rows = pipe.read("source")
    pipe.create("out", "count BIGINT NOT NULL", maxAhead=None)
    rt.createStream(tmp_path / "moved", "rowtime TIMESTAMP NOT NULL", maxAhead=None)
    moved = start(rows.selectExpr("rowtime - INTERVAL 1 HOUR AS rowtime"), tmp_path / "moved", tmp_path / "moved cp")
    pipe.run(rows.groupBy(F.window("rowtime", "1 hour")).count().selectExpr("window.start AS rowtime", "count"))
    with opened(path, "a") as sink:
        send(sink, ("9999-12-31 23:59:59", "last"))
        assert pipe.step() == []
        moved.processAllAvailable()
        bound = rt.describeStream(str(tmp_path / "moved")).bound
        assert bound == rt.RowtimeBound("9999-12-31T22:59:59Z")
        sink.close(complete=True)
    assert pipe.step() == [("9999-12-31 23:00", 1)]
    moved.processAllAvailable()
    assert rt.describeStream(str(tmp_path / "moved")).bound == rt.RowtimeBound.END
    moved.stop()


@pytest.mark.long
def test_a_time_rounded_in_a_zone_with_summer_time_ends_with_the_stream(pipe: Pipe, tmp_path: Path) -> None:
    """The zone's rules are asked for the changes of the clocks after the end of time, too."""
    path = pipe.create("source", "k STRING", maxAhead=None)
    pipe.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = pipe.read("source").selectExpr("date_trunc('HOUR', rowtime) AS rowtime", "CAST(rowtime AS DATE) AS day")
        pipe.create("out", "count BIGINT NOT NULL", maxAhead=None)
        pipe.run(rows.groupBy("rowtime", "day").count().select("rowtime", "count"))
        with opened(path, "a") as sink:
            send(sink, ("2006-07-01 10:20", "a"), promise="2300-07-01 10:00")
            assert pipe.step() == [("2006-07-01 10:00", 1)]
            send(sink, ("2300-07-01 10:20", "a"))
            sink.close(complete=True)
        assert pipe.step() == [("2300-07-01 10:00", 1)]
        assert rt.describeStream(pipe.path("out")).bound == rt.RowtimeBound.END
    finally:
        pipe.spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.long
def test_a_constant_time_ends_with_the_stream(pipe: Pipe) -> None:
    """Its bound is the constant as long as a row may follow."""
    path = pipe.create("source", "k STRING", maxAhead=None)
    rows = pipe.read("source")
    either = rows.selectExpr("if(k = 'a', rowtime, TIMESTAMP '2006-09-11 10:20:00Z') AS rowtime", "k")
    fixed = rows.selectExpr("TIMESTAMP '2006-09-11 10:40:00Z' AS rowtime", "'fixed' AS k")
    pipe.run(hourly(either.union(fixed)))
    with opened(path, "a") as sink:
        send(sink, ("10:10", "a"), ("10:10", "b"), promise="12:00")
        assert pipe.step() == [], "a row may follow, with 10:20"
        sink.close(complete=True)
    assert sorted(pipe.step()) == [("11:00", "a", 1), ("11:00", "b", 1), ("11:00", "fixed", 2)]
    assert pipe.bound == rt.RowtimeBound.END


@pytest.mark.long
def test_a_join_frees_its_rows_and_is_complete_when_both_streams_are(pipe: Pipe) -> None:
    for name in ("orders", "trades"):
        pipe.create(name, "id INT")
    trades = pipe.read("trades").selectExpr("rowtime AS traded", "id AS trade_id")
    within = F.expr("id = trade_id AND traded BETWEEN rowtime AND rowtime + INTERVAL 10 MINUTES")
    pipe.run(pipe.read("orders").join(trades, within, "left_outer").select("rowtime", "id", "trade_id"))
    orders, deals = opened(pipe.path("orders"), "o"), opened(pipe.path("trades"), "t")
    send(orders, ("10:00", 1), ("10:05", 2))
    send(deals, ("10:01", 1))
    orders.close(complete=True)
    assert pipe.step() == [("10:00", 1, 1)]
    assert pipe.bound is not None
    assert not pipe.bound.isEnd, "a trade may still come"
    deals.close(complete=True)
    assert pipe.step() == [("10:05", 2, None)]
    assert pipe.bound == rt.RowtimeBound.END


@pytest.mark.night
def test_sessions_and_rows_that_wait_for_others_come_out(pipe: Pipe, tmp_path: Path) -> None:
    path = pipe.create("source", "k STRING, n INT")
    rows = pipe.read("source")
    sessions = rows.groupBy(F.session_window("rowtime", "30 minutes"), "k").count()
    other = start(sessions.selectExpr("session_window.end AS rowtime", "count"), tmp_path / "other", tmp_path / "cp")
    pipe.run(slidingAggregate(rows, "k", interval="1 hour", following="1 hour", aggregates={"total": ("sum", "n")}))
    with opened(path, "a") as sink:
        send(sink, ("10:00", "a", 1), ("10:20", "a", 2), ("10:55", "a", 4))
        assert pipe.step() == []
        sink.close(complete=True)
    assert [(row[0], row[-1]) for row in sorted(pipe.step())] == [("10:00", 7), ("10:20", 7), ("10:55", 7)]
    other.processAllAvailable()
    assert read_again(str(tmp_path / "other")) == [("10:50", 2), ("11:25", 1)]
    assert pipe.bound == rt.describeStream(str(tmp_path / "other")).bound
    other.stop()


@pytest.mark.long
@pytest.mark.parametrize("time", ["t", "rowtime + make_interval(0, 0, 0, 0, 0, x)"])
def test_a_watermark_of_ones_own_ends_with_the_streams(pipe: Pipe, tmp_path: Path, time: str) -> None:
    """No bound speaks of these times."""
    columns = "t TIMESTAMP, x INT"
    sinks = [opened(pipe.create(name, columns), "p") for name in "ab"]
    times = [pipe.read(name).selectExpr(f"{time} AS u") for name in "ab"]
    counts = times[0].union(times[1]).withWatermark("u", "2 hours").groupBy(F.window("u", "1 hour")).count()
    with Observed(counts, tmp_path) as query:
        for hour in range(10, 13):
            for sink in sinks:
                send(sink, (f"{hour}:30", at(f"{hour}:10"), 0), promise=f"{hour}:40")
        assert query.step() == []
        sinks[0].close(complete=True)
        assert query.step() == []
        sinks[1].close(complete=True)
        assert [(end, n) for (_, end), n in query.step()] == [("11:00", 2), ("12:00", 2), ("13:00", 2)]


@pytest.mark.long
def test_the_start_of_a_window_has_the_bound_of_the_stream_that_goes_on(pipe: Pipe) -> None:
    """Where the other one is complete: its windows are kept until the bound of this one has passed them."""
    one, two = (pipe.create(name, "k STRING") for name in ("one", "two"))
    left = pipe.read("one").select(F.window("rowtime", "1 hour").alias("w"), "k")
    right = pipe.read("two").select(F.window("rowtime", "1 hour").alias("w2"), F.col("k").alias("k2"))
    pipe.run(left.join(right, F.expr("w = w2 AND k = k2")).select(F.col("w.start").alias("rowtime"), "k"))
    with opened(two, "two") as goes_on:
        with opened(one, "one") as ends:
            send(ends, ("10:10", "x"))
            ends.close(complete=True)
        send(goes_on, ("10:05", "y"), promise="10:30")
        assert pipe.step() == []
        assert pipe.bound is None or pipe.bound <= rt.RowtimeBound(at("10:00"))
        send(goes_on, ("10:40", "x"), promise="11:00")
        assert pipe.step() == [("10:00", "x")]
        assert pipe.bound is not None
        assert pipe.bound >= rt.RowtimeBound(at("10:00"))


def test_a_constant_time_after_the_year_9999_is_not_the_end_of_a_stream(pipe: Pipe) -> None:
    path = pipe.create("source", "k STRING")
    far = pipe.read("source").selectExpr("rowtime", "k", "TIMESTAMP '+60000-01-01 00:00:00' AS until")
    pipe.run(far.where("until > rowtime").selectExpr("least(rowtime, until) AS rowtime", "k"))
    with opened(path, "a") as feed:
        send(feed, ("10:10", "x"), promise="10:30")
        assert pipe.step() == [("10:10", "x")]
        assert pipe.bound == rt.RowtimeBound(at("10:30"))
        send(feed, ("10:40", "y"))
        assert pipe.step() == [("10:40", "y")]
