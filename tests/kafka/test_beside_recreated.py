"""Topics that were deleted and created again under a query beside them, and have grown past the old offsets."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from spark_rowtime.kafka.client import unavailable
from spark_rowtime.kafka.topics import Topics
from tests.kafka.beside import Beside, hourly
from tests.spark.observed_query import Observed
from tests.streams import at

pytest.importorskip("confluent_kafka")
NOON = ("12:00", "13:00")


def recreated(beside: Beside, rows: int) -> str:
    """Deletes the topic, and makes it again with as many rows in each partition; returns the id that it had."""
    [topic], kafka = beside.topics, beside.kafka
    topics = Topics(kafka.admin, partial(unavailable, kafka.bootstrap))
    old = topics.describe(topic).id
    kafka.delete_topic(topic)
    kafka.topic(topic)
    for partition in range(3):
        beside.put(partition, *[("12:30", "new")] * rows)
    return old


def ids(beside: Beside) -> dict[str, str]:
    topics = Topics(beside.kafka.admin, partial(unavailable, beside.kafka.bootstrap))
    return {topic: topics.describe(topic).id for topic in beside.topics}


@pytest.mark.parametrize("lost", [False, True], ids=["after a batch", "in a batch that runs again"])
def test_a_topic_that_has_grown_past_the_old_offsets(spark: Any, kafka: Any, tmp_path: Path, lost: bool) -> None:
    beside = Beside(spark, kafka, tmp_path)
    with closing(beside.sink()) as sink, Observed(hourly(beside.rows()), tmp_path) as query:
        beside.put(0, ("12:10", "a"), ("12:20", "a"))
        sink.sendRowtimeBound(at("13:00"), cut=beside.cut(), topicIds=url_safe(ids(beside)))
        sink.flush()
        assert query.step() == [(NOON, "a", 2)], "the brokers say the same id"
    if lost:
        query.lose_commit()
    old = recreated(beside, rows=4)
    before = dict(query.batches)
    with pytest.raises(StreamingQueryException, match="KafkaTopicError") as failed, query:
        query.step()
    assert url_safe({"": old})[""] in str(failed.value)
    assert "was deleted and created again" in str(failed.value)
    assert query.batches == before
    assert beside.rejected == []


def url_safe(known: dict[str, str]) -> dict[str, str]:
    """The ids as Java's client writes them."""
    return {topic: text.replace("+", "-").replace("/", "_") for topic, text in known.items()}


def test_ids_that_no_cut_has_named_are_no_error(spark: Any, kafka: Any, tmp_path: Path) -> None:
    """Of a stream whose cuts have no ids nothing is known. Nor of brokers that do not answer."""
    beside = Beside(spark, kafka, tmp_path)
    source = spark._jvm.sparkrowtime.topics.TopicIds
    options = spark._jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap
    nowhere = source(spark._jsparkSession, options({"kafka.bootstrap.servers": "127.0.0.1:1"}))
    assert dict(nowhere.of(spark._jvm.java.util.Set.of(beside.topics[0]))) == {}
    with closing(beside.sink()) as sink, Observed(hourly(beside.rows()), tmp_path) as query:
        beside.put(0, ("12:10", "a"))
        sink.sendRowtimeBound(at("13:00"), cut=beside.cut())
        sink.flush()
        assert query.step() == [(NOON, "a", 1)]
