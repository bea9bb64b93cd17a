"""A broker that is gone with all that it had: the coordinator of a group, or the only replica of a partition."""

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka.client import unavailable
from spark_rowtime.kafka.topics import Part, Topics
from tests.kafka.feeds import SCHEMA, message, numbers, read
from tests.kafka.two_brokers import DIES, KEEPS
from tests.sparksession import wait_for

pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.night

LASTING = {"kafka.session.timeout.ms": "30000", "kafka.max.poll.interval.ms": "30000"}


@pytest.fixture
def cluster(kafka_jars: Path) -> Iterator[Any]:
    """Two brokers. The second has the consumer groups, and partition 1 of topic ``t``; nothing is replicated."""
    from confluent_kafka.admin import NewTopic

    from tests.kafka.broker import START_SECONDS, KafkaBroker

    first = KafkaBroker(kafka_jars)
    second = KafkaBroker(kafka_jars, joins=first)
    try:
        wait_for(lambda: len(first.admin.list_topics(timeout=START_SECONDS).brokers) == 2, "the second broker")
        groups = NewTopic("__consumer_offsets", 1, replica_assignment=[[DIES]], config={"cleanup.policy": "compact"})
        made = first.admin.create_topics([groups, NewTopic("t", 2, replica_assignment=[[KEEPS], [DIES]])])
        for future in made.values():
            future.result(START_SECONDS)
        wait_for(lambda: first._has("t") and first._led_partitions("t") == 2, "the topic")
        yield first, second
    finally:
        second.remove()
        first.remove()


def test_a_coordinator_and_a_leader_that_are_gone(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A host whose session lasts reads the other partition, and one that has lost its group ends."""
    from spark_rowtime.kafka import group_wait, unanswered

    monkeypatch.setattr(group_wait, "GROUP_TOLD_SECONDS", 2.0)
    monkeypatch.setattr(unanswered, "LEADER_TOLD_SECONDS", 4.0)
    caplog.set_level(logging.WARNING, logger="spark_rowtime.kafka")
    first, second = cluster
    first.send("t", [message(1), message(2, partition=1)])
    short = {
        "kafka.session.timeout.ms": "2000",
        "kafka.heartbeat.interval.ms": "500",
        "kafka.max.poll.interval.ms": "4000",
    }
    with ThreadPoolExecutor(2) as threads:

        def started(name: str, **options: str) -> Future[list[int]]:
            rt.createStream(str(tmp_path / name), SCHEMA)
            running = threads.submit(read, first, tmp_path / name, "t", untilEnd=False, **options)
            wait_for(lambda: numbers(tmp_path / name) == [1, 2], "the rows")
            return running

        lasting, lost = started("lasting", **LASTING), started("lost", **short)
        second.kill()
        first.send("t", [message(3)])
        wait_for(lambda: numbers(tmp_path / "lasting") == [1, 2, 3], "the row of the other partition")
        ends, failed = Topics(first.admin, partial(unavailable, first.bootstrap)).known_ends(
            [Part("t", 0), Part("t", 1)]
        )
        assert (ends, [*failed]) == ({Part("t", 0): 2}, [Part("t", 1)]), "an answer that is missing is no end"
        with pytest.raises(rt.KafkaUnavailableError, match="has given this host no partitions for 6 s"):
            lost.result(240)
        wait_for(lambda: "Partition 1 of topic t has given no answer for" in caplog.text, "the warning")
        with pytest.raises(rt.KafkaUnavailableError, match="has given this host no partitions for 32 s"):
            lasting.result(240)
    assert caplog.text.count("Nothing is read meanwhile") == 2, "each host warns once"
    assert caplog.text.count("has given no answer for") <= 2, "each host warns once"
