"""What the driver of a cluster runs for a test. Arguments and results are JSON."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, window

from spark_rowtime.operators import matchRecognize
from tests.crash import driver
from tests.crash.places import stream_in
from tests.sparksession import NATIVE_READ, NATIVE_WRITE, start


def sights(spark: SparkSession, paths: list[str], port: int) -> list[dict[str, Any]]:
    """What each of two tasks sees: its folder, which of the paths, and whether it reaches 127.0.0.1:port."""

    def look(_: Iterator[int]) -> Iterator[dict[str, Any]]:
        with socket.socket() as probe:
            reached = probe.connect_ex(("127.0.0.1", port)) == 0
        there = [path for path in paths if Path(path).exists() and (Path(path).is_file() or any(Path(path).iterdir()))]
        yield {"folder": str(Path.cwd()), "sees": there, "reaches": reached}

    return spark.sparkContext.parallelize(range(2), 2).mapPartitions(look).collect()


def web_interface(spark: SparkSession) -> list[str]:
    """The URL of the driver's web interface, and the id of its application."""
    return [spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId]


def hourly(spark: SparkSession, source: str, sink: str, checkpoint: str, settings: dict[str, str]) -> None:
    """Counts of hours of a stream, written into another, until all available data are processed."""
    counts = _read(spark, source).groupBy(window("rowtime", "1 hour"), "x").agg(count("*").alias("n"))
    _finish(spark, counts.select(col("window.end").alias("rowtime"), "x", "n"), sink, checkpoint, settings)


def recognized(spark: SparkSession, source: str, sink: str, checkpoint: str) -> None:
    """Falls and rises of x, across the batches."""
    found = matchRecognize(
        _read(spark, source),
        pattern="STRT DOWN+ UP+",
        define={"DOWN": "x < PREV(x)", "UP": "UP.x > PREV(UP.x)"},
        measures={"x": "LAST(DOWN.x)", "n": "COUNT(*)"},
        within="2 hours",
    )
    _finish(spark, found, sink, checkpoint, {})


def joined(spark: SparkSession, source: str, sink: str, checkpoint: str) -> None:
    """Each row with the last one at or before it, by ASOF JOIN in SQL."""
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    _read(spark, source).createOrReplaceTempView("numbers")
    text = "SELECT a.*, b.x AS n FROM numbers a ASOF JOIN numbers b MATCH_CONDITION (a.rowtime >= b.rowtime)"
    _finish(spark, spark.sql(text), sink, checkpoint, {})


def copy(spark: SparkSession, source: str, sink: str, checkpoint: str, settings: dict[str, str]) -> None:
    """All rows of a stream, written into another by two tasks."""
    _finish(spark, _read(spark, source).repartition(2), sink, checkpoint, settings)


def rows(spark: SparkSession, path: str) -> int:
    """How many rows a batch read of the stream returns."""
    return spark.read.format("rowtime").load(path).count()


def append(spark: SparkSession, source: str, sink: str) -> None:
    """Appends the rows of a stream to another, as a batch."""
    spark.read.format("rowtime").load(source).write.format("rowtime").mode("append").save(sink)


def go_on(spark: SparkSession, folder: str, native: bool) -> None:
    """Runs the query of tests/crash/driver.py on from its checkpoint, until all available data are processed."""
    for way in (NATIVE_READ, NATIVE_WRITE):
        spark.conf.set(way, str(native).lower())
    query = start(driver.counts(spark, Path(folder)), stream_in(Path(folder), "counts"), Path(folder, "checkpoint"))
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def undisturbed(spark: SparkSession, folder: str) -> None:
    """The same in one run, from the beginning, into another stream."""
    driver.undisturbed(spark, Path(folder))


def _read(spark: SparkSession, path: str) -> DataFrame:
    return spark.readStream.format("rowtime").load(path)


def _finish(spark: SparkSession, frame: DataFrame, sink: str, checkpoint: str, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)
    query = start(frame, sink, checkpoint)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
        for name in settings:
            spark.conf.unset(name)
