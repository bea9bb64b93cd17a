"""Rows a second from a stream into a table, against the table's library alone with the same Arrow batches in memory."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from send_rate import SCHEMA, batch
from tables import DRAINS

import spark_rowtime as rt
from harness import folder, report
from spark_rowtime.tables.sink import MAX_ROWS

ROWS, TURNS = 4_000_000, 5
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


def drained(stream: str, target: str) -> float:
    """Seconds of a drain, with making the table and reading the stream."""
    start = time.perf_counter()
    with rt.openReader(stream) as reader, rt.openTableSink(target, reader.schema, every="1 hour") as sink:
        reader.drainTo(sink)
    return time.perf_counter() - start


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
    """One file, as the drain writes: all rows are in one year."""
    file = Path(place.removeprefix("parquet:").replace("%Y", "rows.parquet"))
    file.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(file, tables[0].schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table, row_group_size=MAX_ROWS)


def alone(write: Callable[[str, list[pa.Table]], None], place: str, tables: list[pa.Table]) -> float:
    """Seconds of the library, which makes the table too."""
    start = time.perf_counter()
    write(place, tables)
    return time.perf_counter() - start


def main(rows: int = ROWS, turns: int = TURNS) -> None:
    with folder() as root:
        for name, value in CATALOG.items():
            os.environ[f"PYICEBERG_CATALOG__LAKE__{name}"] = value.format(root)
        stream = str(root / "stream")
        fill(stream, rows)
        tables = commits(stream)
        for what, write in zip(DRAINS, (delta, iceberg, parquet), strict=True):
            kind, ours, theirs = write.__name__, [], []
            for turn in range(turns + 1):
                place = f"lake.shop.{{}}{turn}" if kind == "iceberg" else f"{root}/{kind}-{{}}{turn}/%Y"
                seconds = drained(
                    stream, f"{kind}:{place.format('drained')}".replace("/%Y", "/%Y" * (kind == "parquet"))
                )
                beside = alone(write, f"{kind}:{place.format('alone')}", tables)
                if turn:  # the first warms up
                    ours.append(rows / seconds)
                    theirs.append(rows / beside)
            report(what, ours, theirs, "rows/s", DRAINS[what])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
