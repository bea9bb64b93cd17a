"""TopicSink and openTopicSink: a topic as a sink for a drain."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from spark_rowtime.drain.kafka.cluster import Cluster
from spark_rowtime.drain.kafka.encoders import FunctionEncoder, Value, encoder_of
from spark_rowtime.drain.kafka.messages import RowMessages
from spark_rowtime.drain.kafka.positions import POSITIONS
from spark_rowtime.drain.kafka.topic import Topic
from spark_rowtime.drain.sink import TableSink
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.address import topic_address
from spark_rowtime.kafka.client import client_options
from spark_rowtime.kafka.registry import REGISTRY, registry_settings
from spark_rowtime.types.arguments import known_keywords, to_count, to_flag, to_text
from spark_rowtime.types.schema import stream_schema
from spark_rowtime.types.timestamps import to_required_interval

EVERY, MAX_ROWS = "1 second", 100_000
"""The default interval between two transactions, and the default number of rows of one."""
_ONCE = "each row is in the topic once by it."
_REFUSED = {
    "bootstrap.servers": "the target names the brokers.",
    "transactional.id": "by it a drain fences an earlier one.",
    "group.id": "a drain joins no group.",
    **dict.fromkeys(("enable.idempotence", "acks", "isolation.level"), _ONCE),
    **dict.fromkeys(("delivery.report.only.error", "on_delivery", "dr_cb"), "the drain listens to its messages."),
}
"""Options of the client that the drain sets itself."""
PARTITIONS_CHECK_SECONDS = 30.0
"""How often the sink of a quiet stream looks whether the topic has more partitions."""


class TopicSink(TableSink):
    """A sink into a topic of Kafka, for ``drainTo``; ``openTopicSink`` returns it.

    Law (*once*): rows, bound and position are one transaction, so each row of the stream is in the topic once for
    consumers with ``isolation.level=read_committed``, whatever process dies. Of two drains into one topic the older one
    raises ProducerFencedError.
    """

    def __init__(self, topic: Topic, schema: Any, every: int, max_rows: int, **options: Any) -> None:
        super().__init__(topic, schema, every, max_rows, **options)
        self._topic = topic
        self._looked = float("-inf")
        """When the topic's partitions were last looked at."""

    def commitDue(self) -> float | None:
        """Commits if the interval has passed, or if partitions were added to the topic, which need the bound.

        Returns:
            The number of seconds until the next commit is due, or until the partitions are looked at again.
        """
        left = super().commitDue()
        idle = self._write_future is None and self._since is None
        if idle and self._now() >= self._looked + PARTITIONS_CHECK_SECONDS:
            self._looked = self._now()
            if self._topic.lacksBound:
                self._since = self._now()
                self.commit()
        look = max(self._looked + PARTITIONS_CHECK_SECONDS - self._now(), 0)
        return look if left is None else min(left, look or left)

    def abandon(self) -> None:
        """Closes the sink without another transaction. One that is under way is committed."""
        super().abandon()
        self._topic.close()


@known_keywords
def openTopicSink(
    target: str,
    schema: Any,
    *,
    key: str | None = None,
    value: Value | None = None,
    encoder: str | None = None,
    every: str | timedelta = EVERY,
    maxRows: int = MAX_ROWS,
    partitions: int | None = None,
    options: Mapping[str, Any] | None = None,
    positions: str = POSITIONS,
    anew: bool = False,
) -> TopicSink:
    """Opens a topic of Kafka as a sink for ``drainTo``, and makes it if there is none.

    Rows, the bound behind them and the position are one transaction, so consumers with
    ``isolation.level=read_committed`` see each row once, whatever process dies.

    Args:
        target: ``kafka://HOST:PORT/TOPIC``; several brokers are separated by commas.
        schema: The stream's schema, ``reader.schema``.
        key: The column whose value is the key of a row's message. Rows of one key are in one partition, in order. None:
            messages have no key, and go into any partition.
        value: A function that takes a row, as a dict, and returns the message's value, as bytes or a text. None:
            ``encoder`` does.
        encoder: "json"; or "avro", "protobuf" or "json-schema", in the wire format of a schema registry, for which
            ``options`` have ``registry.url``. The schema of the stream's columns is registered under the subject
            ``TOPIC-value``, and that of the messages of bounds, which have the one field "resolved", under
            ``TOPIC-resolved``, unless they are there. None: "json".
        every: An interval: what has come is committed when so much time has passed since the first of it. "0 s": after
            each train.
        maxRows: The number of rows after which a transaction is committed before that.
        partitions: The number of partitions of a topic that is made. None: the brokers' default.
        options: Options of Kafka's client under their own names, such as ``{"security.protocol": "SSL"}``, and those of
            the registry's client, such as ``registry.url``. ``{env:NAME}`` in a value stands for an environment
            variable.
        positions: The compacted topic that keeps the positions of drains; it is made if there is none.
        anew: If True, a topic that was deleted and created again, or that has the bounds of a drain which keeps its
            positions elsewhere, gets the stream from its beginning; otherwise that is an error.

    Returns:
        The sink; it is a context manager that closes itself.

    Raises:
        ExtraNotInstalledError: The pip extra ``kafka`` is not installed.
        KafkaUnavailableError: The brokers, or the registry, cannot be reached, or refuse.
        SchemaMismatchError: A column cannot be written in the format, or is no key; the registry refuses the schema.
        KafkaTopicError: The topic was deleted and created again since the last drain.
        InvalidOptionError: An argument has a value that cannot be used.

    Example:
        ```python
        with (
            rt.openReader("hourly.rowtime", follow=True) as reader,
            openTopicSink("kafka://localhost:9092/hourly", reader.schema, key="ticker") as topic,
        ):
            reader.drainTo(topic)
        ```
    """
    address, columns = topic_address(target), stream_schema(schema)
    interval, rows = to_required_interval(every, "every"), to_count(maxRows, "maxRows", 1)
    count = -1 if partitions is None else to_count(partitions, "partitions", 1)
    kafka, registry = _settings(options or {})
    if value is not None and encoder is not None:
        raise InvalidOptionError(
            "value= and encoder= exclude each other: each says how a row becomes a message. Give one of them.",
            option="encoder",
        )
    made = encoder_of(encoder or "json", columns, address.topic, registry) if value is None else FunctionEncoder(value)
    messages, cluster = RowMessages(columns, key, made), Cluster(address, kafka)
    topic = Topic(address, cluster, messages, to_text(positions, "positions"), count, to_flag(anew, "anew"))
    return TopicSink(topic, columns, interval, rows)


def _settings(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings of Kafka's client, and those of the registry's."""
    kafka = {name: value for name, value in options.items() if not name.startswith(REGISTRY)}
    return client_options(kafka, _REFUSED), registry_settings(options)
