"""Hosts KafkaFeed, in this process or in one of its own, and reads what it has sent."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import spark_rowtime as rt
from spark_rowtime.kafka import KafkaFeed
from tests.sparksession import wait_for

SCHEMA = "rowtime TIMESTAMP NOT NULL, n BIGINT"
PATIENT = {"kafka.session.timeout.ms": "240000"}
"""Kafka takes no partition from a host that stands still for a while: it would read some messages twice."""
START = datetime(2026, 1, 5, 14, tzinfo=UTC)


def moment(seconds: float) -> str:
    """So many seconds after 14:00."""
    return (START + timedelta(seconds=seconds)).isoformat()


def message(n: int, seconds: float | None = None, partition: int = 0, **more: Any) -> dict[str, Any]:
    """A message with the row ``n``, as ``KafkaBroker.send`` takes it."""
    row = {"rowtime": moment(n if seconds is None else seconds), "n": n, **more}
    return {"value": json.dumps(row), "partition": partition}


def with_open_transaction(kafka: Any, topic: str, sent: dict[str, Any]) -> Any:
    """A producer that has sent a message in a transaction, which stays open for ten minutes."""
    from confluent_kafka import Producer

    names = {"bootstrap.servers": kafka.bootstrap, "transactional.id": topic}
    producer = Producer({**names, "transaction.timeout.ms": 600_000})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, **sent)
    producer.flush()
    return producer


def read(kafka: Any, path: Path | str, topics: str, **arguments: Any) -> list[int]:
    """Reads what the topics have now, in this process; returns the numbers of all rows of the stream."""
    if not Path(path).exists():
        rt.createStream(str(path), SCHEMA)
    given = {"servers": kafka.bootstrap, "topics": topics, "untilEnd": True, **PATIENT, **arguments}
    try:
        rt.runAdapter(KafkaFeed, str(path), arguments=given, producer="feed", restarts=0)
    except rt.RowtimeError as error:
        raise error.__cause__ or error from None  # what failed, without the host's words around it
    return numbers(path)


def numbers(path: Path | str) -> list[int]:
    """The numbers of all rows of a stream."""
    return sorted(rows(path).column("n").to_pylist())


def rows(path: Path | str) -> pa.Table:
    """All rows of a stream."""
    with rt.openReader(str(path), order="arrival") as reader:
        found = [pa.Table.from_batches([train.rows]) for train in reader]
    return pa.concat_tables(found) if found else pa.table({"n": []})


def bound(path: Path | str) -> str:
    """The stream's bound, as a text; "None" if there is none."""
    found = rt.describeStream(str(path)).bound
    return str(found.time.isoformat() if found else None)


class Host:
    """``rowtime run`` in a process of its own."""

    adapter = "spark_rowtime.kafka:KafkaFeed"

    def __init__(self, kafka: Any, path: Path | str, topics: str, name: str, *arguments: str) -> None:
        given = [f"servers={kafka.bootstrap}", f"topics={topics}", *arguments]
        command = [sys.executable, "-m", "spark_rowtime.cli", "run", self.adapter, str(path)]
        command += [f"--producer={name}", *(f"--set={one}" for one in given)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.output: list[str] = []
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self.output.extend(lines)

    def send(self, number: int) -> None:
        """Sends a signal to the process."""
        os.kill(self._process.pid, number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """Ends the process."""
        if self._process.poll() is None:
            self.send(number)
        self._process.wait(240)
        self._reader.join(240)

    def lives(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None


@contextmanager
def hosts(*started: Host) -> Iterator[list[Host]]:
    """Ends the hosts, and those that the test adds to the list."""
    all_hosts = list(started)
    try:
        yield all_hosts
    finally:
        for host in all_hosts:
            host.end(signal.SIGKILL)


def eventually(what: Callable[[], Any], value: Any) -> None:
    """Waits until ``what`` returns the value."""
    found: list[Any] = []

    def same() -> bool:
        found[:] = [what()]
        return bool(found[0] == value)

    try:
        wait_for(same, f"{value}")
    except AssertionError as error:
        raise AssertionError(f"{error}: it is {found[0]}") from None
