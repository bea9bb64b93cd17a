"""Transactions that hang: their producer was killed before it has ended them."""

from typing import Any

from tests.crash.victims import Victim
from tests.sparksession import wait_for

OPEN_MS = 600_000
"""The time limit of the transactions: the tests end them before."""


def begin(pipe: Any, bootstrap: str, name: str, topic: str, messages: list[dict[str, Any]]) -> None:
    """Writes messages in a transaction, says so once the broker has them, and never ends it."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": OPEN_MS}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    for message in messages:
        producer.produce(topic, **message)
    assert producer.flush(30) == 0
    pipe.send("open")
    pipe.recv()


def left_open(kafka: Any, topic: str, *messages: dict[str, Any], name: str) -> None:
    """Leaves a transaction with these messages open: kill -9 of its producer."""
    producer = Victim(begin, kafka.bootstrap, name, topic, list(messages))
    producer.listen(60, 1)
    assert producer.heard == ["open"]
    assert producer.kill()


def end(kafka: Any, name: str) -> None:
    """Ends the transaction that was left open, as a new producer of its name does when it starts."""
    from confluent_kafka import Producer

    Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name}).init_transactions(30)


def readable(kafka: Any, topic: str, *, committed: bool = True) -> list[int]:
    """The offset up to which each partition can be read; ``committed``: with read_committed."""
    from confluent_kafka import IsolationLevel, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(3)}
    found = kafka.admin.list_offsets(asked, isolation_level=level, request_timeout=30)
    return [found[place].result(30).offset for place in asked]


def ended(kafka: Any, topic: str, *partitions: int) -> None:
    """Waits until no transaction is open in the partitions, or in any. A commit is visible a moment after it."""

    def all_readable() -> bool:
        ends = zip(readable(kafka, topic), readable(kafka, topic, committed=False), strict=True)
        return all(a == b for partition, (a, b) in enumerate(ends) if not partitions or partition in partitions)

    wait_for(all_readable, "the end of transactions")
