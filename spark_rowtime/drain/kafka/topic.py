"""Topic: a topic that a drain writes to. Rows, the bound behind them and the position are one transaction."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from spark_rowtime.drain.kafka.cluster import Cluster
from spark_rowtime.drain.kafka.messages import RowMessages, bound_headers
from spark_rowtime.drain.kafka.positions import CLEANUP, KeptPosition, Positions
from spark_rowtime.drain.kafka.transactions import Transactions
from spark_rowtime.drain.properties import BOUND, bound_in, extent_properties
from spark_rowtime.errors import InvalidOptionError, KafkaTopicError, KafkaUnavailableError
from spark_rowtime.kafka.address import TopicAddress
from spark_rowtime.kafka.client import REQUEST_SECONDS
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.message_headers import headers_of
from spark_rowtime.kafka.topics import TopicState


class Topic:
    """A topic opened for one drain; it is made if there is none.

    Laws: *once*: ``append`` commits rows, bound and position together, or none of them; of two drains into one topic
    the older one is fenced. *behind*: in every partition the message of a bound follows all rows that were sent before
    the bound.
    """

    def __init__(
        self,
        address: TopicAddress,
        cluster: Cluster,
        messages: RowMessages,
        positions: str,
        partitions: int,
        anew: bool,
    ) -> None:
        self.target, self._topic = str(address), address.topic
        self._cluster, self._messages = cluster, messages
        self._transactions = Transactions(cluster, self._topic)
        self._positions = Positions(cluster, positions)
        if cluster.topics.find(self._topic) is not None:
            self._require_whole()
        self._transactions.open()
        kept = self._positions.read(self._topic)
        found = cluster.settled(self._topic, kept.topic.id if kept is not None and anew else None)
        if kept is not None and (found is None or kept.topic.id != found.id):
            if not anew:
                raise self._replaced(kept.topic.id, found, "before this drain")
            kept = None
        if kept is None and found is not None and not anew and has_bounds(cluster, found):
            raise self._kept_elsewhere(positions)
        self._state = found or cluster.make(self._topic, partitions, {})
        self.place = ""
        self.properties: dict[str, str] = {} if kept is None else kept.properties
        """The properties of the last transaction of a drain into the topic."""
        self._told = 0 if kept is None else kept.topic.partitions
        """How many partitions, from the first on, have the bound of ``properties``."""

    @property
    def lacksBound(self) -> bool:
        """Whether there are partitions that the last bound has not been sent to. Asks the brokers."""
        self._state = self._checked()
        return bound_in(self.properties) is not None and self._state.partitions > self._told

    def append(self, rows: pa.Table, properties: Mapping[str, str]) -> None:
        """Commits rows, which may be none, then the bound, if it is new, and the position.

        Raises:
            ProducerFencedError: Another drain into the topic has started.
            KafkaUnavailableError: The brokers cannot be reached, or refuse.
            SchemaMismatchError: A message is too large, or a row cannot be written.
            KafkaTopicError: The topic was deleted.
        """
        whole = {**properties, **extent_properties(rows, self.properties)}
        try:
            self._transactions.begin()
            self._send(rows, whole)
            self._transactions.commit()
        except BaseException as error:
            self._transactions.abort()
            if isinstance(error, KafkaUnavailableError):  # so it looks, too, where the topic is gone
                with suppress(KafkaUnavailableError):
                    self._checked()
            raise
        self.properties, self._told = whole, self._state.partitions

    def close(self) -> None:
        """Frees the connections."""
        self._transactions.close()

    def _send(self, rows: pa.Table, properties: dict[str, str]) -> None:
        self._transactions.send(self._messages.of(rows))
        self._transactions.flush()  # the bound goes behind rows that the brokers have, in whatever partition
        told = self._told if bound_in(properties) == bound_in(self.properties) else 0
        self._send_bound(properties, range(told, self._state.partitions))
        before, self._state = self._state, self._checked()
        self._send_bound(properties, range(max(told, before.partitions), self._state.partitions))
        message = self._positions.message(self._topic, KeptPosition(self._state, properties))
        self._transactions.send_to(self._positions.name, 0, message)

    def _send_bound(self, properties: Mapping[str, str], partitions: range) -> None:
        bound = bound_in(properties)
        if bound is None or not partitions:
            return
        message, headers = self._messages.bound(bound), bound_headers(properties)
        for partition in partitions:
            self._transactions.send_to(self._topic, partition, message, headers)
        self._transactions.flush()

    def _checked(self) -> TopicState:
        """The topic as it is now. KafkaTopicError if it is no longer the one that was opened."""
        found = self._cluster.topics.find(self._topic)
        if found is None or found.id != self._state.id:
            raise self._replaced(self._state.id, found, "while this drain ran")
        return found

    def _require_whole(self) -> None:
        """Raises InvalidOptionError for a compacted topic: it has no messages without a key, as those of bounds are."""
        policy = self._cluster.topics.setting(self._topic, CLEANUP)
        if "compact" in policy:
            raise InvalidOptionError(
                f"{self.target} has {CLEANUP}={policy}. Compaction would remove all rows of a key but the last, and "
                "does not allow messages without a key, as those of bounds are. Drain into a topic without it.",
                option="target",
                value=self.target,
            )

    def _kept_elsewhere(self, positions: str) -> InvalidOptionError:
        return InvalidOptionError(
            f"Another drain has written to {self.target}, and has not kept its position in the topic {positions}. From "
            "the beginning of the stream, each row would be sent twice. Name the topic with its positions "
            "(--positions), or drain into another topic. To send the stream again all the same, give --anew "
            "(anew=True).",
            option="positions",
            value=positions,
        )

    def _replaced(self, before: str, found: TopicState | None, when: str) -> KafkaTopicError:
        now = None if found is None else found.id
        then = (
            f"not created again (id {before})" if now is None else f"created again (its id was {before} and is {now})"
        )
        return KafkaTopicError(
            f"The topic of {self.target} was deleted {when}, and {then}. The rows up to the drain's position were in "
            "the deleted one. To send the stream again from its beginning, start the drain with --anew (anew=True).",
            topic=self._topic,
            topicId=before,
            foundId=now,
        )


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


def _has_bound(message: Any) -> bool:
    try:
        return any(name == BOUND for name, _ in headers_of(message))
    except MalformedError:  # a drain has no such header
        return False


def _finds_bound(cluster: Cluster, consumer: Any, parts: int) -> bool:
    ended = set[int]()
    while len(ended) < parts:
        message = consumer.poll(REQUEST_SECONDS)
        if message is None:
            raise cluster.unavailable("The topic cannot be read, so as to see whether it was drained into before.")
        if (error := message.error()) is None:
            if _has_bound(message):
                return True
        elif error.code() == cluster.library.KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return False
        elif cluster.is_end(error):
            ended.add(message.partition())
    return False
