"""SparkSession with bounds: where the jar is, and how a builder gets it."""

import os
import sys
from pathlib import Path
from typing import Any, TypeVar

from spark_rowtime.errors import ShimMissingError

EXTENSION = "sparkrowtime.RowtimeExtensions"
"""The class of the extension, for ``spark.sql.extensions``."""

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

    What the builder or spark-defaults.conf already has in ``spark.jars`` and
    ``spark.sql.extensions`` is kept. The workers get this Python unless PYSPARK_PYTHON says otherwise.
    """
    _append(builder, "spark.jars", jarPath())
    _append(builder, "spark.sql.extensions", EXTENSION)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return builder


def _append(builder: Any, key: str, value: str) -> None:
    has = str(builder._options.get(key) or _defaults().get(key, ""))  # noqa: SLF001  (a builder cannot be asked)
    values = [v.strip() for v in has.split(",") if v.strip()]
    if value not in values:
        builder.config(key, ",".join([*values, value]))


def _defaults() -> dict[str, str]:
    """spark-defaults.conf, where there is one: a value set on the builder would replace its."""
    home = Path(os.environ.get("SPARK_HOME", "/nonexistent"))
    file = Path(os.environ.get("SPARK_CONF_DIR", home / "conf")) / "spark-defaults.conf"
    lines = file.read_text().splitlines() if file.is_file() else []
    pairs = (line.replace("=", " ", 1).split(None, 1) for line in lines if not line.lstrip().startswith("#"))
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
