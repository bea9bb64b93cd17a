"""A partition that was truncated while no feed ran, and has other messages there: the leaders' epochs tell.

So it is after an unclean election, and here: the broker is killed, and its disk has an older state.
"""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka import KafkaWatch
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.watch import create_watched
from tests.kafka.feeds import message, numbers, read
from tests.kafka.topics import ended

pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.long


def truncated(kafka: Any, folder: Path, others: int) -> str:
    """A topic with ten messages that were read into ``folder / "s"``, of which the last five are others now."""
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(n) for n in range(5)])
    data, copy = kafka.folder / "data" / f"{topic}-0", folder / "copy"
    shutil.copytree(data, copy)
    kafka.send(topic, [message(n) for n in range(5, 10)])
    assert read(kafka, folder / "s", topic) == [*range(10)]
    kafka.kill()
    shutil.rmtree(data)
    shutil.move(copy, data)
    kafka.start()
    kafka.send(topic, [message(100 + n) for n in range(others)])
    return topic


@pytest.mark.night
@pytest.mark.parametrize("others", [3, 8])
def test_a_partition_that_was_truncated_while_no_feed_ran_and_has_grown(
    kafka: Any, tmp_path: Path, others: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Short of where it was read, or past that. The feed goes on where the others begin, if it may."""
    topic = truncated(kafka, tmp_path, others)
    with pytest.raises(rt.DataLostError, match="offsets 5 to 9 were truncated, and what is there now are other"):
        read(kafka, tmp_path / "s", topic)
    assert numbers(tmp_path / "s") == [*range(10)]
    with caplog.at_level(logging.WARNING, logger="spark_rowtime.kafka"):
        found = read(kafka, tmp_path / "s", topic, lost="skip")
    assert found == [*range(10), *range(100, 100 + others)]
    assert "The stream goes on at offset 5." in caplog.text
    assert read(kafka, tmp_path / "s", topic) == found


def test_a_partition_whose_leader_has_changed_goes_on(kafka: Any, tmp_path: Path) -> None:
    """Also behind the marker of a transaction of a later epoch than the last message."""
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(0)])
    assert read(kafka, tmp_path / "s", topic) == [0]
    kafka.kill()
    kafka.start()
    abort(kafka, topic)
    for n in range(1, 3):
        assert read(kafka, tmp_path / "s", topic) == [*range(n)]
        kafka.send(topic, [message(n)])
        assert read(kafka, tmp_path / "s", topic) == [*range(n + 1)]


def test_the_last_message_may_be_gone_where_markers_follow(kafka: Any, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition

    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(0)])
    abort(kafka, topic)
    assert read(kafka, tmp_path / "s", topic) == [0]
    for future in kafka.admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        future.result(240)
    kafka.send(topic, [message(1)])
    assert read(kafka, tmp_path / "s", topic) == [0, 1]


@pytest.mark.night
def test_a_watch_that_reads_no_messages_sees_that_a_partition_has_become_shorter(
    kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic, path = truncated(kafka, tmp_path, 2), str(tmp_path / "w")
    create_watched(path)
    with rt.openSink(path, producer=f"{topic}-0", lease=None, rowsImplyBounds=False) as sink:
        state = kafka.describe(topic)[topic].result(240)
        sink.flush(checkpoint=Checkpoint(str(state.topic_id), 10, watched=True).text())
        sink.abandon()

    def follow(lost: str) -> None:
        given = {"servers": kafka.bootstrap, "topics": topic, "bounds": "append-time", "delay": "1 s", "lost": lost}
        rt.runAdapter(KafkaWatch, path, arguments={**given, "untilEnd": True}, producer="watch", restarts=0)

    with pytest.raises(rt.RowtimeError, match="it ends at offset 7 now, so offsets before 10 were truncated") as failed:
        follow("fail")
    assert isinstance(failed.value.__cause__, rt.DataLostError)
    with caplog.at_level(logging.WARNING, logger="spark_rowtime.kafka"):
        follow("skip")
    assert "The stream goes on at offset 7." in caplog.text
    (info,) = rt.describeStream(path).producers
    assert Checkpoint.read(str(info.checkpoint), info.name).offset == 7


def abort(kafka: Any, topic: str) -> None:
    """Leaves a message that was aborted, and the marker behind it."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(240)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=0)
    assert producer.flush(240) == 0
    producer.abort_transaction(240)
    ended(kafka.bootstrap, topic, of=1)
