"""A topic, and a stream of bounds beside it."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.spark.observed_query import Observed, micros
from tests.streams import at, clock_of, opened

KEPT = "rowtime TIMESTAMP NOT NULL, topic STRING, partition INT, offset BIGINT, k STRING"
"""The columns of a stream of bounds: what it keeps of a late row."""


class TopicBounds:
    """Topics of one broker with rows (ts, k), and a stream with their bounds. Counts the offsets of what it sends."""

    def __init__(self, spark: Any, kafka: Any, folder: Path, topics: int = 1, kept: str = KEPT) -> None:
        self.spark, self.kafka, self.bounds = spark, kafka, str(folder / "bounds.rowtime")
        self.topics = [kafka.topic() for _ in range(topics)]
        self.ends = {topic: dict.fromkeys(range(3), 0) for topic in self.topics}
        rt.createStream(self.bounds, kept)

    def put(self, partition: int, *rows: tuple[str, str], topic: int = 0) -> None:
        """Sends rows into one partition."""
        name = self.topics[topic]
        values = [json.dumps({"ts": at(clock), "k": key}) for clock, key in rows]
        self.kafka.send(name, [{"value": value, "partition": partition} for value in values])
        self.ends[name][partition] += len(rows)

    def cut(self, **more: int) -> dict[str, dict[int, int]]:
        """What was sent so far; ``more`` is added to the partitions of the first topic: ``p1=2``."""
        ends = {topic: dict(partitions) for topic, partitions in self.ends.items()}
        for partition, rows in more.items():
            ends[self.topics[0]][int(partition.removeprefix("p"))] += rows
        return ends

    def sink(self, producer: str = "p") -> Any:
        return opened(self.bounds, producer)

    def read(self, **options: Any) -> DataFrame:
        """The topics as Spark's own source reads them."""
        given = {"subscribe": ",".join(self.topics), "startingOffsets": "earliest", **options}
        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.kafka.bootstrap)
        return reader.options(**given).load()

    def parsed(self, **options: Any) -> DataFrame:
        value = f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, k STRING")
        return self.read(**options).select(value.alias("o")).select("o.*").where("ts IS NOT NULL")

    def rows(self, **options: Any) -> DataFrame:
        return rt.punctuate(self.parsed(**options), "ts", bounds=self.bounds)

    def read_up_to(self, query: Observed, batch: int) -> dict[int, int]:
        """The end offsets of the first topic in a batch, as the offset log has them."""
        lines = (query.checkpoint / "offsets" / str(batch)).read_text().splitlines()
        [found] = [json.loads(line)[self.topics[0]] for line in lines[2:] if self.topics[0] in line]
        return {int(partition): end for partition, end in found.items()}

    def account(self, floor: str) -> dict[str, Any] | None:
        """What the query has told about a batch that has reached this floor."""
        with open_store(self.bounds) as store:
            found = [json.loads(account.content) for account in store.snapshot().statuses]
        positions = [source.get("position", {}) for account in found for source in account.get("sources", ())]
        return found[0] if [p["floor"] for p in positions] == [micros(floor)] else None

    @property
    def rejected(self) -> list[tuple[Any, ...]]:
        """Partition, offset, time and key of the late rows that the stream has kept, and the bound of each."""
        found = rt.rejectedRows(self.bounds).to_pylist()
        return [(r["partition"], r["offset"], clock_of(r["rowtime"]), r["k"], clock_of(r["bound"])) for r in found]


def promise(sink: Any, clock: str, cut: dict[str, dict[int, int]] | None = None) -> None:
    """Sends a bound and commits it."""
    sink.sendRowtimeBound(at(clock), cut=cut)
    sink.flush()


def hourly(frame: DataFrame) -> DataFrame:
    return frame.groupBy(f.window("ts", "1 hour"), "k").count()


def late(query: Any) -> int:
    """The late rows of all batches, by the query's progress."""
    metrics = [source.metrics or {} for progress in query.recentProgress for source in progress.sources]
    return sum(int(found.get("rowsLate", 0)) for found in metrics)
