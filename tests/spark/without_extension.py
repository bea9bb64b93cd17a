"""A program that runs in a Spark session without the extension, and writes the result as JSON."""

import json
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import count, window

import spark_rowtime as rt
from tests.sparksession import SETTINGS


def configured() -> str:
    """The error of rt.configure in this process; empty if there is none."""
    try:
        rt.configure(SparkSession.builder)
    except rt.ShimMissingError as error:
        return str(error)
    return ""


def main(path: str, folder: str) -> None:
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    said = {"batch": spark.read.format("rowtime").load(path).count(), "configure": configured()}

    reader = spark.readStream.format("rowtime")
    try:
        reader.load(path).writeStream.format("noop").start().processAllAvailable()
    except StreamingQueryException as error:
        said["require"] = str(error)

    plain = reader.option("bounds", "ignore").load(path)
    hours = plain.withWatermark("rowtime", "0 seconds").groupBy(window("rowtime", "1 hour")).agg(count("*").alias("n"))
    writer = hours.selectExpr("window.start AS rowtime", "n").writeStream.format("rowtime").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/hours").awaitTermination()
    spark.stop()
    said["configure after stop"] = configured()
    Path(folder, "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
