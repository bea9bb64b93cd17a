"""From a bound to the window's row in a sink, against plain Spark that is fed a heartbeat row.

The same query, settings and sink, in the same run, taking turns. Ours says a bound; plain Spark gets
a row beyond the window, and needs a second batch to close it. Clock: from before the call that sends
to when a reader of the sink's stream has the row.
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, window

import spark_rowtime as rt
from harness import folder, report, session

START = datetime(2026, 1, 1, tzinfo=UTC)


class Lane:
    """One stream, the query over it, and a reader of its results."""

    def __init__(self, frame: DataFrame, path: str, out: Path) -> None:
        counts = frame.groupBy(window("rowtime", "1 minute")).agg(count("*").alias("n"))
        result = counts.select(col("window.end").alias("rowtime"), "n")
        writer = result.writeStream.format("rowtime").option("checkpointLocation", f"{out}.checkpoint")
        self.query = writer.start(str(out))
        self.query.processAllAvailable()
        self.sink, self.reader = rt.openSink(path, linger="1 hour"), rt.openReader(str(out), order="arrival")

    def rows(self, minute: int) -> None:
        """Ten rows of one minute, seen by the query before the clock starts."""
        base = START + timedelta(minutes=minute)
        self.sink.sendRows([(base + timedelta(seconds=s), s) for s in range(10)])
        self.sink.flush()
        self.query.processAllAvailable()

    def wait_for(self, end: datetime) -> float:
        """When the row of the window that ends then was read."""
        while True:
            train = self.reader.read(timeout=60)
            assert train is not None, "no result within a minute"
            if end in train.rows.column("rowtime").to_pylist():
                return time.perf_counter()


def by_bound(lane: Lane, minute: int) -> float:
    lane.rows(minute)
    start = time.perf_counter()
    end = START + timedelta(minutes=minute + 1)
    lane.sink.sendRowtimeBound(end)
    lane.sink.flush()
    return lane.wait_for(end) - start


def by_heartbeat(lane: Lane, minute: int) -> float:
    lane.rows(minute)
    start = time.perf_counter()
    end = START + timedelta(minutes=minute + 1)
    lane.sink.sendRow((end, -1))
    lane.sink.flush()
    return lane.wait_for(end) - start


def main(rounds: int = 25) -> float:
    spark = session()
    with folder() as path:
        lanes = []
        for name in ("ours", "plain"):
            stream = str(path / f"{name}.rowtime")
            rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, n BIGINT")
            rt.createStream(str(path / f"{name}.out"), "rowtime TIMESTAMP NOT NULL, n BIGINT")
            reader = spark.readStream.format("rowtime")
            if name == "plain":
                frame = reader.option("bounds", "ignore").load(stream).withWatermark("rowtime", "0 seconds")
            else:
                frame = reader.load(stream)
            lanes.append(Lane(frame, stream, path / f"{name}.out"))
        ours, plain = [], []
        for minute in range(0, 2 * (rounds + 3), 2):
            ours.append(1000 * by_bound(lanes[0], minute))
            plain.append(1000 * by_heartbeat(lanes[1], minute))
        ratio = report("bound to result", ours[3:], plain[3:], "ms", "plain Spark, heartbeat row")
        for lane in lanes:
            lane.query.stop()
    spark.stop()
    return ratio


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)
