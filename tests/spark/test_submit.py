"""spark-submit has started the JVM before the program runs, so the program cannot bring the jar any more."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import spark_rowtime as rt

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


def submitted(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [str(SUBMIT), "--master", "local[1]", *options, str(Path(__file__).with_name("submitted.py"))]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)


@pytest.mark.long
def test_configure_says_what_spark_submit_lacks() -> None:
    """At once: otherwise a query would be the first to miss the extension."""
    without = submitted()
    assert without.returncode != 0
    assert "for spark-submit, give it --jars $(rowtime jar)" in without.stdout + without.stderr
    given = submitted("--jars", rt.jarPath())
    assert given.returncode == 0, given.stderr
    assert "extensions: sparkrowtime.RowtimeExtensions" in given.stdout
