"""The periods of a topic are announced by the messages of bounds in its partitions."""

from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.drain.kafka import bound_reader
from spark_rowtime.drain.kafka.bound_reader import BoundReader
from spark_rowtime.kafka.address import topic_address
from tests.kafka.test_out import DAY, more
from tests.kafka.topics import drain, ended

SCHEMA = "rowtime TIMESTAMP NOT NULL, ticker STRING, n INT"


@pytest.fixture
def stream(tmp_path: Path) -> str:
    """Nine rows from 10:00 to 10:08, and the bound 11:00."""
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA)
    more(path, range(9), "11:00")
    return path


def drained(kafka: Any, stream: str, topic: str, **options: Any) -> None:
    """Drains all that the stream has; returns when its bounds can be read."""
    drain(kafka.bootstrap, stream, topic, **options)
    ended(kafka.bootstrap, topic)


def hours(kafka: Any, topic: str, folder: Path, **options: Any) -> list[str]:
    """The hours that one run announces."""
    found: list[rt.Period] = []
    positions = str(folder / "announced.rowtime")
    rt.announceTo(f"kafka://{kafka.bootstrap}/{topic}", found.append, every="1 hour", positions=positions, **options)
    return [f"{period.start:%H}" for period in found]


@pytest.mark.long
def test_the_bound_of_the_topic_counts_up_to_its_last_row(kafka: Any, stream: str, tmp_path: Path) -> None:
    topic = kafka.topic()
    drained(kafka, stream, topic, key="ticker")
    more(stream, range(60, 70), "13:00")
    assert hours(kafka, topic, tmp_path) == ["10"]
    drained(kafka, stream, topic, key="ticker")
    assert hours(kafka, topic, tmp_path) == ["11", "12"]
    more(stream, range(200, 201), complete=True)
    drained(kafka, stream, topic, key="ticker")
    assert hours(kafka, topic, tmp_path) == ["13"], "the last row is at 13:20"
    assert hours(kafka, topic, tmp_path, name="other", start=DAY.format("12:00")) == ["12", "13"]


@pytest.mark.long
def test_every_partition_must_have_a_bound_and_others_messages_give_none(
    kafka: Any, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_reader, "FIRST_WINDOW", 2)
    topic = kafka.topic()
    reader = BoundReader(topic_address(f"kafka://{kafka.bootstrap}/{topic}"), {})
    assert reader.properties() == {}
    drained(kafka, stream, topic)
    said = {"rowtime.bound": DAY.format("11:00"), "rowtime.strict": "false"}
    said |= {"rowtime.first": DAY.format("10:00"), "rowtime.last": DAY.format("10:08")}
    assert reader.properties() == said
    strangers = [b"", b'{"resolved": 3}', b'{"resolved": "x"}', b"\xff", b'["resolved"]', None]
    kafka.send(topic, [{"value": value, "partition": 1} for value in strangers * 10])
    broken = [{"value": b"{}", "partition": 1, "headers": [("rowtime.bound", value)]} for value in (b"2026-13", None)]
    kafka.send(topic, broken)
    assert reader.properties() == said, "what was found before stays"
    fresh = BoundReader(topic_address(f"kafka://{kafka.bootstrap}/{topic}"), {})
    assert fresh.properties() == said, "it looks further back, until it finds one"
    for partition in range(3):
        kafka.send(topic, [{"value": b'{"resolved":"1767614400000000000.0000000000"}', "partition": partition}])
        assert reader.properties()["rowtime.bound"] == DAY.format("12:00" if partition == 2 else "11:00")
    kafka.add_partitions(topic, 4)
    assert reader.properties() == {}
    for one in (reader, fresh):
        one.close()
    kafka.delete_topic(topic)
    kafka.topic(name=topic)
    assert hours(kafka, topic, tmp_path) == []


@pytest.mark.long
def test_a_topic_that_was_created_again_since_the_last_run_is_refused(kafka: Any, stream: str, tmp_path: Path) -> None:
    """Under the old position its first hours would be left out."""
    topic = kafka.topic()
    drained(kafka, stream, topic)
    assert hours(kafka, topic, tmp_path) == ["10"]
    kafka.delete_topic(topic)
    kafka.topic(name=topic)
    drained(kafka, stream, topic, anew=True)
    with pytest.raises(rt.KafkaTopicError, match="was created again"):
        hours(kafka, topic, tmp_path)
    assert hours(kafka, topic, tmp_path, name="again") == ["10"]
    assert hours(kafka, topic, tmp_path, name="again") == []


def test_a_topic_that_is_not_there(kafka: Any, tmp_path: Path) -> None:
    with pytest.raises(rt.KafkaTopicError, match="There is no topic 'nowhere'"):
        hours(kafka, "nowhere", tmp_path)
