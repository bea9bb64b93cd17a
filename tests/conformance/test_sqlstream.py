"""SQLstream s-Server's worked examples of rowtime bounds, through sink, store, Spark, sink and reader."""

import logging
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql.functions import col, count, expr, window

import spark_rowtime as rt
from tests.sparksession import running, settle, start, wait_for
from tests.streams import Pipe, at, bound, clock_of, drained, opened, send

ORDERS = [("12:00", "ORCL"), ("12:01", "MSFT"), ("12:02", "IBM")]


@pytest.mark.smoke
def test_s1_send_a_bound(pipe: Pipe) -> None:
    orders = pipe.create("orders", "ticker STRING")
    pipe.run(pipe.read("orders"))
    with opened(orders) as sink:
        send(sink, *ORDERS, promise="12:05")
        assert pipe.step() == ORDERS
        assert pipe.bound == bound("12:05")
        with pytest.raises(rt.LateRowError):
            sink.sendRow((at("12:04:59.999"), "late"))
        send(sink, ("12:05", "on time"))
        assert pipe.step() == [("12:05", "on time")]


@pytest.mark.parametrize("by", ["row", "bound"])
def test_s2_late_rows(pipe: Pipe, by: str, caplog: pytest.LogCaptureFixture) -> None:
    orders = pipe.create("orders", "ticker STRING")
    pipe.run(pipe.read("orders"))
    first = [("10:00", "first")] if by == "row" else []
    with opened(orders, "feed", onLate="reject") as sink, caplog.at_level(logging.WARNING, "spark_rowtime.laterow"):
        send(sink, *first, promise="10:00" if by == "bound" else None)
        for late in ("9:58", "9:47", "9:59"):
            sink.sendRow((at(late), "late"))
        send(sink, ("10:00", "same"), ("10:00", "time"))
    assert pipe.step() == [*first, ("10:00", "same"), ("10:00", "time")]
    table = pipe.spark.read.format("rowtime").option("view", "rejected").load(orders)
    found = table.select("producer", "reason", "ticker", expr("date_format(rowtime, 'H:mm')")).collect()
    assert [tuple(row) for row in found] == [("feed", "late", "late", time) for time in ("9:58", "9:47", "9:59")]
    logged = [record for record in caplog.records if record.name == "spark_rowtime.laterow"]
    assert len(logged) == 1, "of the 1st, 10th, 100th ... only the 1st was due"


@pytest.mark.long
def test_s3_implicit_bounds(pipe: Pipe) -> None:
    orders = pipe.create("orders", "ticker STRING")
    pipe.run(pipe.read("orders"))
    with opened(orders) as sink:
        send(sink, *ORDERS)
        assert pipe.step() == ORDERS
        assert pipe.bound == bound("12:02")


@pytest.mark.long
def test_s4_and_s5_a_split_train_through_a_filter(pipe: Pipe) -> None:
    orders = pipe.create("orders", "ticker STRING")
    with opened(orders, maxTrainRows=2) as sink:
        send(sink, ("10:00", "ORCL"), ("10:01", "MSFT"), ("10:02", "IBM"), promise="10:05")
        split = [(len(t.rows), t.bound) for t in rt.openReader(orders, order="arrival") if len(t.rows)]
        assert split == [(3, bound("10:05"))], "a bound that catches up supersedes the weaker one"
        pipe.run(pipe.read("orders", maxRowsPerTrigger="2").where("ticker = 'ORCL'"))
        assert pipe.step() == [("10:00", "ORCL")]
    bounds = pipe.spark.read.format("rowtime").option("view", "bounds").load(pipe.path("out"))
    floors = [row.bound for row in bounds.where("bound IS NOT NULL").orderBy("seq").collect()]
    assert [f"{floor:%H:%M}" for floor in floors] == ["10:02", "10:05"]


def test_s6_a_changed_rowtime_moves_the_bound(pipe: Pipe) -> None:
    orders = pipe.create("orders", "ticker STRING")
    pipe.run(pipe.read("orders").selectExpr("rowtime + INTERVAL 100 MILLISECONDS AS rowtime", "ticker"))
    with opened(orders) as sink:
        send(sink, ("12:00", "ORCL"), promise="12:05")
        assert pipe.step() == [("12:00:00.1", "ORCL")]
        assert pipe.bound == bound("12:05:00.100")


@pytest.mark.long
def test_s7_strict(pipe: Pipe) -> None:
    orders = pipe.create("orders", "ticker STRING")
    pipe.run(pipe.read("orders"))
    with opened(orders) as sink:
        send(sink, ("4:00", "ORCL"), promise="5:00", strict=True)
        pipe.step()
        assert pipe.bound == bound("5:00", strict=True) == rt.RowtimeBound(at("5:00:00.000001"))
        assert pipe.bound is not None
        assert not pipe.bound.strict


@pytest.mark.long
def test_s8_setting_a_bound_backwards(pipe: Pipe) -> None:
    orders = pipe.create("orders", "ticker STRING")
    with opened(orders) as sink:
        sink.sendRowtimeBound(f"{at('12:05')[:-1]}", tz="Europe/Berlin")
        assert sink.getRowtimeBound() == bound("10:05")
        with pytest.raises(rt.BoundRegressionError):
            sink.sendRowtimeBound(at("10:04"))
        sink.sendRowtimeBound(f"{at('10:06')[:-1]}")
        assert sink.getRowtimeBound() == bound("10:06")


COLOURS = [("3:01", "blue"), ("3:15", "red"), ("4:00", "red"), ("4:06", "blue"), ("4:45", "blue")]
QUARTER_PAST_SIX = ("6:15", "red")
NEXT_DAY = "2006-09-12 9:00"


@pytest.mark.parametrize(("promise", "strict"), [("5:00", True), ("5:00", False), (NEXT_DAY, False), (None, False)])
def test_s9_grouping_by_hours(pipe: Pipe, promise: str | None, strict: bool) -> None:
    """Without a promise the hour from 4:00 is out only when the row of 6:15 comes."""
    pipe.create("colours", "color STRING")
    counts = pipe.read("colours").groupBy(window("rowtime", "1 hour"), "color").agg(count("*").alias("n"))
    pipe.run(counts.select(col("window.start").alias("rowtime"), "color", "n"))
    with opened(pipe.path("colours")) as sink:
        send(sink, *COLOURS)
        assert sorted(pipe.step()) == [("03:00", "blue", 1), ("03:00", "red", 1)]
        send(sink, *([] if promise else [QUARTER_PAST_SIX]), promise=promise, strict=strict)
        assert sorted(pipe.step()) == [("04:00", "blue", 2), ("04:00", "red", 1)]
        if promise == "5:00":
            send(sink, QUARTER_PAST_SIX)
            assert pipe.step() == [], "its own hour is open"
        if promise != NEXT_DAY:
            send(sink, promise=NEXT_DAY)
            assert pipe.step() == [("06:00", "red", 1)]


def test_s10_merging_two_streams(pipe: Pipe) -> None:
    p, q = (opened(pipe.create(name, "side STRING")) for name in "pq")
    pipe.run(pipe.read("p").unionByName(pipe.read("q")))
    send(p, ("1:00", "P"), ("1:06", "P"))
    send(q, ("1:01", "Q"), ("1:04", "Q"))
    assert pipe.step() == [("01:00", "P"), ("01:01", "Q"), ("01:04", "Q")]
    send(q, promise="1:05")
    assert pipe.step() == []
    send(q, promise="1:10")
    assert pipe.step() == [("01:06", "P")]


@pytest.mark.parametrize("by", ["bound", "row"])
def test_s11_union_all(pipe: Pipe, by: str) -> None:
    orders, trades = (opened(pipe.create(name, "ticker STRING")) for name in ("orders", "trades"))
    pipe.run(pipe.read("orders").unionByName(pipe.read("trades")))
    send(orders, ("10:01", "ORCL"), ("10:04", "MSFT"))
    send(trades, ("10:02", "YHOO"), ("10:03", "IBM"))
    assert pipe.step() == [("10:01", "ORCL"), ("10:02", "YHOO"), ("10:03", "IBM")]
    send(orders, promise="10:06")
    assert pipe.step() == []
    send(trades, ("10:03:30", "GOOG"))
    assert pipe.step() == [("10:03:30", "GOOG")]
    later = [("10:05:30", "IBM")] if by == "row" else []
    send(trades, *later, promise="10:05" if by == "bound" else None)
    assert pipe.step() == [("10:04", "MSFT"), *later]


@pytest.mark.smoke
def test_s12_producers_entering_and_leaving(pipe: Pipe) -> None:
    path = pipe.create("s", "producer STRING", boundsBeforeRows=False)
    pipe.run(pipe.read("s", order="rowtime"))
    p1 = opened(path, "P1")
    send(p1, promise="10:00")
    assert rt.describeStream(path).bound is None
    send(p1, ("10:00", "P1"))
    assert rt.describeStream(path).bound == bound("10:00")
    assert pipe.step() == [("10:00", "P1")]
    p2 = opened(path, "P2")
    send(p2, promise="10:05")
    send(p2, ("10:05", "P2"))
    assert pipe.step() == [], "it waits for P1"
    with pytest.raises(rt.LateRowError):
        p2.sendRow((at("9:59"), "P2"))
    p1.close()
    assert pipe.step() == [("10:05", "P2")]
    assert pipe.bound == bound("10:05")
    p2.close()
    assert rt.describeStream(path).bound == bound("10:05")
    with pytest.raises(rt.LateRowError):
        opened(path, "P3").sendRow((at("10:04"), "P3"))


@pytest.mark.long
def test_s12_a_newcomers_old_row_is_discarded(pipe: Pipe) -> None:
    path = pipe.create("s", "producer STRING")
    with opened(path, "old hand") as sink:
        send(sink, ("11:10", "old hand"))
        with opened(path, "newcomer", onLate="reject") as newcomer:
            send(newcomer, ("11:00", "newcomer"))
        assert drained(rt.openReader(path)) == [("11:10", "old hand")]
        assert rt.describeStream(path).rejected == 1


def test_s13_the_slowest_producer_sets_the_speed(pipe: Pipe) -> None:
    path = pipe.create("s", "producer STRING")
    pipe.run(pipe.read("s", order="rowtime"))
    with opened(path, "fast") as fast, opened(path, "slow") as slow:
        send(fast, ("10:00", "fast"), ("11:00", "fast"))
        send(slow, ("10:00", "slow"))
        assert sorted(pipe.step()) == [("10:00", "fast"), ("10:00", "slow")]
        assert rt.describeStream(path).holder == "slow"
        send(slow, promise="11:00")
        assert pipe.step() == [("11:00", "fast")]


@pytest.mark.long
def test_s13_a_silent_producer_stops_counting(pipe: Pipe) -> None:
    """``idleTimeout``, through a query: the hour is out while the producer that says nothing is still attached."""
    path = pipe.create("s", "producer STRING", idleTimeout="200 ms")
    hours = pipe.read("s").groupBy(window("rowtime", "1 hour")).agg(count("*").alias("n"))
    pipe.run(hours.select(col("window.end").alias("rowtime"), "n"))
    minutes = iter(range(60))
    with opened(path, "silent", onLate="reject") as silent, opened(path, "busy") as busy:
        send(silent, ("10:00", "silent"))
        send(busy, ("10:30", "busy"))

        def busy_goes_on() -> list[tuple]:
            send(busy, promise=f"11:{next(minutes):02}")
            return pipe.step()

        assert wait_for(busy_goes_on, "silent to be idle") == [("11:00", 2)]
        assert {p.name: p.status.value for p in rt.describeStream(path).producers}["silent"] == "idle"
        send(silent, ("10:59", "too late"))
        assert rt.describeStream(path).rejected == 1


PUMPS = ("head", "one", "two", "tail")


def test_s14_pumps(pipe: Pipe, tmp_path: Path) -> None:
    head, *_, tail = (pipe.create(name, "ticker STRING") for name in PUMPS)
    checkpoint = {name: tmp_path / f"checkpoint of {name}" for name in PUMPS}
    into = {name: start(pipe.read(source), pipe.path(name), checkpoint[name]) for source, name in pairwise(PUMPS)}
    with ExitStack() as stack, opened(head) as sink, rt.openReader(tail) as reader:
        for query in into.values():
            stack.enter_context(running(query))

        def comes_out() -> list[tuple]:
            for query in into.values():
                settle(query)
            return drained(reader)

        send(sink, *ORDERS[:1], promise="12:00:30")
        assert comes_out() == ORDERS[:1]
        assert reader.getRowtimeBound() == bound("12:00:30"), "a bound with rows"
        send(sink, promise="12:01", strict=True)
        assert comes_out() == []
        assert reader.getRowtimeBound() == bound("12:01", strict=True), "a bound without rows, strictness and all"

        into.pop("two").stop()
        send(sink, ("12:01:30", "MSFT"), promise="12:02")
        assert comes_out() == []
        last = max(int(file.name) for file in (checkpoint["two"] / "commits").iterdir() if file.name.isdigit())
        (checkpoint["two"] / "commits" / str(last)).unlink()  # as if killed after its sink had committed
        into = {"one": into["one"], "two": start(pipe.read("one"), pipe.path("two"), checkpoint["two"]), **into}
        stack.enter_context(running(into["two"]))
        assert comes_out() == [("12:01:30", "MSFT")], "nothing is lost, nothing repeated"
        assert reader.getRowtimeBound() == bound("12:02")


@pytest.mark.long
def test_s17_a_readers_bound_may_rise(pipe: Pipe) -> None:
    path = pipe.create("s", "ticker STRING")
    with opened(path) as sink, rt.openReader(path) as reader:
        assert reader.getRowtimeBound() is None
        send(sink, *ORDERS)
        assert drained(reader) == ORDERS
        assert reader.getRowtimeBound() == bound("12:02")
        send(sink, promise="12:05")
        assert drained(reader) == []
        assert reader.getRowtimeBound() == bound("12:05")


def test_s18_the_default_rowtime_is_the_clock_at_insertion(pipe: Pipe) -> None:
    path = pipe.create("s", "ticker STRING")
    before = datetime.now(UTC)
    with opened(path) as sink:
        sink.sendRow({"ticker": "ORCL"})
        sink.sendRow({"ticker": "MSFT"})
        sink.flush()
    after = datetime.now(UTC)
    rows = [row for train in rt.openReader(path) for row in train.rows.to_pylist()]
    times = [row["rowtime"] for row in rows]
    assert before <= times[0] <= times[1] <= after
    assert rt.describeStream(path).bound == rt.RowtimeBound(times[1])


@pytest.mark.long
def test_s18_a_promoted_column(pipe: Pipe) -> None:
    path = pipe.create("orders", "created_at TIMESTAMP, shipped_at TIMESTAMP")
    created, shipped = (datetime.fromisoformat(at(clock)) for clock in ("10:00", "11:30"))
    pipe.run(pipe.read("orders").select(col("shipped_at").alias("rowtime"), "created_at"))
    with opened(path, rowtime="created_at") as sink:
        sink.sendRow({"created_at": created, "shipped_at": shipped})
        sink.sendRowtimeBound(at("11:00"))
        sink.flush()
        assert drained(rt.openReader(path))[0][0] == "10:00", "on write"
        assert pipe.step() == [], "a bound on orders says nothing of when they are shipped"
        assert pipe.bound is None
    assert drained(rt.openReader(pipe.path("out"), order="arrival")) == [("11:30", created)], "on read"


@pytest.mark.long
def test_s18_rowtime_is_the_name_of_one_column_of_a_stream(pipe: Pipe) -> None:
    with pytest.raises(rt.SchemaMismatchError):
        pipe.create("twice", "rowtime STRING")
    pipe.create("orders", "ticker STRING")
    opening = pipe.spark.sql("SELECT 'at nine' AS rowtime, 'ORCL' AS ticker")
    joined = "SELECT o.rowtime, t.rowtime AS opens FROM {orders} o JOIN {opening} t ON o.ticker = t.ticker"
    pipe.run(pipe.spark.sql(joined, orders=pipe.read("orders"), opening=opening))
    with opened(pipe.path("orders")) as sink:
        send(sink, *ORDERS)
        assert pipe.step() == [("12:00", "at nine")], "in a table the name means nothing"
        assert pipe.bound == bound("12:02")


@pytest.mark.long
def test_s18_a_join_has_each_sides_rowtime_under_its_qualifier(pipe: Pipe) -> None:
    orders, trades = (opened(pipe.create(name, "id INT")) for name in ("orders", "trades"))
    joined = """
        SELECT o.rowtime, t.rowtime AS traded FROM {orders} o JOIN {trades} t
        ON o.id = t.id AND t.rowtime BETWEEN o.rowtime AND o.rowtime + INTERVAL 10 MINUTES"""
    pipe.run(pipe.spark.sql(joined, orders=pipe.read("orders"), trades=pipe.read("trades")))
    send(orders, ("10:00", 1), promise="11:00")
    send(trades, ("10:02", 1), promise="11:00")
    assert [(rowtime, clock_of(traded)) for rowtime, traded in pipe.step()] == [("10:00", "10:02")]
