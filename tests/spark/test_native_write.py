"""The rows of a rowtime sink: few travel to the commit, many go through a Python worker, and the same ones land."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

import spark_rowtime as rt
from spark_rowtime.spark.output_bound import floors_said
from spark_rowtime.spark.query_batch import Batch
from tests.spark.pythontasks import python_tasks, watching
from tests.spark.query_output import finish
from tests.sparksession import NATIVE_WRITE
from tests.streams import Pipe, opened, send

FEW = 128 << 10
"""Bytes of a task's rows that no longer travel."""
MESSAGE = Path(__file__).parents[2] / "java-shim/src/main/java/sparkrowtime/sink/SinkMessage.java"


@pytest.fixture
def watched(spark: SparkSession, tmp_path: Path) -> Iterator[Pipe]:
    pipe = Pipe(watching(spark), tmp_path)
    with opened(pipe.create("s", "x INT"), "feed") as sink:
        send(sink, *[(f"10:{minute:02d}", minute) for minute in range(40)], promise="11:00")
    yield pipe
    pipe.stop()


def landed(pipe: Pipe) -> list[tuple[int, int]]:
    """Each x with the length of its text."""
    with rt.openReader(pipe.path("out"), order="arrival") as reader:
        return sorted((row["x"], len(row["text"])) for train in reader for row in train.rows.to_pylist())


@pytest.mark.parametrize(
    ("length", "native", "by_python"),
    [
        ("x", "true", []),
        (f"IF(x = 7, {8 * FEW}, 0)", "true", ["1-trains"]),
        (f"IF(x = 39, {8 * FEW}, 0)", "true", ["1-trains"]),
        (f"{FEW} DIV 30", "true", ["1-trains"]),
        (f"{FEW} DIV 50", "true", []),
        ("x", "false", ["1-trains"]),
    ],
    ids=["few", "one that is long", "the last is long", "many", "not so many", "switched off"],
)
def test_all_rows_land(watched: Pipe, length: str, native: str, by_python: list[str]) -> None:
    watched.spark.conf.set(NATIVE_WRITE, native)
    texts = watched.read("s").coalesce(1).selectExpr("rowtime", "x", f"repeat('a', {length}) AS text")
    lengths = watched.spark.range(40).selectExpr("CAST(id AS INT) AS x").selectExpr("x", f"CAST({length} AS INT)")
    finish(watched.run(texts))
    assert landed(watched) == sorted(map(tuple, lengths.collect()))
    assert python_tasks(watched.path("out")) == by_python
    assert rt.describeStream(watched.path("out")).bound == rt.describeStream(watched.path("s")).bound


@pytest.mark.long
def test_tasks_of_both_kinds_in_one_batch(watched: Pipe) -> None:
    text = f"IF(x % 8 = 0, repeat('a', {FEW}), 'b') AS text"
    finish(watched.run(watched.read("s").repartition(8, expr("x % 8")).selectExpr("rowtime", "x", text)))
    assert landed(watched) == [(x, 1 if x % 8 else FEW) for x in range(40)]
    assert python_tasks(watched.path("out")) == ["1-trains"]


@pytest.mark.long
def test_the_more_tasks_a_batch_has_the_fewer_rows_travel_from_each(watched: Pipe) -> None:
    text = "repeat('a', 70000) AS text"
    finish(watched.run(watched.read("s").repartition(512, expr("x % 8")).selectExpr("rowtime", "x", text)))
    assert landed(watched) == [(x, 70_000) for x in range(40)]
    assert python_tasks(watched.path("out")) == ["1-trains"]


def test_a_first_batch_without_rows_makes_the_stream(watched: Pipe) -> None:
    nothing = watched.read("s").filter("x < 0").selectExpr("rowtime", "x", "'' AS text")
    finish(watched.run(nothing))
    assert landed(watched) == []
    assert python_tasks(watched.path("out")) == []
    assert rt.describeStream(watched.path("out")).bound == rt.describeStream(watched.path("s")).bound


def test_the_message_has_all_properties_that_a_task_asks_for() -> None:
    asked: list[str] = []
    Batch.said_by(lambda name: asked.append(name) or "0")
    floors_said(lambda name: asked.append(name) or "{}")
    listed = re.search(r"PROPERTIES =\s+List.of\((.*?)\);", MESSAGE.read_text(), re.DOTALL)
    assert listed is not None
    assert sorted(re.findall('"(.*?)"', listed[1])) == sorted(set(asked))
