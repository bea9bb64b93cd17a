"""A program that reads a topic with bounds beside it, with changed Spark classes, and writes the error as a text.

``python -m tests.kafka.changed_spark BOUNDS BROKER TOPIC CLASSES JARS SAID``: CLASSES is a folder before Spark's own.
"""

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.sparksession import make_session


def main(bounds: str, broker: str, topic: str, classes: str, jars: str, said: str) -> None:
    spark = make_session(**{"spark.driver.extraClassPath": classes, "spark.jars": jars})
    try:
        run(spark, bounds, broker, topic)
        error = ""
    except Exception as caught:
        error = str(caught)
    Path(said).write_text(error)
    spark.stop()


def run(spark: Any, bounds: str, broker: str, topic: str) -> None:
    """Reads each message in a batch of its own."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    messages = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "1").load()
    times = messages.select(f.expr("CAST(CAST(value AS STRING) AS TIMESTAMP) AS ts")).where("ts IS NOT NULL")
    query = rt.punctuate(times, "ts", bounds=bounds).writeStream.foreachBatch(lambda rows, _: rows.collect()).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
