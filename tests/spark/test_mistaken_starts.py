"""Queries that are started by mistake: with a checkpoint, an output or an input that is not theirs."""

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

import spark_rowtime as rt
from tests.spark.query_output import finish, refused, rows_of
from tests.sparksession import start
from tests.streams import Pipe, opened, send


@pytest.fixture
def source(pipe: Pipe):
    """The sink of the stream ``s`` that the queries here read."""
    return opened(pipe.create("s", "x INT"), "feed", lease=None)


def plain(pipe: Pipe, kind: str) -> DataFrame:
    """A source of Spark's own."""
    if kind == "rate":
        return pipe.spark.readStream.format("rate").load()
    (pipe.folder / "files").mkdir()
    (pipe.folder / "files" / "one.txt").write_text("one")
    return pipe.spark.readStream.text(str(pipe.folder / "files"))


@pytest.mark.parametrize("kind", ["rate", "files"])
def test_a_checkpoint_of_another_source(pipe: Pipe, source, kind: str) -> None:
    """Nothing is written, and the error says what to do."""
    send(source, ("9:10", 1), promise="9:30")
    checkpoint = pipe.folder / "checkpoint"
    query = plain(pipe, kind).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    finish(query.trigger(availableNow=True).start())
    with pytest.raises(
        PySparkException, match=r"(?s)began with another source.*new checkpointLocation and a new output"
    ):
        finish(start(pipe.read("s"), pipe.path("out"), checkpoint))
    assert not Path(pipe.path("out")).exists()


def test_a_query_does_not_write_into_its_own_input(pipe: Pipe, source) -> None:
    """Each result would be an input of the next batch, for ever."""
    send(source, ("9:10", 1), promise="9:30")
    with refused(rt.InvalidOptionError, "reads the stream that it writes", "another stream"):
        finish(start(pipe.read("s"), pipe.path("s"), pipe.folder / "checkpoint"))
    assert rows_of(pipe.spark, pipe.path("s")) == [("09:10", 1)]


def test_a_checkpoint_that_was_deleted_while_the_output_stayed(pipe: Pipe, source) -> None:
    """The results are in the stream already, so its bound is above them."""
    send(source, ("9:10", 1), promise="9:20")
    finish(start(pipe.read("s"), pipe.path("out"), pipe.folder / "checkpoint"))
    [first] = rt.describeStream(pipe.path("out")).producers
    shutil.rmtree(pipe.folder / "checkpoint")
    send(source, ("9:20", 2), promise="9:30")
    said = (f"which another query ({first.name!r}) has already promised on", "checkpoint was deleted", "new stream")
    with refused(rt.DisorderedOutputError, *said):
        finish(start(pipe.read("s"), pipe.path("out"), pipe.folder / "checkpoint"))


@pytest.mark.parametrize("text", ["", '{"id": "12', "[]", "{}"])
def test_a_truncated_metadata_file_of_a_checkpoint(pipe: Pipe, source, text: str) -> None:
    """Spark itself says only that something failed while it called start."""
    send(source, ("9:10", 1), promise="9:30")
    finish(start(pipe.read("s"), pipe.path("out"), pipe.folder / "checkpoint"))
    (pipe.folder / "checkpoint" / "metadata").write_text(text)
    with pytest.raises(PySparkException, match=r"(?s)metadata.*is damaged.*new checkpointLocation"):
        finish(start(pipe.read("s"), pipe.path("out"), pipe.folder / "checkpoint"))
