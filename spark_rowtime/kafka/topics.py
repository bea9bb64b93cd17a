"""Topics: what the brokers say about topics: their ids, partitions, offsets and settings."""

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from spark_rowtime.errors import KafkaTopicError, RowtimeError
from spark_rowtime.kafka.client import REQUEST_SECONDS, brokers, describe_topics, library, list_offsets
from spark_rowtime.types.short_repr import short_repr

SOON_SECONDS = 3.0
"""How long ``known_ends`` waits for the leaders of partitions."""

Failed = Callable[[Any, str], RowtimeError]
"""Makes the error for one of the client's, and for what has failed."""


class Part(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int

    @property
    def producer(self) -> str:
        """The name of its producer in a stream, as Kafka names the partition's folder."""
        return f"{self.topic}-{self.number}"

    @classmethod
    def of_producer(cls, name: str) -> "Part | None":
        """The partition whose producer has this name; None if it is that of no partition."""
        topic, _, number = name.rpartition("-")
        return cls(topic, int(number)) if topic and number.isascii() and number.isdecimal() else None


class TopicState(NamedTuple):
    """A topic as it is now. One that is deleted and created again has another id."""

    name: str
    id: str
    partitions: int

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its partitions."""
        return tuple(Part(self.name, number) for number in range(self.partitions))


_STAMPED_BY, _APPEND_TIME = "message.timestamp.type", "LogAppendTime"


class Newest(NamedTuple):
    """A message, and its time in microseconds."""

    offset: int
    micros: int


class Topics:
    """Asks the brokers about topics. ``servers`` is empty where ``admin`` is the caller's own client."""

    def __init__(self, admin: Any, failed: Failed, servers: str = "", seconds: float = REQUEST_SECONDS) -> None:
        self.servers = servers
        self._admin, self._failed, self._seconds = admin, failed, seconds

    def find(self, name: str) -> TopicState | None:
        """The topic of this name; None if there is none."""
        return self.found([name])[name]

    def found(self, names: Iterable[str]) -> dict[str, TopicState | None]:
        """The topics of these names, which are asked for at once; None for one that there is not."""
        found: dict[str, TopicState | None] = {}
        for name, future in describe_topics(self._admin, names, self._seconds).items():
            found[name] = None
            with suppress(KafkaTopicError):
                found[name] = self._described(name, future)
        return found

    def describe(self, name: str) -> TopicState:
        """The topic of this name; KafkaTopicError if there is none."""
        return self._described(name, describe_topics(self._admin, [name], self._seconds)[name])

    def _described(self, name: str, future: Any) -> TopicState:
        unknown, no_name = library().KafkaError.UNKNOWN_TOPIC_OR_PART, library().KafkaError.TOPIC_EXCEPTION
        if _has_code(error := future.exception(), unknown):
            raise self._no_topic(name) from error
        if _has_code(error, no_name):
            raise self._no_name(name) from error
        found = self._result(future, name, "state")
        return TopicState(name, str(found.topic_id), len(found.partitions))

    def matching(self, pattern: "re.Pattern[str]") -> list[str]:
        """The names of the topics that a pattern matches as a whole, in order; Kafka's own topics are none of them."""
        try:
            names = self._admin.list_topics(timeout=self._seconds).topics
        except library().KafkaException as error:
            raise self._failed(error, "Listing the topics") from error
        return sorted(name for name in names if pattern.fullmatch(name) and not name.startswith("__"))

    def ends(self, parts: Iterable[Part], *, committed: bool) -> dict[Part, int]:
        """The offset behind the last message of each partition.

        ``committed``: behind the last one that no open transaction holds back.
        """
        level = library().IsolationLevel.READ_COMMITTED if committed else _uncommitted()
        return self._offsets(parts, "latest", isolation_level=level)

    def known_ends(self, parts: Iterable[Part]) -> tuple[dict[Part, int], dict[Part, Exception]]:
        """The same of each partition whose leader answers soon, messages of open transactions included.

        And the errors of the others.
        """
        asked = self._asked(parts, "latest", SOON_SECONDS, isolation_level=_uncommitted())
        answers = {Part(at.topic, at.partition): future for at, future in asked.items()}
        failed = {part: error for part, future in answers.items() if (error := future.exception()) is not None}
        return {part: future.result().offset for part, future in answers.items() if part not in failed}, failed

    def newest(self, parts: Iterable[Part]) -> dict[Part, Newest]:
        """The message with the largest time in each partition that has one and whose leader answers soon."""
        found = {
            Part(at.topic, at.partition): future.result()
            for at, future in self._asked(parts, "max_timestamp", SOON_SECONDS).items()
            if future.exception() is None
        }
        return {part: Newest(at.offset, at.timestamp * 1000) for part, at in found.items() if at.offset >= 0}

    def starts(self, parts: Iterable[Part]) -> dict[Part, int]:
        """The offset of the first message that each partition still has."""
        return self._offsets(parts, "earliest")

    def has_members(self, group: str, names: Collection[str]) -> bool:
        """Whether a consumer group has members that read these topics, or have no partition yet.

        KafkaUnavailableError if the brokers do not say it soon.
        """
        future = self._admin.describe_consumer_groups([group], request_timeout=SOON_SECONDS)[group]
        try:
            assigned = [one.assignment.topic_partitions for one in future.result(SOON_SECONDS + 1).members]
        except (library().KafkaException, TimeoutError) as error:
            if _has_code(error, library().KafkaError.GROUP_ID_NOT_FOUND):
                return False
            raise self._failed(error, f"Asking for the members of the consumer group {group!r}") from error
        return any(not parts or any(part.topic in names for part in parts) for parts in assigned)

    def setting(self, topic: str, name: str) -> str:
        """A setting of a topic."""
        resource = _admin().ConfigResource(_admin().ConfigResource.Type.TOPIC, topic)
        future = self._admin.describe_configs([resource], request_timeout=self._seconds)[resource]
        return str(self._result(future, topic, "settings")[name].value)

    def with_append_time(self, names: Iterable[str]) -> list[str]:
        """Those of the topics whose messages the brokers stamp."""
        return [name for name in names if self.setting(name, _STAMPED_BY) == _APPEND_TIME]

    def surely_with_append_time(self, names: Iterable[str]) -> set[str]:
        """The topics whose messages the brokers stamp, as far as the brokers answer within SOON_SECONDS."""
        kind = _admin().ConfigResource.Type.TOPIC
        asked = {name: _admin().ConfigResource(kind, name) for name in names}
        answers = self._admin.describe_configs(list(asked.values()), request_timeout=SOON_SECONDS) if asked else {}
        return {name for name, one in asked.items() if _value(answers[one], _STAMPED_BY) == _APPEND_TIME}

    def _offsets(self, parts: Iterable[Part], which: str, **options: Any) -> dict[Part, int]:
        futures = self._asked(parts, which, self._seconds, **options)
        found = {Part(at.topic, at.partition): self._result(f, at.topic, "offsets") for at, f in futures.items()}
        return {part: result.offset for part, result in found.items()}

    def _asked(self, parts: Iterable[Part], which: str, seconds: float, **options: Any) -> dict[Any, Any]:
        partition, spec = library().TopicPartition, getattr(_admin().OffsetSpec, which)()
        asked = {partition(*part): spec for part in parts}
        return list_offsets(self._admin, asked, seconds, **options) if asked else {}

    def _result(self, future: Any, topic: str, what: str) -> Any:
        try:
            return future.result(self._seconds + 1)
        except (library().KafkaException, TimeoutError) as error:
            raise self._failed(error, f"Reading the {what} of topic {topic!r}") from error

    def _no_topic(self, name: str) -> KafkaTopicError:
        return KafkaTopicError(
            f"There is no topic {name!r} at {brokers(self.servers)}. Create it, or check its name, and the rights of "
            "this client.",
            topic=name,
            servers=self.servers or None,
        )

    def _no_name(self, name: str) -> KafkaTopicError:
        return KafkaTopicError(
            f"{short_repr(name)} cannot be the name of a topic: that has letters, digits, '.', '_' and '-', at most "
            "249. A pattern begins with '^': '^orders-.*'.",
            topic=short_repr(name),
            servers=self.servers or None,
        )


def _uncommitted() -> Any:
    return library().IsolationLevel.READ_UNCOMMITTED


def _admin() -> Any:
    return library("confluent_kafka.admin")


def _has_code(error: Any, code: int) -> bool:
    return isinstance(error, library().KafkaException) and error.args[0].code() == code


def _value(answer: Any, name: str) -> str | None:
    """A setting of a topic; None if the brokers do not say it soon."""
    try:
        return str(answer.result(SOON_SECONDS + 1)[name].value)
    except (library().KafkaException, TimeoutError):
        return None
