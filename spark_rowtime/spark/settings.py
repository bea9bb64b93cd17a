"""The settings that a user has made before a session starts, and those that suit a local master in addition."""

import os
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home

FILES = "spark.sql.streaming.checkpointFileManagerClass"
PARTITIONS = "spark.sql.shuffle.partitions"

CHECKPOINT_FILES = "sparkrowtime.support.CheckpointFiles"
"""The value of FILES that starts no process for a file where Hadoop has no native library."""
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:\s*,\s*\d+)?\])?")


def said(builder: Any) -> dict[str, str]:
    """Returns the settings that the user has made so far: on the builder, for spark-submit, in spark-defaults.conf."""
    set_here = {key: str(value) for key, value in builder._options.items()}  # noqa: SLF001  (it has no getter)
    return {**_master(), **_defaults(), **_submitted(), **set_here}


def suited(configured: dict[str, str]) -> dict[str, str]:
    """Returns settings for a driver that is the whole cluster, without those that ``configured`` contains.

    There are none for other masters, and none if Spark already runs. docs/performance.md gives the reasons.
    """
    cores = _local_cores(configured)
    if cores is None or SparkContext._active_spark_context is not None:  # noqa: SLF001
        return {}
    wanted = {FILES: CHECKPOINT_FILES, PARTITIONS: str(cores)}
    return {key: value for key, value in wanted.items() if key not in configured}


def is_local(configured: dict[str, str]) -> bool:
    """Returns whether the driver is the whole cluster."""
    return _local_cores(configured) is not None


def _local_cores(configured: dict[str, str]) -> int | None:
    """Returns how many tasks a local master runs at once; None for any other master."""
    master = configured.get("spark.remote", configured.get("spark.master", "local[*]"))
    local = _LOCAL.fullmatch(master.strip())
    if local is None:
        return None
    return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)


def _master() -> dict[str, str]:
    names = {"spark.master": "MASTER", "spark.remote": "SPARK_REMOTE"}
    return {key: os.environ[name] for key, name in names.items() if name in os.environ}


def _submitted() -> dict[str, str]:
    """Returns the settings for spark-submit.

    A process that spark-submit started reads them from its JVM. Any other process will start spark-submit with
    the arguments in PYSPARK_SUBMIT_ARGS.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()  # noqa: SLF001  (connects to the JVM, which already runs)
        return dict(SparkConf().getAll())
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    return dict(_options(words))


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    for option, value in pairwise(words):
        if option in ("--conf", "-c") and "=" in value:
            key, _, text = value.partition("=")
            yield key, text
        if option in ("--master", "--remote", "--jars"):
            yield f"spark.{option[2:]}", value


def _defaults() -> dict[str, str]:
    """Returns the settings in spark-defaults.conf, if the file exists."""
    home = Path(os.environ.get("SPARK_HOME") or _find_spark_home())
    file = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    lines = file.read_text().splitlines() if file.is_file() else []
    pairs = (line.replace("=", " ", 1).split(None, 1) for line in lines if not line.lstrip().startswith("#"))
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
