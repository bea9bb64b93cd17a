"""PartitionWatch and BrokerClock: what the messages and the brokers of a watched topic promise."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from kafka_support import Broker
from unit_support import new_stream

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.kafka import KafkaFeed, KafkaWatch
from spark_rowtime.kafka.broker_clock import BrokerClock
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.kafka.decoding import json_of
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.message_floors import message_floor
from spark_rowtime.kafka.partition_watch import PartitionWatch, UnreadPartition
from spark_rowtime.kafka.topics import Newest, Part, TopicState
from spark_rowtime.store import open_store

PART, NOON = Part("orders", 0), 1_767_614_400_000_000


def sink(path: str) -> rt.StreamSink:
    return rt.openSink(path, producer=PART.producer, lease=None, rowsImplyBounds=False)


def floor_of(message: Any) -> int | None:
    """The value of a message is its floor, in microseconds after noon."""
    if message.value == "bad":
        raise MalformedError("it is bad")
    return None if message.value is None else NOON + int(message.value)


def messages(*values: Any, start: int = 0) -> list[Any]:
    return [
        SimpleNamespace(value=value, offset=lambda at=at: at, leader_epoch=lambda: None)
        for at, value in enumerate(values, start)
    ]


@pytest.fixture
def path() -> str:
    path = new_stream()
    with sink(path) as starts:
        starts.flush(checkpoint=Checkpoint("id", 0).text())
        starts.abandon()
    return path


def opened(path: str, kind: type[PartitionWatch] = PartitionWatch) -> PartitionWatch:
    return kind(PART, lambda: sink(path), floor_of, 10.0, lambda: NOON + 1000)


def floor(path: str, end: int) -> int | None:
    """The bound, in microseconds after noon, of a query that has read up to ``end``."""
    with open_store(path) as store:
        found = CutFloors(store).floorAt(store.head().seq, {"orders": {0: end}})
    return None if found is None else found - NOON


def test_follows(path: str) -> None:
    """A commit has the strongest bound that anything before its offset promises; also after a restart."""
    watch = opened(path)
    watch.take(messages(5, 3, None, "bad", 9999, 4))
    assert not watch.due(watch.committed_at + 9), "it sends a bound at most so often"
    assert watch.due(watch.committed_at + 11)
    watch.flush()
    assert (floor(path, 6), floor(path, 5)) == (5, None)
    watch.take(messages(5, 3, 20, start=4))
    watch.take(messages(30, start=7))
    watch.drop()
    again = opened(path)
    assert again.next == 6, "what was not committed is taken again"
    again.take(messages(20, 30, start=6))
    again.flush()
    again.drop()
    assert (floor(path, 8), floor(path, 7)) == (30, 5)


def test_a_bound_of_the_brokers_clock_that_is_too_far_ahead_is_left_out(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    watch = opened(path)
    watch.take(messages(5))
    for ahead in (1001, 5000, 900):
        watch.promise(rt.RowtimeBound.fromFloor(NOON + ahead))
    watch.flush()
    watch.drop()
    assert floor(path, 1) == 900
    assert caplog.text.count("maxAhead") == 1


def test_a_partition_that_was_truncated_has_its_next_bound_behind_its_last_cut(path: str) -> None:
    watch = opened(path)
    watch.take(messages(1, 2, 3, 4))
    watch.flush()
    watch.go_on_at(2)
    watch.take(messages(8, start=2))
    watch.flush()
    watch.drop()
    assert (floor(path, 3), floor(path, 4)) == (None, 8)


@pytest.mark.parametrize(("given", "held"), [((5, 3), 5), ((None, None), None)], ids=["a bound", "none"])
def test_a_partition_that_becomes_idle_holds_a_query_until_its_messages_are_read(
    path: str, given: Any, held: int | None
) -> None:
    """Also those behind the message that has raised its bound, and of a partition that has promised nothing."""
    watch, other = opened(path), rt.openSink(path, producer="other", lease=None, rowsImplyBounds=False)
    watch.take(messages(given[0]))
    watch.flush()
    watch.take(messages(given[1], start=1))
    other.sendRowtimeBound(rt.RowtimeBound.fromFloor(NOON + 100))
    other.flush()
    watch.rest()
    assert (floor(path, 1), floor(path, 2)) == (held, 100)
    watch.drop()
    again = opened(path)
    again.take(messages(300, start=2))
    again.flush()
    assert (floor(path, 1), floor(path, 2), floor(path, 3)) == (held, 100, 100)
    again.drop()
    other.close()


def test_a_partition_that_was_truncated_becomes_idle_behind_its_last_cut(path: str) -> None:
    watch = opened(path)
    watch.take(messages(1, 2, 3, 4))
    watch.flush()
    watch.go_on_at(2)
    watch.rest()
    assert (floor(path, 3), floor(path, 4)) == (None, 4)
    watch.drop()


def test_a_partition_that_is_not_read_follows_the_ends_that_the_brokers_name(path: str) -> None:
    watch = opened(path, UnreadPartition)
    assert watch.may_be_quiet
    assert not watch.at_end, "nobody has been asked"
    watch.take(messages(900))
    assert watch.reaches(7)
    watch.promise(rt.RowtimeBound.fromFloor(NOON + 50))
    watch.flush()
    assert not watch.reaches(4), "an election has truncated it"
    assert (watch.shorter, watch.position) == (True, 7)
    watch.drop()
    assert (floor(path, 7), floor(path, 6)) == (50, None)


def test_only_the_time_that_brokers_stamp_has_a_delay_by_itself() -> None:
    topics: Any = SimpleNamespace(with_append_time=list)
    given: dict[str, Any] = {"servers": "broker:9092", "topics": "orders", "bounds": "append-time"}
    for rowtime in (None, "kafka.timestamp"):
        assert KafkaWatch(rowtime=rowtime, **given)._stamped(topics) == ["orders"]
    with pytest.raises(rt.InvalidOptionError, match=r"only where rowtime is kafka\.timestamp"):
        KafkaWatch(rowtime="ts", **given)._stamped(topics)
    assert KafkaWatch(rowtime="ts", delay="5 minutes", **given)._stamped(topics) == ["orders"]


def test_a_watch_follows_topics_that_are_named() -> None:
    with pytest.raises(rt.InvalidOptionError, match=r"'\^orders\.\*' is a pattern, and a watch needs names"):
        KafkaWatch(servers="broker:9092", topics="^orders.*")


def record_message(record: Any, millis: int = 0) -> Any:
    """A message whose value is the record; its decoder is ``by_value``."""
    return SimpleNamespace(value=lambda: record, timestamp=lambda: (1, millis))


def by_value(message: Any) -> Any:
    return message.value()


def floor_by(rowtime: str, unit: str | None, record: Any, millis: int = 0) -> int | None:
    return message_floor("rows", by_value, rowtime, unit, UTC, 0)(record_message(record, millis))


NO_ROWTIMES: dict[str, tuple[str, str | None, Any, int]] = {
    "Go's zero": ("ts", None, {"ts": "0001-01-01T00:00:00Z"}, 0),
    "1970": ("ts", None, {"ts": "1970-01-01T00:00:00Z"}, 0),
    "a decoder's year 1": ("ts", None, {"ts": datetime(1, 1, 1, tzinfo=UTC)}, 0),
    "a decoder's 1970": ("ts", None, {"ts": datetime(1970, 1, 1, tzinfo=UTC)}, 0),
    "the end of time": ("ts", None, {"ts": datetime.max.replace(tzinfo=UTC)}, 0),
    "beyond the years": ("ts", None, {"ts": "9999-12-31T23:59:59-12:00"}, 0),
    "the message's 1970": ("kafka.timestamp", None, None, 0),
    "the message's year 10000": ("kafka.timestamp", None, None, 253_402_300_800_000),
    "0 seconds": ("ts", "s", {"ts": 0}, 0),
    "0 milliseconds": ("ts", "ms", {"ts": 0}, 0),
    "0 microseconds": ("ts", "us", {"ts": 0}, 0),
    "0 nanoseconds": ("ts", "ns", {"ts": 0}, 0),
    "hlc of 0": ("ts", "hlc", {"ts": "0.0000000000"}, 0),
    "tso of 0": ("ts", "tso", {"ts": 0}, 0),
    "seconds beyond": ("ts", "s", {"ts": 10**12}, 0),
    "microseconds beyond": ("ts", "us", {"ts": 10**19}, 0),
    "a negative number": ("ts", "ms", {"ts": -62_135_596_800_000}, 0),
}


@pytest.mark.parametrize("case", NO_ROWTIMES)
def test_a_time_that_is_no_rowtime_promises_nothing(path: str, case: str) -> None:
    """It is that of a malformed message, and the watch goes on."""
    rowtime, unit, record, millis = NO_ROWTIMES[case]
    with pytest.raises(MalformedError):
        floor_by(rowtime, unit, record, millis)
    watch = PartitionWatch(
        PART, lambda: sink(path), lambda _: floor_by(rowtime, unit, record, millis), 0.0, lambda: NOON
    )
    watch.take(messages(1))
    watch.flush()
    watch.drop()
    assert (watch.next, floor(path, 1)) == (1, None)


@given(seconds=st.integers(1, 253_402_300_799), digits=st.text("0123456789", min_size=1, max_size=20))
def test_a_floor_is_not_above_the_time_that_spark_makes_of_a_double(seconds: int, digits: str) -> None:
    """Spark casts the nearest DOUBLE, which may be below the number of the message."""
    text = f"{seconds}.{digits}"
    found = floor_by("ts", "s", json_of(f'{{"ts": {text}}}'.encode()))
    assert found is not None
    assert found <= int(float(text) * 1e6)
    assert found >= float(text) * 1e6 - 64, "the distance of two DOUBLEs of that size"


def test_a_function_of_the_command_may_be_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit, which is looked at after the function, is the mistake that is told."""
    (tmp_path / "rowtime_bounds_here.py").write_text("def bound(message):\n    return None\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    given = ["kafka://localhost:1/orders", "bounds", "--bounds", "rowtime_bounds_here:bound", "--time-unit", "weeks"]
    assert "timeUnit" in CliRunner().invoke(main, ["watch", *given]).output


@pytest.mark.parametrize(("first", "second"), [(KafkaFeed, KafkaWatch), (KafkaWatch, KafkaFeed)])
def test_a_feed_and_a_watch_have_a_stream_each(first: Any, second: Any) -> None:
    """Either would pass over messages whose rows are not in the stream."""
    path, broker, known = new_stream(), Broker([0.0]), {"orders": TopicState("orders", "abc", 2)}

    def start(adapter: Any) -> None:
        one = adapter(servers="broker:9092", topics="orders")
        with rt.Sinks(path, one.sinkOptions) as sinks:
            one._store_starts(sinks, broker, known)

    start(first)
    start(first)
    with pytest.raises(rt.InvalidOptionError, match=r"'orders-0' up to offset 0 .* Give each of the two a stream"):
        start(second)


@given(
    ahead=st.integers(-10_000_000, 10_000_000),
    steps=st.lists(st.tuples(st.integers(1, 5_000_000), st.integers(0, 1_000_000), st.booleans()), max_size=20),
)
def test_never_ahead(ahead: int, steps: list[tuple[int, int, bool]]) -> None:
    """Once a message has come between two questions, the result is not after the leader's time."""
    clock, local, end, known = BrokerClock(), NOON, 0, False
    for number, (pause, answer, comes) in enumerate(steps):
        before, local = local, local + pause
        newest = Newest(end - 1, before - ahead) if end else None
        if comes:
            newest, end, known = Newest(end, before + pause // 2 - ahead), end + 1, known or number > 0
        asked, local = local, local + answer
        found = clock.at(PART, end, newest, asked, local)
        assert found <= asked - ahead if known else found == asked


def test_not_far_behind() -> None:
    """The last message of a partition that this host did not have for an hour says little of the leader's clock."""
    clock, hour = BrokerClock(), 3_600_000_000
    assert clock.at(PART, 5, Newest(4, NOON - 9), NOON, NOON + 1) == NOON
    asked = NOON + hour
    assert clock.at(PART, 6, Newest(5, NOON + 7), asked, asked + 1) == asked
    wrong = NOON + 2 * hour
    assert clock.at(PART, 7, Newest(6, asked - 8), wrong, wrong + 1) == wrong - 8, "so much it is behind for sure"
    behind = NOON + 3 * hour
    assert clock.at(PART, 8, Newest(7, behind + hour), behind, behind + 1) == behind + hour - 1, "or ahead"
