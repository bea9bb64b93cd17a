"""What the broker says of a topic: its id, and the ends of its partitions."""

from typing import Any, NamedTuple

from spark_rowtime.errors import KafkaTopicError, KafkaUnavailableError
from spark_rowtime.kafka.client import describe_topics, library, list_offsets


class TopicState(NamedTuple):
    """The id of a topic, which no other topic ever has, and by partition the offset of its next message.

    Messages of transactions that are still open lie before that offset.
    """

    id: str
    ends: dict[int, int]


def admin_of(producer: Any, topic: str, seconds: float) -> Any:
    """Returns a client for questions to the brokers that ``producer`` knows, without TLS and without a user."""
    admins = library("confluent_kafka.admin")
    try:
        brokers = producer.list_topics(topic, seconds).brokers.values()
    except library().KafkaException as error:
        raise unavailable(error, topic) from error
    return admins.AdminClient({"bootstrap.servers": ",".join(f"{broker.host}:{broker.port}" for broker in brokers)})


def topic_state(admin: Any, topic: str, seconds: float) -> TopicState:
    """Asks the broker for the state of ``topic``. Raises KafkaTopicError if there is no such topic."""
    kafka, latest = library(), library("confluent_kafka.admin").OffsetSpec.latest()
    level = kafka.IsolationLevel.READ_UNCOMMITTED  # behind open transactions, whose messages may be committed later
    try:
        found = describe_topics(admin, [topic], seconds)[topic].result()
        asked = {kafka.TopicPartition(topic, one.id): latest for one in found.partitions}
        ends = list_offsets(admin, asked, seconds, isolation_level=level)
        return TopicState(str(found.topic_id), {at.partition: end.result().offset for at, end in ends.items()})
    except kafka.KafkaException as error:
        if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            raise KafkaTopicError(
                f"There is no topic {topic!r}. Create it first, or correct the name.", topic=topic
            ) from error
        raise unavailable(error, topic) from error


def unavailable(error: Any, topic: str) -> KafkaUnavailableError:
    """Returns the error for one of confluent-kafka's."""
    cause = error.args[0]
    return KafkaUnavailableError(
        f"Kafka cannot be asked about topic {topic!r}: {cause.str()}. Look at the broker, and at the settings of the "
        "client; if the broker asks for TLS or a user, give rt.KafkaBounds(admin=AdminClient(...)) with them.",
        topic=topic,
        code=cause.name(),
    )
