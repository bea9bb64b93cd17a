"""Tables that drains wrote, read by Spark itself, which has the formats' own jars and nothing of this project.

Delta with the oldest PySpark of this project only, 4.2: for Spark 4.3 there is no jar. Not Iceberg: it has none for 4.2
and later, and the one for 4.1 fails in 4.3 (IncompatibleClassChangeError).
"""

import json
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

import spark_rowtime as rt
from tests.tables.jars import MissingJarsError, table_jars
from tests.tables.lake import Lake
from tests.tables.test_drain import wide_stream

SECONDS = 500


@pytest.fixture(params=["delta", "parquet"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def jars(kind: str) -> str:
    try:
        return table_jars(kind)
    except MissingJarsError as missing:
        pytest.skip(str(missing))


def read_by_spark(lake: Lake, kind: str, jars: str) -> tuple[pa.Table, dict[str, Any]]:
    """The rows, sorted by rowtime, and what Spark says of the table's commits."""
    out = lake.folder / "read.arrow"
    command = [sys.executable, "-m", "tests.tables.spark_reader", kind, str(lake.folder), jars, str(out)]
    subprocess.run(command, check=True, timeout=SECONDS)
    with pa.memory_map(str(out)) as file:
        rows = pa.ipc.open_file(file).read_all()
    return rows, json.loads(rows.schema.metadata[b"said"])


@pytest.mark.smoke
def test_spark_reads_every_type_exactly_and_the_bound(lake: Lake, kind: str, jars: str) -> None:
    expected = wide_stream(lake, kind)
    lake.drain(kind)
    rows, said = read_by_spark(lake, kind, jars)
    assert rows.to_pylist() == expected
    assert said["bound"] == "2026-01-05T12:00:00Z"
    assert rt.readTableBound(lake.target(kind)) == rt.RowtimeBound(said["bound"])
