"""What the broker says of a topic: its id, and the ends of its partitions."""

import time
from typing import Any, NamedTuple

from spark_rowtime.errors import KafkaTopicError, KafkaUnavailableError
from spark_rowtime.tables.table import required

RETRY_SECONDS = 0.1
"""The pause before a partition without a leader is asked for again."""
_FOR_A_MOMENT = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE")
"""Kafka's errors for a partition whose leader is being elected, or was until the client looked it up again."""


class TopicState(NamedTuple):
    """The id of a topic, which no other topic ever has, and by partition the offset of its next message."""

    id: str
    ends: dict[int, int]


def admin_of(producer: Any, topic: str, seconds: float) -> Any:
    """Returns a client for questions to the brokers that ``producer`` knows, without TLS and without a user."""
    failure = required("confluent_kafka", "kafka", "rt.KafkaBounds").KafkaException
    admins = required("confluent_kafka.admin", "kafka", "rt.KafkaBounds")
    try:
        brokers = producer.list_topics(topic, seconds).brokers.values()
    except failure as error:
        raise unavailable(error, topic) from error
    return admins.AdminClient({"bootstrap.servers": ",".join(f"{broker.host}:{broker.port}" for broker in brokers)})


def topic_state(admin: Any, topic: str, seconds: float) -> TopicState:
    """Asks the broker for the state of ``topic``. Raises KafkaTopicError if there is no such topic.

    It asks again while a partition has no leader, as for a moment after the topic was created.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return _asked(admin, topic, seconds)
        except KafkaUnavailableError as error:
            if error.values.get("code") not in _FOR_A_MOMENT or time.monotonic() >= deadline:
                raise
        time.sleep(RETRY_SECONDS)


def _asked(admin: Any, topic: str, seconds: float) -> TopicState:
    from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition  # noqa: PLC0415  (an extra)
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # noqa: PLC0415

    try:
        asked = admin.describe_topics(TopicCollection([topic]), request_timeout=seconds)
        found = asked[topic].result(seconds)
        latest = {TopicPartition(topic, one.id): OffsetSpec.latest() for one in found.partitions}  # type: ignore[no-untyped-call]
        ends = admin.list_offsets(latest, request_timeout=seconds)
        return TopicState(str(found.topic_id), {one.partition: ends[one].result(seconds).offset for one in latest})
    except KafkaException as error:
        if error.args[0].code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):  # noqa: SLF001
            raise KafkaTopicError(
                f"There is no topic {topic!r}. Create it first, or correct the name.", topic=topic
            ) from error
        raise unavailable(error, topic) from error
    except TimeoutError as error:
        raise KafkaUnavailableError(
            f"The broker said nothing about topic {topic!r} for {seconds:g} s. If it asks for TLS or a user, give "
            "rt.KafkaBounds(admin=AdminClient(...)) with the settings of the producer.",
            topic=topic,
        ) from error


def unavailable(error: Any, topic: str) -> KafkaUnavailableError:
    """Returns the error for one of confluent-kafka's."""
    cause = error.args[0]
    return KafkaUnavailableError(
        f"Kafka cannot be asked about topic {topic!r}: {cause.str()}. Look at the broker, and at the settings of the "
        "client; if the broker asks for TLS or a user, give rt.KafkaBounds(admin=AdminClient(...)) with them.",
        topic=topic,
        code=cause.name(),
    )
