"""Rows a second into the local store, against a plain Arrow IPC file writer and the same batches."""

import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from tables import BLOB, CPU, IPC, TWICE

import spark_rowtime as rt
from harness import folder, report

SCHEMA = pa.schema(
    [("rowtime", pa.timestamp("us", "UTC")), ("ticker", pa.string()), ("price", pa.float64()), ("qty", pa.int64())]
)
START = 1_767_225_600_000_000
SIZES = ((1, 1000, 10_000, 0.5), (100, 1000, 5000, 0.9), (10_000, 60, 300, 0.4), (100_000, 10, 40, 1.0))
"""Rows a train, trains that are committed each and trains under load, and the ratio that is wanted at least."""
TURNS = 7
THREADS = 8
DEFAULT, BULK = 65_536, 1_000_000
"""maxTrainRows: by default, and for batches that it would cut in two."""


def batch(first: int, rows: int) -> pa.RecordBatch:
    """Rows in order, a millisecond apart."""
    times = pa.array(range(START + first * 1000, START + (first + rows) * 1000, 1000), pa.int64())
    numbers = pa.array(range(rows), pa.int64())
    tickers = pa.array([f"T{n % 50}" for n in range(rows)])
    return pa.RecordBatch.from_arrays(
        [times.cast(SCHEMA[0].type), tickers, numbers.cast(pa.float64()), numbers], schema=SCHEMA
    )


class Took(NamedTuple):
    """Seconds of the clock, and of the process with all of its threads."""

    clock: float
    cpu: float


@contextmanager
def taken() -> Iterator[list[Took]]:
    """A list that has, behind the block, what the block took."""
    found: list[Took] = []
    clock, cpu = time.perf_counter(), time.process_time()
    yield found
    found.append(Took(time.perf_counter() - clock, time.process_time() - cpu))


def each_committed(path: Path, batches: list[pa.RecordBatch], durability: str = "process") -> Took:
    """As many commits as there are batches."""
    rt.createStream(str(path), SCHEMA)
    with rt.openSink(str(path), linger="1 hour", durability=durability, maxTrainRows=BULK) as sink:
        with taken() as took:
            for rows in batches:
                sink.sendRows(rows)
                sink.flush()
        return took[0]


def under_load(path: Path, batches: list[pa.RecordBatch]) -> Took:
    """As a feed sends: commits are made by the default linger, and by full trains, which a bulk load makes longer."""
    rt.createStream(str(path), SCHEMA)
    longest = DEFAULT if batches[0].num_rows < DEFAULT else BULK
    with rt.openSink(str(path), maxTrainRows=longest) as sink:
        with taken() as took:
            for rows in batches:
                sink.sendRows(rows)
            sink.flush()
        return took[0]


def by_file(path: Path, batches: list[pa.RecordBatch]) -> Took:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        with taken() as took:
            for rows in batches:
                writer.write_batch(rows)
        return took[0]


def by_blob(path: Path, batches: list[pa.RecordBatch]) -> Took:
    """The same bytes as blobs of a table, each synced: one sync a commit, and nothing else."""
    with closing(_table(path, "bytes BLOB")) as db:
        with taken() as took:
            for rows in batches:
                db.execute("INSERT INTO trains (bytes) VALUES (?)", (rows.serialize(),))
        return took[0]


def by_file_and_row(path: Path, batches: list[pa.RecordBatch]) -> Took:
    """The same bytes in a file, then where they are in a table: two syncs a commit, and nothing else."""
    with closing(_table(path, "length INT")) as db, path.with_name("one.bytes").open("wb", buffering=0) as file:
        with taken() as took:
            for rows in batches:
                file.write(message := rows.serialize())
                os.fdatasync(file.fileno())
                db.execute("INSERT INTO trains (length) VALUES (?)", (message.size,))
        return took[0]


def _table(path: Path, column: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"CREATE TABLE trains (seq INTEGER PRIMARY KEY, {column})")
    return db


def by_power(path: Path, batches: list[pa.RecordBatch]) -> Took:
    return each_committed(path, batches, "power")


def by_threads(path: Path, batches: list[pa.RecordBatch]) -> Took:
    """As many commits, by THREADS threads with a sink each."""
    rt.createStream(str(path), SCHEMA)
    with ExitStack() as stack, ThreadPoolExecutor(THREADS) as pool:
        opened = [
            stack.enter_context(rt.openSink(str(path), producer=f"p{n}", linger="1 hour", durability="power"))
            for n in range(THREADS)
        ]
        with taken() as took:
            list(pool.map(_commit_each, opened, (batches[n::THREADS] for n in range(THREADS))))
        return took[0]


def _commit_each(sink: rt.RowSink, batches: list[pa.RecordBatch]) -> None:
    for rows in batches:
        sink.sendRows(rows)
        sink.flush()


def tuples(rows: int) -> list[tuple[datetime, str, float, int]]:
    base = datetime(2026, 1, 1, tzinfo=UTC)
    return [(base + timedelta(milliseconds=n), f"T{n % 50}", float(n), n) for n in range(rows)]


def by_row(path: Path, rows: int) -> float:
    rt.createStream(str(path), SCHEMA)
    made = tuples(rows)
    with rt.openSink(str(path)) as sink:
        start = time.perf_counter()
        for row in made:
            sink.sendRow(row)
        sink.flush()
        return time.perf_counter() - start


def append_rows(rows: int) -> float:
    """What Python itself costs: the same rows gathered in a list and made Arrow at the end of each 65,536."""
    made = tuples(rows)
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


Run = Callable[[Path, list[pa.RecordBatch]], Took]


def in_turns(root: Path, batches: list[pa.RecordBatch], *runs: Run) -> list[list[Took]]:
    """Each of ``runs`` in turn, several times."""
    took: list[list[Took]] = [[] for _ in runs]
    for _ in range(TURNS):
        for run, found in zip(runs, took, strict=True):
            found.append(run(root / "one", batches))
            _remove(root / "one")
    return took


def _remove(path: Path) -> None:
    """A stream, or a file and what SQLite puts beside it."""
    for made in path.parent.glob(f"{path.name}*"):
        shutil.rmtree(made) if made.is_dir() else made.unlink()


def trains(root: Path) -> None:
    for size, few, many, wanted in SIZES:
        for how, run, count in (("", under_load, many), (", each committed", each_committed, few)):
            batches = [batch(n * size, size) for n in range(count)]
            took, what = in_turns(root, batches, run, by_file), f"sendRows, {size:,} rows a train{how}"
            for at, (name, unit) in enumerate(((what, "rows/s"), (f"{what}{CPU}", "rows/CPU s"))):
                ours, plain = ([size * count / one[at] for one in whose] for whose in took)
                ratio = report(name, ours, plain, unit, IPC)
                print(f"  wanted: {wanted} at least; got {ratio:.2f}")


LIST = "list.append, then pa.array by column"


def main() -> None:
    with folder() as root:
        trains(root)
        rows = 200_000
        ours, listed = [], []
        for turn in range(TURNS):
            ours.append(rows / by_row(root / f"row-{turn}", rows))
            listed.append(rows / append_rows(rows))
        report("sendRow, one at a time", ours, listed, "rows/s", LIST)
        print("  wanted: 1.2M rows/s at least")
        small = [batch(n, 1) for n in range(500)]
        took = in_turns(root, small, by_power, by_threads, by_blob, by_file_and_row)
        synced, shared, blobs, twice = ([len(small) / one.clock for one in whose] for whose in took)
        report("durability=power, small trains", synced, blobs, "commits/s", BLOB)
        report("durability=power, small trains", synced, twice, "commits/s", TWICE)
        report(f"durability=power, small trains, {THREADS} threads", shared, blobs, "commits/s", BLOB)
        print("  wanted: 2,500 commits/s")


if __name__ == "__main__":
    sys.exit(main())
