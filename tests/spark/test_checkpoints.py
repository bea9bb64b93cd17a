"""Checkpoints and streams that do not fit each other: a clear error, nothing lost or written twice."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_rowtime as rt
from tests.spark.observed_query import Observed
from tests.spark.query_output import Watched, contents, finish, refused, rows_of
from tests.sparksession import start
from tests.streams import Pipe, bound, opened, send

ROWS = [("9:10", 1), ("9:40", 2), ("10:05", 3), ("10:30", 4)]
PLAIN = [(f"{time:0>5}", x) for time, x in ROWS]


@pytest.fixture
def source(pipe: Pipe):
    """The sink of the stream ``s`` that the queries here read; it is open to the end."""
    return opened(pipe.create("s", "x INT"), "feed", lease=None)


def run(pipe: Pipe, checkpoint: str = "checkpoint", out: str = "out", frame: DataFrame | None = None) -> None:
    """A run of the query from ``s`` on that checkpoint, to the end of what there is."""
    finish(start(pipe.read("s") if frame is None else frame, pipe.path(out), pipe.folder / checkpoint))


def copied(pipe: Pipe, name: str) -> None:
    shutil.copytree(pipe.folder / "checkpoint", pipe.folder / name)


@pytest.mark.night
def test_two_queries_into_one_stream_are_two_producers(pipe: Pipe, source) -> None:
    """Its bound is the weaker of both, each row is there once, and each goes on from its own checkpoint."""
    pipe.create("out", "x INT")
    queries = {"odd": pipe.read("s").where("x % 2 = 1"), "even": pipe.read("s").where("x % 2 = 0")}
    for some in (ROWS[:2], ROWS[2:]):
        send(source, *some, promise=some[-1][0])
        for name, frame in queries.items():
            run(pipe, name, frame=frame)
    out = rt.describeStream(pipe.path("out"))
    assert rows_of(pipe.spark, pipe.path("out")) == PLAIN
    assert [p.accepted for p in out.producers] == [2, 2]
    assert {p.bound for p in out.producers} == {out.bound} == {bound("10:30")}
    send(source, promise="11:00")
    run(pipe, "odd", frame=queries["odd"])
    assert rt.describeStream(pipe.path("out")).bound == bound("10:30"), "as far as the other has come"


def test_a_copy_of_a_checkpoint_is_refused_when_the_query_has_gone_on(pipe: Pipe, source) -> None:
    send(source, ROWS[0])
    run(pipe)
    copied(pipe, "copy")
    send(source, ROWS[1])
    run(pipe)
    send(source, ROWS[2])
    before = contents(pipe.path("out"))
    with refused(rt.ProducerFencedError, "Batch 1", "another part of the source", "its checkpoint was copied"):
        run(pipe, "copy")
    assert contents(pipe.path("out")) == before
    send(source, ROWS[3])
    run(pipe)
    with refused(rt.ProducerFencedError, "Batch 1", "batch 2 has been written", "an older copy"):
        run(pipe, "copy")
    run(pipe)
    assert rows_of(pipe.spark, pipe.path("out")) == PLAIN


@pytest.mark.long
def test_a_copy_that_was_quicker_ends_the_query_that_it_was_copied_from(pipe: Pipe, source) -> None:
    send(source, ROWS[0])
    run(pipe)
    copied(pipe, "copy")
    send(source, ROWS[1])
    run(pipe, "copy")
    send(source, *ROWS[2:])
    with refused(rt.ProducerFencedError, "Batch 1", "Continue with the newest checkpoint"):
        run(pipe)
    run(pipe, "copy")
    assert rows_of(pipe.spark, pipe.path("out")) == PLAIN


@pytest.mark.long
def test_a_sink_that_has_gone_is_not_created_again(pipe: Pipe, source) -> None:
    send(source, ROWS[0])
    run(pipe)
    kept = pipe.folder / "kept"
    Path(pipe.path("out")).rename(kept)
    send(source, ROWS[1])
    with refused(rt.DataLostError, "no stream at", pipe.path("out"), "has written to it before"):
        run(pipe)
    assert not Path(pipe.path("out")).exists()
    with refused(rt.DataLostError, "the path has changed", pipe.path("elsewhere")):
        run(pipe, out="elsewhere")
    pipe.create("out", "x INT")
    with refused(rt.DataLostError, "Batch 1", "has no batch of this query", "deleted and created again"):
        run(pipe)
    assert rt.describeStream(pipe.path("out")).rows == 0
    shutil.rmtree(pipe.path("out"))
    kept.rename(pipe.path("out"))
    run(pipe)
    assert rows_of(pipe.spark, pipe.path("out")) == PLAIN[:2]


@pytest.mark.long
def test_an_older_copy_of_a_sink_is_refused(pipe: Pipe, source) -> None:
    send(source, ROWS[0])
    run(pipe)
    shutil.copytree(pipe.path("out"), pipe.folder / "older")
    send(source, ROWS[1])
    run(pipe)
    shutil.rmtree(pipe.path("out"))
    (pipe.folder / "older").rename(pipe.path("out"))
    send(source, ROWS[2])
    with refused(rt.DataLostError, "Batch 2", "only batches up to 0", "is an older copy"):
        run(pipe)
    assert rows_of(pipe.spark, pipe.path("out")) == PLAIN[:1]


GONE = {"s": (rt.DataLostError, "is gone while it was open"), "out": (rt.DataLostError, "There is no stream at")}


@pytest.mark.long
@pytest.mark.parametrize("gone", GONE)
def test_a_stream_that_is_deleted_under_a_running_query(pipe: Pipe, source, gone: str) -> None:
    send(source, ROWS[0])
    query = pipe.run(pipe.read("s"))
    query.processAllAvailable()
    Path(pipe.path(gone)).rename(pipe.folder / "aside")
    with refused(*GONE[gone], pipe.path(gone)):
        if gone == "out":
            send(source, ROWS[1])
        query.processAllAvailable()
    (pipe.folder / "aside").rename(pipe.path(gone))
    send(opened(pipe.path("s"), "feed", lease=None), ROWS[2])
    run(pipe)
    assert rows_of(pipe.spark, pipe.path("out")) == [PLAIN[0]] + PLAIN[1:2] * (gone == "out") + [PLAIN[2]]


@pytest.mark.long
def test_a_stream_that_is_replaced_under_a_running_query(pipe: Pipe, source) -> None:
    send(source, ROWS[0])
    query = pipe.run(pipe.read("s"))
    query.processAllAvailable()
    shutil.rmtree(pipe.path("s"))
    send(opened(pipe.create("s", "x INT"), "feed"), ROWS[1])
    with refused(rt.DataLostError, "while it was open", pipe.path("s")):  # gone, or created again by then
        query.processAllAvailable()
    with refused(rt.InvalidOptionError, "deleted and created again", "new checkpoint"):
        run(pipe)
    assert rows_of(pipe.spark, pipe.path("out")) == PLAIN[:1]


CHANGES = [
    (["*", "1 AS y"], ("y int32",)),
    (["rowtime"], ("x int32", "this output has rowtime")),
    (["rowtime", "CAST(x AS BIGINT) AS x"], ("x int64", "x int32")),
    (["rowtime", "x AS z"], ("z int32",)),
]


@pytest.mark.long
def test_a_query_whose_output_has_changed_is_refused(pipe: Pipe, source) -> None:
    send(source, ROWS[0])
    run(pipe)
    send(source, ROWS[1])
    before = contents(pipe.path("out"))
    for output, said in CHANGES:
        with refused(rt.SchemaMismatchError, *said):
            run(pipe, frame=pipe.read("s").selectExpr(*output))
    assert contents(pipe.path("out")) == before
    run(pipe)
    assert rows_of(pipe.spark, pipe.path("out")) == PLAIN[:2]


def test_a_source_whose_schema_has_changed_is_another_stream(pipe: Pipe, source) -> None:
    send(source, ROWS[0])
    run(pipe)
    shutil.rmtree(pipe.path("s"))
    send(opened(pipe.create("s", "x BIGINT, y STRING"), "feed"), ("9:40", 2, "b"))
    with refused(rt.InvalidOptionError, "deleted and created again", "new checkpoint"):
        run(pipe, frame=pipe.read("s").selectExpr("rowtime", "CAST(x AS INT) AS x"))
    assert rows_of(pipe.spark, pipe.path("out")) == PLAIN[:1]


@pytest.mark.long
def test_a_query_goes_on_with_a_restored_source_unless_it_is_ahead(pipe: Pipe, tmp_path: Path) -> None:
    """In the places of what it has read the restored stream has other rows, which it would skip."""
    path, behind, ahead = pipe.create("orders", "k STRING"), tmp_path / "behind", tmp_path / "ahead"
    orders = opened(path, "p", lease=None)
    send(orders, ("10:00", "a"), promise="10:10")
    with Watched().start(pipe.read("orders"), behind) as query:
        assert query.step() == [("10:00", "a")]
    rt.copyStream(path, pipe.path("copy"))
    shutil.copytree(behind, ahead)
    send(orders, ("10:20", "b"), promise="10:30")
    with Watched().start(pipe.read("orders"), ahead) as query:
        assert query.step() == [("10:20", "b")]
    orders.close()
    rt.deleteStream(path, force=True)
    rt.copyStream(pipe.path("copy"), path)
    with opened(path, "p") as again:
        for minute in range(30, 40):
            send(again, (f"10:{minute}", "c"))
    said = ("has taken its place", "new checkpoint")
    with refused(rt.DataLostError, *said), Watched().start(pipe.read("orders"), ahead) as query:
        query.step()
    with Watched().start(pipe.read("orders"), behind) as query:
        assert len(query.step()) == 10


def test_a_checkpoint_with_a_watermark_above_the_bound_is_refused(pipe: Pipe, tmp_path: Path) -> None:
    """Rows between the bound and the watermark would be lost as late."""
    source = opened(pipe.create("s", "x INT"), "feed", rowsImplyBounds=False)

    def hours(**options: str) -> Observed:
        watermarked = pipe.read("s", **options).withWatermark("rowtime", "0 seconds")
        return Observed(watermarked.groupBy(F.window("rowtime", "1 hour")).count(), tmp_path)

    send(source, ("9:10", 1), ("10:30", 2), promise="9:00")
    with hours(bounds="ignore") as query:
        assert query.step() == [(("09:00", "10:00"), 1)]
    for promise in (None, "10:40"):
        send(source, ("10:35", 3), promise=promise)
        with (
            pytest.raises(Exception, match=r"has the\s+watermark 2006-09-11T10:30:00Z") as said,
            hours() as query,
        ):
            query.step()
        assert "only at 2006-09-11T09:00:00Z" in str(said.value)
    send(source, promise="11:00")
    with hours(bounds="ignore") as query:
        query.step()
    with Observed(hours().frame, tmp_path / "new") as query:
        assert query.step() == [(("09:00", "10:00"), 1), (("10:00", "11:00"), 3)]
