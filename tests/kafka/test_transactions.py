"""Transactions that hang, and are aborted: nothing passes over rows that may still be committed, and nothing stops.

``read_committed`` consumers see nothing behind an open transaction. One whose producer is dead ends with the time limit
of the transaction, or when a new producer of that name starts.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.drain.kafka import positions
from spark_rowtime.kafka import quiet
from tests.kafka.feeds import eventually, message, moment, numbers, read
from tests.kafka.hanging import end, left_open
from tests.kafka.test_bounds import DAY, client, floor, kafka_bounds, path, us  # noqa: F401  (a fixture)
from tests.kafka.topic_bounds import TopicBounds, hourly, promise
from tests.kafka.topics import drain, ended, messages, opened, readable, rows_and_bound
from tests.spark.observed_query import Observed
from tests.sparksession import wait_for
from tests.streams import at

pytest.importorskip("confluent_kafka")
COMMITTED = {"kafka.isolation.level": "read_committed"}


def row(clock: str) -> dict[str, Any]:
    """A message of a test with KafkaBounds."""
    return {"value": clock, "partition": 0}


def said(caplog: pytest.LogCaptureFixture, words: str) -> str:
    """The first message in the log with these words, once it is there."""
    found: str = wait_for(lambda: next((text for text in list(caplog.messages) if words in text), None), words)
    return found


@pytest.mark.long
def test_a_feed_waits_behind_a_transaction_that_hangs_and_says_so(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The last message is no row, and ends the feed."""
    monkeypatch.setattr(quiet, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(quiet, "HANGING_SECONDS", 0.2)
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(0)])
    left_open(kafka, topic, message(1), name=topic)
    kafka.send(topic, [message(2), {"value": b"{", "partition": 0}])
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        reading = pool.submit(read, kafka, tmp_path / "s", topic, untilEnd=False, idle="0 s")
        assert said(caplog, "still open").startswith(f"Partition 0 of topic {topic} does not go on behind offset 1:")
        eventually(lambda: numbers(tmp_path / "s"), [0])
        end(kafka, topic)
        with pytest.raises(rt.MessageDecodeError, match="offset 3"):
            reading.result()
    assert numbers(tmp_path / "s") == [0, 2]
    [partition] = rt.describeStream(str(tmp_path / "s")).producers
    assert partition.epoch == 2, "attached, and read: idle has not let it go, though nothing came"


def test_a_cut_lies_behind_the_messages_of_an_open_transaction(kafka: Any, path: str) -> None:  # noqa: F811
    """So the bound counts for a read_committed reader when the transaction has ended, and not before."""
    topic = kafka.topic()
    left_open(kafka, topic, row("9:00"), row("9:01"), name=topic)
    with kafka_bounds(kafka, topic, path) as orders:
        orders.sendRowtimeBound(f"{DAY}10:00Z")
        orders.flush()
        assert readable(kafka.bootstrap, topic) == [0, 0, 0]
        assert readable(kafka.bootstrap, topic, committed=False) == [2, 0, 0]
        assert floor(path, topic, *readable(kafka.bootstrap, topic)) is None
        orders.produce("10:30", rowtime=f"{DAY}10:30Z", partition=0)
        orders.sendRowtimeBound(f"{DAY}11:00Z")
        orders.flush()
        assert floor(path, topic, *readable(kafka.bootstrap, topic)) is None
        assert floor(path, topic, *readable(kafka.bootstrap, topic, committed=False)) == us("11:00")
        end(kafka, topic)
        ended(kafka.bootstrap, topic)
        assert floor(path, topic, *readable(kafka.bootstrap, topic)) == us("11:00")


@pytest.mark.parametrize("ends", ["commit_transaction", "abort_transaction"])
def test_a_bound_within_a_transaction_counts_once_it_has_ended(kafka: Any, path: str, ends: str) -> None:  # noqa: F811
    topic = kafka.topic()
    producer = client(kafka, **{"transactional.id": topic})
    producer.init_transactions(240)
    with rt.KafkaBounds(producer, topic, rt.openSink(path, producer="app", linger="1 hour")) as orders:
        producer.begin_transaction()
        orders.produce("9:00", rowtime=f"{DAY}09:00Z", partition=0)
        orders.sendRowtimeBound(f"{DAY}10:00Z")
        orders.flush()
        assert floor(path, topic, *readable(kafka.bootstrap, topic)) is None
        getattr(producer, ends)(240)
        ended(kafka.bootstrap, topic)
        assert floor(path, topic, *readable(kafka.bootstrap, topic)) == us("10:00")
        with pytest.raises(rt.LateRowError):
            orders.produce("9:00", rowtime=f"{DAY}09:00Z", partition=0)
    seen = [value.value for part in messages(kafka.bootstrap, topic) for value in part]
    assert seen == ([b"9:00"] if ends == "commit_transaction" else [])


@pytest.mark.long
def test_messages_that_an_abort_has_taken_back_hold_the_next_bound_once(kafka: Any, path: str) -> None:  # noqa: F811
    """They were in the client. Whoever does not produce them again calls again."""
    topic = kafka.topic()
    producer = client(kafka, **{"transactional.id": topic, "linger.ms": 20_000})
    producer.init_transactions(240)
    with rt.KafkaBounds(producer, topic, rt.openSink(path, producer="app", linger="1 hour")) as orders:
        producer.begin_transaction()
        orders.produce("9:00", rowtime=f"{DAY}09:00Z", partition=0)
        producer.abort_transaction(240)
        with pytest.raises(rt.KafkaUnavailableError, match="Produce them again") as caught:
            orders.sendRowtimeBound(f"{DAY}10:00Z")
        assert caught.value.values["code"] == "_PURGE_QUEUE"
        orders.sendRowtimeBound(f"{DAY}10:00Z")
        orders.flush()
        assert floor(path, topic, *readable(kafka.bootstrap, topic)) == us("10:00")


def waits(topic_bounds: TopicBounds, query: Observed) -> rt.Explanation | None:
    """Why there is no output, once the query has told that it has not read as far as a cut."""
    with suppress(rt.InvalidOptionError):  # it has told nothing yet
        found = rt.why(topic_bounds.bounds, at("13:00"), query=str(query.query.id))
        return found if found.cause is rt.Cause.CUT else None
    return None


@pytest.mark.long
def test_a_window_beside_waits_for_a_transaction_that_may_still_bring_rows(
    spark: Any, kafka: Any, tmp_path: Path
) -> None:
    noon, one = ("12:00", "13:00"), ("13:00", "14:00")
    topic_bounds = TopicBounds(spark, kafka, tmp_path)
    producer = client(kafka, **{"transactional.id": topic_bounds.bounds})
    producer.init_transactions(240)

    def put(clock: str, key: str) -> None:
        producer.begin_transaction()
        producer.produce(topic_bounds.topics[0], f'{{"ts": "2006-09-11T{clock}:00Z", "k": "{key}"}}', partition=0)
        assert producer.flush(240) == 0

    with closing(topic_bounds.sink()) as sink, Observed(hourly(topic_bounds.rows(**COMMITTED)), tmp_path) as query:
        put("12:10", "a")
        topic_bounds.put(1, ("12:20", "a"))
        promise(sink, "13:00", {topic_bounds.topics[0]: {0: 1, 1: 1}})
        assert query.step() == []
        found = wait_for(lambda: waits(topic_bounds, query), "the account of the batch")
        assert f"up to {topic_bounds.topics[0]}[0] at 1. It has read {topic_bounds.topics[0]}[0] at 0." in found.note
        producer.commit_transaction(240)
        ended(kafka.bootstrap, topic_bounds.topics[0])
        assert query.step() == [(noon, "a", 2)]
        put("13:10", "b")
        topic_bounds.put(1, ("13:20", "c"))
        promise(sink, "14:00", {topic_bounds.topics[0]: {0: 3, 1: 2}})
        assert query.step() == []
        producer.abort_transaction(240)
        ended(kafka.bootstrap, topic_bounds.topics[0])
        assert query.step() == [(one, "c", 1)], "nothing of an aborted transaction"
    assert topic_bounds.rejected == []


LAST = 9223372036854775807 // 1000
"""The bound of a complete topic."""
SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"


@pytest.fixture
def stream(tmp_path: Path) -> str:
    """Six rows and the bound behind them."""
    stream = str(tmp_path / "numbers.rowtime")
    rt.createStream(stream, SCHEMA)
    sink = rt.openSink(stream, producer="shop")
    sink.sendRows([(moment(n), n) for n in range(6)])
    sink.close(complete=True)
    return stream


@pytest.mark.long
def test_consumers_of_a_drained_topic_wait_for_a_transaction_that_hangs(kafka: Any, stream: str) -> None:
    """Of another producer, and of the drain before, which the next one ends at once."""
    topic = kafka.topic()
    left_open(kafka, topic, {"value": '{"n": -1}', "partition": 0}, name=topic)
    left_open(kafka, topic, {"value": '{"n": -2}', "partition": 1}, name=f"rowtime-drain-{topic}")
    drain(kafka.bootstrap, stream, topic, key="n")
    ended(kafka.bootstrap, topic, 1, 2)
    first, second, third = messages(kafka.bootstrap, topic, hanging=True)
    assert first == [], "nothing behind the transaction of another producer"
    assert second[-1].headers["rowtime.strict"] == b"true"
    assert third[-1].headers["rowtime.strict"] == b"true"
    end(kafka, topic)
    found, bound = rows_and_bound(messages(kafka.bootstrap, topic))
    assert sorted(found) == [*range(6)]
    assert bound == LAST


@pytest.mark.long
def test_a_drain_waits_for_a_position_behind_a_transaction_that_hangs(
    kafka: Any, stream: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(positions, "LOGGED_SECONDS", 0.2)
    topic, places = kafka.topic(), kafka.topic(partitions=1, cleanup_policy="compact")
    with rt.openReader(stream) as reader, opened(kafka.bootstrap, topic, reader.schema, positions=places) as sink:
        left_open(kafka, places, {"value": "{}", "key": "another"}, name=topic)
        reader.drainTo(sink)
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        draining = pool.submit(drain, kafka.bootstrap, stream, topic, positions=places)
        found = said(caplog, "This drain waits")
        assert f"The topic {places} with the positions can be read up to offset 0" in found
        end(kafka, topic)
        draining.result()
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(6)]
