"""What the benchmarks share: a session, a folder, medians, and one line of result against a baseline."""

import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

import spark_rowtime as rt


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, removed afterwards."""
    path = Path(tempfile.mkdtemp(prefix="rowtime-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def session(**settings: str) -> SparkSession:
    """A session as a user would set it up, with one shuffle partition unless said otherwise."""
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "4g",
    }
    for name, value in {**defaults, **settings}.items():
        builder = builder.config(name, value)
    spark = rt.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def machine() -> str:
    """Machine and versions, for the records."""
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"PySpark {version('pyspark')}, pyarrow {version('pyarrow')}"
    )


def report(what: str, ours: list[float], baseline: list[float], unit: str, base: str) -> float:
    """Prints the medians and their ratio, which it returns."""
    mine, theirs = statistics.median(ours), statistics.median(baseline)
    ratio = mine / theirs
    print(f"{what}: {mine:,.4g} {unit}; {base}: {theirs:,.4g} {unit}; ratio {ratio:.2f}  [n={len(ours)}; {machine()}]")
    return ratio
