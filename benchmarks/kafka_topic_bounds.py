"""Spark's Kafka source with bounds beside the topic, against the same source with withWatermark and heartbeat records.

Both read the same topics of the same broker, in the same run, in turns; one query runs at a time. Bound to result: the
clock runs from before a bound (a heartbeat record beyond the window) is sent to when foreachBatch has the window's row.
Rows per second: all messages of a topic, parsed and counted per minute, with Trigger.AvailableNow. The broker
runs on the same machine.
"""

import json
import queue
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json, window

import spark_rowtime as rt
from harness import as_spark_comes, folder, report, session
from tests.kafka.broker import KafkaBroker
from tests.kafka.jars import broker_jars, spark_jars

START = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(minutes=10)
PARTITIONS = 3
SENT_TOGETHER = 90_000
"""The rows that the benchmark gives the client at once, whose buffer has room for 100,000."""
WARM = 3
"""Rounds after a query's start that do not count."""
BASE = "withWatermark, heartbeat record"


def topic_of(spark: SparkSession, broker: KafkaBroker, topic: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    read = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    value = from_json(col("value").cast("string"), "ts TIMESTAMP, shop STRING, amount DOUBLE")
    return read.select(value.alias("o")).select("o.*").where("ts IS NOT NULL")


class Lane:
    """A topic, and a query that counts its rows per minute."""

    def __init__(self, spark: SparkSession, broker: KafkaBroker, root: Path, name: str, topic_bounds: bool) -> None:
        self.broker, self.root, self.name, self.topic_bounds = broker, root, name, topic_bounds
        self.topic, self.bounds = broker.topic(f"{name}-{root.name}"), str(root / f"{name}.rowtime")
        rt.createStream(self.bounds, "rowtime TIMESTAMP NOT NULL")
        rows = topic_of(spark, broker, self.topic)
        rows = rt.punctuate(rows, "ts", bounds=self.bounds) if topic_bounds else rows.withWatermark("ts", "0 seconds")
        self.counts = rows.groupBy(window("ts", "1 minute")).count()
        self.ends: dict[int, int] = {}
        self.seen: queue.Queue[datetime] = queue.Queue()
        self.took: list[float] = []
        self.minute, self.runs = 0, 0

    def send(self, times: list[datetime], partition: int = 0) -> None:
        values = [{"ts": time.isoformat(), "shop": f"shop {n % 50}", "amount": n / 7} for n, time in enumerate(times)]
        self.broker.send(self.topic, [{"value": json.dumps(v), "partition": partition} for v in values])
        self.ends[partition] = self.ends.get(partition, 0) + len(times)

    def _take(self, batch: DataFrame, _number: int) -> None:
        for row in batch.collect():
            self.seen.put(row.window.end)

    def turn(self, rounds: int) -> None:
        """So many rounds of one run of the query, and the first few to warm up."""
        writer = self.counts.writeStream.foreachBatch(self._take)
        query = writer.option("checkpointLocation", str(self.root / f"{self.name}.checkpoint")).start()
        try:
            with closing(rt.openSink(self.bounds, producer="feed", linger="1 hour")) as sink:
                self.took += [self.round(query, sink) for _ in range(WARM + rounds)][WARM:]
        finally:
            query.stop()

    def round(self, query: Any, sink: Any) -> float:
        base = START + timedelta(minutes=self.minute)
        end = base + timedelta(minutes=1)
        self.minute += 2
        self.send([base + timedelta(seconds=s) for s in range(10)])
        query.processAllAvailable()
        start = time.perf_counter()
        if self.topic_bounds:
            sink.sendRowtimeBound(end, cut={self.topic: self.ends})
            sink.flush()
        else:
            self.send([end])
        wanted = end.astimezone().replace(tzinfo=None)
        while self.seen.get(timeout=60) != wanted:
            pass
        return 1000 * (time.perf_counter() - start)

    def fill(self, rows: int) -> None:
        for partition in range(PARTITIONS):
            for first in range(0, rows // PARTITIONS, SENT_TOGETHER):
                last = min(first + SENT_TOGETHER, rows // PARTITIONS)
                self.send([START + n * SPAN * PARTITIONS / rows for n in range(first, last)], partition)
        with closing(rt.openSink(self.bounds, producer="feed")) as sink:
            sink.sendRowtimeBound(START + timedelta(minutes=20), cut={self.topic: self.ends})

    def rate(self, rows: int) -> float:
        """Rows per second of one run over the whole topic."""
        self.runs += 1
        writer = self.counts.writeStream.foreachBatch(self._take).trigger(availableNow=True)
        start = time.perf_counter()
        writer.option("checkpointLocation", str(self.root / f"{self.name}.{self.runs}")).start().awaitTermination()
        return rows / (time.perf_counter() - start)


def bound_to_result(spark: SparkSession, plain: SparkSession, broker: KafkaBroker, root: Path, rounds: int) -> float:
    lanes = Lane(spark, broker, root, "bounds", True), Lane(plain, broker, root, "heartbeat", False)
    for turn in range(3):
        for lane in lanes:
            lane.turn(rounds)
            if not turn:
                lane.took = []
    return report("bound to result over Kafka", lanes[0].took, lanes[1].took, "ms", BASE)


def rows_per_second(spark: SparkSession, broker: KafkaBroker, root: Path, rows: int) -> float:
    lanes = Lane(spark, broker, root, "rows-bounds", True), Lane(spark, broker, root, "rows-plain", False)
    for lane in lanes:
        lane.fill(rows)
    for turn in range(5):
        for lane in lanes if turn % 2 else lanes[::-1]:
            rate = lane.rate(rows)
            lane.took += [rate] if turn else []
    return report("rows per second over Kafka", lanes[0].took, lanes[1].took, "rows/s", BASE)


def main(rounds: int = 8, rows: int = 4_500_000) -> None:
    broker = KafkaBroker(broker_jars())
    try:
        spark = session(**{"spark.jars": spark_jars()})
        plain = as_spark_comes(spark)
        with folder() as root:
            bound_to_result(spark, plain, broker, root, rounds)
            rows_per_second(spark, broker, root, rows)
        spark.stop()
    finally:
        broker.remove()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
