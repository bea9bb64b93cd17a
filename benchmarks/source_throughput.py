"""Rows at rest through a minute count and sum, and through no aggregation at all.

Against two baselines on the same rows in the same run: a parquet file stream, and a bare Python data
source that yields the same Arrow batches out of IPC files. CPU seconds are of the whole process tree,
user and system; wall time beside it.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from send_rate import batch

import spark_rowtime as rt
from harness import folder, report, session

TRAIN = 65_536
DDL = "rowtime TIMESTAMP NOT NULL, ticker STRING, price DOUBLE, qty BIGINT"
PARTITION = 4 * TRAIN


class Bare(DataSource):
    """The least that a Python source can do: Arrow batches out of files."""

    @classmethod
    def name(cls) -> str:
        return "bare"

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: object) -> "BareReader":
        return BareReader(self.options["path"])


class BareReader(DataSourceStreamReader):
    def __init__(self, path: str) -> None:
        self.path = path

    def initialOffset(self) -> dict[str, int]:
        return {"end": 0}

    def latestOffset(self) -> dict[str, int]:
        return {"end": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return (
            [InputPartition(name) for name in sorted(p.name for p in Path(self.path).iterdir())] if start != end else []
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(Path(self.path) / partition.value)) as file:
            yield from pa.ipc.open_stream(file)


def write(root: Path, rows: int) -> None:
    """The same rows three times: as a stream, as parquet, as IPC files of a partition each."""
    rt.createStream(str(root / "stream"), DDL)
    for name in ("parquet", "bare"):
        (root / name).mkdir()
    schema = rt.describeStream(str(root / "stream")).schema
    with rt.openSink(str(root / "stream")) as sink:
        for first in range(0, rows, PARTITION):
            table = pa.Table.from_batches([batch(first, min(PARTITION, rows - first))]).cast(schema)
            sink.sendRows(table)
            sink.flush()
            pq.write_table(table, root / "parquet" / f"{first:012d}.parquet")
            with pa.ipc.new_stream(str(root / "bare" / f"{first:012d}.arrow"), schema) as writer:
                for part in table.to_batches(max_chunksize=TRAIN):
                    writer.write_batch(part)


def frame(spark: SparkSession, root: Path, name: str) -> DataFrame:
    """One of the three as a streaming DataFrame with a watermark."""
    if name == "rowtime":
        return spark.readStream.format("rowtime").load(str(root / "stream"))
    if name == "parquet":
        return spark.readStream.schema(DDL).parquet(str(root / "parquet")).withWatermark("rowtime", "0 seconds")
    return spark.readStream.format("bare").load(str(root / "bare")).withWatermark("rowtime", "0 seconds")


def per_minute(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.window("rowtime", "1 minute")).agg(F.count("*").alias("n"), F.sum("qty").alias("qty"))


class CpuMeter:
    """CPU seconds, user and system, of this process and its descendants, sampled so that none gets lost by ending."""

    def __init__(self) -> None:
        self._ticks: dict[int, int] = {}
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self.sample()
            time.sleep(0.05)

    def sample(self) -> float:
        """What all that were ever seen have used so far."""
        todo = [os.getpid()]
        while todo:
            pid = todo.pop()
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                for task in Path(f"/proc/{pid}/task").iterdir():
                    todo += [int(child) for child in (task / "children").read_text().split()]
            except OSError:
                continue
            self._ticks[pid] = int(fields[11]) + int(fields[12])
        return sum(self._ticks.copy().values()) / os.sysconf("SC_CLK_TCK")


def run(rows: DataFrame, aggregate: bool, meter: CpuMeter) -> tuple[float, float]:
    """CPU seconds and wall seconds of one pass over all rows."""
    result = per_minute(rows) if aggregate else rows
    cpu, wall = meter.sample(), time.perf_counter()
    query = result.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    return meter.sample() - cpu, time.perf_counter() - wall


def main(rows: int = 20_000_000, rounds: int = 3) -> None:
    spark = session()
    spark.dataSource.register(Bare)
    meter = CpuMeter()
    with folder() as root:
        write(root, rows)
        for what, aggregate in (("minute count and sum", True), ("reading only", False)):
            seen: dict[str, list[tuple[float, float]]] = {name: [] for name in ("rowtime", "bare", "parquet")}
            for turn in range(rounds + 1):
                for name, runs in seen.items():
                    figures = run(frame(spark, root, name), aggregate, meter)
                    if turn:  # the first warms up
                        runs.append(figures)
            print(f"{rows:,} rows, {rounds} rounds")
            for place, unit, also in ((0, "CPU s", ""), (1, "s", ", wall")):
                ours = [figures[place] for figures in seen["rowtime"]]
                for base, label in (("bare", "bare Python Arrow source"), ("parquet", "parquet file stream")):
                    theirs = [figures[place] for figures in seen[base]]
                    report(f"rows at rest, {what}{also}", ours, theirs, unit, label)
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
