"""Rows a second from a stream into a table, against the table's library alone with the same Arrow batches in memory."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from send_rate import SCHEMA, batch
from tables import CPU, DRAINS

import spark_rowtime as rt
from harness import folder, report
from spark_rowtime.drain.sink import MAX_ROWS

ROWS, TURNS = 4_000_000, 5
Write = Callable[[str, list[pa.Table]], None]
Seconds = list[tuple[float, float]]
"""Of the clock, and of the process on all cores, for each turn."""
CATALOG = {"URI": "sqlite:///{}/catalog.db", "WAREHOUSE": "file://{}/warehouse"}


def fill(stream: str, rows: int) -> None:
    """Rows a millisecond apart, and the end."""
    rt.createStream(stream, SCHEMA)
    with rt.openSink(stream) as sink:
        for first in range(0, rows, 250_000):
            sink.sendRows(batch(first, 250_000))
        sink.close(complete=True)


def commits(stream: str) -> list[pa.Table]:
    """The stream's trains in memory, as many together as a drain commits at once."""
    found, gathered = [], []
    with rt.openReader(stream) as reader:
        for train in reader:
            gathered.append(train.rows)
            if sum(rows.num_rows for rows in gathered) >= MAX_ROWS:
                found.append(pa.Table.from_batches(gathered))
                gathered = []
    return [*found, pa.Table.from_batches(gathered)] if gathered else found


def drain(target: str, stream: str) -> None:
    """With making the table and reading the stream."""
    with rt.openReader(stream) as reader, rt.openTableSink(target, reader.schema, every="1 hour") as sink:
        reader.drainTo(sink)


def delta(place: str, tables: list[pa.Table]) -> None:
    from deltalake import write_deltalake  # noqa: PLC0415

    for table in tables:
        write_deltalake(place.removeprefix("delta:"), table, mode="append")


def iceberg(place: str, tables: list[pa.Table]) -> None:
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415

    catalog = load_catalog("lake")
    catalog.create_namespace_if_not_exists("shop")
    made = catalog.create_table(place.removeprefix("iceberg:lake."), tables[0].schema)
    for table in tables:
        made.append(table)


def parquet(place: str, tables: list[pa.Table]) -> None:
    """One file, on the disk when it is done, as the drain's: all rows are in one year."""
    file = Path(place.removeprefix("parquet:").replace("%Y", "rows.parquet"))
    file.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(file, tables[0].schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table, row_group_size=MAX_ROWS)
    with file.open("rb") as written:
        os.fsync(written.fileno())


def seconds(write: Callable[[str, Any], None], target: str, rows: Any) -> tuple[float, float]:
    """Of the clock, and of the process."""
    start, cpu = time.perf_counter(), time.process_time()
    write(target, rows)
    return time.perf_counter() - start, time.process_time() - cpu


def targets(root: Path, turn: int) -> dict[str, str]:
    """A new table of each format, at which {} stands for whose it is."""
    return {
        "delta": f"delta:{root}/delta-{{}}{turn}",
        "iceberg": f"iceberg:lake.shop.{{}}{turn}",
        "parquet": f"parquet:{root}/parquet-{{}}{turn}/%Y",
    }


def in_turns(root: Path, stream: str, write: Write, tables: list[pa.Table], turns: int) -> list[Seconds]:
    """The seconds of the drain and those of the library; each is the first of the two in every other turn."""
    found: list[Seconds] = [[], []]
    runs = [("drained", drain, stream), ("alone", write, tables)]
    for turn in range(turns + 1):
        target = targets(root, turn)[write.__name__]
        for at in (0, 1) if turn % 2 else (1, 0):
            whose, run, rows = runs[at]
            taken = seconds(run, target.format(whose), rows)
            if turn:  # the first warms up
                found[at].append(taken)
    return found


def main(rows: int = ROWS, turns: int = TURNS) -> None:
    with folder() as root:
        for name, value in CATALOG.items():
            os.environ[f"PYICEBERG_CATALOG__LAKE__{name}"] = value.format(root)
        stream = str(root / "stream")
        fill(stream, rows)
        tables = commits(stream)
        for what, write in zip(DRAINS, (delta, iceberg, parquet), strict=True):
            found = in_turns(root, stream, write, tables, turns)
            for at, (name, unit) in enumerate(((what, "rows/s"), (f"{what}{CPU}", "rows/CPU s"))):
                ours, theirs = ([rows / taken[at] for taken in whose] for whose in found)
                report(name, ours, theirs, unit, DRAINS[what])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
