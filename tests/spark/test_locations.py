"""Streams with a location in Spark: tasks read and write objects themselves, natively and in Python."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.s3server import SECRET
from tests.spark.query_output import finish
from tests.spark.test_native_read import flat, is_native, twice
from tests.sparksession import NATIVE_READ
from tests.streams import Pipe, at, opened, send

COLUMNS = "x INT, text STRING"
LONG = "a" * 40_000
"""Two rows with this text are more than an object needs, one is less."""
S3A = {
    "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
    "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
}
"""Makes Hadoop know the scheme s3a, without the classes of hadoop-aws: it finds the objects in a folder."""


@pytest.fixture(autouse=True)
def switch(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset(NATIVE_READ)


def rows(*minutes: int) -> list[tuple[Any, ...]]:
    return [(f"10:{minute:02d}", minute, LONG) for minute in minutes]


def filled(pipe: Pipe, location: str) -> str:
    """A stream with small and large trains, of which some have one column less than others."""
    path = pipe.create("s", COLUMNS, location=location)
    with opened(path, "a", rowsImplyBounds=False) as feed:
        send(feed, *rows(4, 1, 3, 2))
        send(feed, *rows(9), promise="10:02")
        send(feed, *rows(7, 8, 2), promise="10:08")
    rt.alterStream(path, add="y INT")
    with opened(path, "b") as feed:
        feed.sendRows([(at(time), x, text, -x) for time, x, text in rows(10, 11, 12)])
        feed.sendRow((at("10:20"), 20, "small", -20))
    return path


def objects(path: str) -> list[str]:
    with open_store(path) as store:
        return list(store.objects.sizes())


def test_all_ways_read_the_same_rows(database_pipe: Pipe, location: str, tmp_path: Path) -> None:
    """A folder is read natively, S3 by Python workers; where Hadoop knows s3a, it is read through that."""
    pipe = database_pipe
    path = filled(pipe, location)
    assert len(objects(path)) == 3
    for options in ({}, {"order": "rowtime", "maxRowsPerTrigger": 3}):
        both = twice(pipe, "s", **options)
        python = both.run(False)
        assert len(flat(python)) == 12
        if location.startswith("file:"):
            assert both.run(True) == python
            continue
        pipe.spark.conf.set(NATIVE_READ, "true")
        native, found = natively(pipe, tmp_path / f"workers {len(options)}", options)
        assert found == python
        assert native == bool(options), "the last of several batches has no object, so its rows travel"
        shutil.rmtree(tmp_path / "mirror", ignore_errors=True)
        source = location.removeprefix("s3://")
        fs.copy_files(source, str(tmp_path / "mirror"), s3_files(), fs.LocalFileSystem())
        mount = {f"fs.viewfs.mounttable.rows.link./{tmp_path.name}": f"file://{tmp_path}/mirror"}
        with configured(pipe.spark, {**S3A, **mount}):
            native, found = natively(pipe, tmp_path / f"hadoop {len(options)}", options)
        assert found == python
        assert native, options


def s3_files() -> fs.FileSystem:
    from spark_rowtime.store.postgres.file_system import file_system

    return file_system("s3://rows")[0]


def natively(pipe: Pipe, checkpoint: Path, options: dict[str, Any]) -> tuple[bool, list[list[str]]]:
    """Whether the rows were read natively, and those of each batch."""
    batches: list[list[str]] = []
    writer = pipe.read("s", **options).writeStream.option("checkpointLocation", str(checkpoint))
    writer = writer.foreachBatch(lambda frame, _: batches.append(sorted(map(repr, frame.collect()))))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    return is_native(query), batches


class configured:  # noqa: N801  (a context manager, as a function would be)
    """Settings of the session for the time of a block."""

    def __init__(self, spark: SparkSession, settings: dict[str, str]) -> None:
        self._spark, self._settings = spark, settings

    def __enter__(self) -> None:
        for name, value in self._settings.items():
            self._spark.conf.set(name, value)

    def __exit__(self, *_: object) -> None:
        for name in self._settings:
            self._spark.conf.unset(name)


@pytest.mark.each
def test_tasks_write_objects_and_the_driver_commits_them(database_pipe: Pipe, location: str, tmp_path: Path) -> None:
    """Rows that travel stay in the database. The secrets of the environment are in no plan, and in no file."""
    pipe = database_pipe
    filled(pipe, location)
    pipe.create("out", f"{COLUMNS}, y INT", location=location)
    query = pipe.run(pipe.read("s").repartition(2, "x").selectExpr("rowtime", "x", "repeat('b', 50000) AS text", "y"))
    query.processAllAvailable()
    plans = str(query.explain()) + query._jsq.toString() + str(query.lastProgress.json)
    query.stop()
    written = objects(pipe.path("out"))
    assert 1 <= len(written) <= 2
    with rt.openReader(pipe.path("out"), order="arrival") as reader:
        found = [row for train in reader for row in train.rows.to_pylist()]
    assert sorted(row["x"] for row in found) == [1, 2, 2, 3, 4, 7, 8, 9, 10, 11, 12, 20]
    assert {len(row["text"]) for row in found} == {50_000}
    assert rt.describeStream(pipe.path("out")).bound == rt.describeStream(pipe.path("s")).bound
    pipe.spark.createDataFrame([(99,)], "x INT").selectExpr(
        f"TIMESTAMP '{at('11:00')}' AS rowtime", "x", "repeat('c', 90000) AS text", "x AS y"
    ).write.format("rowtime").mode("append").save(pipe.path("out"))
    assert len(objects(pipe.path("out"))) == len(written) + 1
    assert pipe.spark.read.format("rowtime").load(pipe.path("out")).count() == 13
    files = [file for file in (tmp_path / "checkpoint").rglob("*") if file.is_file()]
    assert len(files) > 3
    assert SECRET not in plans + "".join(file.read_bytes().decode("latin-1") for file in files)


@pytest.mark.long
def test_an_object_that_is_gone_is_named_and_nothing_else_is_lost(
    database_pipe: Pipe, location: str, tmp_path: Path
) -> None:
    """The query fails on both ways with the name of the object, and goes on when the object is back."""
    pipe = database_pipe
    path = filled(pipe, location)
    with open_store(path) as store:
        lost = store.objects
        name = next(iter(lost.sizes()))
    system, folder = (fs.LocalFileSystem(), location[7:]) if location.startswith("file") else (s3_files(), location[5:])
    system.move(f"{folder}/{lost.stream}/{name}", f"{folder}/away")
    both = twice(pipe, "s")
    for native in (True, False):
        with pytest.raises(StreamingQueryException) as caught:
            both.run(native)
        text = re.sub(r"\s+", " ", str(caught.value))
        assert f"The object {lost.url(name)} is gone, although a commit names it" in text
        assert SECRET not in text
    system.move(f"{folder}/away", f"{folder}/{lost.stream}/{name}")
    assert len(flat(both.run(False))) == 12


@pytest.mark.long
def test_a_sink_whose_location_refuses_goes_on_without_loss(database_pipe: Pipe, tmp_path: Path) -> None:
    """Exactly once: the query fails, and lands the batch when the location takes it again."""
    pipe, place = database_pipe, tmp_path / "location"
    filled(pipe, f"file://{place}")
    pipe.create("out", f"{COLUMNS}, y INT", location=f"file://{place}/out")
    frame = pipe.read("s").coalesce(1)
    (place / "out").rename(place / "away")
    (place / "out").write_text("not a folder")
    query = pipe.run(frame)
    with pytest.raises(StreamingQueryException, match=r"keeps rows, cannot be used just now"):
        finish(query)
    assert rt.describeStream(pipe.path("out")).rows == 0
    (place / "out").unlink()
    (place / "away").rename(place / "out")
    finish(pipe.run(frame))
    info = rt.describeStream(pipe.path("out"))
    assert (info.rows, info.rejected, len(objects(pipe.path("out")))) == (12, 0, 1)
