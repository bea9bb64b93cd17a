"""A program that runs over Spark Connect, with a server of its own that has neither the jar nor the extension."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.marked_windows import MarkedQueries
from tests.spark.without_extension import AVAILABLE_NOW
from tests.sparksession import SETTINGS


def main(folder: str) -> None:
    builder = SparkSession.builder.remote("local[2]")
    for name, value in {**SETTINGS, AVAILABLE_NOW: "true"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    marked = MarkedQueries(spark, folder)
    marked.hours()
    marked.union()
    said = {"kind": type(spark).__module__, "refused": marked.refused()}
    spark.stop()
    Path(folder, "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
