"""why names each cause that lies in a stream and its producers, and what releases it does release it."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.adapter.adapter import host
from spark_rowtime.store import open_store
from spark_rowtime.testing.clock import TestClock
from spark_rowtime.types.timestamps import to_micros

TEN = "2006-09-11T10:00:00Z"
SCHEMA = "rowtime TIMESTAMP NOT NULL, city STRING"
MINUTE_MICROS = 60_000_000


def time(minutes: int) -> str:
    """A time so many minutes after nine."""
    return f"2006-09-11T{9 + minutes // 60:02}:{minutes % 60:02}:00Z"


class Feed:
    """A stream in memory, its clock, and sinks of it that commit at once."""

    def __init__(self, **settings: Any) -> None:
        self.path = f"memory://{uuid.uuid4()}"
        rt.createStream(self.path, SCHEMA, **settings)
        self.clock = TestClock()
        open_store(self.path).now = self.clock.now

    def sink(self, producer: str, *minutes: int, promise: int | None = None, **options: Any) -> rt.StreamSink:
        sink = rt.openSink(self.path, producer=producer, linger="1 hour", **options)
        self.send(sink, *minutes, promise=promise)
        return sink

    def send(self, sink: rt.StreamSink, *minutes: int, promise: int | None = None) -> None:
        for minute in minutes:
            sink.sendRow((time(minute), "x"))
        if promise is not None:
            sink.sendRowtimeBound(time(promise))
        sink.flush()

    def why(self, at: str | None = TEN, **options: Any) -> rt.Explanation:
        return rt.why(self.path, at=at, **options)


def test_no_producers() -> None:
    feed = Feed()
    found = feed.why()
    assert (found.cause, found.holder, found.complete) == (rt.Cause.NO_PRODUCERS, None, False)
    assert [link.kind for link in found.chain] == ["stream"]
    feed.sink("Berlin", promise=60)
    assert feed.why().complete


def test_expected() -> None:
    feed = Feed(producers=["Berlin", "Oslo"])
    feed.sink("Berlin", promise=60)
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.EXPECTED, "Oslo")
    assert f"rowtime detach {feed.path} Oslo" in found.remedy
    assert found.chain[0].lastMoved is None, "it has never come"
    rt.detachProducer(feed.path, "Oslo")
    assert feed.why().complete


def test_without_a_time_nothing_is_complete_before_a_feed_has_come_to_one() -> None:
    feed = Feed(producers=["Oslo"])
    found = rt.why(feed.path)
    assert (found.complete, found.cause) == (False, rt.Cause.EXPECTED)
    assert "Start Oslo; it must promise a time." in found.remedy


def test_nothing_promised() -> None:
    feed = Feed()
    oslo = feed.sink("Oslo", rowsImplyBounds=False)
    assert feed.why().cause is rt.Cause.NOTHING_PROMISED
    feed.send(oslo, 70)
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.NOTHING_PROMISED, "Oslo")
    assert "1 row(s): its rows imply no bound" in found.note
    feed.send(oslo, promise=60)
    assert feed.why().complete


def test_no_rows() -> None:
    feed = Feed(boundsBeforeRows=False)
    berlin = feed.sink("Berlin", promise=60)
    assert feed.why().cause is rt.Cause.NO_ROWS
    feed.send(berlin, 61)
    assert feed.why().complete


def test_silent_or_behind() -> None:
    feed = Feed()
    oslo = feed.sink("Oslo", 30, lease="1 hour")
    feed.sink("Berlin", promise=90)
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.PRODUCER_BEHIND, "Oslo")
    producer, stream = found.chain
    assert (producer.kind, producer.name, producer.behindSeconds) == ("producer", "Oslo", 3600.0)
    assert (stream.kind, stream.name, stream.behindSeconds) == ("stream", feed.path, 0.0)
    assert producer.bound == stream.bound == rt.RowtimeBound(time(30))
    feed.clock.advance(10_000_000)
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.SILENT, "Oslo")
    assert "has sent nothing for 1" in found.note
    assert "Oslo must promise 2006-09-11T10:00:00Z" in found.remedy
    ages = [feed.clock.now() - to_micros(link.lastMoved) for link in found.chain]
    assert all(10_000_000 <= age < MINUTE_MICROS for age in ages)
    assert feed.why(silentAfter="1 hour").cause is rt.Cause.PRODUCER_BEHIND
    feed.send(oslo, promise=60)
    assert feed.why().complete


def test_key() -> None:
    feed = Feed()
    sink = feed.sink("gateway", inOrderPer="city")
    sink.sendRows([(time(10), "Oslo"), (time(70), "Berlin")])
    sink.flush()
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.KEY, "gateway")
    assert "sink.closeKey('Oslo')" in found.remedy
    sink.closeKey("Oslo")
    sink.flush()
    assert feed.why().complete


def test_lease_then_process_gone_or_detached() -> None:
    feed = Feed()
    feed.sink("Berlin", 30, lease="30 s").abandon()
    feed.clock.advance(20_000_000)
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.LEASE, "Berlin")
    assert "has not answered for 2" in found.note
    assert "until its lease ends, in " in found.note
    feed.clock.advance(11_000_000)
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.PROCESS_GONE, None)
    assert f"rowtime close {feed.path} Berlin" in found.remedy
    rt.closeProducer(feed.path, "Berlin", complete=True)
    assert feed.why().complete


def test_detached_by_hand() -> None:
    feed = Feed()
    feed.sink("Berlin", 30, lease=None).abandon()
    rt.detachProducer(feed.path, "Berlin")
    assert feed.why().cause is rt.Cause.DETACHED


def test_idle() -> None:
    feed = Feed(idleTimeout="1 min")
    berlin = feed.sink("Berlin", 30, lease=None)
    feed.clock.advance(2 * MINUTE_MICROS)
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.IDLE, None)
    assert "'Berlin' is silent for longer than idleTimeout" in found.note
    feed.send(berlin, promise=60)
    assert feed.why().complete


def test_left() -> None:
    feed = Feed()
    feed.sink("Berlin", 30).close()
    found = feed.why()
    assert (found.cause, found.holder) == (rt.Cause.LEFT, None)
    assert f"rowtime close --complete {feed.path} Berlin" in found.remedy
    rt.closeProducer(feed.path, "Berlin", complete=True)
    assert feed.why().complete
    assert feed.why().bound == rt.RowtimeBound.END


def test_max_lag() -> None:
    feed = Feed(maxLag="1 hour")
    berlin = feed.sink("Berlin", promise=10)
    feed.sink("Oslo", promise=0)
    feed.send(berlin, promise=90)
    found = feed.why()
    assert (found.bound, found.cause, found.holder) == (rt.RowtimeBound(time(30)), rt.Cause.MAX_LAG, "Oslo")
    assert "the strongest producer 2006-09-11T11:00:00Z" in found.remedy
    assert "the strongest producer 9999-12-31T23:59:59.999999Z" in rt.why(feed.path, "9999-12-31T23:30:00Z").remedy
    feed.send(berlin, promise=120)
    assert feed.why().complete


class Broken:
    """Sends a row, and then fails in each run."""

    schema = SCHEMA

    def __init__(self, clock: TestClock) -> None:
        self.clock = clock

    def run(self, sink: Any) -> None:
        sink.sendRow((time(30), "x"))
        sink.flush()
        self.clock.advance(1000)
        raise ConnectionError("no feed at port 9000\nsecond line")


def test_adapter_failing() -> None:
    feed = Feed()
    clock = {"clock": feed.clock}
    waits = iter([None, KeyboardInterrupt()])

    def look(seconds: float) -> None:
        found = feed.why()
        assert (found.cause, found.holder) == (rt.Cause.ADAPTER_FAILING, "shop")
        assert "is restarted again and again: ConnectionError: no feed at port 9000" in found.note
        assert "second line" not in found.note
        if (stop := next(waits)) is not None:
            raise stop

    with pytest.raises(KeyboardInterrupt):
        host(Broken, feed.path, arguments=clock, producer="shop", wait=look, onLate="reject")
    feed.clock.advance(60_000_000)  # its lease has ended
    assert (feed.why().cause, feed.why().holder) == (rt.Cause.ADAPTER_FAILING, "shop")
    with pytest.raises(rt.RowtimeError, match="failed again after 0 restarts"):
        host(Broken, feed.path, arguments=clock, producer="shop", delays=(), onLate="reject")
    assert "was given up" in feed.why().note
    feed.sink("shop", 40, promise=50)
    assert feed.why().cause is rt.Cause.PRODUCER_BEHIND


def test_other_producers_that_stand_as_low_are_named() -> None:
    feed = Feed()
    for name in ("Berlin", "Oslo", "Rome"):
        feed.sink(name, promise=30)
    assert "2 more producer(s) stand as low: 'Oslo', 'Rome'." in feed.why().note


def test_without_a_time_it_is_the_latest_time_of_a_feed() -> None:
    feed = Feed()
    assert feed.why(None).complete is False
    oslo = feed.sink("Oslo", 30)
    feed.sink("Berlin", 30, 70)
    found = feed.why(None)
    assert (found.at, found.holder) == (datetime(2006, 9, 11, 10, 10, tzinfo=UTC), "Oslo")
    feed.send(oslo, 70)
    assert feed.why(None).complete


def test_the_json_has_these_keys() -> None:
    feed = Feed()
    feed.sink("Berlin", 30)
    shown = feed.why().toJson()
    keys = ["stream", "at", "complete", "bound", "holder", "cause", "note", "remedy", "chain", "notFollowed"]
    assert list(shown) == keys
    assert shown["bound"] == {"time": "2006-09-11T09:30:00Z", "strict": False, "end": False}
    keys = ["kind", "name", "bound", "behindSeconds", "lastMoved", "needs", "cause", "note"]
    assert [list(link) for link in shown["chain"]] == [keys, keys]
    assert (shown["at"], shown["chain"][0]["needs"], shown["chain"][0]["cause"]) == (TEN, TEN, "producerBehind")


def test_a_wrong_time_or_option_is_refused() -> None:
    feed = Feed()
    with pytest.raises(rt.InvalidOptionError, match="is not a time"):
        feed.why("ten")
    with pytest.raises(rt.UnknownOptionError, match="Did you mean 'at'"):
        rt.why(feed.path, att=TEN)  # type: ignore[call-arg]
    with pytest.raises(rt.StreamNotFoundError):
        rt.why("memory://none")
