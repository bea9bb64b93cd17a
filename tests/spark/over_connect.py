"""A program that runs over Spark Connect, with a server of its own, and writes the result as JSON."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, window

import spark_rowtime as rt
from tests.sparksession import SETTINGS
from tests.streams import drained, opened, send


def refusal(call: Callable[[], Any]) -> str:
    """With which error a call is refused."""
    try:
        call()
    except PySparkException as error:
        return str(error)
    return "nothing"


def finish(query: Any) -> None:
    try:
        query.processAllAvailable()
    finally:
        query.stop()


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
    again = {"checkpointLocation": f"{folder}/again"}
    said["relative"] = [
        refusal(lambda: spark.read.format("rowtime").load("orders.rowtime").columns),
        refusal(lambda: finish(ends.writeStream.format("rowtime").options(**again).start("hours.rowtime"))),
        refusal(
            lambda: spark.read.format("rowtime").load(hours).write.format("rowtime").mode("append").save("n.rowtime")
        ),
    ]
    spark.stop()
    Path(folder, "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
