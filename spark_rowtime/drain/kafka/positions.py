"""Positions: where the drains into the topics of a cluster have come to, in a compacted topic of its own.

A drain writes its position into this topic with the same transaction as its rows. A compacted topic keeps the last
message of each key as long as it exists, whatever becomes of the topic with the rows.
"""

import json
import time
from typing import Any, NamedTuple

from spark_rowtime.drain.kafka.cluster import Cluster
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.topics import Part, TopicState
from spark_rowtime.types.json_values import load

POSITIONS = "rowtime-positions"
"""The default name of that topic."""
CLEANUP = "cleanup.policy"
_SETTINGS = {CLEANUP: "compact", "segment.bytes": str(16 << 20), "segment.ms": str(24 * 3_600_000)}
"""Small segments, since the last one is not compacted."""
_TOPIC, _ID, _PARTITIONS = "topic", "topicId", "partitions"
_BATCH_MESSAGES, _STEP_SECONDS = 10_000, 0.02
"""How much one call of the consumer takes, and how long it waits for more."""
HANGING_SECONDS = 90.0
"""How long the transaction of another drain may hide a position. Kafka ends one that was left after 60 s."""
LOGGED_SECONDS = 2.0
"""A wait for such a transaction that is longer is logged."""


class KeptPosition(NamedTuple):
    """What a drain's last transaction has told: the topic, how many partitions have its bound, and the properties."""

    topic: TopicState
    properties: dict[str, str]


class Positions:
    """The topic ``name`` with the positions; it is made if there is none."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self.name = cluster, name
        if cluster.topics.find(name) is None:
            cluster.make(name, 1, _SETTINGS)
        policy = cluster.topics.setting(name, CLEANUP)
        if policy != "compact":
            raise InvalidOptionError(
                f"The topic {name}, which keeps the positions of drains, has cleanup.policy={policy}, so a position "
                "would be deleted some day, and its rows sent again. Set cleanup.policy=compact, or name another.",
                option="positions",
                value=name,
            )

    def message(self, topic: str, kept: KeptPosition) -> tuple[bytes, bytes]:
        """Key and value of the message that keeps a position."""
        fields = {_TOPIC: topic, _ID: kept.topic.id, _PARTITIONS: kept.topic.partitions, **kept.properties}
        return topic.encode(), json.dumps(fields).encode()

    def read(self, topic: str) -> KeptPosition | None:
        """The position of the last drain into ``topic``; None if there was none.

        The transactions of this drain's predecessors must have ended. Those of drains into other topics are waited
        for, as a message behind them cannot be read before.
        """
        [end] = self._cluster.topics.ends([Part(self.name, 0)], committed=False).values()
        found = self._last(topic.encode(), end) if end else None
        if found is None:
            return None
        try:
            fields = load(found)
            state = TopicState(topic, fields.pop(_ID), fields.pop(_PARTITIONS))
            del fields[_TOPIC]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self._not_a_position(topic) from None
        return KeptPosition(state, fields)

    def _not_a_position(self, topic: str) -> InvalidOptionError:
        return InvalidOptionError(
            f"The last message of the topic {self.name} with the key {topic!r} is not the position of a drain: another "
            "program has written it. Let drains keep their positions in another topic (--positions).",
            option="positions",
            value=self.name,
        )

    def _last(self, key: bytes, end: int) -> bytes | None:
        """The value of the last committed message of a key before the offset ``end``."""
        library, last = self._cluster.library, None
        consumer = self._cluster.reader()
        try:
            consumer.assign([library.TopicPartition(self.name, 0, 0)])
            reached, since, logged = 0, time.monotonic(), False
            while reached < end:
                before = reached
                for message in consumer.consume(_BATCH_MESSAGES, _STEP_SECONDS):
                    reached, last = self._one(message, key, reached, last)
                since = time.monotonic() if reached > before else since
                logged = self._waits(time.monotonic() - since, f"up to offset {reached}, not up to {end}", logged)
        finally:
            consumer.close()
        return last

    def _one(self, message: Any, key: bytes, reached: int, last: bytes | None) -> tuple[int, bytes | None]:
        """The offset that is reached, and the last value, after a message or the end of what can be read."""
        if (error := message.error()) is None:
            return message.offset() + 1, message.value() if message.key() == key else last
        return max(reached, message.offset()) if self._cluster.is_end(error) else reached, last

    def _waits(self, seconds: float, readable: str, logged: bool) -> bool:
        """Logs once that the drain waits, and raises when it has waited too long. Returns whether it was logged."""
        what = (
            f"The topic {self.name} with the positions can be read {readable}: a transaction of another drain has not "
            "ended. It ends by itself within that drain's transaction.timeout.ms; one that hangs for ever is found "
            "with kafka-transactions.sh find-hanging."
        )
        if seconds > HANGING_SECONDS:
            raise self._cluster.unavailable(what)
        if seconds > LOGGED_SECONDS and not logged:
            LOG.warning("This drain waits. %s", what)
        return logged or seconds > LOGGED_SECONDS
