"""why names what holds a stream behind queries: every cause is made for real."""

import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import spark_rowtime as rt
from tests.sparksession import wait_for
from tests.streams import at, drained, opened, send

TEN = at("10:00")
ONCE = "36500 days"
"""A trigger that fires at the start, and never again while a test runs. One of an hour also fires at each full hour."""


class Pipeline:
    """Streams and queries in a folder, all ended at the end of the test."""

    def __init__(self, spark: SparkSession, folder: Path, ends: ExitStack) -> None:
        self.spark, self.folder, self._ends = spark, folder, ends

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def create(self, name: str, **settings: Any) -> str:
        rt.createStream(self.path(name), "rowtime TIMESTAMP NOT NULL, n INT", **settings)
        return self.path(name)

    def sink(self, name: str, producer: str, **options: Any) -> rt.StreamSink:
        return self._ends.enter_context(opened(self.path(name), producer, lease=None, **options))

    def read(self, name: str, **options: str) -> DataFrame:
        return self.spark.readStream.format("rowtime").options(**options).load(self.path(name))

    def run(self, frame: DataFrame, name: str, trigger: str = "0 seconds", **options: str) -> StreamingQuery:
        """Runs a query of this name into the stream of this name."""
        writer = self._writer(frame, name).format("rowtime").trigger(processingTime=trigger)
        return self._ended(writer.options(**options).start(self.path(name)))

    def report(self, frame: DataFrame, name: str) -> StreamingQuery:
        """Runs a query of this name without a rowtime sink."""
        return self._ended(self._writer(frame, name).foreachBatch(lambda batch, _: batch.collect()).start())

    def _writer(self, frame: DataFrame, name: str) -> Any:
        return frame.writeStream.queryName(name).option("checkpointLocation", self.path(f"checkpoint-{name}"))

    def _ended(self, query: StreamingQuery) -> StreamingQuery:
        self._ends.callback(query.stop)
        return query

    def why(self, name: str, at: str | None = TEN, **options: Any) -> rt.Explanation:
        return rt.why(self.path(name), at=at, **options)

    def wait_for(self, name: str, cause: rt.Cause, **options: Any) -> rt.Explanation:
        """Waits until the stream has this cause, and returns the explanation."""
        wait_for(lambda: self.why(name, **options).cause is cause, f"{cause} of {name}")
        return self.why(name, **options)


@pytest.fixture
def pipeline(spark: Any, tmp_path: Path) -> Iterator[Pipeline]:
    with ExitStack() as ends:
        yield Pipeline(spark, tmp_path, ends)


def hours(frame: DataFrame) -> DataFrame:
    counts = frame.groupBy(F.window("rowtime", "1 hour")).agg(F.count("*").cast("int").alias("n"))
    return counts.select(F.col("window.end").alias("rowtime"), "n")


class Trial:
    """Two queries, one above the other, in which one thing at a time is broken and mended again."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.hour = pipeline, 9
        pipeline.create("orders")
        self.feeds = [pipeline.sink("orders", name) for name in ("Berlin", "Oslo")]
        self.both()
        self.start_hours()
        self.settle(self.hours)
        self.start_copies()
        self.settle(self.copies)

    def start_hours(self) -> None:
        self.hours = self.pipeline.run(hours(self.pipeline.read("orders")), "hours")

    def start_copies(self, rowtime: str = "rowtime", n: str = "n", **options: str) -> None:
        read = self.pipeline.read("hours", **options)
        self.copies = self.pipeline.run(read.select(F.expr(rowtime).alias("rowtime"), F.expr(n).alias("n")), "copies")

    def both(self) -> None:
        """A row of the hour, and its end, from both feeds."""
        for feed in self.feeds:
            self.one(feed)

    def one(self, feed: rt.StreamSink) -> None:
        send(feed, (f"{self.hour - 1}:30", 1), promise=f"{self.hour}:00")

    def settle(self, *queries: StreamingQuery) -> None:
        for query in queries:
            query.processAllAvailable()

    def silent_feed(self) -> tuple[rt.Cause, str, Callable[[], None]]:
        self.one(self.feeds[0])
        self.settle(self.hours, self.copies)
        return rt.Cause.SILENT, "Oslo", lambda: self.one(self.feeds[1])

    def new_feed(self) -> tuple[rt.Cause, str, Callable[[], None]]:
        rome = self.pipeline.sink("orders", "Rome")
        self.both()
        self.settle(self.hours, self.copies)
        return rt.Cause.NOTHING_PROMISED, "Rome", rome.close

    def stopped_first(self) -> tuple[rt.Cause, str, Callable[[], None]]:
        self.hours.stop()
        self.both()
        return rt.Cause.QUERY_STOPPED, "hours", self.start_hours

    def stopped_second(self) -> tuple[rt.Cause, str, Callable[[], None]]:
        self.copies.stop()
        self.both()
        self.settle(self.hours)
        return rt.Cause.QUERY_STOPPED, "copies", self.start_copies

    def failed_second(self) -> tuple[rt.Cause, str, Callable[[], None]]:
        self.copies.stop()
        self.both()
        self.settle(self.hours)
        self.start_copies(n="CAST(raise_error('no such shop') AS INT)")
        wait_for(lambda: not self.copies.isActive, "the query to fail")
        return rt.Cause.QUERY_FAILED, "copies", self.start_copies

    def stranger(self) -> tuple[rt.Cause, str, Callable[[], None]]:
        """Somebody opens the stream of the results, which then waits for him, too."""
        stranger = self.pipeline.sink("copies", "stranger")
        self.both()
        self.settle(self.hours, self.copies)
        return rt.Cause.NOTHING_PROMISED, "stranger", stranger.close


LINE = [("stream", "orders"), ("query", "hours"), ("stream", "hours"), ("query", "copies"), ("stream", "copies")]


def links(found: rt.Explanation) -> list[tuple[str, str]]:
    """The kind and the name of each link of the chain, without the folder of the streams."""
    return [(link.kind, link.name.rpartition("/")[2]) for link in found.chain]


@pytest.mark.long
@pytest.mark.parametrize("seed", [random.randrange(1 << 32)], ids=["some order"])
def test_each_of_six_breaks_is_named_blind(pipeline: Pipeline, seed: int) -> None:
    trial = Trial(pipeline)
    breaks = [
        trial.silent_feed,
        trial.new_feed,
        trial.stopped_first,
        trial.stopped_second,
        trial.failed_second,
        trial.stranger,
    ]
    random.Random(seed).shuffle(breaks)
    for broken in breaks:
        trial.hour += 1
        time = at(f"{trial.hour}:00")
        cause, holder, mend = broken()
        found = pipeline.wait_for("copies", cause, at=time, silentAfter="0 s")
        assert (found.complete, found.holder) == (False, holder), broken.__name__
        assert found.remedy
        assert links(found)[1:] == (LINE[-1:] if holder == "stranger" else LINE), broken.__name__
        if cause is rt.Cause.QUERY_FAILED:
            assert "no such shop" in found.note
        mend()
        trial.settle(trial.hours, trial.copies)
        assert pipeline.why("copies", time).complete, broken.__name__
    trial.feeds[0].sendRow((at(f"{trial.hour}:10"), 7))
    token = trial.feeds[0].flush()
    with pytest.raises(rt.WaitTimeoutError) as caught:
        rt.wait(token, pipeline.path("copies"), timeout="0 s")
    assert caught.value.values["holder"] in ("Berlin", "Oslo")
    trial.hour += 1
    for feed in trial.feeds:
        send(feed, promise=f"{trial.hour}:00")
    rt.wait(token, pipeline.path("copies"), timeout="240 s")
    with rt.openReader(pipeline.path("copies")) as reader:
        assert drained(reader)[-1][0] == f"{trial.hour}:00"


def test_the_side_that_holds_is_the_one_whose_bound_less_the_joins_interval_is_least(pipeline: Pipeline) -> None:
    """Where windows are above a join, and where rows wait in it: the remedy that is named is enough, and needed."""
    shop, desk = (pipeline.create(stream) and pipeline.sink(stream, who) for stream, who in FEEDS)
    within = "o.n = t.n AND t.rowtime BETWEEN o.rowtime AND o.rowtime + INTERVAL 1 HOUR"
    orders, trades = pipeline.read("orders").alias("o"), pipeline.read("trades").alias("t")
    joined = orders.join(trades, F.expr(within)).select("o.rowtime", "o.n")
    send(shop, ("9:50", 1), promise="10:25")
    send(desk, promise="10:40")
    queries = [pipeline.run(hours(joined), "windows"), pipeline.run(joined, "joined")]
    endless = orders.join(trades, F.expr("o.n = t.n")).select("o.rowtime", "o.n")
    queries.append(pipeline.run(endless, "endless"))
    at_end = F.date_trunc("HOUR", F.col("h.end") + F.expr("INTERVAL 1 HOUR")).alias("rowtime")
    totals = orders.groupBy(F.window("rowtime", "1 hour").alias("h"), "n").count()
    queries.append(pipeline.run(totals.join(trades, "n").select(at_end, "n"), "totals"))

    def settle() -> None:
        for query in queries:
            query.processAllAvailable()

    settle()
    for name in ("windows", "joined"):
        found = pipeline.why(name, silentAfter="0 s")
        assert (found.cause, found.holder) == (rt.Cause.SILENT, "desk")
        assert f"right side of the INNER JOIN, {pipeline.path('trades')}" in found.chain[-2].note
        assert "must promise 2006-09-11T11:00:00.000001Z" in found.remedy
    for name in ("endless", "totals"):
        lost = pipeline.why(name)
        assert (lost.cause, "The ON of the join needs a condition" in lost.remedy) == (rt.Cause.BOUND_LOST, True)
    desk.sendRowtimeBound("2006-09-11T11:00:00.000001Z")
    desk.flush()
    settle()
    assert pipeline.why("windows").complete
    assert pipeline.why("joined").complete
    later = pipeline.why("joined", at("10:30"), silentAfter="0 s")
    assert (later.holder, "must promise 2006-09-11T10:30:00Z" in later.remedy) == ("shop", True)


@pytest.mark.long
def test_windows_of_another_column_wait_for_its_rows(pipeline: Pipeline) -> None:
    """Before, a producer was named, and the bound that it should promise; none would have closed the window."""
    pipeline.create("orders")
    feed = pipeline.sink("orders", "feed")
    send(feed, ("09:30", 0), promise="10:30")
    shipped = pipeline.read("orders").withColumn("shipped", F.expr("timestamp_seconds(unix_seconds(rowtime) + n)"))
    hours = shipped.withWatermark("shipped", "1 minute").groupBy(F.window("shipped", "1 hour")).count()
    query = pipeline.report(hours, "hours")
    query.processAllAvailable()
    found = pipeline.why("orders", query="hours")
    assert (found.cause, found.holder) == (rt.Cause.OPERATOR, "hours")
    assert "follows the largest shipped of its rows, whatever producers promise" in found.note


@pytest.mark.long
def test_wait_for_groups_of_a_time_that_the_query_moves(pipeline: Pipeline) -> None:
    """Before, it returned while the group was still open."""
    pipeline.create("orders")
    feed = pipeline.sink("orders", "feed", rowsImplyBounds=False)
    moved = pipeline.read("orders").groupBy(F.expr("rowtime + INTERVAL 1 HOUR").alias("rowtime"))
    later = pipeline.read("orders").groupBy(F.expr("greatest(rowtime, timestamp_seconds(n))").alias("rowtime"))
    frames = {"moved": moved, "later": later}
    queries = [pipeline.run(by.agg(F.count("*").cast("int").alias("n")), name) for name, by in frames.items()]
    feed.sendRow((at("10:01"), 2_000_000_000))
    token = feed.flush()
    send(feed, promise="9:32")
    for query in queries:
        query.processAllAvailable()
    with pytest.raises(rt.WaitTimeoutError):
        rt.wait(token, pipeline.path("moved"), timeout="5 s")
    send(feed, promise="10:02")
    rt.wait(token, pipeline.path("moved"), timeout="240 s")
    with rt.openReader(pipeline.path("moved"), order="arrival") as reader:
        assert drained(reader) == [("11:01", 1)]
    with pytest.raises(rt.InvalidOptionError, match="nothing says how long its operator"):
        rt.wait(token, pipeline.path("later"), timeout="240 s")


@pytest.mark.night
def test_sides_inputs_limits_and_what_has_no_bounds(pipeline: Pipeline) -> None:
    shop, desk = (pipeline.create(stream) and pipeline.sink(stream, who) for stream, who in FEEDS)
    for sink in (shop, desk):
        send(sink, ("8:30", 1), promise="9:00")
    orders, trades = pipeline.read("orders"), pipeline.read("trades")
    within = "o.n = t.n AND t.rowtime BETWEEN o.rowtime AND o.rowtime + INTERVAL 10 MINUTES"
    joined = orders.alias("o").join(trades.alias("t"), F.expr(within)).select("o.rowtime", "o.n")
    rate = pipeline.spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    mixed = orders.union(rate.selectExpr("timestamp AS rowtime", "CAST(value AS INT) AS n"))
    settled: list[StreamingQuery] = []

    def settle() -> None:
        for query in settled:
            query.processAllAvailable()

    for begun in (  # one after the other: each starts a Python process for each source
        lambda: pipeline.run(joined, "joined"),
        lambda: pipeline.run(orders.union(trades), "both"),
        lambda: pipeline.report(hours(orders), "report"),
    ):
        settled.append(begun())
        settle()
    for frame, name, trigger in (
        (mixed, "mixed", "0 seconds"),
        (pipeline.read("orders", maxRowsPerTrigger="1"), "limited", ONCE),
        (orders, "rare", ONCE),
        (pipeline.read("orders", hold="1 hour"), "held", "0 seconds"),
        (orders.selectExpr("timestamp_micros(unix_micros(rowtime) + 0) AS rowtime", "n"), "lost", "0 seconds"),
    ):
        query = pipeline.run(frame, name, trigger, onDisorder="reject")
        wait_for(lambda query=query: query.lastProgress, f"the first batch of {name}")

    send(shop, ("9:10", 1), ("9:57", 1), promise="10:05")
    send(desk, promise="9:30")
    settle()
    for name, place, code in (
        ("joined", "right side of the INNER JOIN", rt.Cause.JOIN_SIDE),
        ("both", "input 2 of the UNION", rt.Cause.UNION_INPUT),
    ):
        found = pipeline.why(name, silentAfter="0 s")
        assert (found.cause, found.holder) == (rt.Cause.SILENT, "desk")
        [_, _, query, _] = found.chain
        assert (query.kind, query.name, query.cause) == ("query", name, code)
        assert f"the {place}, {pipeline.path('trades')}" in query.note
    pipeline.wait_for("mixed", rt.Cause.ORDINARY_SOURCE)
    assert "with hold='1 hour'" in pipeline.wait_for("held", rt.Cause.HOLD).note
    for name, cause, said in (
        ("lost", rt.Cause.BOUND_LOST, "lost at timestamp_micros((unix_micros(rowtime)"),
        ("limited", rt.Cause.LIMIT, "maxRowsPerTrigger=1"),
        ("rare", rt.Cause.QUERY_BEHIND, "runs, but has read"),
    ):
        assert said in pipeline.wait_for(name, cause).note
    wait_for(lambda: rt.why(pipeline.path("orders"), TEN, query="report").complete, "the account of the last batch")
    report = rt.why(pipeline.path("orders"), at("11:00"), query="report", silentAfter="0 s")
    assert (report.cause, report.holder, report.chain[-1].name) == (rt.Cause.SILENT, "shop", "report")

    send(desk, promise="10:05")
    settle()
    joins = pipeline.why("joined", silentAfter="0 s")
    assert joins.cause is rt.Cause.SILENT
    assert joins.holder == "desk"  # the order of 9:57 is kept until the trades of ten minutes later have come
    assert "must promise 2006-09-11T10:10:00.000001Z" in joins.remedy
    shop.sendRow((at("10:20"), 1))
    token = shop.flush()
    rt.wait(token, pipeline.path("both"), timeout="240 s")
    settle()
    with pytest.raises(rt.WaitTimeoutError) as caught:
        rt.wait(token, pipeline.path("joined"), timeout="0 s")
    assert caught.value.values["holder"] in ("shop", "desk")
    send(shop, promise="11:30")
    send(desk, promise="11:00")
    rt.wait(token, pipeline.path("joined"), timeout="240 s")
    settle()
    for query in settled:
        query.stop()
    desk.close()
    shutil.move(pipeline.path("trades"), pipeline.path("elsewhere"))
    moved = pipeline.why("both", at("12:00"))
    assert (moved.cause, moved.holder) == (rt.Cause.SOURCE_UNREADABLE, "both")


FEEDS = (("orders", "shop"), ("trades", "desk"))


def sessions(frame: DataFrame) -> DataFrame:
    counts = frame.groupBy(F.session_window("rowtime", "10 minutes"), "n").agg(F.count("*").alias("c"))
    return counts.select(F.col("session_window.end").alias("rowtime"), "n")


def later(frame: DataFrame) -> DataFrame:
    return hours(frame).selectExpr("rowtime + INTERVAL 1 HOUR AS rowtime", "n")


def groups(frame: DataFrame) -> DataFrame:
    return frame.groupBy("rowtime").agg(F.count("*").cast("int").alias("n"))


def first(frame: DataFrame) -> DataFrame:
    return frame.dropDuplicates(["rowtime", "n"])


STANDS = ["7:59:59.9995", "8:59:59.999999", "9:59:59.999"]


@pytest.mark.night
@pytest.mark.parametrize("stands", [STANDS[:1], STANDS], ids=len)
def test_each_remedy_is_enough(pipeline: Pipeline, stands: list[str]) -> None:
    """Whoever does what the remedy says sees the hour come, wherever in its millisecond the feed stands."""
    pipeline.create("orders")
    feed = pipeline.sink("orders", "shop", rowsImplyBounds=False)
    forms = (hours, later, sessions, groups, first)
    queries = [pipeline.run(form(pipeline.read("orders")), form.__name__) for form in forms]
    send(feed, ("7:10", 1), ("7:50", 2))
    for hour, promise in enumerate(stands, 8):
        send(feed, (f"{hour - 1}:59", hour), promise=promise)
        for query in queries:
            query.processAllAvailable()
        wanted = {form.__name__: pipeline.why(form.__name__, at(f"{hour}:00"), silentAfter="0 s") for form in forms}
        remedies = [found.remedy for found in wanted.values() if not found.complete]
        promises = sorted(
            re.findall(r"must promise (\S+Z)", " ".join(remedies)), key=lambda time: rt.RowtimeBound(time).floor
        )
        assert len(promises) == len(remedies), remedies
        for time in promises:
            feed.sendRowtimeBound(time)
            feed.flush()
            for query in queries:
                query.processAllAvailable()
            for name, found in wanted.items():
                if time in found.remedy:
                    assert pipeline.why(name, at(f"{hour}:00")).complete, (name, time)
