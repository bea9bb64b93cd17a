"""Hosts of a feed in processes of their own: silent and added partitions, two hosts, kill -9 of hosts and broker."""

import random
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from tests.crash.tally import Tally
from tests.crash.victims import how_many
from tests.kafka.feeds import (
    SCHEMA,
    Host,
    bound,
    eventually,
    hosts,
    message,
    moment,
    numbers,
    rows,
    with_open_transaction,
)
from tests.sparksession import wait_for

KILLS = how_many(2)
"""How many hosts are killed at random moments."""
QUICK = "kafka.topic.metadata.refresh.interval.ms=200"


def test_a_silent_partition_closes_its_hours(kafka: Any, tmp_path: Path) -> None:
    """By ``idle``, while another one goes on; the partition is waited for again with its next message."""
    topic, path, sent = kafka.topic(partitions=2), str(tmp_path / "s"), [100]
    later, last = 100_000, 200_000
    rt.createStream(path, SCHEMA)

    def goes_on() -> bool:
        kafka.send(topic, [message(sent[-1] + 1, partition=1)])
        sent.append(sent[-1] + 1)
        found = rt.describeStream(path).bound
        return found is not None and found >= rt.RowtimeBound(moment(100))

    kafka.send(topic, [message(n) for n in range(5)] + [message(100, partition=1)])
    with hosts(Host(kafka, path, topic, "feed", "idle=1 second", QUICK)) as [host]:
        wait_for(goes_on, "the bound of the partition that goes on")
        eventually(lambda: numbers(path), [*range(5), *sent])
        kafka.send(topic, [message(later)])
        eventually(lambda: numbers(path), [*range(5), *sent, later])
        kafka.add_partitions(topic, 3)
        kafka.send(topic, [message(last, partition=2)])
        eventually(lambda: numbers(path)[-1:], [last])
        host.end()
    assert rt.describeStream(path).rejected == 0


@pytest.mark.long
def test_a_partition_that_is_added_is_waited_for_before_the_client_notices_it(kafka: Any, tmp_path: Path) -> None:
    """So no row of it is late that is not below what the others had reached then."""
    topic, path = kafka.topic(partitions=1), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    with hosts(Host(kafka, path, topic, "feed")):
        kafka.send(topic, [message(0)])
        eventually(lambda: numbers(path), [0])
        kafka.add_partitions(topic, 2)
        wait_for(lambda: f"{topic}-1" in bounds(path), "the new partition")
        kafka.send(topic, [message(2)])
        kafka.send(topic, [message(1, partition=1)])
        kafka.send(topic, [message(3, partition=1)])
        eventually(lambda: numbers(path), [0, 1, 2, 3])
    assert rt.describeStream(path).rejected == 0


@pytest.mark.long
def test_idle_promises_nothing(kafka: Any, tmp_path: Path) -> None:
    """Where all partitions are idle the bound stays, so rows within ``lateness`` are in time. Also after a restart."""
    topic, path = kafka.topic(partitions=2), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    given = ("idle=0 seconds", "lateness=10 minutes", QUICK)
    kafka.send(topic, [message(0, 3600), message(1, 3600, partition=1)])
    with hosts(Host(kafka, path, topic, "feed", *given)) as [host]:
        wait_for(lambda: idle(path) == 2 and numbers(path) == [0, 1], "both partitions to be idle")
        assert bound(path) == moment(3000)
        kafka.send(topic, [message(2, 3001)])
        wait_for(lambda: idle(path) == 2 and numbers(path) == [0, 1, 2], "both partitions to be idle again")
        host.end()
        kafka.send(topic, [message(3, 3002), message(4, 3003, partition=1)])
    with hosts(Host(kafka, path, topic, "feed", *given)):
        wait_for(lambda: idle(path) == 2 and numbers(path) == [0, 1, 2, 3, 4], "both partitions to be idle at last")
    assert rt.describeStream(path).rejected == 0
    assert bound(path) == moment(3000)


def idle(path: str) -> int:
    """How many partitions the stream does not wait for, because nothing comes."""
    return sum(one.status.value == "idle" for one in rt.describeStream(path).producers)


@pytest.mark.long
def test_the_brokers_time_passes_where_nothing_comes(kafka: Any, tmp_path: Path) -> None:
    """But not behind a transaction that is open: its rows have their times."""
    topic, path = kafka.topic(partitions=2, message_timestamp_type="LogAppendTime"), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    kafka.send(topic, [message(0)])
    with hosts(Host(kafka, path, topic, "feed", "bounds=append-time", "appendDelay=5 s")) as [host]:
        wait_for(lambda: numbers(path), "the row")
        [row] = rows(path).column("rowtime").to_pylist()
        wait_for(lambda: (b := rt.describeStream(path).bound) and b.time > row, "a bound behind the last row")
        producer = with_open_transaction(kafka, topic, message(1))
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
