"""A Spark driver that a test kills: it counts the rows of a topic by the bounds beside it, into a stream.

``python -m tests.kafka.topic_bounds_driver FOLDER BROKER TOPIC [end] [watch]``; with ``end`` it ends when all is
processed, with ``watch`` it derives the bounds itself.
"""

import sys
from pathlib import Path

from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.crash.driver import SETTINGS
from tests.kafka.jars import spark_jars
from tests.sparksession import make_session

PER_BATCH = "30"
"""Small batches: there are many moments to kill it."""


WATCH = {"lateness": "5 minutes", "every": "0 seconds", "kafka.session.timeout.ms": "6000"}


def main(folder: Path, broker: str, topic: str, *, end: bool, watch: bool) -> None:
    spark = make_session(**SETTINGS, **{"spark.jars": spark_jars()})
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    read = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", PER_BATCH).load()
    value = f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, k STRING")
    rows = read.select(value.alias("o")).select("o.*").where("ts IS NOT NULL")
    punctuated = rt.punctuate(rows, "ts", bounds=str(folder / "bounds.rowtime"), watch=WATCH if watch else None)
    windows = punctuated.groupBy(f.window("ts", "10 minutes"), "k")
    counts = windows.count().select(f.col("window.end").alias("rowtime"), "k", "count")
    sink = counts.writeStream.format("rowtime").option("checkpointLocation", str(folder / "checkpoint"))
    query = (sink.trigger(availableNow=True) if end else sink).start(str(folder / "counts.rowtime"))
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], end="end" in sys.argv[4:], watch="watch" in sys.argv[4:])
