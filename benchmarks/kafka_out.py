"""Rows a second from a stream into a topic, against a bare transactional producer that has the same messages in memory.

A broker of the tests, on the same machine; three partitions, a key of 50 values, a transaction for 100,000 rows.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow as pa
from confluent_kafka import Producer
from send_rate import SCHEMA, batch
from tables import TOPIC, TOPIC_ALONE

import spark_rowtime as rt
from harness import folder, report
from spark_rowtime.drain.kafka.encoders import JsonEncoder
from spark_rowtime.drain.kafka.messages import Message, RowMessages
from spark_rowtime.drain.kafka.sink import MAX_ROWS, openTopicSink
from tests.kafka.broker import KafkaBroker
from tests.kafka.jars import broker_jars

ROWS, TURNS, EACH = 1_000_000, 5, 50_000
_names = count(1)


def fill(stream: str, rows: int) -> list[list[Message]]:
    """Fills the stream; returns its messages, as many together as a transaction has."""
    rt.createStream(stream, SCHEMA)
    with rt.openSink(stream) as sink:
        for first in range(0, rows, EACH):
            sink.sendRows(batch(first, EACH))
        sink.close(complete=True)
    with rt.openReader(stream) as reader:
        table = pa.Table.from_batches([train.rows for train in reader])
        made = RowMessages(reader.schema, "ticker", JsonEncoder(reader.schema))
    return [list(made.of(table.slice(first, MAX_ROWS))) for first in range(0, rows, MAX_ROWS)]


def drained(stream: str, broker: Any) -> float:
    """Seconds of a drain, with opening and reading the stream, and reading and writing the position."""
    topic = broker.topic()
    start = time.perf_counter()
    with (
        rt.openReader(stream) as reader,
        openTopicSink(f"kafka://{broker.bootstrap}/{topic}", reader.schema, key="ticker", every="1 hour") as sink,
    ):
        reader.drainTo(sink)
    return time.perf_counter() - start


def alone(transactions: list[list[Message]], broker: Any) -> float:
    """Seconds of the client: one message after the other, and a commit."""
    topic = broker.topic()
    start = time.perf_counter()
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": f"bare-{next(_names)}"}
    producer = Producer({**settings, "partitioner": "murmur2_random", "queue.buffering.max.messages": 200_000})
    producer.init_transactions()
    for messages in transactions:
        producer.begin_transaction()
        for key, value in messages:
            producer.produce(topic, value, key)
        producer.commit_transaction()
    return time.perf_counter() - start


@contextmanager
def running() -> Iterator[Any]:
    """A broker."""
    broker = KafkaBroker(broker_jars())
    try:
        yield broker
    finally:
        broker.remove()


def main(rows: int = ROWS, turns: int = TURNS) -> None:
    with folder() as root, running() as broker:
        stream = str(root / "stream")
        transactions = fill(stream, rows)
        ours, theirs = [], []
        for turn in range(turns + 1):
            seconds, beside = drained(stream, broker), alone(transactions, broker)
            if turn:  # the first warms up
                ours.append(rows / seconds)
                theirs.append(rows / beside)
        report(TOPIC, ours, theirs, "rows/s", TOPIC_ALONE)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
