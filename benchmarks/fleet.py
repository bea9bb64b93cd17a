"""Fleets: a commit, a poll and a plan beside many producers; many sinks in a process; one sink with many devices."""

import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import spark_rowtime as rt
from harness import figure, report
from spark_rowtime.bounds.key_order import InOrderPer
from spark_rowtime.store.commits import Commit, Staged
from spark_rowtime.types.schema import stream_schema
from spark_rowtime.types.timestamps import from_micros, to_micros

START = 1_767_225_600_000_000
SCHEMA = "rowtime TIMESTAMP NOT NULL, device STRING, value DOUBLE"
LEASE_MICROS = 3_600_000_000
BATCH_ROWS = 100_000
SKEW = 1_000_000
"""By how many microseconds the clocks of devices may differ: ten times what a batch spans."""


def among(grown: Any, asked: Any, producers: int, rounds: int) -> list[list[float]]:
    """CPU milliseconds of commits, of polls without news, and of polls with a batch to plan, beside more producers."""
    store = grown.store
    for name in range(producers):
        store.attach(f"silent {name}", "bench", "", LEASE_MICROS)
    epoch = store.attach("writer", "bench", "", LEASE_MICROS).epoch
    took: list[list[float]] = [[], [], []]
    for number in range(1, rounds + 1):
        at = START + number
        commit = Commit("writer", epoch, number, (Staged(1, at, at, grown.location),), at)
        marks = [time.process_time()]
        for call in (partial(store.commit, commit), asked.poll, asked.poll):
            call()
            marks.append(time.process_time())
        for which, milliseconds in zip((0, 2, 1), 1000 * np.diff(marks), strict=True):
            took[which].append(float(milliseconds))
    return took


def compare(many: list[list[float]], few: list[list[float]], size: int, base: int) -> None:
    """Reports commit, poll and plan beside ``size`` producers against those beside ``base``."""
    for what, ours, theirs in zip(("commit", "poll", "plan"), many, few, strict=True):
        report(f"{what}, beside {size:,} producers", ours, theirs, "CPU ms", f"beside {base:,}")


SINKS = """
import os, sys, time
import spark_rowtime as rt
def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
ROW = "2026-01-05T14:00:00Z", "a", 1.0
with rt.openSink(sys.argv[1], producer="first") as sink:
    sink.sendRow(ROW)  # the package is imported now
before, files, start = megabytes(), len(os.listdir("/proc/self/fd")), time.process_time()
sinks = [rt.openSink(sys.argv[1], producer=f"p{n}") for n in range(int(sys.argv[2]))]
seconds = time.process_time() - start
for sink in sinks:
    sink.sendRow(ROW)
print(seconds, len(os.listdir("/proc/self/fd")) - files, megabytes() - before)
for sink in sinks:
    sink.close()
"""


def many_sinks(root: Path, sinks: int) -> None:
    """What the sinks of one process and stream take together, after a row of each."""
    path = str(root / "sinks")
    rt.createStream(path, SCHEMA)
    ran = subprocess.run([sys.executable, "-c", SINKS, path, str(sinks)], check=True, capture_output=True, text=True)
    figures = (("open", "CPU s"), ("descriptors", "descriptors"), ("memory", "MB"))
    for value, (what, unit) in zip(ran.stdout.split(), figures, strict=True):
        figure(f"{sinks:,} sinks in a process, {what}", [float(value)], unit)


def batches(devices: int, count: int, skew: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows each of any device, in the order of their times, but for the skew of the devices' clocks in microseconds."""
    draw, names = np.random.default_rng(1), pa.array([f"device-{number:06}" for number in range(devices)])
    ahead = draw.integers(0, skew + 1, devices)
    for first in range(0, count * BATCH_ROWS, BATCH_ROWS):
        who = draw.integers(0, devices, BATCH_ROWS)
        times = pa.array(START + first + np.arange(BATCH_ROWS) + ahead[who]).cast(pa.timestamp("us", "UTC"))
        chosen = names.take(pa.array(who))
        yield pa.RecordBatch.from_arrays(
            [times, chosen, pa.array(draw.random(BATCH_ROWS))], schema=stream_schema(SCHEMA)
        )


def one_sink(root: Path, devices: int, rounds: int = 5) -> None:
    """Rows a second by Arrow and one by one; bytes that a commit of ten devices writes; memory of a device."""
    given, skewed = list(batches(devices, 20)), list(batches(devices, 20, SKEW))
    some, every, apart = single_rows(100), single_rows(devices), single_rows(devices, SKEW)
    any_order, in_order = {"rowsImplyBounds": False}, dict[str, Any]()
    for what, ours, theirs, order, base, count in (
        (f"sendRows, {devices:,} devices in a sink", given, given, any_order, "rowsImplyBounds=False", devices),
        (f"sendRows, {devices:,} skewed devices", skewed, skewed, any_order, "rowsImplyBounds=False", devices),
        (f"sendRow, {devices:,} devices in a sink", every, every, in_order, "rows in order", devices),
        (f"sendRow, {devices:,} skewed devices", apart, sorted_rows(apart), in_order, "rows in order", devices),
        ("sendRow, 100 devices in a sink", some, some, in_order, "rows in order", 100),
    ):
        found: list[list[float]] = [[], []]
        for number in range(2 * rounds):
            rows, declared = (theirs, order) if number % 2 else (ours, {"inOrderPer": "device"})
            found[number % 2].append(rate(root / f"{what} {number}", rows, count, **declared))
        report(what, *found, "rows/s", base)
    many, few = written(root / "many", devices), written(root / "few", 100)
    report(f"bytes of a commit of ten devices, of {devices:,}", many, few, "bytes", "of 100")
    figure(f"memory of a device, of {devices:,}", [memory(devices)], "bytes")


def single_rows(devices: int, skew: int = 0, count: int = 300_000) -> list[Any]:
    """Rows in the order of their times but for the skew, of all devices in turn, though not of neighbours."""
    ahead = np.random.default_rng(1).integers(0, skew + 1, devices).tolist()
    who = [number * 7919 % devices for number in range(count)]
    return [(from_micros(START + n + ahead[which]), f"device-{which:06}", 0.5) for n, which in enumerate(who)]


def sorted_rows(rows: list[Any]) -> list[Any]:
    """The rows in the order of their times, as new objects, which lie in memory in this order."""
    return [(from_micros(to_micros(time)), str(name.encode(), "ascii"), value) for time, name, value in sorted(rows)]


def rate(path: Path, rows: list[Any], devices: int, **order: Any) -> float:
    """Rows a CPU second, sent in batches or one by one into a new stream, after a first row of each device."""
    rt.createStream(str(path), SCHEMA)
    with rt.openSink(str(path), producer="fleet", **order) as sink:
        sink.sendRows([(from_micros(START), f"device-{number:06}", 0.5) for number in range(devices)])
        sink.flush()
        send = sink.sendRow if isinstance(rows[0], tuple) else sink.sendRows
        start = time.process_time()
        for row in rows:
            send(row)
        sink.flush()
        return sum(getattr(row, "num_rows", 1) for row in rows) / (time.process_time() - start)


def written(path: Path, devices: int, commits: int = 200) -> list[float]:
    """How many bytes the process writes for each commit of ten devices, of so many."""
    rt.createStream(str(path), SCHEMA)
    took = []
    with rt.openSink(str(path), producer="fleet", inOrderPer="device", lease=None, linger="1 hour") as sink:
        sink.sendRows([(from_micros(START), f"device-{n:06}", 0.5) for n in range(devices)])
        sink.flush()
        for number in range(commits):
            sink.sendRows([(from_micros(START + 1 + number), f"device-{n:06}", 0.5) for n in range(10)])
            before = _bytes_written()
            sink.flush()
            took.append(float(_bytes_written() - before))
    return took


def _bytes_written() -> int:
    fields = dict(line.split(": ") for line in Path(f"/proc/{os.getpid()}/io").read_text().splitlines())
    return int(fields["wchar"])


def memory(devices: int) -> float:
    """Bytes for each device in a sink, after they are stored."""
    names = pa.array([f"device-{number:06}" for number in range(devices)])
    keys = InOrderPer(stream_schema(SCHEMA), "device").keys
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    keys.set(names, keys.find(names), np.arange(START, START + devices))
    changes = keys.changes()
    assert changes is not None
    keys.landed(changes)
    keys.find(names)
    del changes
    used = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    return used / devices


def main(root: Path, sinks: int = 1000, devices: int = 100_000) -> None:
    """All but what is measured beside other producers, which growth.py does."""
    many_sinks(root, sinks)
    one_sink(root, devices)
