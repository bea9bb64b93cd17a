"""A Spark driver that counts the hours of a topic by the bounds that it derives itself.

``python -m tests.kafka.watched_driver FOLDER BROKER TOPIC [connect]`` processes what there is; with ``connect`` over
Spark Connect, with a server of its own.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.kafka.jars import spark_jars
from tests.sparksession import SETTINGS, make_session


def main(folder: Path, broker: str, topic: str, *, connect: bool) -> None:
    spark = over_connect() if connect else make_session(**{"spark.jars": spark_jars()})
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    value = f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, k STRING").alias("o")
    parsed = reader.option("startingOffsets", "earliest").load().select(value).select("o.*")
    rows = rt.punctuate(parsed, "ts", bounds=str(folder / "bounds.rowtime"), watch={"lateness": "1 minute"})
    hours = rows.groupBy(f.window("ts", "1 hour")).count().select(f.col("window.end").alias("rowtime"), "count")
    sink = hours.writeStream.format("rowtime").option("checkpointLocation", str(folder / "checkpoint"))
    sink.trigger(availableNow=True).start(str(folder / "hours.rowtime")).awaitTermination()
    print(type(spark).__module__)
    spark.stop()


def over_connect() -> SparkSession:
    builder = SparkSession.builder.remote("local[2]")
    for name, value in {**SETTINGS, "spark.jars": spark_jars()}.items():
        builder = builder.config(name, value)
    return rt.configure(builder).getOrCreate()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], connect="connect" in sys.argv[4:])
