"""Orders in a topic of Kafka, with bounds beside it: hours close although one partition is idle.

Two queries read the same topic in the same run, with Spark's own Kafka source. One has Spark's watermark, the other the
bounds of a rowtime stream beside the topic. One partition of three gets no messages, and no order comes after the last
hour.

    python examples/13_topic_bounds.py BROKER JARS

BROKER is host:port. JARS are the jars of Spark's Kafka source, separated by commas.

It prints:

    bounds beside the topic: 10:00 3 orders, 11:00 2 orders
    withWatermark: 10:00 3 orders
    late: partition 0, offset 3, 10:59
"""

import json
import sys
import tempfile
import uuid
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json, window

import spark_rowtime as rt

DAY = "2026-01-05T{}:00Z"


class Shop:
    """Sends orders to the topic, and their bounds to the stream beside it."""

    def __init__(self, broker: str, bounds: str) -> None:
        self.topic = f"orders-{uuid.uuid4().hex[:8]}"
        settings = {"bootstrap.servers": broker}
        admin = AdminClient(settings)
        admin.create_topics([NewTopic(self.topic, 3, 1)])[self.topic].result(30)
        self._producer, self._sink = Producer(settings), rt.openSink(bounds, producer="shop")
        self._ends: dict[int, int] = {}

    def send(self, *times: str) -> None:
        """Sends an order for each time, to partitions 0 and 1 in turn. Nothing goes to partition 2."""
        for number, time in enumerate(times):
            value = json.dumps({"ts": DAY.format(time)})
            self._producer.produce(self.topic, value, partition=number % 2, on_delivery=self._delivered)
        self._producer.flush(30)

    def complete(self, time: str) -> None:
        """Promises that all orders before this time are among the messages that the topic has."""
        self._sink.sendRowtimeBound(DAY.format(time), cut={self.topic: self._ends})
        self._sink.flush()

    def close(self) -> None:
        self._sink.close()

    def _delivered(self, error: object, message: object) -> None:
        assert error is None, error
        self._ends[message.partition()] = message.offset() + 1


def orders(spark: SparkSession, broker: str, topic: str) -> DataFrame:
    """The topic, read by Spark's own source."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    value = from_json(col("value").cast("string"), "ts TIMESTAMP")
    read = reader.option("startingOffsets", "earliest").load().select(value.alias("order"))
    return read.select("order.ts").where("ts IS NOT NULL")


class Hours:
    """A query that counts the orders of each hour, and remembers the hours that came out."""

    def __init__(self, frame: DataFrame, folder: Path) -> None:
        self._seen: list[str] = []
        writer = frame.groupBy(window("ts", "1 hour")).count().writeStream.foreachBatch(self._take)
        self.query = writer.option("checkpointLocation", str(folder)).start()

    def _take(self, batch: DataFrame, _number: int) -> None:
        self._seen += [f"{row.window.end:%H:%M} {row['count']} orders" for row in batch.orderBy("window").collect()]

    def __str__(self) -> str:
        return ", ".join(self._seen)


def main(broker: str, jars: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    bounds = str(folder / "bounds.rowtime")
    rt.createStream(bounds, "rowtime TIMESTAMP NOT NULL, topic STRING, partition INT, offset BIGINT")
    settings = {"spark.jars": jars, "spark.ui.enabled": False, "spark.sql.session.timeZone": "UTC"}
    builder = SparkSession.builder.master("local[2]").config(map=settings)
    spark = rt.configure(builder).getOrCreate()

    shop = Shop(broker, bounds)
    topic = orders(spark, broker, shop.topic)
    bounded = Hours(rt.punctuate(topic, "ts", bounds=bounds), folder / "bounded")
    plain = Hours(topic.withWatermark("ts", "10 minutes"), folder / "plain")
    both = (bounded.query, plain.query)

    for step in (("09:10", "09:40", "09:50"), ("10:20", "10:30")):
        shop.send(*step)
        shop.complete(f"{int(step[0][:2]) + 1}:00")
        for query in both:
            query.processAllAvailable()
    shop.send("10:59")
    for query in both:
        query.processAllAvailable()
        query.stop()
    shop.close()

    print(f"bounds beside the topic: {bounded}")
    print(f"withWatermark: {plain}")
    for row in rt.rejectedRows(bounds).to_pylist():
        print(f"late: partition {row['partition']}, offset {row['offset']}, {row['rowtime']:%H:%M}")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
