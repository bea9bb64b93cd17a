"""A stream is drained into a topic; a consumer that knows nothing of this project reads it."""

import json
import math
import re
import time
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.drain.kafka import cluster, positions
from spark_rowtime.drain.kafka.sink import PARTITIONS_CHECK_SECONDS
from spark_rowtime.kafka import KafkaFeed, KafkaWatch, topics
from tests.kafka.broker import CERTIFICATE, PASSWORD
from tests.kafka.feeds import PATIENT
from tests.kafka.test_out_messages import VALUES
from tests.kafka.topics import drain, ended, messages, opened, rows_and_bound

SCHEMA = "rowtime TIMESTAMP NOT NULL, ticker STRING, n INT"
DAY = "2026-01-05T{}:00Z"
TEN, ELEVEN, TWELVE = (rt.RowtimeBound(DAY.format(f"{hour}:00")).floor for hour in (10, 11, 12))


@pytest.fixture
def stream(tmp_path: Path) -> str:
    """Nine rows from 10:00 to 10:08 of three tickers, and the bound 11:00."""
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA)
    more(path, range(9), "11:00")
    return path


def more(path: str, numbers: range, bound: str | None = None, **end: bool) -> None:
    """Sends rows, one for each minute after 10:00, and a bound, in one commit."""
    sink = rt.openSink(path, producer="shop", rowsImplyBounds=False)
    if numbers:
        sink.sendRows([(DAY.format(f"{10 + n // 60}:{n % 60:02}"), ("IBM", "AAPL", "SAP")[n % 3], n) for n in numbers])
    if bound:
        sink.sendRowtimeBound(DAY.format(bound))
    sink.flush()
    if end:
        sink.close(**end)
    else:
        sink.abandon()


def test_each_partition_has_rows_and_behind_them_the_bound(kafka: Any, stream: str) -> None:
    topic = kafka.topic()
    drain(kafka.bootstrap, stream, topic, key="ticker")
    found = messages(kafka.bootstrap, topic)
    assert rows_and_bound(found) == (pytest.approx([*range(9)], abs=9), ELEVEN)
    for partition in found:
        *rows, last = partition
        assert last.value == b'{"resolved":"1767610800000000000.0000000000"}'
        assert last.headers == {
            "rowtime.bound": b"2026-01-05T11:00:00Z",
            "rowtime.strict": b"false",
            "rowtime.first": b"2026-01-05T10:00:00Z",
            "rowtime.last": b"2026-01-05T10:08:00Z",
        }
        assert last.key is None
        assert all(row.resolved is None and not row.headers for row in rows)
    where = {row.key: at for at, partition in enumerate(found) for row in partition[:-1]}
    assert all(where[row.key] == at for at, partition in enumerate(found) for row in partition[:-1])
    first = next(row for partition in found for row in partition if row.key == b"IBM")
    assert first.value == b'{"rowtime":"2026-01-05T10:00:00Z","ticker":"IBM","n":0}'


def test_a_drain_continues_at_the_position_and_a_bound_needs_no_rows(kafka: Any, stream: str) -> None:
    topic = kafka.topic()
    drain(kafka.bootstrap, stream, topic)
    more(stream, range(0), "12:00")
    drain(kafka.bootstrap, stream, topic)
    drain(kafka.bootstrap, stream, topic)
    found = messages(kafka.bootstrap, topic)
    numbers, bound = rows_and_bound(found)
    assert (sorted(numbers), bound) == ([*range(9)], TWELVE)
    assert [[m.resolved for m in partition if m.resolved] for partition in found] == [[ELEVEN, TWELVE]] * 3


def test_the_command_makes_the_topic_and_says_what_it_did(kafka: Any, stream: str, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("# ours\nclient.id = drain\n\ncompression.type=gzip\n")
    target = f"kafka://{kafka.bootstrap}/made-by-the-command"
    command = ["drain", stream, target, "--key", "ticker", "--partitions", "2", "--config", str(settings)]
    for rows in (9, 0):
        done = CliRunner().invoke(main, [*command, "--set", "linger.ms=1"])
        assert done.output == f"{target}: {rows} row(s) read; the topic's bound is 2026-01-05T11:00:00Z\n"
    assert sorted(rows_and_bound(messages(kafka.bootstrap, "made-by-the-command", 2))[0]) == [*range(9)]


@pytest.mark.long
def test_partitions_that_are_added_get_the_bound(kafka: Any, stream: str) -> None:
    topic, clock = kafka.topic(), [0.0]
    with rt.openReader(stream) as reader, opened(kafka.bootstrap, topic, reader.schema, every="0 s") as sink:
        sink._now = lambda: clock[0]
        reader.drainTo(sink)
        kafka.add_partitions(topic, 4)
        assert sink.commitDue() == PARTITIONS_CHECK_SECONDS, "not looked at yet"
        clock[0] += PARTITIONS_CHECK_SECONDS
        assert sink.commitDue() == PARTITIONS_CHECK_SECONDS
    assert [len([m for m in p if m.resolved == ELEVEN]) for p in messages(kafka.bootstrap, topic, 4)] == [1] * 4
    kafka.add_partitions(topic, 5)
    drain(kafka.bootstrap, stream, topic)
    found = messages(kafka.bootstrap, topic, 5)
    assert [len([m for m in p if m.resolved == ELEVEN]) for p in found] == [1] * 5
    more(stream, range(60, 90), "12:00")
    drain(kafka.bootstrap, stream, topic, key="ticker")
    numbers, bound = rows_and_bound(messages(kafka.bootstrap, topic, 5))
    assert (sorted(numbers), bound) == ([*range(9), *range(60, 90)], TWELVE)


def test_a_complete_stream_says_so(kafka: Any, stream: str) -> None:
    topic = kafka.topic()
    more(stream, range(0), complete=True)
    drain(kafka.bootstrap, stream, topic)
    for partition in messages(kafka.bootstrap, topic):
        assert partition[-1].value == b'{"resolved":"9223372036854775807.0000000000"}'
        assert partition[-1].headers["rowtime.bound"] == b"9999-12-31T23:59:59.999998Z"
        assert partition[-1].headers["rowtime.strict"] == b"true"
    with rt.openReader(stream) as reader, opened(kafka.bootstrap, topic, reader.schema) as sink:
        assert sink.rowtimeBound == rt.RowtimeBound.END


def test_a_function_writes_the_values(kafka: Any, stream: str) -> None:
    topic = kafka.topic(partitions=1)
    drain(kafka.bootstrap, stream, topic, value=lambda row: f"{row['ticker']} {row['n']}", key="n")
    (found,) = messages(kafka.bootstrap, topic, 1)
    assert [(m.key, m.value) for m in found[:2]] == [(b"0", b"IBM 0"), (b"1", b"AAPL 1")]
    assert [m.headers.get("rowtime.bound") for m in found] == [None] * 9 + [b"2026-01-05T11:00:00Z"]


def test_a_second_drain_fences_the_first(kafka: Any, stream: str) -> None:
    topic = kafka.topic()
    with rt.openReader(stream) as reader:
        first = opened(kafka.bootstrap, topic, reader.schema, every="0 s")
        drain(kafka.bootstrap, stream, topic)
        with pytest.raises(rt.ProducerFencedError, match=r"Another drain into .* has started"):
            reader.drainTo(first)
        first.abandon()
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(9)]


def test_a_row_that_cannot_be_written_takes_its_transaction_with_it(kafka: Any, stream: str) -> None:
    topic = kafka.topic()

    def value(row: dict[str, Any]) -> str:
        if row["n"] == 7:
            raise ZeroDivisionError
        return json.dumps(row, default=str)

    with pytest.raises(ZeroDivisionError):
        drain(kafka.bootstrap, stream, topic, value=value)
    assert messages(kafka.bootstrap, topic) == [[], [], []]
    drain(kafka.bootstrap, stream, topic)
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(9)]


@pytest.mark.long
@pytest.mark.parametrize(("topics", "clients"), [({"max_message_bytes": 1000}, {}), ({}, {"message.max.bytes": 1000})])
def test_a_message_that_is_too_large_is_an_error(kafka: Any, stream: str, topics: Any, clients: Any) -> None:
    topic = kafka.topic(**topics)
    with pytest.raises(rt.SchemaMismatchError, match=r"larger than the client \(message\.max\.bytes\) or the topic"):
        drain(kafka.bootstrap, stream, topic, value=lambda _: "x" * 5000, options=clients)
    assert messages(kafka.bootstrap, topic) == [[], [], []]


@pytest.mark.long
def test_a_topic_that_is_deleted_while_a_drain_runs_is_an_error(kafka: Any, stream: str) -> None:
    topic = kafka.topic()
    with rt.openReader(stream) as reader, opened(kafka.bootstrap, topic, reader.schema, every="0 s") as sink:
        reader.drainTo(sink)
        kafka.delete_topic(topic)
        kafka.topic(topic)
        more(stream, range(60, 63), "12:00")
        with pytest.raises(rt.KafkaTopicError, match="was deleted while this drain ran, and created again"):
            reader.drainTo(sink)
    assert messages(kafka.bootstrap, topic) == [[], [], []]


@pytest.mark.long
def test_a_topic_that_is_gone_is_no_transaction_that_took_too_long(kafka: Any, stream: str) -> None:
    topic, settings = kafka.topic(), {"transaction.timeout.ms": 2000}
    with (
        rt.openReader(stream) as reader,
        opened(kafka.bootstrap, topic, reader.schema, every="0 s", options=settings) as sink,
    ):
        reader.drainTo(sink)
        kafka.delete_topic(topic)
        more(stream, range(60, 63), "12:00")
        with pytest.raises(rt.KafkaTopicError, match="was deleted while this drain ran, and not created again"):
            reader.drainTo(sink)


def test_a_topic_that_was_created_again_is_an_error_until_it_is_wanted(
    kafka: Any, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "SETTLE_SECONDS", 0.2)
    topic = kafka.topic()
    drain(kafka.bootstrap, stream, topic)
    kafka.delete_topic(topic)
    with pytest.raises(rt.KafkaTopicError, match="and not created again") as caught:
        drain(kafka.bootstrap, stream, topic)
    assert caught.value.values["foundId"] is None
    kafka.topic(topic)
    with pytest.raises(rt.KafkaTopicError, match="start the drain with --anew") as caught:
        drain(kafka.bootstrap, stream, topic)
    assert caught.value.values["topic"] == topic
    assert caught.value.values["topicId"] != caught.value.values["foundId"]
    for _ in range(2):
        drain(kafka.bootstrap, stream, topic, anew=True)
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(9)]


@pytest.mark.parametrize("behind", [1, 3])
def test_a_topic_that_was_created_again_gets_all_rows_though_a_broker_answers_with_the_old_one(
    kafka: Any, stream: str, monkeypatch: pytest.MonkeyPatch, behind: int
) -> None:
    """A broker whose metadata are behind the controller's answers with the id of the deleted topic."""
    monkeypatch.setattr(cluster, "SETTLE_SECONDS", 60.0)
    topic = kafka.topic()
    drain(kafka.bootstrap, stream, topic)
    old = recreated(kafka, topic)
    stale_answers(monkeypatch, topic, [old] * behind)
    drain(kafka.bootstrap, stream, topic, anew=True)
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(9)]


@pytest.mark.parametrize("anew", [True, False])
def test_brokers_that_do_not_agree_on_a_topic_are_an_error(
    kafka: Any, stream: str, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    topic = kafka.topic()
    drain(kafka.bootstrap, stream, topic)
    old = recreated(kafka, topic)
    monkeypatch.setattr(cluster, "SETTLE_SECONDS", 0.3)
    stale_answers(monkeypatch, topic, [old, False] * 1000)
    with pytest.raises(rt.KafkaUnavailableError, match=r"do not agree .* Run the drain again"):
        drain(kafka.bootstrap, stream, topic, anew=anew)
    assert messages(kafka.bootstrap, topic) == [[], [], []]


def recreated(kafka: Any, topic: str) -> Any:
    """Deletes the topic and makes another one of its name; returns what the broker said of the old one."""
    old = kafka.describe(topic)
    kafka.delete_topic(topic)
    kafka.topic(topic)
    return old


def stale_answers(monkeypatch: pytest.MonkeyPatch, topic: str, stale: list[Any]) -> None:
    """The next questions for a topic get these answers; False: that of the broker, as all further ones."""
    ask = topics.describe_topics

    def answer(admin: Any, names: Any, seconds: float) -> dict[str, Any]:
        found = stale.pop(0) if stale and topic in names else False
        return found or ask(admin, names, seconds)

    monkeypatch.setattr(topics, "describe_topics", answer)


def test_another_topic_of_positions_does_not_send_every_row_twice(kafka: Any, stream: str) -> None:
    topic, places = kafka.topic(), [kafka.topic() + "-positions" for _ in range(2)]
    kafka.send(topic, [{"value": "another program's", "partition": 0}])
    drain(kafka.bootstrap, stream, topic, positions=places[0])
    kafka.send(topic, [{"value": "another program's", "partition": 0}])
    with pytest.raises(rt.InvalidOptionError, match="has not kept its position in the topic"):
        drain(kafka.bootstrap, stream, topic, positions=places[1])
    drain(kafka.bootstrap, stream, topic, positions=places[0])
    assert rows_in(kafka.bootstrap, topic) == 9
    drain(kafka.bootstrap, stream, topic, positions=places[1], anew=True)
    assert rows_in(kafka.bootstrap, topic) == 18, "it was wanted"


def rows_in(servers: str, topic: str) -> int:
    partitions = messages(servers, topic)
    return sum(b"ticker" in (message.value or b"") for partition in partitions for message in partition)


def test_a_topic_that_another_stream_was_drained_into_is_refused(kafka: Any, stream: str, tmp_path: Path) -> None:
    topic, other = kafka.topic(), str(tmp_path / "other.rowtime")
    rt.createStream(other, SCHEMA)
    drain(kafka.bootstrap, stream, topic)
    with pytest.raises(rt.InvalidOptionError, match="This position belongs to the stream"):
        drain(kafka.bootstrap, other, topic)


def test_a_compacted_topic_is_refused(kafka: Any, stream: str) -> None:
    """It has no messages without a key, and would not keep all rows."""
    with pytest.raises(rt.InvalidOptionError, match=r"has cleanup\.policy=compact"):
        drain(kafka.bootstrap, stream, kafka.topic(cleanup_policy="compact"), key="ticker")


def test_positions_need_a_compacted_topic(kafka: Any, stream: str) -> None:
    topic, plain = kafka.topic(), kafka.topic(cleanup_policy="compact,delete")
    with pytest.raises(rt.InvalidOptionError, match=r"has cleanup\.policy=compact,delete"):
        drain(kafka.bootstrap, stream, topic, positions=plain)


@pytest.mark.long
def test_what_another_program_has_written_is_no_position(kafka: Any, stream: str) -> None:
    topic, kept = kafka.topic(), kafka.topic(partitions=1, cleanup_policy="compact")
    for value in ("no JSON", "[1]", "{}"):
        kafka.send(kept, [{"key": topic, "value": value}])
        with pytest.raises(
            rt.InvalidOptionError, match=f"{kept} with the key '{topic}' is not the position of a drain"
        ):
            drain(kafka.bootstrap, stream, topic, positions=kept)


@pytest.mark.long
def test_a_position_outlives_the_retention_of_the_topic(kafka: Any, stream: str) -> None:
    """Positions of other drains, and compaction, do not hide it."""
    topic = kafka.topic()
    drain(kafka.bootstrap, stream, topic)
    before = kafka.topic()
    for hour in range(11, 15):
        more(stream, range(0), f"{hour}:30")
        drain(kafka.bootstrap, stream, before)
    empty(kafka, topic)
    drain(kafka.bootstrap, stream, topic)
    assert rows_and_bound(messages(kafka.bootstrap, topic)) == ([], rt.RowtimeBound(DAY.format("14:30")).floor)


def empty(kafka: Any, topic: str) -> None:
    """Removes what the topic has, as retention does."""
    from confluent_kafka import OFFSET_END, TopicPartition

    removed = kafka.admin.delete_records([TopicPartition(topic, partition, OFFSET_END) for partition in range(3)])
    for future in removed.values():
        future.result(240)
    assert messages(kafka.bootstrap, topic) == [[], [], []]


@pytest.mark.long
def test_a_position_behind_a_transaction_that_is_open_is_waited_for(
    kafka: Any, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older position would be taken otherwise, and rows be sent twice."""
    from confluent_kafka import Producer

    topic, places = kafka.topic(), kafka.topic(partitions=1, cleanup_policy="compact")
    first = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "another-drain"})
    with rt.openReader(stream) as reader, opened(kafka.bootstrap, topic, reader.schema, positions=places) as sink:
        first.init_transactions(240)
        first.begin_transaction()
        first.produce(places, b"{}", b"another")
        assert first.flush(240) == 0
        reader.drainTo(sink)
    with monkeypatch.context() as impatient:
        impatient.setattr(positions, "HANGING_SECONDS", 0.5)
        with pytest.raises(rt.KafkaUnavailableError, match="a transaction of another drain has not ended"):
            drain(kafka.bootstrap, stream, topic, positions=places)
    first.abort_transaction(240)
    drain(kafka.bootstrap, stream, topic, positions=places)
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(9)]


@pytest.mark.long
def test_a_transaction_that_takes_too_long_is_an_error(
    kafka: Any, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    monkeypatch.setattr("spark_rowtime.drain.kafka.messages.BATCH_ROWS", 1)

    def slow(row: dict[str, Any]) -> str:
        if row["n"] == 8:
            until = time.monotonic() + 1.6
            while time.monotonic() < until:
                pass
        return json.dumps(row, default=str)

    with pytest.raises(rt.KafkaUnavailableError, match=r"has taken longer than 1 s \(transaction\.timeout\.ms\)"):
        drain(kafka.bootstrap, stream, topic, value=slow, options={"transaction.timeout.ms": 1000})
    assert [m for partition in messages(kafka.bootstrap, topic) for m in partition] == []


@pytest.mark.long
def test_no_broker_is_said_in_time_with_its_address(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = re.compile(r"127\.0\.0\.1:1/orders: .*Connection refused")
    for seconds in (0.5, 5.0, 60.0):  # the client may not have tried to connect before
        monkeypatch.setattr(cluster, "REQUEST_SECONDS", seconds)
        with pytest.raises(rt.KafkaUnavailableError) as caught:
            drain("127.0.0.1:1", stream, "orders")
        if refused.search(str(caught.value)):
            break
    assert refused.search(str(caught.value))
    assert caught.value.values["servers"] == "127.0.0.1:1"


def test_a_named_reader_confirms_what_the_topic_has(kafka: Any, stream: str) -> None:
    topic = kafka.topic()
    with (
        rt.openReader(stream, name="out") as reader,
        opened(kafka.bootstrap, topic, reader.schema, every="1 hour") as sink,
    ):
        reader.drainTo(sink)
        kept = rt.describeStream(stream).readers
        assert [(one.name, one.unread) for one in kept] == [("out", 0)]
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(9)]


def secured(kafka: Any, folder: Path, **more: str) -> tuple[str, list[str]]:
    """The address of the listener with TLS and a password, and the command's options for it."""
    lines = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(CERTIFICATE),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "rowtime",
        "sasl.password": "{env:ROWTIME_TEST_PASSWORD}",
        **more,
    }
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return f"kafka://{kafka.secure}/", ["--config", str(file)]


def test_a_drain_through_tls_with_a_password(
    kafka: Any, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, (brokers, options) = kafka.topic(), secured(kafka, tmp_path)
    monkeypatch.setenv("ROWTIME_TEST_PASSWORD", PASSWORD)
    done = CliRunner().invoke(main, ["drain", stream, f"{brokers}{topic}", *options])
    assert (done.exit_code, "9 row(s) read" in done.output) == (0, True), done.output
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(9)]


@pytest.mark.parametrize(("more", "said"), [({}, "Authentication failed"), ({"ssl.ca.location": "probe"}, "SSL")])
def test_no_error_shows_the_password(
    kafka: Any, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], said: str
) -> None:
    monkeypatch.setenv("ROWTIME_TEST_PASSWORD", "hunter2")
    brokers, options = secured(kafka, tmp_path, **more)
    for seconds in (1.0, 10.0, 120.0):  # the broker's refusal may take its time
        monkeypatch.setattr(cluster, "REQUEST_SECONDS", seconds)
        done = CliRunner().invoke(main, ["drain", stream, f"{brokers}orders", *options])
        assert done.exit_code == 1
        assert "hunter2" not in f"{done.output} {done.exception!r}"
        if said in done.output:
            break
    assert said in done.output


def test_a_feed_reads_rows_and_bounds_back(kafka: Any, stream: str, tmp_path: Path) -> None:
    topic, back = kafka.topic(), str(tmp_path / "back.rowtime")
    drain(kafka.bootstrap, stream, topic, key="ticker")
    ended(kafka.bootstrap, topic)
    rt.createStream(back, SCHEMA)
    given = {"servers": kafka.bootstrap, "topics": topic, "bounds": "resolved", "untilEnd": True, **PATIENT}
    rt.runAdapter(KafkaFeed, back, arguments=given, restarts=0)
    with rt.openReader(back) as copy, rt.openReader(stream) as reader:
        assert rows_of(copy) == rows_of(reader)
        assert copy.getRowtimeBound() == reader.getRowtimeBound()


@pytest.mark.parametrize("adapter", [KafkaFeed, KafkaWatch])
def test_the_end_of_a_stream_is_read_back(kafka: Any, stream: str, tmp_path: Path, adapter: Any) -> None:
    """Whatever maxAhead is. So the last windows over a topic close, too."""
    topic, back = kafka.topic(), str(tmp_path / "back.rowtime")
    more(stream, range(60, 63), complete=True)
    drain(kafka.bootstrap, stream, topic)
    ended(kafka.bootstrap, topic)
    rt.createStream(back, SCHEMA if adapter is KafkaFeed else "rowtime TIMESTAMP NOT NULL", maxAhead="1 day")
    given = {"servers": kafka.bootstrap, "topics": topic, "bounds": "resolved", "untilEnd": True, **PATIENT}
    rt.runAdapter(adapter, back, arguments=given, restarts=0)
    assert rt.describeStream(back).bound == rt.RowtimeBound.END


def test_a_feed_reads_values_of_all_types_back(kafka: Any, tmp_path: Path) -> None:
    kinds: dict[str, list[Any]] = {kind: [] for kind, _, _ in VALUES}
    for kind, value, _ in VALUES:
        kinds[kind].append(value)
    paths, topic = [str(tmp_path / name) for name in ("s", "back")], kafka.topic(partitions=1)
    for path in paths:
        columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds))
        rt.createStream(path, f"rowtime TIMESTAMP NOT NULL, {columns}")
    with rt.openSink(paths[0], producer="shop") as sink:
        sink.sendRows([(DAY.format("10:00"), *row) for row in zip_longest(*kinds.values())])
    drain(kafka.bootstrap, paths[0], topic)
    ended(kafka.bootstrap, topic, of=1)
    given = {"servers": kafka.bootstrap, "topics": topic, "bounds": "resolved", "untilEnd": True, **PATIENT}
    rt.runAdapter(KafkaFeed, paths[1], arguments=given, restarts=0)
    sent, back = ([[comparable(v) for v in row] for row in rows_of(rt.openReader(path))] for path in paths)
    assert back == sent


def comparable(value: Any) -> Any:
    """NaN, which is not equal to itself, as a text."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def rows_of(reader: rt.RowReader) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for train in reader for row in train.rows.to_pylist()]
