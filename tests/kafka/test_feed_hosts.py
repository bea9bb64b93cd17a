"""Hosts of a feed in processes of their own: silent and added partitions, two hosts, kill -9 of hosts and broker."""

import random
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import spark_rowtime as rt
from tests.crash.tally import Tally
from tests.crash.victims import how_many
from tests.kafka.feeds import SCHEMA, Host, bound, eventually, hosts, message, moment, numbers, rows
from tests.sparksession import wait_for

KILLS = how_many(2)
"""How many hosts are killed at random moments."""
QUICK = "kafka.topic.metadata.refresh.interval.ms=200"


def test_a_silent_partition_closes_its_hours(kafka: Any, tmp_path: Path) -> None:
    """By ``idle``; the partition is waited for again with its next message."""
    topic, path = kafka.topic(partitions=2), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    kafka.send(topic, [message(n) for n in range(5)] + [message(100, partition=1)])
    with hosts(Host(kafka, path, topic, "feed", "idle=1 second", QUICK)) as [host]:
        eventually(lambda: bound(path), moment(100))
        kafka.send(topic, [message(101), message(102, partition=1)])
        eventually(lambda: numbers(path), [*range(5), 100, 101, 102])
        kafka.add_partitions(topic, 3)
        kafka.send(topic, [message(200, partition=2)])
        eventually(lambda: numbers(path)[-1:], [200])
        host.end()
    assert rt.describeStream(path).rejected == 0


def test_the_brokers_time_passes_where_nothing_comes(kafka: Any, tmp_path: Path) -> None:
    """But not behind a transaction that is open: its rows have their times."""
    from confluent_kafka import Producer

    topic, path = kafka.topic(partitions=2, message_timestamp_type="LogAppendTime"), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    kafka.send(topic, [message(0)])
    with hosts(Host(kafka, path, topic, "feed", "bounds=append-time", "appendDelay=0 s")) as [host]:
        wait_for(lambda: numbers(path), "the row")
        [row] = rows(path).column("rowtime").to_pylist()
        wait_for(lambda: (b := rt.describeStream(path).bound) and b.time > row, "a bound behind the last row")
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(topic, **message(1))
        producer.flush()
        opened = datetime.now(UTC)
        wait_for(lambda: (b := bounds(path)[f"{topic}-1"]) and b > opened, "the time of the other partition")
        assert bounds(path)[f"{topic}-0"] < opened
        producer.commit_transaction()
        eventually(lambda: numbers(path), [0, 1])
        host.end()
    assert rt.describeStream(path).rejected == 0


def test_hosts_and_the_broker_die_and_each_row_is_there_once(
    kafka: Any, tmp_path: Path, tally: Callable[[str], Tally]
) -> None:
    """Two hosts share three partitions; one of them gets kill -9, now and then the broker too, and another starts."""
    line, broker = tally("kill -9 of one of two hosts of KafkaFeed"), tally("kill -9 of the broker under KafkaFeed")
    topic, path, dice = kafka.topic(), str(tmp_path / "s"), random.Random(17)
    rt.createStream(path, SCHEMA)
    settings = ("kafka.session.timeout.ms=2000", "kafka.heartbeat.interval.ms=300")
    sent = 0
    with hosts(*(Host(kafka, path, topic, f"host-{n}", *settings) for n in range(2))) as running:
        for kill in range(KILLS):
            count = dice.randrange(200, 2000)
            kafka.send(topic, [message(n, partition=n % 3) for n in range(sent, sent + count)])
            sent += count
            reached = dice.randrange(sent - count, sent)
            wait_for(lambda reached=reached: accepted(path) >= reached, f"{reached} rows")
            victim = running.pop(0)
            victim.end(signal.SIGKILL)
            line.fault()
            if kill % 5 == 1:
                kafka.kill()
                kafka.start()
                broker.fault()
            running.append(Host(kafka, path, topic, f"again-{kill}", *settings))
        kafka.send(topic, [message(n, partition=n % 3) for n in range(sent, sent + 30)])
        sent += 30
        eventually(lambda: accepted(path), sent)
        for host in running:
            assert host.lives(), host.output
    line.account(numbers(path), range(sent), range(sent))
    assert rt.describeStream(path).rejected == 0


def test_a_host_that_stood_still_is_fenced(kafka: Any, tmp_path: Path) -> None:
    topic, path = kafka.topic(), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    settings = ("kafka.session.timeout.ms=2000", "kafka.heartbeat.interval.ms=300")
    with hosts(Host(kafka, path, topic, "one", *settings)) as running:
        kafka.send(topic, [message(n, partition=n % 3) for n in range(9)])
        eventually(lambda: accepted(path), 9)
        running[0].send(signal.SIGSTOP)
        running.append(Host(kafka, path, topic, "two", *settings))
        kafka.send(topic, [message(n, partition=n % 3) for n in range(9, 18)])
        eventually(lambda: accepted(path), 18)
        running[0].send(signal.SIGCONT)
        kafka.send(topic, [message(n, partition=n % 3) for n in range(18, 27)])
        eventually(lambda: accepted(path), 27)
        for host in running:
            assert host.lives(), host.output
    assert numbers(path) == list(range(27))


def bounds(path: str) -> dict[str, Any]:
    """The bound of each producer."""
    return {p.name: p.bound and p.bound.time for p in rt.describeStream(path).producers}


def accepted(path: str) -> int:
    """How many rows the stream has."""
    return rt.describeStream(path).rows
