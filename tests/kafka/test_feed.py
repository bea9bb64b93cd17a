"""Topics into a stream: rows, restarts, times, bounds, and what is no row."""

import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka import KafkaFeed, consumption, waits
from tests.kafka.feeds import PATIENT, SCHEMA, bound, message, moment, numbers, read, rows
from tests.kafka.topics import ended
from tests.sparksession import wait_for


def checkpoints(path: Path) -> dict[str, int]:
    """The offset of each partition's checkpoint."""
    return {p.name: json.loads(p.checkpoint)["offset"] for p in rt.describeStream(str(path)).producers}


def test_a_restarted_feed_goes_on_behind_its_offsets(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.send(topic, [message(n, partition=n % 3) for n in range(30)])
    assert read(kafka, tmp_path / "s", topic) == list(range(30))
    kafka.send(topic, [message(n, partition=n % 3) for n in range(30, 40)])
    assert read(kafka, tmp_path / "s", topic) == list(range(40))
    assert checkpoints(tmp_path / "s") == {f"{topic}-0": 14, f"{topic}-1": 13, f"{topic}-2": 13}
    assert bound(tmp_path / "s") == moment(37)


def test_all_partitions_are_attached_before_the_first_row(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.send(topic, [message(n, partition=0) for n in range(5)])
    assert read(kafka, tmp_path / "s", topic) == list(range(5))
    info = rt.describeStream(str(tmp_path / "s"))
    assert info.bound is None
    assert set(info.holders) == {f"{topic}-1", f"{topic}-2"}


def test_an_added_partition_is_read_from_its_start(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=1)
    read(kafka, tmp_path / "s", topic, start="latest")
    kafka.send(topic, [message(0)])
    kafka.add_partitions(topic, 2)
    kafka.send(topic, [message(1, 5, partition=1)])
    assert read(kafka, tmp_path / "s", topic, start="latest") == [0, 1]


@pytest.mark.long
def test_a_host_that_ends_while_it_attaches_partitions_leaves_the_others_at_their_ends(
    kafka: Any, tmp_path: Path
) -> None:
    """With ``start="latest"``; another host that starts at the same time meets the same."""

    class Ending(rt.Sinks):
        opened = 0

        def open(self, producer: str, **options: Any) -> Any:
            self.opened += 1
            if self.opened == 8:
                raise EndedError
            return super().open(producer, **options)

    topic, path = kafka.topic(partitions=8), str(tmp_path / "s")
    kafka.send(topic, [message(n, partition=n) for n in range(8)])
    rt.createStream(path, SCHEMA)
    feed = KafkaFeed(servers=kafka.bootstrap, topics=topic, start="latest")
    with Ending(path, feed.sinkOptions) as sinks, suppress(EndedError):
        feed.runProducers(sinks)
    assert read(kafka, path, topic, start="latest") == []


def test_late_rows_are_recorded_and_lateness_takes_them(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(n, seconds) for n, seconds in enumerate((10, 20, 15))])
    assert read(kafka, tmp_path / "s", topic) == [0, 1]
    assert rt.rejectedRows(str(tmp_path / "s")).column("n").to_pylist() == [2]
    assert read(kafka, tmp_path / "late", topic, lateness="1 minute") == [0, 1, 2]
    assert bound(tmp_path / "late") == moment(-40)


@pytest.mark.long
def test_a_message_of_the_year_9999_moves_nothing(kafka: Any, tmp_path: Path) -> None:
    topic, path = kafka.topic(partitions=2), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    far = message(1, rowtime="9999-01-01T00:00:00Z")
    kafka.send(topic, [message(0), far, message(2, 5), message(3, 9, 1)])
    assert read(kafka, path, topic) == [0, 2, 3]
    assert rt.rejectedRows(path).select(["n", "reason"]).to_pylist() == [{"n": 1, "reason": "ahead"}]
    assert bound(Path(path)) == moment(5)


def test_rows_of_aborted_and_open_transactions_are_no_rows(kafka: Any, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(0)])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for n, end in ((1, producer.abort_transaction), (2, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, **message(n))
        producer.flush()
        end()
    producer.begin_transaction()
    producer.produce(topic, **message(3))
    producer.flush()
    assert read(kafka, tmp_path / "s", topic) == [0, 2]
    producer.commit_transaction()
    ended(kafka.bootstrap, topic, of=1)
    assert read(kafka, tmp_path / "s", topic) == [0, 2, 3]


AT_ONCE = {"linger.ms": 240_000}
"""The client sends all messages in one batch, when it is flushed: a compaction removes none of them before the next."""


def test_a_compacted_topic_has_gaps_and_tombstones(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(
        partitions=1, cleanup_policy="compact", segment_ms=100, min_cleanable_dirty_ratio=0.01, delete_retention_ms=0
    )
    kafka.send(topic, [{**message(n), "key": str(n % 2)} for n in range(6)] + [{"key": "0", "partition": 0}], **AT_ONCE)
    with pytest.raises(rt.MessageDecodeError, match=r"offset 6 .* tombstone.*tombstones='skip'") as failed:
        read(kafka, tmp_path / "s", topic)
    assert (failed.value.values["offset"], numbers(tmp_path / "s")) == (6, list(range(6)))
    assert read(kafka, tmp_path / "s", topic, tombstones="skip") == list(range(6))
    kafka.send(topic, [{**message(n), "key": "1"} for n in range(6, 9)], **AT_ONCE)
    assert read(kafka, tmp_path / "s", topic, tombstones="skip") == list(range(9))


BAD = {
    "no JSON": b"{",
    "no record": b"[1]",
    "no time": b'{"n": 1}',
    "a number as time": b'{"rowtime": 1767621600, "n": 1}',
    "a time beyond int64": b'{"rowtime": "99999-01-05T14:00:00Z", "n": 1}',
    "a time before 1970": b'{"rowtime": "1969-01-05T14:00:00Z", "n": 1}',
    "another type": b'{"rowtime": "2026-01-05T14:00:00Z", "n": "many"}',
}


def test_messages_that_are_no_rows_are_kept_each_once(kafka: Any, tmp_path: Path) -> None:
    topic, kept = kafka.topic(partitions=1), str(tmp_path / "malformed")
    kafka.send(topic, [message(0), *({"value": value, "partition": 0} for value in BAD.values()), message(9)])
    assert read(kafka, tmp_path / "s", topic, malformed=kept) == [0, 9]
    found = rows(kept).to_pylist()
    assert [(row["topic"], row["partition"], row["offset"]) for row in found] == [(topic, 0, n + 1) for n in range(7)]
    assert [row["value"] for row in found] == list(BAD.values())
    assert read(kafka, tmp_path / "again", topic, malformed=kept) == [0, 9]
    assert rows(kept).num_rows == 7


def test_two_feeds_that_keep_messages_that_are_no_rows_in_one_stream(kafka: Any, tmp_path: Path) -> None:
    """The second one takes less for a row, so it has one at an offset below that of the first one."""
    topic, kept = kafka.topic(partitions=1), str(tmp_path / "malformed")
    kafka.send(topic, [message(0), message(1000, 1), {"value": "no JSON", "partition": 0}, message(3)])
    assert read(kafka, tmp_path / "s", topic, malformed=kept) == [0, 3, 1000]
    rt.createStream(str(tmp_path / "small"), "rowtime TIMESTAMP NOT NULL, n TINYINT")
    assert read(kafka, tmp_path / "small", topic, malformed=kept) == [0, 3]
    assert rows(kept).column("offset").to_pylist() == [2, 1]
    rt.createStream(str(tmp_path / "again"), "rowtime TIMESTAMP NOT NULL, n TINYINT")
    assert read(kafka, tmp_path / "again", topic, malformed=kept) == [0, 3]
    assert rows(kept).num_rows == 2


@pytest.mark.long
def test_messages_that_are_no_rows_of_a_topic_that_was_created_again(kafka: Any, tmp_path: Path) -> None:
    """They lie at offsets that the stream of such messages has of the old topic."""
    topic, kept = kafka.topic(partitions=1), str(tmp_path / "malformed")
    for name in ("old", "new"):
        kafka.send(topic, [message(0), {"value": name, "partition": 0}])
        read(kafka, tmp_path / name, topic, malformed=kept)
        if name == "old":
            kafka.delete_topic(topic)
            kafka.topic(topic, partitions=1)
    assert [(row["offset"], row["value"]) for row in rows(kept).to_pylist()] == [(1, b"old"), (1, b"new")]


@pytest.mark.long
def test_times_of_messages_beyond_the_year_9999(kafka: Any, tmp_path: Path) -> None:
    """A producer that gives microseconds makes such times. The broker takes them where it does not compare clocks."""
    largest = 2**63 - 1
    topic = kafka.topic(partitions=1, message_timestamp_after_max_ms=largest, retention_ms=-1)
    sent = [1, 253402300799999, 253402300800000, largest // 1000, largest]
    kafka.send(topic, [{**message(n), "timestamp": millis} for n, millis in enumerate(sent)])
    kafka.send(topic, [{"value": "no JSON", "partition": 0, "timestamp": largest}])
    kept = str(tmp_path / "malformed")
    rt.createStream(str(tmp_path / "s"), SCHEMA, maxAhead=None)
    assert read(kafka, tmp_path / "s", topic, rowtime="kafka.timestamp", malformed=kept) == [0, 1]
    found = rows(kept).to_pylist()
    assert [(row["offset"], row["sent"]) for row in found] == [(n, None) for n in (2, 3, 4, 5)]
    assert "9223372036854775807 ms since 1970, is beyond the year 9999" in found[2]["cause"]
    with pytest.raises(rt.MessageDecodeError, match="beyond the year 9999"):
        read(kafka, tmp_path / "t", topic, rowtime="kafka.timestamp")


def test_a_message_that_is_no_row_stops_its_partition(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(0), {"value": BAD["no time"], "partition": 0}, message(2)])
    for _ in range(2):
        with pytest.raises(rt.MessageDecodeError, match=r"offset 1 of partition 0 .*'rowtime' is missing"):
            read(kafka, tmp_path / "s", topic)
    assert numbers(tmp_path / "s") == [0]


def test_a_change_feed_brings_rows_and_bounds(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=2)
    base = 1767621600_000000000  # 14:00 in nanoseconds

    def change(n: int, seconds: int, partition: int) -> dict[str, Any]:
        value = {"after": {"n": n, "other": "x"}, "updated": f"{base + seconds * 10**9}.0000000001"}
        return {"value": json.dumps(value), "partition": partition}

    def resolved(seconds: int, partition: int) -> dict[str, Any]:
        return {"value": json.dumps({"resolved": f"{base + seconds * 10**9}.0000000000"}), "partition": partition}

    kafka.send(topic, [change(0, 9, 0), change(1, 5, 0), resolved(10, 0), change(2, 7, 0), resolved(8, 0)])
    kafka.send(topic, [resolved(10, 1)])
    how = {"bounds": "resolved", "rowtime": "updated", "timeUnit": "hlc", "row": "after"}
    assert read(kafka, tmp_path / "s", topic, **how) == [0, 1]
    assert bound(tmp_path / "s") == moment(10)
    assert rt.rejectedRows(str(tmp_path / "s")).column("n").to_pylist() == [2]


def test_functions_decode_rows_and_bounds(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=1)
    values = [b"0 3", b"1 1", b"until 5", b"skip", b"2 7"]
    kafka.send(topic, [{"value": value, "partition": 0} for value in values])
    how = {"decoder": "tests.kafka.decoders:row", "bounds": "tests.kafka.decoders:bound"}
    assert read(kafka, tmp_path / "s", topic, **how) == [0, 1, 2]
    assert bound(tmp_path / "s") == moment(5)


def test_a_decoder_that_is_not_ready_lets_its_partition_wait(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "FIRST_PAUSE_SECONDS", 0.05)
    tries: list[int] = []

    def decode(found: Any) -> Any:
        tries.append(int(found.value()))
        if tries.count(1) < 4 and tries[-1] == 1:
            raise rt.MessageNotReadyError("The price of 1 is not there yet.")
        return moment(tries[-1]), tries[-1]

    topic = kafka.topic(partitions=2)
    kafka.send(topic, [{"value": str(n), "partition": n // 5} for n in (0, 1, 2, 5, 6)])
    assert read(kafka, tmp_path / "s", topic, decoder=decode) == [0, 1, 2, 5, 6]
    assert sorted(tries) == [0, 1, 1, 1, 1, 2, 5, 6]


def test_the_broker_s_time_is_the_rowtime(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(message_timestamp_type="LogAppendTime")
    kafka.send(topic, [message(n, partition=n % 3) for n in range(9)])
    assert read(kafka, tmp_path / "s", topic, bounds="append-time") == list(range(9))
    times = rows(tmp_path / "s").column("rowtime").to_pylist()
    assert min(times).year >= 2026
    assert rt.describeStream(str(tmp_path / "s")).rejected == 0
    other = kafka.topic()
    kafka.send(other, [message(9)])
    with pytest.raises(rt.InvalidOptionError, match="LogAppendTime"):
        read(kafka, tmp_path / "t", other, bounds="append-time")
    kafka.configure(other, message_timestamp_type="LogAppendTime")
    with pytest.raises(rt.MessageDecodeError, match=r"offset 0 .* its producer's \(CreateTime\)"):
        read(kafka, tmp_path / "t", other, bounds="append-time")


def test_a_subclass_brings_its_schema(kafka: Any, tmp_path: Path) -> None:
    class Orders(KafkaFeed):
        schema = SCHEMA

    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(0)])
    arguments = {"servers": kafka.bootstrap, "topics": topic, "untilEnd": True, **PATIENT}
    with pytest.raises(rt.StreamNotFoundError):
        rt.runAdapter(KafkaFeed, str(tmp_path / "s"), arguments=arguments, create=True)
    rt.runAdapter(Orders, str(tmp_path / "s"), arguments=arguments, create=True)
    assert numbers(tmp_path / "s") == [0]


@pytest.mark.long
def test_hosts_that_start_at_the_same_time_fence_each_other_once(kafka: Any, tmp_path: Path) -> None:
    class Racing(rt.Sinks):
        raced: set[str] = set()

        def open(self, producer: str, **options: Any) -> Any:
            sink = super().open(producer, **options)
            if producer not in self.raced:
                self.raced.add(producer)
                rt.openSink(self.path, producer=producer, lease=None).abandon()
            return sink

    topic, path = kafka.topic(), str(tmp_path / "s")
    kafka.send(topic, [message(n, partition=n % 3) for n in range(9)])
    rt.createStream(path, SCHEMA)
    feed = KafkaFeed(servers=kafka.bootstrap, topics=topic, untilEnd=True)
    with Racing(path, feed.sinkOptions) as sinks:
        feed.runProducers(sinks)
    assert len(Racing.raced) == 3
    assert numbers(path) == list(range(9))


class EndedError(Exception):
    """Ends the feed of a test."""


@pytest.mark.long
def test_an_idle_partition_that_has_gone_on_elsewhere(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``idle`` the stream does not wait for a partition. Another host takes its next message: each is once."""
    monkeypatch.setattr(consumption, "SETTLE_SECONDS", 0.0)
    topic, path = kafka.topic(partitions=1), str(tmp_path / "s")

    def read_all() -> None:
        feed = KafkaFeed(servers=kafka.bootstrap, topics=topic, idle="0 s")
        with rt.Sinks(path, feed.sinkOptions) as sinks, suppress(rt.MessageDecodeError):
            feed.runProducers(sinks)

    rt.createStream(path, SCHEMA)
    kafka.send(topic, [message(0)])
    host = threading.Thread(target=read_all, daemon=True)
    host.start()
    wait_for(lambda: numbers(path) and not attached(path), "the partition to be idle")
    other = rt.openSink(path, producer=f"{topic}-0", lease=None)
    now = json.loads(other.checkpoint or "")
    other.sendRow((moment(1), 1))
    other.flush(checkpoint=json.dumps({**now, "offset": 2}))
    other.abandon()
    kafka.send(topic, [message(1), message(2)])
    wait_for(lambda: numbers(path) == [0, 1, 2] and not attached(path), "the partition to be idle again")
    kafka.send(topic, [{"value": b"{", "partition": 0}])
    host.join(240)
    assert not host.is_alive()
    assert numbers(path) == [0, 1, 2]


def attached(path: str) -> bool:
    """Whether the stream waits for any producer."""
    return any(one.status.value == "attached" for one in rt.describeStream(path).producers)
