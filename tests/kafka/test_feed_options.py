"""What people expect of a connector: parts of a message as columns, patterns, offsets in the group, dead letters."""

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.drain.kafka.bound_reader import BoundReader
from spark_rowtime.kafka import KafkaFeed, alignment, consumption, known_topics, waits
from spark_rowtime.kafka.address import topic_address
from spark_rowtime.store import open_store
from tests.kafka.broker import CERTIFICATE, PASSWORD
from tests.kafka.feeds import SCHEMA, Host, eventually, hosts, message, numbers, read, rows
from tests.kafka.raw_headers import send_with_header
from tests.kafka.topics import drain, ended, messages

WHOLE = (
    "rowtime TIMESTAMP NOT NULL, n BIGINT, shop STRING, raw BINARY, part INT, at BIGINT, topic STRING, sent TIMESTAMP, "
    "trace STRING, headers ARRAY<STRUCT<key STRING, value BINARY>>"
)
COLUMNS = (
    "shop=kafka.key, raw=kafka.key, part=kafka.partition, at=kafka.offset, topic=kafka.topic, sent=kafka.timestamp, "
    "trace=kafka.header.trace, headers=kafka.headers"
)


def test_parts_of_a_message_are_columns(kafka: Any, tmp_path: Path) -> None:
    path, topic = str(tmp_path / "s"), kafka.topic(retention_ms=-1)
    rt.createStream(path, WHOLE)
    headers = [("trace", b"a"), ("other", None), ("trace", "é".encode())]
    kafka.send(topic, [{**message(1, partition=2), "key": "Köln", "headers": headers, "timestamp": 1767621600123}])
    kafka.send(topic, [{**message(2, partition=2, shop="not this"), "timestamp": 1767621600124}])
    kafka.send(topic, [{**message(3, partition=1), "key": b"\xff"}])
    bad = str(tmp_path / "bad")
    kafka.send(topic, [{**message(4, partition=0), "timestamp": -1500}])
    assert read(kafka, path, topic, columns=COLUMNS, malformed=bad) == [1, 2, 4]
    first, second, early = sorted(rows(path).to_pylist(), key=lambda row: row["n"])
    assert (first["shop"], first["raw"], first["trace"]) == ("Köln", "Köln".encode(), "é")
    assert (first["part"], first["at"], first["topic"]) == (2, 0, topic)
    assert first["sent"].isoformat() == "2026-01-05T14:00:00.123000+00:00"
    assert [(one["key"], one["value"]) for one in first["headers"]] == headers
    assert early["sent"].isoformat() == "1969-12-31T23:59:58.500000+00:00"
    assert (second["shop"], second["trace"], second["headers"], second["at"]) == (None, None, [], 1)
    with rt.openReader(bad, order="arrival") as reader:
        assert "its kafka.key is no text in UTF-8" in next(iter(reader)).rows.to_pylist()[0]["cause"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("shop=kafka.kee", "'kafka.kee' is no part of a message. Give kafka.key"),
        ({"shop": 3}, "3 is no part of a message"),
        (3, "is no dict, and no text such as"),
        ("rowtime=kafka.timestamp", "the time of a row is named by rowtime"),
        ("shap=kafka.key", "the stream has no such column"),
        ("n=kafka.key", "kafka.key needs a column of the type BINARY or STRING, and it is int64"),
        ("raw=kafka.headers", "needs a column of the type ARRAY<STRUCT<key STRING, value BINARY>>"),
        ("part=kafka.offset", "needs a column of the type BIGINT"),
    ],
)
def test_columns_that_cannot_be_filled_are_refused(tmp_path: Path, columns: Any, said: str) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, WHOLE)
    with pytest.raises(rt.InvalidOptionError) as caught, open_store(path) as store:
        KafkaFeed(servers="nowhere:1", topics="t", columns=columns)._readers(store)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "option",
    [
        {"columns": "shop=kafka.key"},
        {"row": "after"},
        {"rowtime": "ts"},
        {"rowtime": "kafka.timestamp", "bounds": "append-time"},
        {"timeUnit": "ms"},
        {"tombstones": "skip"},
    ],
)
def test_an_option_that_a_decoder_of_your_own_would_not_see_is_refused(option: dict[str, str]) -> None:
    name = next(iter(option))
    for decoder in (asks_headers, "a_module:function"):
        with pytest.raises(rt.InvalidOptionError, match=f"{name} is for messages that this feed decodes") as caught:
            KafkaFeed(servers="nowhere:1", topics="t", decoder=decoder, **option)
        assert caught.value.values["option"] == name
    KafkaFeed(servers="nowhere:1", topics="t", decoder=asks_headers, tombstones="malformed", columns={})


def test_topics_by_a_pattern_also_those_that_come(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic is made while the feed runs; the test ends the feed once its row is there."""
    monkeypatch.setattr(known_topics, "NEW_TOPICS_SECONDS", 0.2)
    path, name = str(tmp_path / "s"), kafka.topic(partitions=1)
    for n in (1, 2):
        kafka.send(kafka.topic(f"{name}-shop-{n}", partitions=1), [message(n)])
    kafka.send(kafka.topic(f"{name}-shap-1", partitions=1), [message(9)])
    topics = f"^{name}-shop-[0-9]+"
    assert read(kafka, path, topics) == [1, 2]

    def later() -> None:
        eventually(lambda: rt.describeStream(path).producers[0].epoch > 1, True)
        kafka.send(kafka.topic(f"{name}-shop-10", partitions=2), [message(10), message(11, partition=1)])

    whole = consumption.Consumption._step

    def step(one: consumption.Consumption) -> None:
        whole(one)
        if numbers(path) == [1, 2, 10, 11]:
            raise rt.KafkaUnavailableError("the test has seen it")

    monkeypatch.setattr(consumption.Consumption, "_step", step)
    thread = threading.Thread(target=later)
    thread.start()
    with pytest.raises(rt.KafkaUnavailableError, match="has seen it"):
        read(kafka, path, topics, start="latest", untilEnd=False)
    thread.join()
    with pytest.raises(rt.KafkaTopicError, match=r"has a name that '\^nothing' matches as a whole"):
        read(kafka, path, "^nothing")
    with pytest.raises(rt.InvalidOptionError, match="is no pattern"):
        read(kafka, path, "^(")


def test_a_topic_of_a_pattern_that_is_gone(kafka: Any, tmp_path: Path) -> None:
    """The stream waits for its partitions until somebody closes their producers. Other producers say nothing of it."""
    path, name = str(tmp_path / "s"), kafka.topic(partitions=1)
    topics = [kafka.topic(f"{name}-shop-{n}", partitions=1) for n in (1, 2)]
    for n, topic in enumerate(topics):
        kafka.send(topic, [message(n)])
    assert read(kafka, path, f"^{name}-shop-.*") == [0, 1]
    for other in (f"{name}-shop-9-0", f"{name}-shop-9"):
        with rt.openSink(path, producer=other, lease=None) as sink:
            sink.flush(checkpoint="of another program")
            sink.abandon()
    kafka.delete_topic(topics[1])
    said = f"up to offset 1 .* there is no topic of that name now.* {topics[1]}-0"
    with pytest.raises(rt.KafkaTopicError, match=said) as gone:
        read(kafka, path, f"^{name}-shop-.*")
    assert (gone.value.values["topic"], gone.value.values["foundId"]) == (topics[1], None)
    kafka.send(topics[0], [message(2)])
    assert read(kafka, path, f"^{name}-shop-1") == [0, 1, 2], "another pattern"
    rt.closeProducer(path, f"{topics[1]}-0")
    kafka.send(topics[0], [message(3)])
    assert read(kafka, path, f"^{name}-shop-.*") == [0, 1, 2, 3]


def test_the_group_is_told_the_offsets_and_they_are_never_read(kafka: Any, tmp_path: Path) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    path, topic = str(tmp_path / "s"), kafka.topic()
    kafka.send(topic, [message(n, partition=n % 3) for n in range(10)])
    assert read(kafka, path, topic) == [*range(10)]
    with open_store(path) as store:
        group = f"rowtime-{store.stream}"

    def told() -> dict[int, int]:
        asked = kafka.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        return {at.partition: at.offset for at in asked[group].result(240).topic_partitions}

    assert told() == {0: 4, 1: 3, 2: 3}
    for wrong in (0, 2):
        places = [TopicPartition(topic, partition, wrong) for partition in range(3)]
        changed = kafka.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])
        changed[group].result(240)
        kafka.send(topic, [message(10 + wrong, partition=1)])
        read(kafka, path, topic)
    assert numbers(path) == [*range(11), 12]
    assert rt.describeStream(path).rejected == 0
    assert told() == {0: 4, 1: 5, 2: 3}


@pytest.mark.long
def test_a_topic_of_dead_letters_has_each_with_its_cause(kafka: Any, tmp_path: Path) -> None:
    path, topic, letters = str(tmp_path / "s"), kafka.topic(retention_ms=-1), kafka.topic(partitions=1)
    bad = {"value": b"{", "partition": 1, "key": b"k", "headers": [("trace", b"a")], "timestamp": 1767621600123}
    kafka.send(topic, [message(1, partition=1), bad, {"value": None, "partition": 2}, message(2, partition=1)])
    target = f"kafka://{kafka.bootstrap}/{letters}"
    assert read(kafka, path, topic, malformed=target) == [1, 2]
    assert read(kafka, path, topic, malformed=target) == [1, 2]
    found = sorted(messages(kafka.bootstrap, letters, 1)[0], key=lambda one: one.headers["rowtime.partition"])
    assert [one.value for one in found] == [b"{", None]
    assert found[0].key == b"k"
    assert found[0].headers.pop("rowtime.cause").startswith(b"it is not JSON")
    assert found[0].headers == {
        "trace": b"a",
        "rowtime.topic": topic.encode(),
        "rowtime.partition": b"1",
        "rowtime.offset": b"1",
        "rowtime.timestamp": b"1767621600123",
    }
    kafka.send(topic, [{"value": b"[", "partition": 0}])
    with pytest.raises(rt.KafkaUnavailableError, match="does not take them"):
        read(kafka, path, topic, malformed=f"kafka://{kafka.bootstrap}/nowhere", options={"message.timeout.ms": "500"})
    assert json.loads(rt.describeStream(path).producers[0].checkpoint or "")["offset"] == 0


def asks_headers(message: Any) -> dict[str, Any]:
    """A decoder that looks into the headers, after which nobody may look into them again."""
    return {"rowtime": "2026-01-05T14:00:00Z", "n": len(message.headers() or [])}


@pytest.mark.parametrize("how", ["columns", "function"])
def test_a_header_whose_name_is_no_text_is_that_of_a_message_that_is_no_row(
    kafka: Any, tmp_path: Path, how: str
) -> None:
    """It is kept with its cause, in a topic without the headers, and a feed that reads no headers takes the row."""
    topic, letters, path = kafka.topic(partitions=1), kafka.topic(partitions=1), str(tmp_path / "s")
    bad = message(1)["value"].encode()
    send_with_header(kafka.bootstrap, topic, bad, b"\xffA")
    kafka.send(topic, [message(2)])
    rt.createStream(path, WHOLE if how == "columns" else SCHEMA)
    given: dict[str, Any] = {"columns": COLUMNS} if how == "columns" else {"decoder": asks_headers}
    with pytest.raises(rt.MessageDecodeError, match="header" if how == "columns" else "SystemError"):
        read(kafka, path, topic, **given)
    target = f"kafka://{kafka.bootstrap}/{letters}"
    assert read(kafka, path, topic, malformed=target, **given) == [2 if how == "columns" else 0]
    [[letter]] = messages(kafka.bootstrap, letters, 1)
    assert (letter.value, letter.headers["rowtime.offset"]) == (bad, b"0")
    assert letter.headers["rowtime.cause"]
    assert letter.headers["rowtime.headers"] == b"the name of one of its headers is no text in UTF-8"
    assert read(kafka, tmp_path / "plain", topic) == [1, 2]


def test_a_message_with_such_a_header_is_no_bound(kafka: Any, tmp_path: Path) -> None:
    """A drain looks for its bounds in a topic, and an announcer for those of a drain."""
    topic, path = kafka.topic(partitions=1), str(tmp_path / "s")
    send_with_header(kafka.bootstrap, topic, b'{"resolved":"1767625200000000000.0000000000"}', b"\xffA")
    address = topic_address(f"kafka://{kafka.bootstrap}/{topic}")
    with closing(BoundReader(address, {})) as reader:
        assert reader.properties() == {}
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
        with rt.openSink(path, producer="p") as sink:
            sink.sendRow(("2026-01-05T10:00:00Z", 1))
            sink.sendRowtimeBound("2026-01-05T11:00:00Z")
        drain(kafka.bootstrap, path, topic)
        ended(kafka.bootstrap, topic, of=1)
        assert reader.properties()["rowtime.bound"] == "2026-01-05T11:00:00Z"


def test_a_dead_letter_may_be_as_large_as_the_topic_allows_and_its_cause_is_any_text(
    kafka: Any, tmp_path: Path
) -> None:
    """Java's client sends up to 1,048,576 bytes, librdkafka by default no more than 1,000,000."""
    topic, letters = kafka.topic(partitions=1), kafka.topic(partitions=1)
    large = b"{" * 1_040_000
    kafka.send(topic, [{"value": large, "partition": 0}, message(1)], **{"message.max.bytes": 2_000_000})

    def decode(found: Any) -> Any:
        if found.value() == large:
            raise ValueError("half of a pair: \ud83d" + "x" * 1_000_000)
        return json.loads(found.value())

    for path, kept in (("a", f"kafka://{kafka.bootstrap}/{letters}"), ("b", str(tmp_path / "kept"))):
        assert read(kafka, tmp_path / path, topic, decoder=decode, malformed=kept) == [1]
    [found] = messages(kafka.bootstrap, letters, 1)[0]
    assert found.value == large
    cause = found.headers["rowtime.cause"].decode()
    assert cause.startswith("ValueError: half of a pair: \\ud83dxxx")
    assert rows(tmp_path / "kept").column("cause").to_pylist() == [cause]


def test_a_dead_letter_that_was_compressed(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers limit the compressed size alone. Of one that is too large to be decoded the beginning is sent."""
    topic, letters = kafka.topic(partitions=1), kafka.topic(partitions=1)
    monkeypatch.setattr("spark_rowtime.kafka.malformed.LARGEST_BYTES", 5_000_000)
    monkeypatch.setattr("spark_rowtime.kafka.dead_letters.LARGEST_BYTES", 5_000_000)
    sent = [{"value": b"{" * 4_000_000, "partition": 0}, {"value": b" " * 6_000_000, "partition": 0}, message(1)]
    kafka.send(topic, sent, **{"message.max.bytes": 10_000_000, "compression.type": "zstd"})
    target = f"kafka://{kafka.bootstrap}/{letters}"
    assert read(kafka, tmp_path / "s", topic, malformed=target) == [1]
    whole, cut = messages(kafka.bootstrap, letters, 1)[0]
    assert (whole.value, cut.value) == (b"{" * 4_000_000, b" " * 1_048_576)
    assert cut.headers["rowtime.cause"].endswith(b"(Of the 6000000 bytes of its value, the first 1048576 are kept.)")


@pytest.mark.parametrize("topics", ["orders, orders-dead", "^orders.*"])
def test_a_feed_does_not_read_its_own_dead_letters(topics: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match="sent again without end"):
        KafkaFeed(servers="nowhere:1", topics=topics, malformed="kafka://elsewhere:1/orders-dead")
    KafkaFeed(servers="nowhere:1", topics="^orders-[0-9]+", malformed="kafka://elsewhere:1/orders-dead")


def test_settings_of_the_client_in_a_file(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, topic, file = str(tmp_path / "s"), kafka.topic(), tmp_path / "client.properties"
    kafka.send(topic, [message(1)])
    lines = ["security.protocol=SASL_SSL", f"ssl.ca.location={CERTIFICATE}", "sasl.mechanism=PLAIN"]
    lines += [
        "sasl.username=rowtime",
        "sasl.password={env:ROWTIME_TEST_PASSWORD}",
        "ssl.endpoint.identification.algorithm=none",
    ]
    file.write_text("\n".join(lines))
    with pytest.raises(rt.InvalidOptionError, match="ROWTIME_TEST_PASSWORD"):
        read(kafka, path, topic, servers=kafka.secure, config=str(file))
    monkeypatch.setenv("ROWTIME_TEST_PASSWORD", PASSWORD)
    assert read(kafka, path, topic, servers=kafka.secure, config=str(file)) == [1]


@pytest.mark.long
def test_a_feed_that_is_killed_sends_each_dead_letter_at_least_once(kafka: Any, tmp_path: Path) -> None:
    path, topic, letters = str(tmp_path / "s"), kafka.topic(partitions=1), kafka.topic(partitions=1)
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    target = f"malformed=kafka://{kafka.bootstrap}/{letters}"
    kafka.send(topic, [{"value": f"bad {n}"} if n % 2 else message(n) for n in range(2000)])
    with hosts(Host(kafka, path, topic, "one", target)) as started:
        eventually(lambda: rt.describeStream(path).rows > 0, True)
        started[0].end(9)
        started.append(Host(kafka, path, topic, "one", target))
        eventually(lambda: rt.describeStream(path).rows, 1000)
        eventually(lambda: len({one.value for one in messages(kafka.bootstrap, letters, 1)[0]}), 1000)


@pytest.mark.night
def test_a_partition_far_ahead_waits_for_the_one_that_is_behind(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partition 1 stands at its fifth row until the test has seen that partition 0 reads no further.

    The client fetches a few messages at a time: those that it has when a partition is paused are read on.
    """
    monkeypatch.setattr(consumption, "BATCH_MESSAGES", 10)
    monkeypatch.setattr(alignment, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(waits, "FIRST_PAUSE_SECONDS", 0.01)
    path, topic = str(tmp_path / "s"), kafka.topic(partitions=2)
    kafka.send(topic, [message(n, n, partition=n % 2) for n in range(10)])
    assert read(kafka, path, topic) == [*range(10)], "each partition has a bound, and so the stream"
    kafka.send(topic, [message(n, n, partition=n % 2) for n in range(10, 2000)], **{"batch.num.messages": 5})
    first: list[int] = []
    released = threading.Event()

    def decode(found: Any) -> Any:
        row = json.loads(found.value())
        if row["n"] == 11 and not released.is_set():
            raise rt.MessageNotReadyError("The test has not seen it yet.")
        return row

    def step(one: consumption.Consumption) -> None:
        whole(one)
        paused = one._alignment is not None and one._alignment.paused
        if paused and not released.is_set():
            assert paused == {(topic, 0)}
            first.append(len(numbers(path)))
            if len(first) > 20 and len(set(first[-20:])) == 1:
                released.set()

    whole = consumption.Consumption._step
    monkeypatch.setattr(consumption.Consumption, "_step", step)
    few = {"fetch.message.max.bytes": 1000, "queued.min.messages": 1}
    assert read(kafka, path, topic, decoder=decode, alignment="1 minute", options=few) == [*range(2000)]
    assert released.is_set()
    assert first[-1] < 700, "a minute of a row in two seconds, and what was on its way"
