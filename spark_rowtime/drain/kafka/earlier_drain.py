"""Whether a topic has bounds of an earlier drain, whose position is not where this drain looks for it."""

from typing import Any

from spark_rowtime.drain.kafka.cluster import Cluster
from spark_rowtime.drain.properties import BOUND
from spark_rowtime.kafka.client import REQUEST_SECONDS
from spark_rowtime.kafka.topics import TopicState

LAST_MESSAGES = 1_000
"""How many offsets at the end of each partition are looked at: a drain puts a new bound behind its rows in each."""


def has_bounds(cluster: Cluster, topic: TopicState) -> bool:
    """Whether one of the last messages of a partition is the bound of a drain. Without the right to read: False."""
    consumer = cluster.reader()
    try:
        parts = [part for n in range(topic.partitions) if (part := _last_part(cluster, consumer, topic.name, n))]
        if parts:
            consumer.assign(parts)
        return _finds_bound(cluster, consumer, len(parts))
    finally:
        consumer.close()


def _last_part(cluster: Cluster, consumer: Any, topic: str, partition: int) -> Any:
    """The end of a partition, from where it is read; None if it is empty."""
    part = cluster.library.TopicPartition(topic, partition)
    try:
        low, high = consumer.get_watermark_offsets(part, timeout=REQUEST_SECONDS)
    except cluster.library.KafkaException as error:
        raise cluster.failure(error) from error
    part.offset = max(low, high - LAST_MESSAGES)
    return part if high > low else None


def _finds_bound(cluster: Cluster, consumer: Any, parts: int) -> bool:
    codes, ended = cluster.library.KafkaError, set[int]()
    while len(ended) < parts:
        message = consumer.poll(REQUEST_SECONDS)
        if message is None:
            raise cluster.unavailable("The topic cannot be read, so as to see whether it was drained into before.")
        if (error := message.error()) is None:
            if any(name == BOUND for name, _ in message.headers() or []):
                return True
        elif error.code() == codes._PARTITION_EOF:  # noqa: SLF001  (the names of the client's own codes begin so)
            ended.add(message.partition())
        elif error.code() == codes.TOPIC_AUTHORIZATION_FAILED:
            return False
        elif error.code() != codes.GROUP_AUTHORIZATION_FAILED:  # no group is needed here
            raise cluster.failure(error)
    return False
