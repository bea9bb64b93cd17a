"""Rows a second from a topic into a stream, by one and by two processes, against a consumer that decodes the same."""

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tables import BARE_CONSUMER, KAFKA_IN

import spark_rowtime as rt
from harness import folder, report
from spark_rowtime.kafka import KafkaFeed

sys.path.append(str(Path(__file__).parent.parent))
from tests.kafka.broker import KafkaBroker
from tests.kafka.jars import broker_jars

ROWS, PARTITIONS, TURNS = 1_000_000, 4, 5
SCHEMA = "rowtime TIMESTAMP NOT NULL, device STRING, value DOUBLE, n BIGINT"
START = datetime(2026, 1, 5, tzinfo=UTC)
EMPTY_POLLS = 40
"""So many polls without a message, of 50 ms each, are the end."""


def fill(broker: KafkaBroker, topic: str, rows: int) -> None:
    """Rows a millisecond apart."""
    for first in range(0, rows, 50_000):
        batch = []
        for n in range(first, min(first + 50_000, rows)):
            at = (START + timedelta(milliseconds=n)).isoformat()
            row = {"rowtime": at, "device": f"d{n % 100}", "value": n * 0.5, "n": n}
            batch.append({"value": json.dumps(row), "partition": n % PARTITIONS})
        broker.send(topic, batch, **{"linger.ms": 20, "queue.buffering.max.messages": 200_000})


def consume(servers: str, topic: str, group: str, result: "multiprocessing.Queue[tuple[int, float, float]]") -> None:
    """A bare consumer: each value as a dict with a datetime. Tells its rows, and when it began and had its last."""
    from confluent_kafka import Consumer  # noqa: PLC0415

    options = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    began = last = time.time()
    consumer = Consumer({**options, "enable.auto.commit": False, "partition.assignment.strategy": "cooperative-sticky"})
    consumer.subscribe([topic])
    count = quiet = 0
    while count == 0 or quiet < EMPTY_POLLS:
        rows = [json.loads(message.value()) for message in consumer.consume(20_000, 0.05) if not message.error()]
        for row in rows:
            row["rowtime"] = datetime.fromisoformat(row["rowtime"])
        count += len(rows)
        quiet = 0 if rows else quiet + 1
        last = time.time() if rows else last
    result.put((count, began, last))


def feed(servers: str, topic: str, path: str, result: "multiprocessing.Queue[tuple[int, float, float]]") -> None:
    """KafkaFeed, which ends at the end of its partitions."""
    began = time.time()
    arguments = {"servers": servers, "topics": topic, "untilEnd": True}
    rt.runAdapter(KafkaFeed, path, arguments=arguments, producer=multiprocessing.current_process().name)
    result.put((0, began, time.time()))


def together(target: Callable[..., None], processes: int, *arguments: str) -> float:
    """Seconds from the start of the first process to the end of the last."""
    context = multiprocessing.get_context("spawn")
    result = context.Queue()
    started = [context.Process(target=target, args=(*arguments, result)) for _ in range(processes)]
    for process in started:
        process.start()
    told = [result.get() for _ in started]
    for process in started:
        process.join()
    return max(end for _, _, end in told) - min(began for _, began, _ in told)


def main(rows: int, turns: int) -> None:
    broker = KafkaBroker(broker_jars())
    try:
        topic = broker.topic(partitions=PARTITIONS)
        fill(broker, topic, rows)
        for processes, what in zip((1, 2), KAFKA_IN, strict=True):
            ours, bare = [], []
            for turn in range(turns):
                group = f"bare-{processes}-{turn}"
                bare.append(rows / together(consume, processes, broker.bootstrap, topic, group))
                with folder() as root:
                    path = str(root / "s")
                    rt.createStream(path, SCHEMA)
                    ours.append(rows / together(feed, processes, broker.bootstrap, topic, path))
                    assert rt.describeStream(path).rows == rows, rt.describeStream(path)
            report(what, ours, bare, "rows/s", BARE_CONSUMER)
    finally:
        broker.remove()


if __name__ == "__main__":
    main(*([int(argument) for argument in sys.argv[1:]] or (ROWS, TURNS)))
