"""From a commit to when a reader in another process has its row; and what that reader costs while nothing comes."""

import random
import statistics
import sys
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from send_rate import SCHEMA, batch

import spark_rowtime as rt
from harness import figure, folder

COMMITS, IDLE = 300, 5
"""So many commits, and so many seconds without any."""
_WAIT = 30


def read(path: str, answers: Connection) -> None:
    """The reader: first the idle seconds, then the moment at which it had each row. The clock is the machine's."""
    with rt.openReader(path, order="arrival", follow=True) as reader:
        reader.read(timeout=0)
        answers.send("ready")
        busy, start = time.process_time(), time.perf_counter()
        reader.read(timeout=IDLE)
        answers.send((time.process_time() - busy) / (time.perf_counter() - start))
        seen: list[float] = []
        while len(seen) < COMMITS:
            train = reader.read(timeout=_WAIT)
            assert train is not None, "no row came"
            seen += [time.monotonic()] * train.rows.num_rows
        answers.send(seen)


def send(path: str) -> list[float]:
    """The moments at which each row's commit had returned; at random distances, so as not to go with the poll."""
    committed = []
    with rt.openSink(path, linger="1 hour") as sink:
        for at in range(COMMITS):
            time.sleep(random.uniform(0.005, 0.02))
            sink.sendRows(batch(at, 1))
            sink.flush()
            committed.append(time.monotonic())
    return committed


def measure(path: Path) -> tuple[float, list[float]]:
    """The idle reader's share of a core, and the latency of each commit in ms."""
    rt.createStream(str(path), SCHEMA)
    context = get_context("spawn")
    here, there = context.Pipe()
    reader = context.Process(target=read, args=(str(path), there))
    reader.start()
    assert here.recv() == "ready"
    idle = here.recv()
    committed = send(str(path))
    seen = here.recv()
    reader.join()
    return idle, [1000 * (after - before) for before, after in zip(committed, seen, strict=True)]


def main() -> None:
    with folder() as root:
        measured = [measure(root / f"stream-{turn}") for turn in range(3)]
    latencies = [latency for _, run in measured for latency in run]
    figure("commit to seen by a reader", latencies, "ms")
    print(f"  99 % within {statistics.quantiles(latencies, n=100)[-1]:.3g} ms; wanted: 1 ms at 2 % of a core")
    figure("core of an idle reader", [100 * idle for idle, _ in measured], "%")


if __name__ == "__main__":
    sys.exit(main())
