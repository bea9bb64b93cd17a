"""SparkSession with bounds: where the jar is, and how a builder gets it."""

import os
import sys
from pathlib import Path
from typing import Any, TypeVar

from spark_rowtime.errors import ShimMissingError
from spark_rowtime.spark.running_session import check_running
from spark_rowtime.spark.settings import said, suited

EXTENSION = "sparkrowtime.RowtimeExtensions"
"""The class of the extension, for ``spark.sql.extensions``."""

ADAPTERS, ADAPTERS_VARIABLE = "spark.rowtime.adapters", "ROWTIME_ADAPTERS"
"""The setting with the adapters that queries may host, ``module:Class`` with commas between; and the variable of the
JVM's environment in which the source's Python processes find it."""

_JAR = Path(__file__).resolve().parent.parent / "jars" / "spark-rowtime.jar"

Builder = TypeVar("Builder")


def jarPath() -> str:
    """The path of the jar, for ``spark.jars`` or ``--jars``."""
    if not _JAR.exists():
        raise ShimMissingError(
            f"{_JAR} is not there: this copy of spark-rowtime was not built. From a source tree, run "
            "'python java-shim/build.py' (needs a JDK, 17 or later); otherwise install the wheel."
        )
    return str(_JAR)


def configure(builder: Builder) -> Builder:
    """Add the jar and the extension to ``SparkSession.builder``; returns it.

    Nothing that is set already is overwritten, be it on the builder, by spark-submit or in
    spark-defaults.conf: ``spark.jars`` and ``spark.sql.extensions`` are added to, and for a local master
    the settings of docs/performance.md are made where they are not. So say the master before; what is
    set afterwards wins. The workers get this Python unless PYSPARK_PYTHON says otherwise.

    ``spark.rowtime.adapters``, said before: the adapters (``module:Class``, ...) that queries may host. It goes
    into the environment of the JVM that is then started, where no SQL can change it.
    Raises ShimMissingError where Spark runs in this process already and cannot take the extension: a
    JVM gets its jars when it starts, and keeps running after ``spark.stop()``.
    """
    told = said(builder)
    if "spark.remote" not in told:
        check_running(EXTENSION)
    ours = {**suited(told), **_added(told, "spark.jars", jarPath()), **_added(told, "spark.sql.extensions", EXTENSION)}
    _set(builder, ours)
    if ADAPTERS in told:
        os.environ[ADAPTERS_VARIABLE] = told[ADAPTERS]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return builder


def _added(told: dict[str, str], key: str, value: str) -> dict[str, str]:
    values = [v.strip() for v in told.get(key, "").split(",") if v.strip()]
    return {key: ",".join(values if value in values else [*values, value])}


def _set(builder: Any, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        builder.config(key, value)
