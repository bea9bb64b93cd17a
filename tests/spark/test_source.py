"""``format("rowtime")`` read by a real Spark: batch and streaming, limits, restarts, metrics, options."""

import datetime
import decimal
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, window

import spark_rowtime as rt
from tests.spark.query_output import Watched, finish, plain, refused, rows_of, table
from tests.spark.restarted import begun_at_latest
from tests.sparksession import NATIVE_READ, wait_for
from tests.streams import Pipe, at, bound, opened, send

HOURS = [("9:10", 1), ("9:40", 2), ("10:05", 3), ("10:30", 4), ("11:00", 5), ("11:59", 6)]


def hourly(frame):
    counts = frame.groupBy(window("rowtime", "1 hour")).agg(count("*").alias("n"))
    return counts.select(col("window.start").alias("rowtime"), "n")


def metrics(watched: Watched) -> dict[str, str]:
    return watched.query.lastProgress.sources[0].metrics


def trains(path: str, *trains: list[tuple]) -> None:
    """Each list a train of its own; the producer stays attached."""
    sink = opened(path, "feed")
    for rows in trains:
        send(sink, *rows)


def test_a_batch_read_returns_all_committed_rows(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    fast, slow = opened(path, "fast"), opened(path, "slow")
    send(fast, ("10:00", 1), ("11:00", 2))
    send(slow, ("9:00", 3))
    fast.sendRow((at("12:00"), 4))  # not flushed: not committed
    assert rows_of(pipe.spark, path) == [("09:00", 3), ("10:00", 1), ("11:00", 2)]
    since = pipe.spark.read.format("rowtime").option("startingPosition", at("10:00")).load(path)
    assert sorted(plain(r) for r in since.collect()) == [("10:00", 1), ("11:00", 2)]


def test_the_views_of_a_stream(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    with opened(path, "feed", onLate="reject") as feed:
        send(feed, ("10:00", 1), ("10:01", 2), promise="10:05")
        send(feed, ("9:00", 3), ("10:05", 4), ("10:04", 5))
        feed.flush(checkpoint="line 5")
        seen = [(r[1], r[2], r[3], r[5] and plain(r[5:])[0]) for r in table(pipe.spark, path, "bounds")]
        assert seen[0] == ("feed", "joined", 0, None)
        assert [r for r in seen if r[2]] == [("feed", "sent", 2, "10:01"), ("feed", "sent", 1, "10:05")]
        assert ("feed", "sent", 0, "10:05") in seen, "the bound of the first commit"
        rejected = [
            (p, why, plain((b,))[0], *whose, plain((t,))[0], x)
            for p, why, b, *whose, _, t, x in table(pipe.spark, path, "rejected")
        ]
        own = ("producer", "feed", None)
        assert rejected == [("feed", "late", "10:05", *own, time, x) for time, x in (("09:00", 3), ("10:04", 5))]
        [(name, status, own, accepted, refused_, epoch, checkpoint)] = table(pipe.spark, path, "producers")
        assert (name, status, plain((own,))[0]) == ("feed", "attached", "10:05")
        assert (accepted, refused_, epoch, checkpoint) == (3, 2, 1, "line 5")


@pytest.mark.smoke
def test_a_row_ahead_of_the_stream_is_read_on_arrival_or_held_for_its_rowtime(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    fast, slow = opened(path, "fast"), opened(path, "slow")
    send(fast, ("10:00", 1), ("11:00", 2))
    send(slow, ("10:00", 3))
    arrival, rowtime = Watched().start(pipe.read("s")), Watched().start(pipe.read("s", order="rowtime"))
    with arrival, rowtime:
        assert arrival.step() == [("10:00", 1), ("10:00", 3), ("11:00", 2)]
        assert rowtime.step() == [("10:00", 1), ("10:00", 3)], "11:00 waits for the slow one"
        assert arrival.bounds[-1] == rowtime.bounds[-1] == bound("10:00")
        wait_for(lambda: metrics(rowtime)["rowsHeldBack"] == "1", "the progress of the batch")
        send(slow, promise="11:00")
        assert arrival.step() == []
        assert rowtime.step() == [("11:00", 2)]
        assert arrival.bounds[-1] == rowtime.bounds[-1] == bound("11:00")


@pytest.mark.long
def test_hold_waits_until_the_stream_is_that_far_past_a_row(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    sink = opened(path, "feed", rowsImplyBounds=False)
    with Watched().start(pipe.read("s", hold="1 hour")) as held:
        send(sink, ("1:00", 1))
        assert held.step() == []
        send(sink, ("3:00", 2))
        assert held.step() == [("01:00", 1)]
        send(sink, ("1:30", 3))
        assert held.step() == [("01:30", 3)], "more than an hour behind already: at once"
        send(sink, ("4:00", 4))
        assert held.step() == [("03:00", 2)]
        assert rt.describeStream(path).rejected == 0


def test_starting_positions(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    trains(path, HOURS[:3], HOURS[3:])
    since = Watched().all_available(pipe.read("s", startingPosition=at("10:30")))
    assert since.rows == [("10:30", 4), ("11:00", 5), ("11:59", 6)], "cuts through a train"
    with Watched().start(pipe.read("s", startingPosition="latest")) as latest:
        assert latest.step() == []
        send(opened(path, "feed"), ("12:30", 7))
        assert latest.step() == [("12:30", 7)]
        assert latest.bounds[-1] == bound("12:30")


@pytest.mark.parametrize("order", ["arrival", "rowtime"])
def test_limits_cut_batches_and_change_no_result(pipe: Pipe, order: str) -> None:
    path = pipe.create("s", "x INT")
    trains(path, *([row] for row in HOURS))
    rows = [(f"{h:0>5}", x) for h, x in HOURS]
    two = Watched().all_available(pipe.read("s", order=order, maxRowsPerTrigger="2"))
    assert two.rows == rows
    assert [len(batch) for batch in two.batches] == [2, 2, 2]
    one = Watched().all_available(pipe.read("s", order=order, maxBytesPerTrigger="1"))
    assert one.rows == rows
    assert [len(batch) for batch in one.batches] == [1] * 6, "soft: at least one train a batch"
    counts = Watched().all_available(hourly(pipe.read("s", order=order, maxRowsPerTrigger="3")))
    assert counts.rows == [("09:00", 2), ("10:00", 2)], "11:59 is no bound that closes its hour"


@pytest.mark.smoke
def test_available_now_reads_what_was_there_with_the_last_bound_and_ends(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    sink = opened(path, "feed")
    send(sink, *HOURS[:3])
    send(sink, *HOURS[3:], promise="12:00")
    watched = Watched()
    watched.then = lambda: send(sink, ("12:30", 7))  # while it runs: not of this run
    watched.all_available(hourly(pipe.read("s", maxRowsPerTrigger="1")))
    assert watched.rows == [("09:00", 2), ("10:00", 2), ("11:00", 2)]


@pytest.mark.smoke
@pytest.mark.parametrize("order", ["arrival", "rowtime"])
def test_a_restart_reads_nothing_twice_and_loses_nothing(pipe: Pipe, order: str) -> None:
    path, checkpoint = pipe.create("s", "x INT"), pipe.folder / "checkpoint"
    sink = opened(path, "feed", rowsImplyBounds=False)
    send(sink, *HOURS[:3], promise="9:30")
    first = Watched().all_available(hourly(pipe.read("s", order=order)), checkpoint)
    assert first.rows == []
    send(sink, *HOURS[3:], promise="10:00")
    second = Watched().all_available(hourly(pipe.read("s", order=order)), checkpoint)
    assert second.rows == [("09:00", 2)]
    send(sink, promise="12:00")
    third = Watched().all_available(hourly(pipe.read("s", order=order)), checkpoint)
    assert third.rows == [("10:00", 2), ("11:00", 2)]
    assert Watched().all_available(hourly(pipe.read("s", order=order)), checkpoint).rows == []


def test_a_checkpoint_of_another_order_or_stream_is_refused(pipe: Pipe) -> None:
    path, checkpoint = pipe.create("s", "x INT"), pipe.folder / "checkpoint"
    trains(path, HOURS)
    Watched().all_available(pipe.read("s"), checkpoint)
    with refused(rt.InvalidOptionError, "order=arrival", "order=rowtime", "new checkpoint"):
        Watched().all_available(pipe.read("s", order="rowtime"), checkpoint)
    trains(pipe.create("other", "x INT"), HOURS)
    with refused(rt.InvalidOptionError, "deleted and created again, the path has changed", "new checkpoint"):
        Watched().all_available(pipe.read("other"), checkpoint)
    shutil.rmtree(path)
    with refused(rt.StreamNotFoundError, path, "createStream"):
        pipe.read("s")
    trains(pipe.create("s", "x INT"), HOURS)
    with refused(rt.InvalidOptionError, "deleted and created again", "new checkpoint"):
        Watched().all_available(pipe.read("s"), checkpoint)


UTC = datetime.UTC
TYPES = (
    "rowtime TIMESTAMP NOT NULL, b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT NOT NULL, i8 BIGINT, f4 FLOAT, "
    "f8 DOUBLE, s STRING, bin BINARY, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, d10 DECIMAL(10,0), d38 DECIMAL(38,18), "
    "a ARRAY<INT>, m MAP<STRING, TIMESTAMP>, st STRUCT<x: INT, y: STRING>, "
    "deep ARRAY<STRUCT<k: STRING, v: MAP<INT, ARRAY<DECIMAL(5,2)>>>>"
)
VALUES = [
    (
        datetime.datetime(2006, 9, 11, 9, 0, 0, 1, UTC), True, -128, -32768, -(2**31), -(2**63), 1.5, 5e-324,
        "žluť ☕\x00", b"\x00\xff", datetime.date(1, 1, 1), datetime.datetime(1899, 12, 31, 23, 59, 59, 999999, UTC),
        datetime.datetime(2026, 3, 8, 2, 30), decimal.Decimal(9999999999),
        decimal.Decimal("99999999999999999999.999999999999999999"), [1, None, 3],
        [("k", datetime.datetime(2000, 1, 1, tzinfo=UTC)), ("null", None)], {"x": 1, "y": None},
        [{"k": "a", "v": [(1, [decimal.Decimal("1.25"), None])]}, None],
    ),
    (
        datetime.datetime(2024, 12, 31, 23, 59, 59, 0, UTC), False, 127, 32767, 2**31 - 1, 2**63 - 1, float("inf"),
        float("-inf"), "", b"", datetime.date(9999, 12, 31), datetime.datetime(9999, 12, 31, tzinfo=UTC),
        datetime.datetime(1, 1, 1), decimal.Decimal(-9999999999), decimal.Decimal("-0.000000000000000001"), [], [],
        {"x": None, "y": ""}, [],
    ),
    (datetime.datetime(2024, 12, 31, 23, 59, 59, 1, UTC), *[None] * 3, 0, *[None] * 14),
]  # fmt: skip


@pytest.mark.smoke
def test_every_type_goes_round_exactly(pipe: Pipe) -> None:
    rt.createStream(pipe.path("s"), TYPES)
    with opened(pipe.path("s")) as sink:
        sink.sendRows(VALUES)
    batch, streaming = pipe.spark.read.format("rowtime").load(pipe.path("s")).schema, pipe.read("s").schema
    shapes = [[(f.name, f.dataType, f.nullable) for f in schema] for schema in (batch, streaming)]
    assert shapes[0] == shapes[1]
    pipe.run(pipe.read("s")).processAllAvailable()
    sent, came = (rt.openReader(pipe.path(name)) for name in ("s", "out"))
    assert came.schema.names == sent.schema.names
    assert came.schema.types == sent.schema.types
    before, after = ([row for train in reader for row in train.rows.to_pylist()] for reader in (sent, came))
    assert [tuple(row.values()) for row in before] == VALUES
    assert after == before


@pytest.mark.smoke
def test_a_bound_alone_plans_no_partition_and_the_progress_says_who_holds_the_clock(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    fast, slow = opened(path, "fast", onLate="reject"), opened(path, "slow")
    send(fast, ("10:00", 1), ("9:00", 2), ("11:00", 3))
    send(slow, ("10:00", 4))
    with Watched().start(pipe.read("s")) as watched:
        watched.step()
        send(slow, promise="10:30")
        assert watched.step() == []
        assert watched.partitions[-1] == 0
        assert watched.bounds[-1] == bound("10:30")
        wait_for(lambda: metrics(watched)["bound"] == "2006-09-11T10:30:00Z", "the progress of the batch")
        progress = watched.query.lastProgress
        assert progress.numInputRows == 0
        assert progress.eventTime["watermark"] == "2006-09-11T10:30:00.000Z"
        assert progress.sources[0].metrics == {
            "bound": "2006-09-11T10:30:00Z",
            "producers": "2",
            "clockHeldBy": "slow",
            "rowsHeldBack": "0",
            "rowsRejected": "1",
        }
        before = len(watched.batches)
        watched.step()
        assert len(watched.batches) == before, "no news, no batch"


def test_what_is_no_option_is_refused_at_load(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    with refused(rt.UnknownOptionError, "Did you mean 'maxRowsPerTrigger'?"):
        pipe.read("s", maxRowsPerTriger="5")
    with refused(rt.UnknownOptionError, "Did you mean 'startingPosition'?"):
        pipe.spark.read.format("rowtime").option("startPosition", "latest").load(path)
    with refused(rt.InvalidOptionError, "No stream was named"):
        pipe.spark.readStream.format("rowtime").load()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("order", "random", "arrival, rowtime"),
        ("hold", "an hour", "is not an interval"),
        ("hold", "-1 hour", "must not be negative"),
        ("startingPosition", "yesterday", "is not a time"),
        ("startingPosition", "1969-12-31T00:00:00Z", "later than 1970"),
        ("maxRowsPerTrigger", "0", "whole number, 1 or more"),
        ("maxRowsPerTrigger", "many", "whole number, 1 or more"),
        ("maxBytesPerTrigger", "1.5", "whole number, 1 or more"),
        ("bounds", "maybe", "require, ignore"),
        ("watermark", "off", "auto, none"),
        ("view", "late", "rows, bounds, rejected, producers"),
        ("adapter", "no_such_module:Feed", "no_such_module"),
    ],
)
def test_a_bad_value_is_refused_at_load(pipe: Pipe, option: str, value: str, said: str) -> None:
    pipe.create("s", "x INT")
    with refused(rt.InvalidOptionError, value.partition(":")[0], said):
        pipe.read("s", **{option: value})


@pytest.mark.long
def test_a_view_is_no_stream(pipe: Pipe) -> None:
    pipe.create("s", "x INT")
    with refused(rt.InvalidOptionError, "for batch reads"):
        finish(pipe.read("s", view="bounds").writeStream.format("noop").start())


def test_option_names_in_any_case_and_sparks_own(spark: SparkSession, pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    trains(path, HOURS)
    frame = spark.readStream.format("rowtime").options(MAXROWSPERTRIGGER="1", Order="ROWTIME").option("path", path)
    assert len(Watched().all_available(frame.load()).rows) == len(HOURS)


def test_ignoring_bounds_is_plain_spark(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    sink = opened(path, "feed")
    send(sink, *HOURS, promise="12:00")
    counts = hourly(pipe.read("s", bounds="ignore").withWatermark("rowtime", "0 seconds"))
    with Watched().start(counts) as watched:
        assert watched.step() == [("09:00", 2), ("10:00", 2)], "the largest rowtime is 11:59, whatever is promised"
        send(sink, ("12:01", 7))
        assert watched.step() == [("11:00", 2)]
        assert set(watched.bounds) == {None}


def test_no_jar_is_said_by_configure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_rowtime.spark.jars._FOLDER", Path("/nowhere"))
    for ask in (rt.jarPath, lambda: rt.configure(SparkSession.builder)):
        with pytest.raises(rt.ShimMissingError, match=r"java-shim/build\.py"):
            ask()


@pytest.mark.parametrize("native", ["true", "false"])
def test_a_query_that_begins_at_latest_goes_on_after_its_first_batch_has_failed(pipe: Pipe, native: str) -> None:
    pipe.spark.conf.set(NATIVE_READ, native)
    try:
        assert begun_at_latest(pipe.spark, pipe.path("s"), str(pipe.folder / "c")) == [2, 3]
    finally:
        pipe.spark.conf.unset(NATIVE_READ)
