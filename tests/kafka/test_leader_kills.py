"""kill -9 of one of two brokers, which leads partitions, under each way of use: 0 lost, 0 twice, and the leaders move.

Once in CI, the query beside a topic in `make test-night`; many:
``ROWTIME_KILLS=100 python -m pytest tests/kafka/test_leader_kills.py``.
"""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka.client import unavailable
from spark_rowtime.kafka.topics import Topics
from tests.crash.tally import Tally
from tests.crash.victims import Victim, how_many
from tests.kafka.feeds import SCHEMA, Host, eventually, hosts, message, numbers
from tests.kafka.test_bounds_kills import check_killed
from tests.kafka.test_out_kills import Pipeline, kill_brokers
from tests.kafka.topic_bounds import TopicBounds, hourly, promise
from tests.spark.observed_query import Observed
from tests.sparksession import wait_for

pytest.importorskip("confluent_kafka")
NOON = ("12:00", "13:00")


@pytest.mark.night
def test_a_feed_reads_on_from_the_new_leaders(two_brokers: Any, tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """The leader is killed while messages are sent to it, and read from it."""
    topic, path, dice = two_brokers.topic(), str(tmp_path / "s"), random.Random(5)
    line, sent = tally("kill -9 of the leader of partitions under KafkaFeed"), 0
    rt.createStream(path, SCHEMA)
    with hosts(Host(two_brokers, path, topic, "feed")) as [host], ThreadPoolExecutor(1) as pool:
        for _ in range(how_many(1)):
            count, before = dice.randrange(2000, 8000), sent
            rows = [message(n, partition=n % 3) for n in range(sent, sent + count)]
            sending, sent = pool.submit(two_brokers.send, topic, rows), sent + count
            reached = before + dice.randrange(count // 2)
            wait_for(lambda reached=reached: rt.describeStream(path).rows > reached, f"{reached} rows")
            two_brokers.kill()
            line.fault()
            sending.result()
            two_brokers.moved()
            eventually(lambda: rt.describeStream(path).rows, sent)
            two_brokers.start()
        assert host.lives(), host.output
    line.account(numbers(path), range(sent), range(sent))
    assert rt.describeStream(path).rejected == 0


@pytest.mark.night
def test_bounds_beside_go_on_with_the_new_leaders(
    two_brokers: Any, tmp_path: Path, tally: Callable[[str], Tally]
) -> None:
    """A client that would ask the broker that has died asks the other one."""
    from tests.kafka import bounded

    line, topic = tally("kill -9 of the leader of partitions under rt.KafkaBounds"), two_brokers.topic()
    path = str(tmp_path / "bounds")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    victim = Victim(bounded.pour, two_brokers.bootstrap, topic, path, "a", 0)
    for _ in range(how_many(1)):
        assert victim.listen(240, len(victim.heard) + 100)
        admin = two_brokers.asks_the_second()
        two_brokers.kill()
        line.fault()
        topics = Topics(admin, partial(unavailable, two_brokers.bootstrap), seconds=240)
        assert len(topics.ends(topics.describe(topic).parts, committed=False)) == 3
        two_brokers.moved()
        assert victim.listen(240, len(victim.heard) + 100)
        two_brokers.start()
    check_killed(victim, two_brokers, topic, path, line)


@pytest.mark.night
def test_a_query_beside_reads_on_from_the_new_leaders(spark: Any, two_brokers: Any, tmp_path: Path) -> None:
    topic_bounds = TopicBounds(spark, two_brokers, tmp_path)
    with closing(topic_bounds.sink()) as sink, Observed(hourly(topic_bounds.rows()), tmp_path) as query:
        topic_bounds.put(0, ("12:10", "a"))
        topic_bounds.put(1, ("12:20", "a"))
        promise(sink, "13:00", topic_bounds.cut(p0=1))
        assert query.step() == []
        two_brokers.kill()
        topic_bounds.put(0, ("12:59", "b"))
        two_brokers.moved()
        assert query.step() == [(NOON, "a", 2), (NOON, "b", 1)]
        two_brokers.start()
        topic_bounds.put(0, ("12:59", "late"))
        topic_bounds.put(2, ("13:10", "c"))
        promise(sink, "14:00", topic_bounds.cut())
        assert query.step() == [(("13:00", "14:00"), "c", 1)]
    assert [row[3] for row in topic_bounds.rejected] == ["late"]


@pytest.mark.night
def test_a_drain_goes_on_with_the_new_leaders(two_brokers: Any, tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """The leader may also be that of the transactions and of the positions."""
    line = tally("kill -9 of the leader of partitions under a drain")
    kill_brokers(Pipeline(two_brokers, tmp_path), line, how_many(1))
