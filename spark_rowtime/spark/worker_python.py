"""Which Python Spark's workers run, where the user has not said."""

import os
import shutil
import sys
from pathlib import Path

from pyspark import SparkContext

from spark_rowtime.spark.settings import is_local

PROGRAM = Path(__file__).with_name("worker-python")
"""Starts the driver's Python so that the workers of a local Spark need not compile PySpark; see worker_start.py."""
VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def set_python(configured: dict[str, str]) -> None:
    """Sets the two variables of PySpark, unless the user has."""
    starts = SparkContext._gateway is None  # noqa: SLF001  (under spark-submit, ``configured`` is from the JVM)
    program = starts and is_local(configured) and os.access(PROGRAM, os.X_OK) and shutil.which("sh") is not None
    if program:
        os.environ["ROWTIME_PYTHON"] = sys.executable  # for the JVM that starts next
    for name in VARIABLES:
        if starts and os.environ.get(name) == str(PROGRAM):  # of the driver that has started this process
            del os.environ[name]
        os.environ.setdefault(name, str(PROGRAM) if program else sys.executable)
