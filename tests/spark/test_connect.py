"""Spark Connect: with the jar on the server a query has its bounds as in a classic session."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import spark_rowtime as rt
from tests.streams import opened, send


@pytest.mark.long  # examples/08_connect.py shows the same in make test
def test_a_window_closes_by_the_bound(tmp_path: Path) -> None:
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, k STRING")
    with opened(path, "first") as sink:
        send(sink, ("10:05", "a"), ("10:40", "b"), promise="10:50")
    program = [sys.executable, "-m", "tests.spark.over_connect", str(tmp_path)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment["SPARK_TESTING"] = "1"  # the server takes any free port, not 15002, so that several runs can be at once
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert ran.returncode == 0, ran.stderr
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["kind"] == "pyspark.sql.connect.session"
    assert (said["before"], said["after"], said["batch"]) == ([], [["11:00", 2]], 2)
    assert "2006-09-11T11:00:00.000001Z" in said["bound"]
