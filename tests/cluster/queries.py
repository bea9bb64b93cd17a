"""What the driver of a cluster runs for a test. Arguments and results are JSON."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, window

from tests.sparksession import start


def sights(spark: SparkSession, paths: list[str], port: int) -> list[dict[str, Any]]:
    """What each of two executors sees: its address, which of the paths, and whether it reaches 127.0.0.1:port."""

    def look(_: Iterator[int]) -> Iterator[dict[str, Any]]:
        with socket.socket() as probe:
            reached = probe.connect_ex(("127.0.0.1", port)) == 0
        there = [path for path in paths if Path(path).exists() and (Path(path).is_file() or any(Path(path).iterdir()))]
        yield {"folder": str(Path.cwd()), "sees": there, "reaches": reached}

    return spark.sparkContext.parallelize(range(2), 2).mapPartitions(look).collect()


def hourly(spark: SparkSession, source: str, sink: str, checkpoint: str, settings: dict[str, str]) -> dict[str, Any]:
    """Counts of hours of a stream, written into another, until all available data are processed."""
    for name, value in settings.items():
        spark.conf.set(name, value)
    frame = spark.readStream.format("rowtime").load(source)
    counts = frame.groupBy(window("rowtime", "1 hour"), "x").agg(count("*").alias("n"))
    query = start(counts.select(col("window.end").alias("rowtime"), "x", "n"), sink, checkpoint)
    try:
        query.processAllAvailable()
        return {"batches": query.lastProgress["batchId"] + 1 if query.lastProgress else 0}
    finally:
        query.stop()
        for name in settings:
            spark.conf.unset(name)
