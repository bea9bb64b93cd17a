"""The rows of a rowtime sink: few travel to the commit, many go through a Python worker, and the same ones land."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamWriter
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

import spark_rowtime as rt
from spark_rowtime.spark.datasource import RowtimeDataSource
from spark_rowtime.spark.options import WRITE, Options
from spark_rowtime.spark.sink import RowtimeStreamWriter
from spark_rowtime.spark.taskoutput import TaskOutput
from tests.spark.watching import finish
from tests.streams import Pipe, opened, send

SWITCH = "spark.rowtime.nativeWrite"
FEW = 128 << 10
"""Bytes of a task's rows that travel, and one row more."""


class WatchedWriter(RowtimeStreamWriter):
    """Leaves a file beside the stream for each task that a Python worker has run."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self._sink = options.path

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        output = super().write(iterator)
        Path(f"{self._sink}.{len(output.trains)}-trains").touch()
        return output


class WatchedDataSource(RowtimeDataSource):
    """In place of the real one in a session of the test's own."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        assert not overwrite
        return WatchedWriter(Options(self.options, WRITE), schema)


@pytest.fixture
def watched(spark: SparkSession, tmp_path: Path) -> Iterator[Pipe]:
    session = spark.newSession()
    session.dataSource.register(WatchedDataSource)
    pipe = Pipe(session, tmp_path)
    with opened(pipe.create("s", "x INT"), "feed") as sink:
        send(sink, *[(f"10:{minute:02d}", minute) for minute in range(40)], promise="11:00")
    yield pipe
    pipe.stop()


def python_tasks(pipe: Pipe) -> list[str]:
    return [file.suffix for file in pipe.folder.glob("out.rowtime.*-trains")]


def landed(pipe: Pipe) -> dict[int, int]:
    """The length of the text by x."""
    with rt.openReader(pipe.path("out"), order="arrival") as reader:
        return {row["x"]: len(row["text"]) for train in reader for row in train.rows.to_pylist()}


@pytest.mark.parametrize(
    ("length", "native", "by_python"),
    [
        ("x", "true", []),
        (f"IF(x = 7, {8 * FEW}, 0)", "true", [".1-trains"]),
        (f"IF(x = 39, {8 * FEW}, 0)", "true", []),
        (f"{FEW} DIV 30", "true", [".1-trains"]),
        ("x", "false", [".1-trains"]),
    ],
    ids=["few", "one that is long, and more", "the last is long", "many", "switched off"],
)
def test_all_rows_land(watched: Pipe, length: str, native: str, by_python: list[str]) -> None:
    watched.spark.conf.set(SWITCH, native)
    texts = watched.read("s").coalesce(1).selectExpr("rowtime", "x", f"repeat('a', {length}) AS text")
    lengths = watched.spark.range(40).selectExpr("CAST(id AS INT) AS x").selectExpr("x", f"CAST({length} AS INT)")
    finish(watched.run(texts))
    assert landed(watched) == dict(map(tuple, lengths.collect()))
    assert python_tasks(watched) == by_python
    assert rt.describeStream(watched.path("out")).bound == rt.describeStream(watched.path("s")).bound


def test_tasks_of_both_kinds_in_one_batch(watched: Pipe) -> None:
    text = f"IF(x % 8 = 0, repeat('a', {FEW}), 'b') AS text"
    finish(watched.run(watched.read("s").repartition(8, expr("x % 8")).selectExpr("rowtime", "x", text)))
    assert landed(watched) == {x: 1 if x % 8 else FEW for x in range(40)}
    assert python_tasks(watched) == [".1-trains"]
    assert rt.describeStream(watched.path("out")).rows == 40


def test_a_first_batch_without_rows_makes_the_stream(watched: Pipe) -> None:
    nothing = watched.read("s").filter("x < 0").selectExpr("rowtime", "x", "'' AS text")
    finish(watched.run(nothing))
    assert landed(watched) == {}
    assert python_tasks(watched) == []
    assert rt.describeStream(watched.path("out")).bound == rt.describeStream(watched.path("s")).bound
