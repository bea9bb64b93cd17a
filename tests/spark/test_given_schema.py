"""``.schema(...)`` on a stream: its own is taken, any other is refused with both."""

import pytest

import spark_rowtime as rt
from tests.spark.query_output import Watched, refused
from tests.streams import Pipe, opened, send

OWN = "rowtime TIMESTAMP NOT NULL, x INT, s STRUCT<a: STRING>"
OTHERS = {
    "null where it may not be": "rowtime TIMESTAMP, x INT, s STRUCT<a: STRING>",
    "another type": "rowtime TIMESTAMP NOT NULL, x STRING, s STRUCT<a: STRING>",
    "another name": "rowtime TIMESTAMP NOT NULL, y INT, s STRUCT<a: STRING>",
    "less": "rowtime TIMESTAMP NOT NULL, x INT",
}


@pytest.fixture
def path(pipe: Pipe) -> str:
    path = pipe.path("s")
    rt.createStream(path, OWN)
    send(opened(path), ("10:00", 1, ("a",)))
    return path


@pytest.mark.long
def test_the_schema_of_the_stream_itself(pipe: Pipe, path: str) -> None:
    assert pipe.spark.read.format("rowtime").schema(OWN).load(path).count() == 1
    with Watched().start(pipe.spark.readStream.format("rowtime").schema(OWN).load(path)) as watched:
        assert len(watched.step()) == 1


@pytest.mark.parametrize("other", OTHERS)
def test_a_schema_of_other_columns_is_refused(pipe: Pipe, path: str, other: str) -> None:
    said = ("rowtime timestamp not null, x int, s struct<a:string>", ".schema(...) says rowtime", "select and cast")
    with refused(rt.SchemaMismatchError, *said):
        pipe.spark.read.format("rowtime").schema(OTHERS[other]).load(path).count()
    frame = pipe.spark.readStream.format("rowtime").schema(OTHERS[other]).load(path)
    with refused(rt.SchemaMismatchError, *said), Watched().start(frame) as watched:
        watched.step()
