"""A job over a topic of Kafka, as Spark's guide has it, one line of which is changed: its last windows come out.

The topic is written by others, who know nothing of it. Two queries read it in the same run: one with withWatermark, the
other with rt.punctuate in its place. One partition of three gets no messages, and no word comes after the last window.

    python examples/17_one_line.py BROKER JARS

BROKER is host:port. JARS are the jars of Spark's Kafka source, separated by commas.

It prints:

    withWatermark: 12:00-12:10 3 words
    one line changed: 12:00-12:10 3 words, 12:10-12:20 2 words, 12:20-12:30 1 words
    late: partition 0, offset 3, 12:09
"""

import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json, window

import spark_rowtime as rt


class Typist:
    """Whoever writes the topic: words with their times, to partitions 0 and 1 in turn."""

    def __init__(self, broker: str) -> None:
        self.topic = f"words-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": broker})
        admin.create_topics([NewTopic(self.topic, 3, 1)])[self.topic].result(30)
        self._producer, self._sent = Producer({"bootstrap.servers": broker}), 0

    def write(self, *clocks: str) -> None:
        for clock in clocks:
            value = json.dumps({"timestamp": f"2026-01-05T{clock}:00Z", "word": "apache"})
            self._producer.produce(self.topic, value, partition=self._sent % 2)
            self._sent += 1
        self._producer.flush(30)


def words_of(spark: SparkSession, broker: str, topic: str) -> DataFrame:
    """The words, as Spark's own source reads them."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    value = from_json(col("value").cast("string"), "timestamp TIMESTAMP, word STRING")
    return reader.option("startingOffsets", "earliest").load().select(value.alias("w")).select("w.*")


def counts(words: DataFrame) -> DataFrame:
    """The windows of the guide."""
    return words.groupBy(window(words.timestamp, "10 minutes"), words.word).count()


class Windows:
    """A query, and the windows that have come out of it."""

    def __init__(self, frame: DataFrame, folder: Path) -> None:
        self._seen: list[str] = []
        writer = frame.writeStream.foreachBatch(self._take)
        self.query = writer.option("checkpointLocation", str(folder)).start()

    def _take(self, batch: DataFrame, _number: int) -> None:
        for row in batch.orderBy("window").collect():
            self._seen.append(f"{row.window.start:%H:%M}-{row.window.end:%H:%M} {row['count']} words")

    def __len__(self) -> int:
        return len(self._seen)

    def __str__(self) -> str:
        return ", ".join(self._seen)


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 240
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


def main(broker: str, jars: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    bounds = str(folder / "words-bounds.rowtime")
    settings = {"spark.jars": jars, "spark.ui.enabled": False, "spark.sql.session.timeZone": "UTC"}
    spark = rt.configure(SparkSession.builder.master("local[2]").config(map=settings)).getOrCreate()
    typist = Typist(broker)
    typist.write("12:01", "12:04", "12:08", "12:13", "12:17", "12:21")
    words = words_of(spark, broker, typist.topic)

    before = words.withWatermark("timestamp", "10 minutes")
    # These words are of some months ago; with those of today it is as short as a word is on its way: "5 minutes".
    after = rt.punctuate(words, "timestamp", bounds=bounds, watch={"lateness": "10 minutes", "delay": "1 day"})

    plain, changed = Windows(counts(before), folder / "plain"), Windows(counts(after), folder / "changed")
    plain.query.processAllAvailable()
    wait_for(lambda: len(changed) == 3)
    typist.write("12:09")
    plain.query.processAllAvailable()
    wait_for(lambda: rt.rejectedRows(bounds).num_rows)
    for query in (plain.query, changed.query):
        query.stop()

    print(f"withWatermark: {plain}")
    print(f"one line changed: {changed}")
    for row in rt.rejectedRows(bounds).to_pylist():
        print(f"late: partition {row['partition']}, offset {row['offset']}, {row['rowtime']:%H:%M}")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
