"""Many producers and readers in many processes, of which one is killed again and again: nothing lost, nothing twice.

``ROWTIME_LOAD_SECONDS=600 ROWTIME_LOAD_PRODUCERS=64 ROWTIME_LOAD_SPARK=1 pytest -s tests/load`` is the long form:
64 producers in 8 processes for ten minutes, and a Spark query; it prints the row of docs/guarantees.md. CI runs some
seconds with 12 producers in 3 processes.
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from tests.load.producers import BATCH, SCHEMA, name
from tests.patience import wait_long_for_locks
from tests.sparksession import wait_for

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("ROWTIME_LOAD_SECONDS", "5"))
PRODUCERS = int(os.environ.get("ROWTIME_LOAD_PRODUCERS", "12"))
PER_PROCESS = 8 if PRODUCERS > 12 else 4
KILL_EVERY = 3.0 if SECONDS > 60 else 1.0
GROWTH = 64 << 20
"""Bytes by which a reader's memory may grow after its first tenth, whatever it reads."""


class Worker:
    """A process that can be killed and started again."""

    def __init__(self, module: str, *arguments: Any) -> None:
        self._command = [sys.executable, "-m", f"tests.load.{module}", *map(str, arguments)]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, cwd=ROOT, stdin=subprocess.PIPE)

    def kill_and_restart(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL, "it had ended by itself"
        self.stop()
        self.start()

    def stop(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(240)


@contextmanager
def ending(workers: list[Worker]) -> Iterator[None]:
    """No process is left, whatever happens."""
    try:
        yield
    finally:
        for worker in workers:
            worker.process.kill()
            worker.stop()


class Memory:
    """How much memory one process had, from time to time."""

    def __init__(self, pid: Callable[[], int]) -> None:
        self._pid = pid
        self._seen: list[int] = []

    def look(self) -> None:
        pages = int(Path(f"/proc/{self._pid()}/statm").read_text().split()[1])
        self._seen.append(pages * resource.getpagesize())

    def growth(self) -> int:
        """Bytes from the largest of the first tenth to the largest of all."""
        return max(self._seen) - max(self._seen[: max(len(self._seen) // 10, 1)])


def seen_by(file: Path) -> dict[str, Any]:
    """What a reader's process has kept."""
    return json.loads(file.read_text()) if file.exists() else {"seen": {}}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    wait_long_for_locks(monkeypatch.setitem)
    path = str(tmp_path / "load.rowtime")
    rt.createStream(path, SCHEMA, producers=[name(n) for n in range(PRODUCERS)])  # it waits for the slowest process
    return path


@pytest.mark.long
def test_many_producers_and_readers_that_are_killed(path: str, tmp_path: Path, request: Any) -> None:
    timings = [tmp_path / f"timings-{n}" for n in range(0, PRODUCERS, PER_PROCESS)]
    producers = [Worker("producers", path, n * PER_PROCESS, PER_PROCESS, file) for n, file in enumerate(timings)]
    states = [tmp_path / "steady", tmp_path / "killed"]
    readers = [Worker("tailing", path, order, file) for order, file in zip(("rowtime", "arrival"), states, strict=True)]
    watched = {"reader": Memory(lambda: readers[0].process.pid)}
    with ending([*producers, *readers]), queried(request, path, watched) as counted:
        for file in states:
            wait_for(lambda f=file: seen_by(f)["seen"], "a reader to read")
        kills = kill_for_a_while([*producers, readers[1]], watched, path)
        assert [worker.stop() for worker in producers] == [0] * len(producers)
        info = rt.describeStream(path)
        for file in states:
            wait_for(lambda f=file: sum(seen_by(f)["seen"].values()) >= info.rows, "a reader to come to the end")
        assert [worker.stop() for worker in readers] == [0, 0]
        assert counted() in (None, info.rows)
    report(info, kills, states, timings, watched)
    check(info, states)
    assert all(memory.growth() < GROWTH for memory in watched.values())


@contextmanager
def queried(request: Any, path: str, watched: dict[str, Memory]) -> Iterator[Callable[[], int | None]]:
    """With ROWTIME_LOAD_SPARK a Spark query reads along; how many rows it has had in the end, exactly."""
    if "ROWTIME_LOAD_SPARK" not in os.environ:
        yield lambda: None
        return
    spark, rows = request.getfixturevalue("spark"), [0]

    def count(frame: Any, _: int) -> None:
        rows[0] += frame.count()

    query = spark.readStream.format("rowtime").load(path).writeStream.foreachBatch(count).start()
    try:
        wait_for(lambda: rows[0], "the query's first rows")
        watched["Spark's planner"] = Memory(planner(spark))

        def counted() -> int:
            query.processAllAvailable()
            return rows[0]

        yield counted
    finally:
        query.stop()


def planner(spark: Any) -> Callable[[], int]:
    """The Python process, a child of this session's JVM, in which Spark's source lives."""
    jvm = str(spark.sparkContext._gateway.proc.pid)
    command = ["pgrep", "-n", "-P", jvm, "-f", "python_streaming_source_runner"]
    pid = int(subprocess.run(command, capture_output=True, check=True).stdout)
    return lambda: pid


def kill_for_a_while(workers: list[Worker], watched: dict[str, Memory], path: str) -> int:
    """Kills one of them again and again, once all producers have begun; how often."""
    wait_for(lambda: all_send(path), "all producers to send")
    dice, kills, end = random.Random(4), 0, time.monotonic() + SECONDS
    while not kills or time.monotonic() < end:
        due = time.monotonic() + KILL_EVERY
        wait_for(lambda until=due: time.monotonic() >= until, "the next kill", KILL_EVERY + 240)
        for memory in watched.values():
            memory.look()
        dice.choice(workers).kill_and_restart()
        kills += 1
    return kills


def all_send(path: str) -> bool:
    producers = rt.describeStream(path).producers
    return len(producers) == PRODUCERS and all(p.accepted for p in producers)


def check(info: rt.StreamInfo, states: list[Path]) -> None:
    """received = accepted + rejected, by the producers' own checkpoints; every accepted row read once."""
    sent = {p.name: int(p.checkpoint or 0) for p in info.producers}
    assert sorted(sent) == sorted(name(n) for n in range(PRODUCERS))
    assert {p.name: p.accepted for p in info.producers} == sent
    assert {p.name: p.rejected for p in info.producers} == {name: count // BATCH for name, count in sent.items()}
    assert info.rows == sum(sent.values()) > 0
    for file in states:
        assert seen_by(file)["problems"] == []
        assert {**dict.fromkeys(sent, 0), **seen_by(file)["seen"]} == sent


def report(
    info: rt.StreamInfo, kills: int, states: list[Path], timings: list[Path], watched: dict[str, Memory]
) -> None:
    """The row of docs/guarantees.md."""
    sent = {p.name: int(p.checkpoint or 0) for p in info.producers}
    lost = [count - seen_by(file)["seen"].get(name, 0) for file in states for name, count in sent.items()]
    odd = sum(len(seen_by(file)["problems"]) for file in states)
    took = array("d", b"".join(whole(file.read_bytes()) for file in timings))
    waits = sorted(took)
    p50, p99, most = (1000 * waits[int(part * (len(waits) - 1))] for part in (0.5, 0.99, 1))
    rejected = sum(p.rejected for p in info.producers)
    print(
        f"\n| {PRODUCERS} producers in {len(timings)} processes, 2 readers | {SECONDS:.0f} s | {kills} times kill -9 "
        f"| {info.rows:,} accepted + {rejected:,} rejected = {info.rows + rejected:,} received "
        f"| lost {sum(lost)}, out of turn {odd} "
        f"| {len(waits):,} commits: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {most:.0f} ms "
        f"| {', '.join(f'{what} grew by {of.growth() / 2**20:.1f} MiB' for what, of in watched.items())} |"
    )


def whole(timings: bytes) -> bytes:
    """Without what a kill left of a number."""
    return timings[: len(timings) // 8 * 8]
