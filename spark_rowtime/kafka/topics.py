"""Topics: what the broker says about topics: their ids, partitions, offsets and settings."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from spark_rowtime.errors import KafkaTopicError, KafkaUnavailableError
from spark_rowtime.kafka.client import REQUEST_SECONDS, describe_topics, library, list_offsets, made, unavailable


class Part(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int

    @property
    def producer(self) -> str:
        """The name of its producer in a stream, as Kafka names the partition's folder."""
        return f"{self.topic}-{self.number}"


class Topic(NamedTuple):
    """A topic. A topic that is deleted and created anew has another id."""

    name: str
    id: str
    parts: tuple[Part, ...]


class Topics:
    """Asks the broker about topics."""

    def __init__(self, servers: str, options: Mapping[str, Any]) -> None:
        self.servers = servers
        self._heard: Any = None
        """The last error of a connection, which says more than that a request has timed out."""
        self._admin = made("admin", {**options, "error_cb": self._hear})

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        """The topics of these names; KafkaTopicError if one does not exist."""
        futures = describe_topics(self._admin, names, REQUEST_SECONDS)
        return {name: self._topic(name, future) for name, future in futures.items()}

    def ends(self, parts: Iterable[Part], *, committed: bool) -> dict[Part, int]:
        """The offset behind the last message of each partition.

        ``committed``: behind the last one that no open transaction holds back.
        """
        levels = library().IsolationLevel
        level = levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED
        return self._offsets(parts, "latest", isolation_level=level)

    def starts(self, parts: Iterable[Part]) -> dict[Part, int]:
        """The offset of the first message that each partition still has."""
        return self._offsets(parts, "earliest")

    def stamps_at_append(self, name: str) -> bool:
        """Whether the broker gives the messages of the topic their time when it appends them."""
        resource = _admin().ConfigResource(_admin().ConfigResource.Type.TOPIC, name)
        futures = self._admin.describe_configs([resource], request_timeout=REQUEST_SECONDS)
        settings = self._result(futures[resource], "The look at a topic's settings")
        return bool(settings["message.timestamp.type"].value == "LogAppendTime")

    def _offsets(self, parts: Iterable[Part], which: str, **options: Any) -> dict[Part, int]:
        partition, spec = library().TopicPartition, getattr(_admin().OffsetSpec, which)()
        asked = {partition(*part): spec for part in parts}
        futures = list_offsets(self._admin, asked, REQUEST_SECONDS, **options) if asked else {}
        found = {Part(at.topic, at.partition): self._result(f, "The look at offsets") for at, f in futures.items()}
        return {part: result.offset for part, result in found.items()}

    def _topic(self, name: str, future: Any) -> Topic:
        confluent = library()
        try:
            found = future.result(REQUEST_SECONDS + 1)
        except (confluent.KafkaException, TimeoutError) as error:
            code = error.args[0].code() if isinstance(error, confluent.KafkaException) else None
            if code == confluent.KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise no_topic(name, self.servers) from error
            raise self._unavailable(error, "The look at a topic") from error
        parts = (Part(name, partition.id) for partition in found.partitions)
        return Topic(name, str(found.topic_id), tuple(parts))

    def _result(self, future: Any, what: str) -> Any:
        try:
            return future.result(REQUEST_SECONDS + 1)
        except (library().KafkaException, TimeoutError) as error:
            raise self._unavailable(error, what) from error

    def _unavailable(self, error: Exception, what: str) -> KafkaUnavailableError:
        self._admin.poll(0)
        return unavailable(self.servers, self._heard or error, what)

    def _hear(self, error: Any) -> None:
        if error.code() != library().KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001  (the one before it says why)
            self._heard = error


def _admin() -> Any:
    return library("confluent_kafka.admin")


def no_topic(name: str, servers: str) -> KafkaTopicError:
    """The error for a topic that does not exist."""
    return KafkaTopicError(
        f"There is no topic {name!r} at Kafka's brokers {servers}. Create it, or look at the name and at what this "
        "client may see.",
        topic=name,
        servers=servers,
    )
