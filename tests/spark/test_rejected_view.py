"""view=rejected as a stream: each rejected row once, with whose bound it fell below, wherever it was rejected."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_rowtime as rt
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.rejected_source import RejectedStreamReader
from spark_rowtime.store import open_store
from spark_rowtime.types.timestamps import END
from tests.checkpoints import lose_commit
from tests.spark.query_output import finish, refused
from tests.sparksession import running
from tests.store.streams import SCHEMA, Writer
from tests.streams import Pipe, at, clock_of, opened, send

ORIGIN = ("boundOf", "boundBy", "boundEvent")


class Log:
    """The rows of each batch of a query over ``view=rejected``."""

    def __init__(self, pipe: Pipe, path: str, of: str = "x", **options: Any) -> None:
        reader = pipe.spark.readStream.format("rowtime").option("view", "rejected")
        for name, value in options.items():
            reader = reader.option(name, value)
        self.frame, self.checkpoint = reader.load(path).withColumnRenamed(of, "x"), pipe.folder / "log"
        self.batches: dict[int, list[tuple[Any, ...]]] = {}

    def _take(self, batch: DataFrame, number: int) -> None:
        found = sorted(batch.select("x", "rowtime", "producer", "bound", *ORIGIN).collect())
        self.batches[number] = [(r.x, clock_of(r.rowtime), r.producer, clock_of(r.bound), *r[4:]) for r in found]

    def run(self, **trigger: Any) -> None:
        """Runs the query to the end of what is rejected now."""
        writer = self.frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self.checkpoint))
        with running((writer.trigger(**trigger) if trigger else writer).start()) as query:
            query.processAllAvailable()

    def forget_commit(self) -> None:
        """Leaves the checkpoint as after a crash before Spark logged that the last batch is done."""
        lose_commit(self.checkpoint, max(self.batches))

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]


def test_each_rejected_row_comes_once_across_restarts(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    log = Log(pipe, path, maxRowsPerTrigger=1)
    berlin = opened(path, "Berlin", onLate="reject")
    send(berlin, ("10:00", 1), ("9:00", 2), ("9:30", 3))
    log.run()
    own = ("Berlin", "10:00", "producer", "Berlin", None)
    assert log.rows == [(2, "09:00", *own), (3, "09:30", *own)]
    before = dict(log.batches)
    log.forget_commit()
    log.batches.clear()
    with opened(path, "Oslo", onLate="reject") as oslo:
        send(oslo, promise="10:20")
        oslo.sendRow((at("10:30"), 4))  # becomes late before its commit
        let_go(path, "Oslo")
        send(berlin, promise="11:00")
        oslo.flush()
    send(berlin, ("10:15", 5))
    log.run()
    last = max(before)
    assert log.batches.pop(last) == before[last], "the batch that ran again has the same rows"
    assert log.rows == [
        (4, "10:30", "Oslo", "11:00", "stream", "Berlin", "sent"),
        (5, "10:15", "Berlin", "11:00", "producer", "Berlin", None),
    ]
    berlin.close()


def let_go(path: str, producer: str) -> None:
    with closing(open_store(path)) as store:
        store.detach(producer)


def test_what_a_query_and_a_drain_reject(pipe: Pipe) -> None:
    """The stream has the same rows as the batch read, and no watermark of its own."""
    source, out = pipe.create("s", "x INT"), pipe.create("out", "x INT")
    with opened(out, "other") as other:
        send(other, promise="9:30")
        with opened(source, "feed") as feed:
            send(feed, ("9:10", 1), ("9:40", 2))
        finish(pipe.run(pipe.read("s"), onDisorder="reject"))
        with rt.openReader(source) as reader, opened(out, "drain", onLate="reject") as sink:
            reader.drainTo(sink)
    log = Log(pipe, out, startingPosition="earliest")
    log.run(availableNow=True)
    query = f"spark-{pipe.query.id}"
    stream = ("09:30", "stream", "other", "sent")
    assert log.rows == sorted([(1, "09:10", query, *stream), (1, "09:10", "drain", *stream)], key=lambda row: row[2])
    batch = pipe.spark.read.format("rowtime").option("view", "rejected").load(out)
    assert batch.schema == log.frame.schema
    assert sorted(batch.select("x", "producer").collect()) == sorted((row[0], row[2]) for row in log.rows)
    assert batch.filter("rejectedAt > current_timestamp() - INTERVAL 1 HOUR").count() == 2
    with pytest.raises(Exception, match="without watermark"):
        log.frame.groupBy("rowtime").count().writeStream.format("noop").start()


@pytest.mark.night
def test_a_reader_that_falls_behind_what_is_kept(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT", retainRejected=1000)
    log = Log(pipe, path)
    with opened(path, "feed", onLate="reject") as feed:
        send(feed, ("10:00", 1), ("9:00", 2))
        log.run()
        for x in range(20):
            send(feed, ("9:00", x))
        with refused(rt.DataLostError, "Rejection 2", "retainRejected", "new checkpoint"):
            log.run()
        kept = rt.rejectedRows(path).num_rows
        assert 0 < kept < 20
        shutil.rmtree(log.checkpoint)
        log.batches.clear()
        log.run()
    assert [row[0] for row in log.rows] == list(range(20 - kept, 20))


@pytest.mark.parametrize("options", [{}, {"maxRowsPerTrigger": 1}], ids=["all at once", "one by one"])
def test_a_new_query_reads_what_is_left_also_from_before_what_was_removed(pipe: Pipe, options: dict[str, Any]) -> None:
    """What only the commit could reject stays until the producer's next commit, however old it is."""
    path = pipe.path("s")
    rt.createStream(path, SCHEMA, retainRejected=100)
    log = Log(pipe, path, of="n", **options)
    with closing(open_store(path)) as store:
        quiet, feed = Writer(store, "quiet"), Writer(store, "feed")
        for writer in (quiet, feed):
            writer.send(floor=100)
        quiet.send([99], floor=101)
        for n in range(40):
            feed.send(floor=100, late=[n])
        kept = [row["n"] for row in rt.rejectedRows(path).to_pylist()]
        assert kept[0] == 99
        assert 0 < kept[1] < 40
        log.run()
        assert sorted(row[0] for row in log.rows) == sorted(kept)
        for n in range(40, 80):
            feed.send(floor=100, late=[n])
        with refused(rt.DataLostError, "Rejection 42 "):
            log.run()


def test_a_stream_of_late_rows_ends_with_the_stream_they_were_rejected_by(pipe: Pipe) -> None:
    """A late row may have any rowtime, so there is no bound before; then the report is read in order, and is whole."""
    path = pipe.create("s", "x INT")
    late = pipe.read("s", view="rejected").selectExpr("rowtime", "x", "producer")
    first, second = opened(path, "Berlin", onLate="reject"), opened(path, "Oslo", onLate="reject")
    send(first, ("10:00", 1), ("9:30", 2), ("8:00", 3))
    pipe.run(late)
    assert pipe.step() == []
    assert pipe.bound is None
    first.close(complete=True)
    assert pipe.step() == [], "Oslo may still send late rows"
    send(second, ("11:00", 4), ("9:00", 5))
    second.close(complete=True)
    assert pipe.step() == [("08:00", 3, "Berlin"), ("09:00", 5, "Oslo"), ("09:30", 2, "Berlin")]
    assert pipe.bound == rt.RowtimeBound.END
    pipe.query.stop()
    again = pipe.run(late)
    assert pipe.step() == []
    assert again.exception() is None


@pytest.mark.parametrize("time", ["rowtime", "rejectedAt"])
def test_windows_over_late_rows_all_come_out_at_the_end(pipe: Pipe, time: str) -> None:
    """Before, Spark's own rules apply, and the offsets are those that older versions wrote."""
    path = pipe.create("s", "x INT")
    rows = pipe.read("s", view="rejected").withWatermark(time, "1 hour")
    counts = rows.groupBy(F.window(time, "1 hour")).count().selectExpr("window.end AS rowtime", "count")
    sink = opened(path, "Berlin", onLate="reject")
    send(sink, ("10:00", 1), ("9:30", 2), ("9:40", 3))
    pipe.run(counts)
    assert pipe.step() == []
    pipe.query.stop()
    assert "floor" not in offsets_of(pipe)
    pipe.run(counts)
    sink.close(complete=True)
    assert [n for _, n in pipe.step()] == [2]
    assert pipe.bound == rt.RowtimeBound.END
    assert "floor" in offsets_of(pipe)


def offsets_of(pipe: Pipe) -> str:
    """The last entry of the offset log."""
    log = pipe.folder / "checkpoint" / "offsets"
    return (log / str(max(int(file.name) for file in log.iterdir() if file.name.isdigit()))).read_text()


def test_what_a_topic_rejects_has_no_end(tmp_path: Path) -> None:
    """Rows of a topic beside a stream of bounds may be rejected whenever. A query that was told of an end says so."""
    path = ended(tmp_path / "s")
    first, last = ends(path)
    assert last["floor"] == END
    with closing(open_store(path)) as store:
        store.reject("spark-topic", 1, (next(iter(store.rejections())).rejected,), "")
    with pytest.raises(rt.StreamCompleteError, match="has rejected further rows since"):
        ends(path, last)
    assert "floor" not in ends(path, first)[1]
    assert "floor" not in ends(ended(tmp_path / "cuts", cut={"orders": {0: 3}}))[1]


def ended(folder: Path, **cut: Any) -> str:
    """A stream that is complete, with a late row."""
    rt.createStream(str(folder), "rowtime TIMESTAMP NOT NULL, x INT")
    with opened(folder, "Berlin", onLate="reject") as sink:
        send(sink, ("10:00", 1), ("9:30", 2))
        sink.sendRowtimeBound(at("11:00"), **cut)
        sink.close(complete=True)
    return str(folder)


def ends(path: str, start: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The offset where a batch of the view begins, and its end."""
    reader = RejectedStreamReader(Options({"path": path, "view": "rejected"}, READ), 9)
    try:
        begin = start or reader.initialOffset()
        return begin, reader.next(begin, unlimited=False)
    finally:
        reader.stop()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("order", "rowtime", "order is for the rows"),
        ("hold", "1 hour", "hold is for the rows"),
        ("startingPosition", at("10:00"), "earliest or latest"),
        ("view", "bounds", "view=bounds is for batch reads"),
    ],
)
def test_options_that_the_view_does_not_have(pipe: Pipe, option: str, value: str, said: str) -> None:
    path = pipe.create("s", "x INT")
    with refused(rt.InvalidOptionError, said):
        frame = pipe.spark.readStream.format("rowtime").option("view", "rejected").option(option, value).load(path)
        finish(frame.writeStream.format("noop").start())


@pytest.mark.long
@pytest.mark.smoke
def test_a_start_at_latest(pipe: Pipe) -> None:
    """The view has no bound, so startingPosition=latest begins after what is rejected already."""
    path = pipe.create("s", "x INT")
    with opened(path, "feed", onLate="reject") as feed:
        send(feed, ("10:00", 1), ("9:00", 2))
        log = Log(pipe, path, startingPosition="latest")
        log.run()
        send(feed, ("9:00", 3))
        log.run()
    assert [row[0] for row in log.rows] == [3]
