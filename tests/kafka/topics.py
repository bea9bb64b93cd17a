"""What is in a topic, as a consumer sees it that reads only what is committed."""

import json
from typing import Any, NamedTuple

import spark_rowtime as rt
from spark_rowtime.drain.kafka.sink import TopicSink, openTopicSink

READING = {
    "group.id": "tests",
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,
}


class Seen(NamedTuple):
    """A message."""

    key: bytes | None
    value: bytes
    headers: dict[str, bytes]

    @property
    def json(self) -> Any:
        return json.loads(self.value)

    @property
    def resolved(self) -> int | None:
        """The floor, in microseconds, if this is the message of a bound."""
        text = self.json.get("resolved")
        return None if text is None else int(text.partition(".")[0]) // 1000


def messages(servers: str, topic: str, partitions: int = 3, **settings: Any) -> list[list[Seen]]:
    """The messages of each partition, up to the first that is not committed."""
    from confluent_kafka import Consumer, TopicPartition

    found: list[list[Seen]] = [[] for _ in range(partitions)]
    consumer = Consumer({"bootstrap.servers": servers, **READING, **settings})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    left = set(range(partitions))
    while left:
        for message in consumer.consume(10_000, 0.02):
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                left.discard(message.partition())
            else:
                seen = Seen(message.key(), message.value(), dict(message.headers() or []))
                found[message.partition()].append(seen)
    consumer.close()
    return found


def rows_and_bound(partitions: list[list[Seen]]) -> tuple[list[int], int | None]:
    """The column n of all rows, and the bound that every partition has.

    No row of a partition is below a bound before it, and no bound of a partition falls.
    """
    numbers, bounds = [], []
    for partition in partitions:
        bound = 0
        for message in partition:
            if (floor := message.resolved) is not None:
                assert floor >= bound, "a bound falls"
                bound = floor
            else:
                assert rt.RowtimeBound(message.json["rowtime"]).floor >= bound, "a row comes after its bound"
                numbers.append(message.json["n"])
        bounds.append(bound)
    return numbers, min(bounds) or None


def opened(servers: str, topic: str, schema: Any, **options: Any) -> TopicSink:
    return openTopicSink(f"kafka://{servers}/{topic}", schema, **options)


def drain(servers: str, stream: str, topic: str, **options: Any) -> None:
    """Drains all that the stream has, with a transaction for each train."""
    with rt.openReader(stream) as reader, opened(servers, topic, reader.schema, every="0 s", **options) as sink:
        reader.drainTo(sink)
