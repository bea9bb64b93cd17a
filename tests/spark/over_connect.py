"""A program that runs over Spark Connect, with a server of its own, and writes the result as JSON."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, window

import spark_rowtime as rt
from tests.sparksession import SETTINGS
from tests.streams import drained, opened, send


def main(folder: str) -> None:
    orders, hours = f"{folder}/orders.rowtime", f"{folder}/hours.rowtime"
    builder = SparkSession.builder.remote("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = rt.configure(builder).getOrCreate()
    hourly = spark.readStream.format("rowtime").load(orders).groupBy(window("rowtime", "1 hour"))
    ends = hourly.agg(count("*").alias("n")).select(col("window.end").alias("rowtime"), "n")
    query = ends.writeStream.format("rowtime").option("checkpointLocation", f"{folder}/checkpoint").start(hours)
    query.processAllAvailable()
    reader = rt.openReader(hours)
    before = drained(reader)
    send(opened(orders, "later"), promise="11:00")
    query.processAllAvailable()
    said = {"kind": type(spark).__module__, "before": before, "after": drained(reader)}
    said["bound"], said["batch"] = str(reader.getRowtimeBound()), spark.read.format("rowtime").load(orders).count()
    query.stop()
    spark.stop()
    Path(folder, "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
