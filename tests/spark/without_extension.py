"""A program that runs in a Spark session without the extension, and writes the result as JSON."""

import json
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import count, window

import spark_rowtime as rt
from tests.spark.marked_windows import MarkedQueries
from tests.spark.restarted import begun_at_latest, restarted
from tests.sparksession import SETTINGS

TOO_SLOW = "failed to connect back"
"""What Spark says if a Python worker was not there after ten seconds."""
AVAILABLE_NOW = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
"""Without it, Trigger.AvailableNow is one batch in Spark 4.0 and 4.1, and so the windows of its rows stay open."""


def configured() -> str:
    """The error of rt.configure in this process; empty if there is none."""
    try:
        rt.configure(SparkSession.builder)
    except rt.ShimMissingError as error:
        return str(error)
    return ""


def punctuated(spark: SparkSession, path: str) -> str:
    """The error of rt.punctuate for rows of any source."""
    try:
        rt.punctuate(spark.readStream.format("rate").load(), "timestamp", bounds=path)
    except rt.ShimMissingError as error:
        return str(error)
    return ""


def main(folder: str) -> None:
    path = f"{folder}/s"
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**SETTINGS, AVAILABLE_NOW: "true"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    said = {"batch": spark.read.format("rowtime").load(path).count(), "configure": configured()}

    reader = spark.readStream.format("rowtime")
    try:
        reader.load(path).writeStream.format("noop").start().processAllAvailable()
    except StreamingQueryException as error:
        if TOO_SLOW in str(error):
            raise
        said["require"] = str(error)

    said["punctuate"] = punctuated(spark, path)
    plain = reader.option("bounds", "ignore").load(path)
    hours = plain.withWatermark("rowtime", "0 seconds").groupBy(window("rowtime", "1 hour")).agg(count("*").alias("n"))
    writer = hours.selectExpr("window.start AS rowtime", "n").writeStream.format("rowtime").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/hours").awaitTermination()
    marked = MarkedQueries(spark, folder)
    for query in (marked.hours, marked.sessions, marked.union, marked.distinct):
        query()
    said["refused"] = marked.refused()
    said["restarted"] = restarted(spark, Path(folder, "restarted"))
    latest = f"{folder}/latest"
    said["latest"] = begun_at_latest(spark, f"{latest}/s", f"{latest}/c", bounds="ignore")
    spark.stop()
    said["configure after stop"] = configured()
    Path(folder, "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
