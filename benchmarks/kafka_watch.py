"""CPU seconds of a watch that derives bounds from a topic, by those of a consumer that reads the same times.

The CPU is that of the whole process, whatever else the machine does. With ``append-time`` no message is read: it is the
part of a core that a watch takes beside 10,000 messages a second, and what the broker takes more for it: what the other
readers of the topic feel.
"""

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from kafka_in import EMPTY_POLLS, PARTITIONS, fill
from tables import KAFKA_WATCH, READING_CONSUMER, UNWATCHED_BROKER, WATCH_CORE, WATCHED_BROKER

import spark_rowtime as rt
from harness import figure, folder, report
from spark_rowtime.kafka import KafkaWatch
from spark_rowtime.kafka.watch import create_watched

sys.path.append(str(Path(__file__).parent.parent))
from tests.kafka.broker import KafkaBroker
from tests.kafka.jars import broker_jars

ROWS, TURNS, A_SECOND, SECONDS = 1_000_000, 5, 10_000, 20


def consume(servers: str, topic: str, group: str) -> None:
    """A bare consumer that reads the time of each message."""
    from confluent_kafka import Consumer  # noqa: PLC0415

    options = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, "enable.auto.commit": False, "partition.assignment.strategy": "cooperative-sticky"})
    consumer.subscribe([topic])
    largest, quiet = None, 0
    while largest is None or quiet < EMPTY_POLLS:
        found = consumer.consume(20_000, 0.05)
        for message in found:
            at = datetime.fromisoformat(json.loads(message.value())["rowtime"])
            largest = at if largest is None or at > largest else largest
        quiet = 0 if found else quiet + 1
    consumer.close()


def watch(servers: str, topic: str, path: str) -> None:
    """KafkaWatch, which ends at the end of its partitions."""
    arguments = {"servers": servers, "topics": topic, "untilEnd": True, "lateness": "1 minute"}
    rt.runAdapter(KafkaWatch, path, arguments=arguments, producer="watch")


def watch_ends(servers: str, topic: str, path: str) -> None:
    """KafkaWatch by the time of appending, until the process is ended; its CPU is looked at meanwhile."""
    arguments = {"servers": servers, "topics": topic, "bounds": "append-time", "delay": "1 minute"}
    rt.runAdapter(KafkaWatch, path, arguments=arguments, producer="watch")


def timed(work: Callable[..., None], result: Any, *arguments: str) -> None:
    began = time.process_time()
    work(*arguments)
    result.put(time.process_time() - began)


def cpu(work: Callable[..., None], *arguments: str) -> float:
    """CPU seconds of the work in a process of its own, without its start."""
    context = multiprocessing.get_context("spawn")
    result = context.Queue()
    process = context.Process(target=timed, args=(work, result, *arguments))
    process.start()
    found: float = result.get()
    process.join()
    return found


def used(pid: int) -> float:
    """The CPU seconds that a process has used so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / 100


def with_load(broker: KafkaBroker, seconds: int, path: str | None) -> tuple[float, float]:
    """The part of a core, in percent, that a watch takes while messages come, and the CPU seconds of the broker then.

    Without a path there is no watch.
    """
    topic, watching = broker.topic(partitions=PARTITIONS), None
    if path is not None:
        create_watched(path)
        watching = multiprocessing.get_context("spawn").Process(target=watch_ends, args=(broker.bootstrap, topic, path))
        watching.start()
        while rt.describeStream(path).bound is None:
            time.sleep(0.1)
    pids = [broker.pid] if watching is None or watching.pid is None else [broker.pid, watching.pid]
    began, before = time.monotonic(), [used(pid) for pid in pids]
    for second in range(seconds):
        broker.send(topic, [{"value": b"{}", "partition": n % PARTITIONS} for n in range(A_SECOND)])
        time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    took = [used(pid) - then for pid, then in zip(pids, before, strict=True)]
    part = 100 * sum(took[1:]) / (time.monotonic() - began)
    if watching is not None:
        watching.terminate()
        watching.join()
    return part, took[0]


def main(rows: int, turns: int, seconds: int) -> None:
    broker = KafkaBroker(broker_jars())
    try:
        topic = broker.topic(partitions=PARTITIONS)
        fill(broker, topic, rows)
        ours, bare = [], []
        for turn in range(turns):
            bare.append(cpu(consume, broker.bootstrap, topic, f"bare-{turn}"))
            with folder() as root:
                create_watched(str(root / "s"))
                ours.append(cpu(watch, broker.bootstrap, topic, str(root / "s")))
        report(KAFKA_WATCH, ours, bare, "CPU s", READING_CONSUMER)
        with folder() as root:
            without = [with_load(broker, seconds, None)[1] for _ in range(turns)]
            found = [with_load(broker, seconds, str(root / f"s{turn}")) for turn in range(turns)]
        figure(WATCH_CORE, [part for part, _ in found], "%")
        report(WATCHED_BROKER, [took for _, took in found], without, "CPU s", UNWATCHED_BROKER)
    finally:
        broker.remove()


if __name__ == "__main__":
    main(*([int(argument) for argument in sys.argv[1:]] or (ROWS, TURNS, SECONDS)))
