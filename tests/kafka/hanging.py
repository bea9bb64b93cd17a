"""Transactions that hang: their producer was killed before it has ended them."""

from typing import Any

from tests.crash.victims import Victim

OPEN_MS = 600_000
"""The time limit of the transactions: the tests end them before."""


def begin(pipe: Any, bootstrap: str, name: str, topic: str, messages: list[dict[str, Any]]) -> None:
    """Writes messages in a transaction, says so once the broker has them, and never ends it."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": OPEN_MS}
    producer = Producer(settings)
    producer.init_transactions(240)
    producer.begin_transaction()
    for message in messages:
        producer.produce(topic, **message)
    assert producer.flush(240) == 0
    pipe.send("open")
    pipe.recv()


def left_open(kafka: Any, topic: str, *messages: dict[str, Any], name: str) -> None:
    """Leaves a transaction with these messages open: kill -9 of its producer."""
    producer = Victim(begin, kafka.bootstrap, name, topic, list(messages))
    producer.listen(240, 1)
    assert producer.heard == ["open"]
    assert producer.kill()


def end(kafka: Any, name: str) -> None:
    """Ends the transaction that was left open, as a new producer of its name does when it starts."""
    from confluent_kafka import Producer

    Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name}).init_transactions(240)
