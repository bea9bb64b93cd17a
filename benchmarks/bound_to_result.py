"""From a bound to the window's row in a sink, against plain Spark that is fed a heartbeat row.

The same query and sink, in the same run, taking turns; one query runs at a time. Ours says a bound; plain
Spark gets a row beyond the window, and needs a second batch to close it. Both run as Spark comes but with
two shuffle partitions, and both with what ``rt.configure`` sets. Clock: from before the call that sends to
when a reader of the sink's stream has the row.
"""

import random
import statistics
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, window
from pyspark.sql.streaming import StreamingQuery

import spark_rowtime as rt
from harness import as_spark_comes, folder, keep, report, session

START = datetime(2026, 1, 1, tzinfo=UTC)
WARM = 3
"""Rounds after a query's start that do not count."""
COLD = 120
"""Rounds of each lane before the first that counts: the JVM still compiles what a batch runs."""
TURNS = 6


class Lane:
    """A live tumbling query over a stream, and a reader of its results."""

    def __init__(self, spark: SparkSession, root: Path, name: str, by_bound: bool) -> None:
        self.stream, self.out, self.by_bound = str(root / f"{name}.rowtime"), str(root / f"{name}.out"), by_bound
        for path in (self.stream, self.out):
            rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
        self.frame, self.minute = self._per_minute(spark), 0
        self.sink, self.reader = rt.openSink(self.stream, linger="1 hour"), rt.openReader(self.out, order="arrival")
        self.took: list[float] = []
        self.phases: list[dict[str, int]] = []

    def _per_minute(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("rowtime")
        if self.by_bound:
            rows = reader.load(self.stream)
        else:
            rows = reader.option("bounds", "ignore").load(self.stream).withWatermark("rowtime", "0 seconds")
        counts = rows.groupBy(window("rowtime", "1 minute")).agg(count("*").alias("n"))
        return counts.select(col("window.end").alias("rowtime"), "n")

    @contextmanager
    def running(self) -> Iterator[StreamingQuery]:
        writer = self.frame.writeStream.format("rowtime").option("checkpointLocation", f"{self.out}.checkpoint")
        query = writer.start(self.out)
        try:
            yield query
        finally:
            query.stop()

    def turn(self, rounds: int) -> None:
        """So many rounds of one run of the query, and the first few to warm up."""
        with self.running() as query:
            took = [self.round(query) for _ in range(WARM + rounds)]
            batches = [p for p in query.recentProgress if "addBatch" in p.durationMs]
        self.took += took[WARM:]
        self.phases += [p.durationMs for p in batches if not p.numInputRows][WARM:]

    def round(self, query: StreamingQuery) -> float:
        """Ten rows of a minute, seen by the query; then the time from the minute's end, said, to its result, in ms."""
        base = START + timedelta(minutes=self.minute)
        end = base + timedelta(minutes=1)
        self.minute += 2
        self.sink.sendRows([(base + timedelta(seconds=s), s) for s in range(10)])
        self.sink.flush()
        query.processAllAvailable()
        start = time.perf_counter()
        if self.by_bound:
            self.sink.sendRowtimeBound(end)
        else:
            self.sink.sendRow((end, -1))
        self.sink.flush()
        return 1000 * (self.read(end) - start)

    def read(self, end: datetime) -> float:
        """When the row of the window that ends then was read."""
        while True:
            train = self.reader.read(timeout=60)
            assert train is not None, "no result within a minute"
            if end in train.rows.column("rowtime").to_pylist():
                return time.perf_counter()

    def close(self) -> None:
        """Before its folder goes."""
        self.sink.close()
        self.reader.close()


def in_turns(lanes: Collection[Lane], rounds: int, cold: int) -> None:
    """So many rounds of each, in turns; the first turn, of ``cold`` rounds, does not count.

    In another order each time: what ran just before costs or saves a query up to a tenth.
    """
    for turn in range(1 + TURNS):
        for lane in random.Random(turn).sample([*lanes], len(lanes)):
            lane.turn(rounds // TURNS if turn else cold)
            if not turn:
                lane.took, lane.phases = [], []


def show_phases(lane: Lane, what: str) -> None:
    """Where Spark says that the batch without rows went, median milliseconds."""
    names = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")
    medians = {name: statistics.median(phase.get(name, 0) for phase in lane.phases) for name in names}
    print("  its batch: " + ", ".join(f"{name} {ms:.0f}" for name, ms in medians.items()))
    keep(what=PHASES, base=what, medians=medians)


def main(rounds: int = 60) -> float:
    configured = session()
    plain = as_spark_comes(configured)
    with folder() as root:
        lanes = {
            "heartbeat": Lane(plain, root, "heartbeat", by_bound=False),
            "bound": Lane(plain, root, "bound", by_bound=True),
            "heartbeat configured": Lane(configured, root, "heartbeat-configured", by_bound=False),
            "bound configured": Lane(configured, root, "bound-configured", by_bound=True),
        }
        in_turns(lanes.values(), rounds, COLD)
        took = {name: lane.took for name, lane in lanes.items()}
        report(SAME, took["bound"], took["heartbeat"], "ms", "plain Spark, heartbeat row")
        show_phases(lanes["bound"], "as Spark comes")
        report(BOTH, took["bound configured"], took["heartbeat configured"], "ms", "plain Spark, heartbeat row")
        show_phases(lanes["bound configured"], "as rt.configure sets up")
        ratio = report(AS_COMES, took["bound configured"], took["heartbeat"], "ms", "plain Spark, heartbeat row")
        for lane in lanes.values():
            lane.close()
    configured.stop()
    return ratio


PHASES = "a batch with a bound and no rows"
SAME = "bound to result, both as Spark comes"
BOTH = "bound to result, both as rt.configure sets up"
AS_COMES = "bound to result, rt.configure against Spark as it comes"

if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
