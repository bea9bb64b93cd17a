"""What the benchmarks share: sessions, a folder, medians, and one line of result against a baseline."""

import json
import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

import spark_rowtime as rt
from spark_rowtime.spark.settings import FILES, PARTITIONS

WAITING = "ms"
"""The unit of times from an event to its result. Processor time has "CPU ms"."""
RESULTS = "ROWTIME_BENCH_RESULTS"
"""The environment variable that names the file for what was measured: a JSON object a line."""


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, removed afterwards."""
    path = Path(tempfile.mkdtemp(prefix="rowtime-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "4g",
}
"""What none of the measurements is about."""


def session(**settings: str) -> SparkSession:
    """A session as ``rt.configure`` sets it up on two cores."""
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    spark = rt.configure(builder.config(map={**SETTINGS, **settings})).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def as_spark_comes(spark: SparkSession, **settings: str) -> SparkSession:
    """A session beside it with what ``rt.configure`` has set taken back, and two shuffle partitions."""
    plain = spark.newSession()
    plain.conf.unset(FILES)
    for key, value in {PARTITIONS: "2", **settings}.items():
        plain.conf.set(key, value)
    return plain


def machine() -> str:
    """Machine and versions, for the records."""
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"PySpark {version('pyspark')}, pyarrow {version('pyarrow')}"
    )


def report(what: str, ours: list[float], baseline: list[float], unit: str, base: str) -> float:
    """Prints the medians and their ratio, which it returns; keeps all for ``run_all.py``."""
    ratio = statistics.median(ours) / statistics.median(baseline)
    both = f"{shown(ours, unit)}; {base}: {shown(baseline, unit)}"
    print(f"{what}: {both}; ratio {ratio:.2f}  [n={len(ours)}; {machine()}]")
    keep(what=what, unit=unit, ours=ours, base=base, baseline=baseline)
    return ratio


def figure(what: str, ours: list[float], unit: str) -> float:
    """Prints a median that has no baseline, and returns it; keeps all for ``run_all.py``."""
    print(f"{what}: {shown(ours, unit)}  [n={len(ours)}; {machine()}]")
    keep(what=what, unit=unit, ours=ours)
    return statistics.median(ours)


def shown(values: list[float], unit: str) -> str:
    """The median; of waiting times, which are in milliseconds, the 99th percentile, too."""
    text = f"{statistics.median(values):,.4g} {unit}"
    if unit != WAITING or len(values) < 2:
        return text
    return f"{text} (p99 {statistics.quantiles(values, n=100, method='inclusive')[-1]:,.4g})"


def keep(**measured: object) -> None:
    """For ``run_all.py``, as a JSON line; one of the same ``what`` and ``base`` takes the place of an older one."""
    file = os.environ.get(RESULTS)
    measured |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine()}
    if file is not None:
        with Path(file).open("a", encoding="utf-8") as results:
            results.write(json.dumps(measured) + "\n")
