"""GroupOffsets: tells the consumer group how far its host has come, where Kafka's tools show it."""

from collections.abc import Iterable, Mapping
from typing import Any

from spark_rowtime.kafka.client import LOG, library
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.topics import Part

GROUP_SECONDS = 5.0
"""Seconds between two commits of offsets to the consumer group."""


class GroupOffsets:
    """The offsets that the stream has of each partition in ``feeds``, committed to the group of ``consumer``.

    They are never read: a group that does not take them, or loses them, changes nothing.
    """

    def __init__(self, consumer: Any, feeds: Mapping[Part, PartitionReader]) -> None:
        self._consumer, self._feeds, self._told_at = consumer, feeds, 0.0
        self._told: dict[Part, int] = {}
        """The offsets that the group was told last."""

    def keep_up(self, now: float) -> None:
        """Tells those of all partitions from time to time."""
        if now - self._told_at >= GROUP_SECONDS:
            self._told_at = now
            self.tell(self._feeds)

    def tell(self, parts: Iterable[Part], *, wait: bool = False) -> None:
        """Tells those of ``parts`` that are new. ``wait``: until the group has them."""
        stored = {part: self._feeds[part].stored for part in parts if part in self._feeds}
        new = {part: offset for part, offset in stored.items() if self._told.get(part) != offset}
        if new:
            self._told |= new
            offsets = [library().TopicPartition(*part, offset) for part, offset in new.items()]
            try:
                self._consumer.commit(offsets=offsets, asynchronous=not wait)
            except library().KafkaException as error:
                LOG.debug("The consumer group was not told the offsets: %s", error)

    def forget(self, part: Part) -> None:
        """The host has let the partition go: another one may tell the group its offset."""
        self._told.pop(part, None)
