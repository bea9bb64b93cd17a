"""Topics that were deleted and created again under a query beside them, and have grown past the old offsets."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from spark_rowtime.kafka.client import unavailable
from spark_rowtime.kafka.topics import Topics
from tests.kafka.topic_bounds import TopicBounds, hourly
from tests.spark.observed_query import Observed
from tests.streams import at

pytest.importorskip("confluent_kafka")
NOON = ("12:00", "13:00")


def recreated(topic_bounds: TopicBounds, rows: int) -> str:
    """Deletes the topic, and makes it again with as many rows in each partition; returns the id that it had."""
    [topic], kafka = topic_bounds.topics, topic_bounds.kafka
    topics = Topics(kafka.admin, partial(unavailable, kafka.bootstrap))
    old = topics.describe(topic).id
    kafka.delete_topic(topic)
    kafka.topic(topic)
    for partition in range(3):
        topic_bounds.put(partition, *[("12:30", "new")] * rows)
    return old


def ids(topic_bounds: TopicBounds) -> dict[str, str]:
    topics = Topics(topic_bounds.kafka.admin, partial(unavailable, topic_bounds.kafka.bootstrap))
    return {topic: topics.describe(topic).id for topic in topic_bounds.topics}


@pytest.mark.long
@pytest.mark.parametrize("lost", [False, True], ids=["after a batch", "in a batch that runs again"])
def test_a_topic_that_has_grown_past_the_old_offsets(spark: Any, kafka: Any, tmp_path: Path, lost: bool) -> None:
    topic_bounds = TopicBounds(spark, kafka, tmp_path)
    with closing(topic_bounds.sink()) as sink, Observed(hourly(topic_bounds.rows()), tmp_path) as query:
        topic_bounds.put(0, ("12:10", "a"), ("12:20", "a"))
        sink.sendRowtimeBound(at("13:00"), cut=topic_bounds.cut(), topicIds=url_safe(ids(topic_bounds)))
        sink.flush()
        assert query.step() == [(NOON, "a", 2)], "the brokers say the same id"
    if lost:
        query.lose_commit()
    old = recreated(topic_bounds, rows=4)
    before = dict(query.batches)
    with pytest.raises(StreamingQueryException, match="KafkaTopicError") as failed, query:
        query.step()
    assert url_safe({"": old})[""] in str(failed.value)
    assert "was deleted and created again" in str(failed.value)
    assert query.batches == before
    assert topic_bounds.rejected == []


def url_safe(known: dict[str, str]) -> dict[str, str]:
    """The ids as Java's client writes them."""
    return {topic: text.replace("+", "-").replace("/", "_") for topic, text in known.items()}


def test_ids_that_no_cut_has_named_are_no_error(spark: Any, kafka: Any, tmp_path: Path) -> None:
    """Of a stream whose cuts have no ids nothing is known. Nor of brokers that do not answer."""
    topic_bounds = TopicBounds(spark, kafka, tmp_path)
    source = spark._jvm.sparkrowtime.topics.TopicIds
    options = spark._jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap
    nowhere = source(spark._jsparkSession, options({"kafka.bootstrap.servers": "127.0.0.1:1"}))
    assert dict(nowhere.of(spark._jvm.java.util.Set.of(topic_bounds.topics[0]))) == {}
    with closing(topic_bounds.sink()) as sink, Observed(hourly(topic_bounds.rows()), tmp_path) as query:
        topic_bounds.put(0, ("12:10", "a"))
        sink.sendRowtimeBound(at("13:00"), cut=topic_bounds.cut())
        sink.flush()
        assert query.step() == [(NOON, "a", 1)]
