"""What is in a topic, as a consumer sees it that reads only what is committed."""

import json
from typing import Any, NamedTuple

import spark_rowtime as rt
from spark_rowtime.drain.kafka.sink import TopicSink, openTopicSink
from spark_rowtime.kafka.client import PASSING
from tests.sparksession import wait_for

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


def readable(servers: str, topic: str, partitions: int = 3, *, committed: bool = True) -> list[int]:
    """The offset up to which each partition can be read; ``committed``: with read_committed."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": servers})  # its answers do not come once it is gone
    return _ends(admin, topic, partitions, committed=committed)


def _ends(admin: Any, topic: str, partitions: int, *, committed: bool) -> list[int]:
    from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}

    def answered() -> list[int] | None:
        answers = admin.list_offsets(asked, isolation_level=level, request_timeout=240)
        try:
            return [answers[place].result(240).offset for place in asked]
        except KafkaException as error:
            if error.args[0].name() not in PASSING:
                raise
            return None

    found: list[int] = wait_for(answered, "the leaders of the partitions")
    return found


def ended(servers: str, topic: str, *partitions: int, of: int = 3) -> None:
    """Waits until no transaction is open in the partitions, or in any ``of`` them.

    The brokers answer a commit before they have marked the messages as committed, so these are visible a moment later.
    """
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": servers})

    def all_readable() -> bool:
        ends = zip(*(_ends(admin, topic, of, committed=committed) for committed in (True, False)), strict=True)
        return all(a == b for partition, (a, b) in enumerate(ends) if not partitions or partition in partitions)

    wait_for(all_readable, "the end of transactions")


def messages(servers: str, topic: str, partitions: int = 3, *, hanging: bool = False) -> list[list[Seen]]:
    """The messages of each partition, once no transaction is open in it; ``hanging``: up to the first that is open."""
    from confluent_kafka import Consumer, TopicPartition

    if not hanging:
        ended(servers, topic, of=partitions)
    found: list[list[Seen]] = [[] for _ in range(partitions)]
    consumer = Consumer({"bootstrap.servers": servers, **READING})
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
