"""Which Python Spark's workers run, where the user has not said."""

import os
import shutil
import sys
from pathlib import Path

from pyspark import SparkContext

from spark_rowtime.spark.settings import is_local

PROGRAM = Path(__file__).with_name("worker-python")
"""Starts the driver's Python so that the workers of a local Spark need not compile PySpark; see worker_start.py."""
PYTHON = "ROWTIME_PYTHON"
"""The variable that tells PROGRAM which Python to start."""
VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def set_python(configured: dict[str, str]) -> dict[str, str]:
    """Sets the two variables of PySpark, unless the user has; returns settings for the session.

    A JVM that had a local Spark before keeps the program in its environment, and names it to the executors.
    """
    starts = SparkContext._gateway is None  # noqa: SLF001  (under spark-submit, ``configured`` is from the JVM)
    local = is_local(configured)
    program = starts and local and os.access(PROGRAM, os.X_OK) and shutil.which("sh") is not None
    if program:
        os.environ[PYTHON] = sys.executable  # for the JVM that starts next
    for name in VARIABLES:
        if (starts or not local) and os.environ.get(name) == str(PROGRAM):  # of an earlier Spark, here or of a parent
            del os.environ[name]
        os.environ.setdefault(name, str(PROGRAM) if program else sys.executable)
    return {f"spark.executorEnv.{PYTHON}": sys.executable} if PYTHON in os.environ and not local else {}
