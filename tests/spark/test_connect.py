"""Spark Connect: with the jar on the server a query has its bounds as in a classic session."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from tests.spark.test_match_recognize import PRICES
from tests.spark.test_without_extension import HOURS, REFUSED, rows_of
from tests.streams import opened, send

pytestmark = pytest.mark.long  # examples/08_connect.py shows a window that closes in make test


def said(program: str, folder: Path) -> Any:
    """What a program says in its folder. Its server takes any free port, so that several runs can be at once."""
    command = [sys.executable, "-m", program, str(folder)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment["SPARK_TESTING"] = "1"
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads((folder / "said.json").read_text())


def test_a_window_closes_by_the_bound(tmp_path: Path) -> None:
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, k STRING")
    with opened(path, "first") as sink:
        send(sink, ("10:05", "a"), ("10:40", "b"), promise="10:50")
    hours = said("tests.spark.over_connect", tmp_path)
    assert hours["kind"] == "pyspark.sql.connect.session"
    assert (hours["before"], hours["after"], hours["batch"]) == ([], [["11:00", 2]], 2)
    assert "2006-09-11T11:00:00.000001Z" in hours["bound"]
    read, sink, batch = hours["relative"]
    assert "StreamNotFoundError" in read
    assert "A relative path is one of the server's; give an absolute one" in read
    for written in (sink, batch):
        assert "InvalidOptionError: The relative path" in written
        assert "which ends with the session" in written


def test_a_server_without_the_jar_closes_windows_by_markers(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    send(opened(path, "feed"), *HOURS, promise="12:00")
    marked = said("tests.spark.marked_over_connect", tmp_path)
    assert marked["kind"] == "pyspark.sql.connect.session"
    assert rows_of(tmp_path, "marked hours") == [("09:00", 1), ("10:00", 2), ("11:00", 2)]
    assert rows_of(tmp_path, "marked union") == [("10:00", 1), ("11:00", 1)]
    assert [query for query, part in REFUSED.items() if part not in marked["refused"][query]] == []


@pytest.mark.night
def test_operators_and_an_asof_join_in_sql(tmp_path: Path) -> None:
    columns = {"orders": "ticker STRING, n INT", "rates": "ticker STRING, rate DOUBLE", "prices": PRICES}
    rows: dict[str, list[Any]] = {
        "orders": [("12:20", "A", 1), ("12:40", "B", 2)],
        "rates": [("12:00", "A", 1.5), ("12:30", "A", 2.5)],
        "prices": [("12:01", "A", 9), ("12:02", "A", 5), ("12:03", "A", 7)],
    }
    for name, types in columns.items():
        rt.createStream(path := str(tmp_path / f"{name}.rowtime"), f"rowtime TIMESTAMP NOT NULL, {types}")
        with opened(path, "feed") as sink:
            send(sink, *rows[name], promise="14:00")
    found = said("tests.spark.operators_over_connect", tmp_path)
    assert found["joined"] == [["12:20", "A", 1, 1.5], ["12:40", "B", 2, None]]
    assert found["sql"] == found["joined"][:1]
    assert [row[:2] for row in found["matched"]] == [["12:03", "A"]]
