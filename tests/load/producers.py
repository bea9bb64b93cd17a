"""Some producers of a stream in one process: python -m tests.load.producers PATH FIRST COUNT TIMINGS.

Each sends batches of numbered rows, and one row that is late, with the next number as the checkpoint:
killed at any point and started again it goes on where the stream says. Ends when its input does.
"""

import logging
import select
import sys
import time
from array import array
from datetime import UTC, datetime, timedelta
from pathlib import Path

import spark_rowtime as rt
from tests.patience import wait_long_for_locks

SCHEMA = "rowtime TIMESTAMP NOT NULL, producer STRING NOT NULL, n BIGINT NOT NULL, payload STRING"
BATCH = 20
PACE = 0.1
"""Seconds from one commit of a producer to the next."""
START = datetime(2025, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def name(number: int) -> str:
    """The producer's name."""
    return f"producer {number}"


def run(path: str, first: int, count: int, timings: str) -> None:
    """Sends until the input ends; appends each commit's duration to the file ``timings``."""
    sinks = {
        name(n): rt.openSink(path, producer=name(n), onLate="reject", linger="1 hour", lease=None)
        for n in range(first, first + count)
    }
    following = {producer: int(sink.checkpoint or 0) for producer, sink in sinks.items()}
    with Path(timings).open("ab") as log:
        due = time.monotonic()
        while not _ended(due):
            due = max(due + PACE, time.monotonic())
            took = array("d")
            for producer, sink in sinks.items():
                start = following[producer]
                send(sink, producer, start)
                before = time.perf_counter()
                sink.flush(checkpoint=str(start + BATCH))
                took.append(time.perf_counter() - before)
                following[producer] = start + BATCH
            took.tofile(log)
            log.flush()
    for sink in sinks.values():
        sink.close()


def send(sink: rt.RowSink, producer: str, start: int) -> None:
    """A batch from number ``start`` on, and a row below it, which is late."""
    sink.sendRows([(START + n * MILLISECOND, producer, n, "x" * 20) for n in range(start, start + BATCH)])
    sink.sendRow((START, producer, -1, "late"))


def _ended(due: float) -> bool:
    """Waits until ``due`` for the end of the input."""
    return bool(select.select([sys.stdin], [], [], max(due - time.monotonic(), 0))[0])


if __name__ == "__main__":
    wait_long_for_locks()
    logging.getLogger("spark_rowtime.laterow").setLevel(logging.ERROR)
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
