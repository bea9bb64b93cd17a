"""From a commit into a bronze table to the window's row in gold, against plain Spark that is fed a heartbeat row.

    scripts/on-spark.sh 4.2 .venv/bin/python benchmarks/lakehouse.py [ROUNDS]        0: only the last part

Silver takes the rows of bronze that are valid; gold counts those of each minute. Both are Delta tables, and each query
writes by Delta's own sink. With bounds one is in the commit that has the last row of the minute, and each query hands
it on; plain Spark gets a row of the next minute there, and gold needs a second batch to close the window. Clock: from
before that commit to when gold has the row.

Then a poll without news, over a table with few and with many versions, against the same source of plain Spark.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, window
from pyspark.sql.streaming import StreamingQuery

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import spark_rowtime as rt
from harness import folder, report, session
from spark_rowtime.drain.properties import BOUND, STRICT
from tests.tables.jars import table_jars
from tests.tables.spark_reader import DELTA

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
COLUMNS = pa.schema([pa.field("ts", pa.timestamp("us", "UTC"), nullable=False), pa.field("n", pa.int64())])
TURNS, WARM = 3, 3
FEW, MANY, POLLS = 100, 10_000, 30


class Lane:
    """Three tables with two queries between them."""

    def __init__(self, spark: SparkSession, root: Path, by_bound: bool) -> None:
        self.spark, self.root, self.by_bound, self.minute = spark, root, by_bound, 0
        root.mkdir()
        DeltaTable.create(self.path("bronze"), COLUMNS)
        DeltaTable.create(self.path("silver"), COLUMNS)
        DeltaTable.create(self.path("gold"), COLUMNS)
        self.took: list[float] = []

    def path(self, table: str) -> str:
        return str(self.root / table)

    def rows(self, table: str) -> DataFrame:
        rows = self.spark.readStream.format("delta").load(self.path(table))
        return rt.punctuate(rows, "ts") if self.by_bound else rows.withWatermark("ts", "0 seconds")

    def started(self, frame: DataFrame, table: str) -> StreamingQuery:
        writer = frame.writeStream.format("delta").option("checkpointLocation", str(self.root / f"{table}.checkpoint"))
        return (writer.option("rowtimeBound", "ts") if self.by_bound else writer).start(self.path(table))

    @contextmanager
    def running(self) -> Iterator[list[StreamingQuery]]:
        counts = self.rows("silver").groupBy(window("ts", "1 minute")).agg(count("*").alias("n"))
        gold = counts.select(col("window.end").alias("ts"), "n")
        with ExitStack() as stack:
            queries = [self.started(self.rows("bronze").where("n >= 0"), "silver"), self.started(gold, "gold")]
            for query in queries:
                stack.callback(query.stop)
            yield queries

    def turn(self, rounds: int) -> None:
        with self.running() as queries:
            self.took += [self.round(queries) for _ in range(WARM + rounds)][WARM:]

    def round(self, queries: list[StreamingQuery]) -> float:
        """Ten rows, which gold has counted; then the milliseconds from the last one's commit to the window's row."""
        base = START + 2 * self.minute * MINUTE
        self.minute += 1
        self.put([base + timedelta(seconds=s) for s in range(10)], None)
        for query in queries:
            query.processAllAvailable()
        start = time.perf_counter()
        last = base + timedelta(seconds=59)
        self.put([last] if self.by_bound else [last, base + MINUTE], base + MINUTE)
        while not self.has(base + MINUTE):
            time.sleep(0.002)
        return 1000 * (time.perf_counter() - start)

    def put(self, times: list[datetime], bound: datetime | None) -> None:
        said = properties(bound) if self.by_bound and bound else {}
        rows = pa.Table.from_pylist([{"ts": one, "n": 1} for one in times], COLUMNS)
        commit = CommitProperties(custom_metadata=said)
        write_deltalake(self.path("bronze"), rows, mode="append", commit_properties=commit)

    def has(self, end: datetime) -> bool:
        table = DeltaTable(self.path("gold"))
        return bool(table.to_pyarrow_dataset().to_table(filter=pc.field("ts") == end).num_rows)


def chain(spark: SparkSession, root: Path, rounds: int) -> None:
    lanes = [Lane(spark, root / "bounds", by_bound=True), Lane(spark, root / "heartbeat", by_bound=False)]
    for turn in range(1 + TURNS):
        for lane in lanes if turn % 2 else lanes[::-1]:
            lane.turn(rounds // TURNS)
            lane.took = lane.took if turn else []
    report("commit into bronze to row in gold", lanes[0].took, lanes[1].took, "ms", "plain Spark, heartbeat row")


def versions(lane: Lane, many: int) -> None:
    """Commits that have nothing but a bound, as those of a drain in a quiet hour."""
    log = Path(lane.path("bronze")) / "_delta_log"
    for version in range(DeltaTable(lane.path("bronze")).version() + 1, many):
        said = {"timestamp": 1_700_000_000_000 + version, "operation": "WRITE", **properties(START)}
        (log / f"{version:020}.json").write_text(json.dumps({"commitInfo": said}) + "\n")


def properties(bound: datetime) -> dict[str, str]:
    """Those of a commit with a bound."""
    return {BOUND: bound.isoformat().replace("+00:00", "Z"), STRICT: "false"}


def idle(lane: Lane) -> list[float]:
    """How long a query looks for news when there are none, in milliseconds."""
    query = lane.started(lane.rows("bronze"), "silver")
    query.processAllAvailable()
    seen: dict[str, float] = {}
    while len(seen) < POLLS:
        seen |= {one.timestamp: one.durationMs["latestOffset"] for one in query.recentProgress}
        time.sleep(0.1)
    query.stop()
    return list(seen.values())[POLLS // 3 :]


def quiet(spark: SparkSession, root: Path) -> None:
    """In turns; the first one does not count."""
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")
    for many in (FEW, MANY):
        lanes = [Lane(spark, root / f"{many}-{by_bound}", by_bound=by_bound) for by_bound in (True, False)]
        for lane in lanes:
            lane.put([START], START)
            versions(lane, many)
        for turn in range(1 + TURNS):
            for lane in lanes if turn % 2 else lanes[::-1]:
                lane.took += idle(lane)
                lane.took = lane.took if turn else []
        report(f"a poll without news, {many:,} versions", lanes[0].took, lanes[1].took, "ms", "Delta's source alone")


def main(rounds: int = 30) -> None:
    spark = session(**DELTA, **{"spark.jars": table_jars("delta")})
    with folder() as root:
        if rounds:
            chain(spark, root, rounds)
        quiet(spark, root)
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
