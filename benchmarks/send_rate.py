"""Rows a second into the local store, against a plain Arrow IPC file writer and the same batches."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

import spark_rowtime as rt
from harness import folder, report

SCHEMA = pa.schema(
    [("rowtime", pa.timestamp("us", "UTC")), ("ticker", pa.string()), ("price", pa.float64()), ("qty", pa.int64())]
)
START = 1_767_225_600_000_000


def batch(first: int, rows: int) -> pa.RecordBatch:
    """Rows in order, a millisecond apart."""
    times = pa.array(range(START + first * 1000, START + (first + rows) * 1000, 1000), pa.int64())
    numbers = pa.array(range(rows), pa.int64())
    tickers = pa.array([f"T{n % 50}" for n in range(rows)])
    return pa.RecordBatch.from_arrays(
        [times.cast(SCHEMA[0].type), tickers, numbers.cast(pa.float64()), numbers], schema=SCHEMA
    )


def by_store(path: Path, batches: list[pa.RecordBatch]) -> float:
    rt.createStream(str(path), SCHEMA)
    with rt.openSink(str(path), linger="1 hour") as sink:
        start = time.perf_counter()
        for rows in batches:
            sink.sendRows(rows)
            sink.flush()
        return time.perf_counter() - start


def by_file(path: Path, batches: list[pa.RecordBatch]) -> float:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        start = time.perf_counter()
        for rows in batches:
            writer.write_batch(rows)
        return time.perf_counter() - start


def by_row(path: Path, rows: int) -> float:
    rt.createStream(str(path), SCHEMA)
    base = datetime(2026, 1, 1, tzinfo=UTC)
    made = [(base + timedelta(milliseconds=n), f"T{n % 50}", float(n), n) for n in range(rows)]
    with rt.openSink(str(path)) as sink:
        start = time.perf_counter()
        for row in made:
            sink.sendRow(row)
        sink.flush()
        return time.perf_counter() - start


Run = Callable[[Path, list[pa.RecordBatch]], float]


def rates(run: Run, root: Path, name: str, size: int, count: int) -> list[float]:
    batches = [batch(n * size, size) for n in range(count)]
    return [size * count / run(root / f"{name}-{size}-{turn}", batches) for turn in range(5)]


def main() -> None:
    with folder() as root:
        for size, count in ((1, 2000), (100, 2000), (10_000, 100), (100_000, 20)):
            ours, plain = rates(by_store, root, "store", size, count), rates(by_file, root, "file", size, count)
            report(f"sendRows, {size:,} rows a train", ours, plain, "rows/s", "Arrow IPC file writer")
        rows = 200_000
        ours = [rows / by_row(root / f"row-{turn}", rows) for turn in range(3)]
        appended = [rows / append_rows(rows) for _ in range(3)]
        report("sendRow, one at a time", ours, appended, "rows/s", "list.append, then pa.array by column")


def append_rows(rows: int) -> float:
    """What Python itself costs: the same rows gathered in a list and made Arrow at the end of each 65,536."""
    base = datetime(2026, 1, 1, tzinfo=UTC)
    made = [(base + timedelta(milliseconds=n), f"T{n % 50}", float(n), n) for n in range(rows)]
    start, gathered = time.perf_counter(), []
    for row in made:
        gathered.append(row)
        if len(gathered) == 65_536:
            to_arrow(gathered)
            gathered = []
    to_arrow(gathered)
    return time.perf_counter() - start


def to_arrow(rows: list[tuple[object, ...]]) -> None:
    """One batch, column by column."""
    pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), SCHEMA, strict=True)], schema=SCHEMA
    )


if __name__ == "__main__":
    sys.exit(main())
