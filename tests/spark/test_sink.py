"""``format("rowtime")`` written by a real Spark: rows and output bound in one commit, once; errors; what tasks see."""

import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, WriterCommitMessage
from pyspark.sql.functions import col, count, lit, udf, window
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

import spark_rowtime as rt
from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.bounds.disorder import declared
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.spark import output as output_module
from spark_rowtime.spark.options import WRITE, Options
from spark_rowtime.spark.output import one_step
from spark_rowtime.spark.query_batch import Batch
from spark_rowtime.spark.sink import DataSourceStreamArrowWriter, RowtimeStreamWriter
from spark_rowtime.spark.task_output import TaskOutput
from spark_rowtime.store import open_store
from spark_rowtime.store.commits import Staged
from spark_rowtime.types.schema import rows_to_batch
from tests.checkpoints import lose_last_commit
from tests.spark.query_output import Watched, contents, finish, last_batch, plain, refused, rows_of, table
from tests.sparksession import start
from tests.streams import Pipe, at, bound, clock_of, drained, opened, send

HOURS = [("9:10", 1), ("9:40", 2), ("10:05", 3)]


def hourly(frame: DataFrame, column: str = "rowtime") -> DataFrame:
    counts = frame.groupBy(window("rowtime", "1 hour")).agg(count("*").alias("n"))
    return counts.select(col("window.end").alias(column), "n")


def commits(pipe: Pipe, name: str = "out") -> list[tuple]:
    """What each commit brought: its rows, and its producer's bound after it."""
    seen = [(row[2], row[3], row[4] and plain(row[4:])[0]) for row in table(pipe.spark, pipe.path(name), "bounds")]
    return [(rows, floor) for event, rows, floor in seen if event == "sent"]


@pytest.fixture
def source(pipe: Pipe):
    """The sink of the stream ``s`` that the queries here read."""
    return opened(pipe.create("s", "x INT"), "feed", rowsImplyBounds=False)


@pytest.mark.smoke
def test_rows_and_output_bound_land_in_one_commit(pipe: Pipe, source) -> None:
    send(source, *HOURS, promise="10:00")
    query = pipe.run(hourly(pipe.read("s")))
    assert pipe.step() == [("10:00", 2)]
    assert commits(pipe) == [(1, "10:00:00.000001")], "strict"
    assert pipe.bound == bound("10:00", strict=True)
    send(source, promise="10:30")
    assert pipe.step() == []
    send(source, promise="11:00")
    assert pipe.step() == [("11:00", 1)]
    assert commits(pipe)[-1] == (1, "11:00:00.000001")
    [producer] = rt.describeStream(pipe.path("out")).producers
    assert (producer.name, producer.epoch, producer.accepted) == (f"spark-{query.id}", 1, 2)


@pytest.mark.smoke
def test_a_query_starts_in_any_thread(pipe: Pipe, source) -> None:
    """A thread that Python starts has no active session, where Spark looks for Python data sources."""
    send(source, *HOURS, promise="10:00")
    hours = hourly(pipe.read("s"))
    with ThreadPoolExecutor(1) as threads:
        query = threads.submit(pipe.run, hours).result()
    assert pipe.step() == [("10:00", 2)]
    query.stop()


def test_a_batch_without_rows_publishes_its_bound(pipe: Pipe, source) -> None:
    send(source, promise="9:00")
    pipe.run(pipe.read("s").where("x > 100"))
    assert pipe.step() == []
    send(source, *HOURS, promise="10:05")
    assert pipe.step() == []
    assert pipe.bound == bound("10:05")
    assert commits(pipe) == [(0, "09:00"), (0, "10:05")]


@pytest.mark.long
@pytest.mark.smoke
def test_a_pump_of_two_queries_passes_bounds_on(pipe: Pipe, source) -> None:
    pipe.create("mid", "x INT")
    first = start(pipe.read("s").where("x <> 2"), pipe.path("mid"), pipe.folder / "first")
    pipe.run(hourly(pipe.read("mid")))
    try:
        send(source, *HOURS, promise="9:59")
        first.processAllAvailable()
        assert pipe.step() == []
        send(source, promise="10:00")
        first.processAllAvailable()
        assert pipe.step() == [("10:00", 1)], "closed by the bound on the output of the first"
        assert pipe.bound == bound("10:00", strict=True)
    finally:
        first.stop()


@pytest.mark.smoke
def test_a_batch_that_is_run_again_changes_nothing_and_a_restart_is_a_new_epoch(pipe: Pipe, source) -> None:
    send(source, *HOURS, promise="9:00")
    query = pipe.run(hourly(pipe.read("s")))
    pipe.step()
    send(source, ("10:06", 4), promise="10:00")
    assert pipe.step() == [("10:00", 2)]
    query.stop()
    before = commits(pipe), rows_of(pipe.spark, pipe.path("out"))
    assert lose_last_commit(pipe.folder / "checkpoint") == last_batch(query)
    again = pipe.run(hourly(pipe.read("s")))
    assert pipe.step() == []
    assert (commits(pipe), rows_of(pipe.spark, pipe.path("out"))) == before
    [producer] = rt.describeStream(pipe.path("out")).producers
    assert (again.id, producer.name, producer.epoch) == (query.id, f"spark-{query.id}", 2)
    send(source, promise="11:00")
    assert pipe.step() == [("11:00", 2)], "and it goes on"


@pytest.mark.long
def test_another_column_as_rowtime(pipe: Pipe, source) -> None:
    send(source, *HOURS, promise="10:00")
    finish(pipe.run(hourly(pipe.read("s"), "complete"), rowtime="complete"))
    [train] = rt.openReader(pipe.path("out"))
    assert train.rows.schema.names == ["complete", "n", "rowtime"]
    assert train.rows["rowtime"].equals(train.rows["complete"])
    assert train.bound == bound("10:00", strict=True)


@pytest.mark.long
def test_an_existing_stream_takes_columns_in_any_order(pipe: Pipe, source) -> None:
    pipe.create("out", "x INT, y STRING NOT NULL")
    send(source, *HOURS)
    finish(pipe.run(pipe.read("s").select(lit("y").alias("y"), "x", "rowtime")))
    assert drained(rt.openReader(pipe.path("out"), order="arrival"))[0] == ("09:10", 1, "y")


MISMATCH = rt.SchemaMismatchError
MISFITS = {
    "no rowtime": (["x", "rowtime AS t"], {}, MISMATCH, ("no column 'rowtime'", ".alias('rowtime')")),
    "no such column": (["*"], {"rowtime": "tme"}, MISMATCH, ("no column 'tme'",)),
    "rowtime twice": (["*", "rowtime AS t"], {"rowtime": "t"}, rt.InvalidOptionError, ("second column 'rowtime'",)),
    "no timestamp": (["CAST(rowtime AS STRING) AS rowtime", "x"], {}, MISMATCH, ("must be a TIMESTAMP",)),
    "another type": (["rowtime", "CAST(x AS BIGINT) AS x"], {}, MISMATCH, ("x int32", "x int64", "another path")),
    "a column more": (["*", "1 AS y"], {}, MISMATCH, ("y int32",)),
    "a column less": (["rowtime"], {}, MISMATCH, ("x int32", "this output has rowtime")),
    "null rowtime": (["CASE WHEN x < 3 THEN rowtime END AS rowtime", "x"], {}, MISMATCH, ("'rowtime' is NOT NULL",)),
    "1970": (["TIMESTAMP '1969-12-31T23:00:00Z' AS rowtime", "x"], {}, MISMATCH, ("later than 1970",)),
    "unknown option": (["*"], {"onDisordr": "fail"}, rt.UnknownOptionError, ("Did you mean 'onDisorder'?",)),
    "bad lateness": (
        ["*"],
        {"lateness": "an hour"},
        rt.InvalidOptionError,
        ("of 'rowtime'='an hour'", "not an interval"),
    ),
    "bad value": (["*"], {"onDisorder": "ignore"}, rt.InvalidOptionError, ("'ignore'", "fail, reject")),
}
"""An output, the sink's options, the error and what it says."""


@pytest.mark.parametrize("case", MISFITS)
def test_an_output_that_does_not_fit_leaves_the_stream_as_it_was(pipe: Pipe, source, case: str) -> None:
    output, options, kind, said = MISFITS[case]
    with opened(pipe.create("out", "x INT"), "other") as other:
        send(other, ("8:00", 0), promise="8:30")
        before = contents(pipe.path("out"))
        send(source, *HOURS)
        with refused(kind, *said):
            finish(pipe.run(pipe.read("s").selectExpr(*output), **options))
        assert contents(pipe.path("out")) == before


@pytest.mark.parametrize("mode", ["complete", "update"])
def test_append_mode_only(pipe: Pipe, source, mode: str) -> None:
    send(source, *HOURS, promise="10:00")
    writer = hourly(pipe.read("s")).writeStream.format("rowtime").outputMode(mode)
    writer = writer.option("checkpointLocation", str(pipe.folder / "checkpoint"))
    with pytest.raises(
        IllegalArgumentException, match=rf'takes outputMode\("append"\) only: {mode} mode .* Leave outputMode out'
    ):
        writer.start(pipe.path("out"))
    assert not Path(pipe.path("out")).exists()


def test_a_row_below_what_was_published_fails_or_is_rejected(pipe: Pipe, source) -> None:
    with opened(pipe.create("out", "x INT"), "other") as other:
        send(other, promise="9:30")
    before = rt.describeStream(pipe.path("out"))
    send(source, *HOURS, promise="10:06")
    with refused(rt.DisorderedOutputError, "1 row of this batch is below 2006-09-11T09:30:00Z", "'reject'"):
        finish(pipe.run(pipe.read("s")))
    after = rt.describeStream(pipe.path("out"))
    assert (after.rows, after.bound, after.rejected) == (before.rows, before.bound, 0)
    finish(pipe.run(pipe.read("s"), onDisorder="reject"))
    assert rows_of(pipe.spark, pipe.path("out")) == [("09:40", 2), ("10:05", 3)]
    [(producer, why, floor, *whose, _, time, x)] = table(pipe.spark, pipe.path("out"), "rejected")
    assert (why, *plain((floor,)), *plain((time,)), x) == ("late", "09:30", "09:10", 1)
    assert whose == ["stream", "other", "sent"]
    [counted] = [p for p in rt.describeStream(pipe.path("out")).producers if p.name == producer]
    assert (counted.accepted, counted.rejected) == (2, 1)


@pytest.mark.parametrize("steps", [5, 1])
def test_lateness_on_a_querys_output(pipe: Pipe, source, steps: int) -> None:
    rows = [("1:00", 1), ("2:00", 2), ("1:10", 3), ("3:00", 4), ("1:20", 5)]
    opaque = pipe.read("s").mapInArrow(lambda batches: batches, "rowtime TIMESTAMP, x INT")
    query = pipe.run(opaque, lateness="1 hour")
    for step in range(steps):
        send(source, *rows[step::steps])
        query.processAllAvailable()
    late = [] if steps == 1 else [("late", "02:00", "01:20", 5)]
    assert rows_of(pipe.spark, pipe.path("out")) == sorted((f"0{time}", x) for time, x in rows if x < 5 or not late)
    rejected = table(pipe.spark, pipe.path("out"), "rejected")
    found = [(why, *plain((floor,)), *plain((time,)), x) for _, why, floor, *_, time, x in rejected]
    assert found == late
    assert {row[3] for row in rejected} == ({"producer"} if late else set())
    assert rt.describeStream(pipe.path("out")).bound == bound("2:00"), "the largest rowtime less the lateness"


def started(pipe: Pipe, frame: DataFrame, name: str) -> StreamingQuery:
    writer = frame.writeStream.format(name).option("checkpointLocation", str(pipe.folder / name))
    return writer.option("file", str(pipe.folder / "said")).start()


@pytest.mark.long
def test_any_python_sink_or_udf_can_ask_for_the_bound(pipe: Pipe, source) -> None:
    class Writer(DataSourceStreamArrowWriter):
        def __init__(self, file: str) -> None:
            self.file = file

        def write(self, iterator):
            seen = [said for batch in iterator for said in batch["seen"].to_pylist()]
            with Path(self.file).open("a") as out:
                out.write(f"{seen} {rt.currentRowtimeBound()}\n")
            return WriterCommitMessage()

        def commit(self, messages, batchId) -> None:
            pass

        def abort(self, messages, batchId) -> None:
            pass

    class Custom(DataSource):
        @classmethod
        def name(cls) -> str:
            return "custom"

        def streamWriter(self, schema, overwrite):
            return Writer(self.options["file"])

    pipe.spark.dataSource.register(Custom)
    ask = udf(lambda: str(rt.currentRowtimeBound()), "string")
    send(source, HOURS[0], promise="9:30")
    query = started(pipe, pipe.read("s").select("rowtime", ask().alias("seen")), "custom")
    query.processAllAvailable()
    send(source, promise="9:40", strict=True)
    finish(query)
    first, second = rt.RowtimeBound(at("9:30")), rt.RowtimeBound(at("9:40"), strict=True)
    said = (pipe.folder / "said").read_text().splitlines()
    assert said == [f"{[str(first)]} {first}", f"[] {rt.RowtimeBound.fromFloor(second.floor)}"]
    assert rt.currentRowtimeBound() is None, "outside a query"


@pytest.mark.long
def test_the_bound_in_foreach_batch_and_in_the_jobs_that_it_starts(pipe: Pipe, source) -> None:
    def ask(batches):
        for _ in batches:
            bounds = [str(rt.currentRowtimeBound(column)) for column in ("rowtime", "window.end", "n")]
            yield pa.RecordBatch.from_pydict({"said": bounds})

    said = []

    def each(frame: DataFrame, _: int) -> None:
        seen = frame.coalesce(1).mapInArrow(ask, "said string").collect()
        said.append((rt.currentRowtimeBound(), [row.said for row in seen]))

    send(source, *HOURS, promise="10:00")
    counts = pipe.read("s").groupBy(window("rowtime", "1 hour")).count()
    finish(counts.writeStream.foreachBatch(each).start())
    end = str(rt.RowtimeBound(at("10:00:00.000001")))
    assert said == [(None, ["None", end, "None"])]
    frame = pipe.spark.read.format("rowtime").load(pipe.path("s"))
    assert {row.said for row in frame.mapInArrow(ask, "said string").collect()} == {"None"}, "no streaming query"


def test_an_output_that_nobody_can_see_through_carries_no_bound(pipe: Pipe, source) -> None:
    send(source, *HOURS, promise="10:00")
    mapped = pipe.read("s").mapInArrow(lambda batches: batches, "rowtime TIMESTAMP, x INT")
    with Watched().start(mapped) as watched:
        assert len(watched.step()) == len(HOURS)
        assert watched.bounds == [None]


OWN = BoundOrigin("producer", "feed")


@pytest.mark.long
def test_lateness_takes_a_batch_of_several_trains_as_one_step(pipe: Pipe) -> None:
    pipe.create("out", "x INT")
    store = open_store(pipe.path("out"))
    times = [("2:00", "1:10"), ("3:00", "0:30"), ("2:30",)]
    down = [store.stage(rows_to_batch([(at(t), n) for n, t in enumerate(train)], store.schema)) for train in times]
    disorder = declared(store.schema, lateness="1 hour")
    fit, late, floor = one_step(store, down, disorder, OWN)
    assert (sum(train.rows for train in fit), late, as_bound(floor)) == (5, (), bound("2:00"))
    fit, late, floor = one_step(store, down, disorder, OWN)
    assert [clock_of(t) for train in fit for t in store.read(train).column("rowtime").to_pylist()] == [
        "02:00",
        "03:00",
        "02:30",
    ]
    assert [clock_of(t) for rows in late for t in rows.rows.column("rowtime").to_pylist()] == ["01:10", "00:30"]
    store.close()


@pytest.mark.long
def test_lateness_has_one_train_in_memory_at_a_time(pipe: Pipe) -> None:
    pipe.create("out", "x INT")
    store = open_store(pipe.path("out"))
    down = [store.stage(rows_to_batch([(at("2:00"), n)], store.schema)) for n in range(5)]
    read, seen, alive = store.read, [], []

    def watched(train: Staged) -> pa.RecordBatch:
        alive.append(sum(rows() is not None for rows in seen))
        seen.append(weakref.ref(rows := read(train)))
        return rows

    store.read = watched
    fit, _, _ = one_step(store, down, declared(store.schema, lateness="1 hour"), OWN)
    assert (len(fit), alive) == (5, [0] * 5)
    store.close()


@pytest.mark.long
@pytest.mark.parametrize("reject", [False, True])
def test_rows_that_become_late_between_the_check_and_the_commit(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch, reject: bool
) -> None:
    """Another producer's bound passes them there."""
    path = pipe.create("out", "x INT", maxLag="1 hour")
    schema = StructType([StructField("rowtime", TimestampType(), False), StructField("x", IntegerType())])
    options = {"path": path, "onDisorder": "reject" if reject else "fail"}
    writer = RowtimeStreamWriter(Options(options, WRITE), schema)
    rows = [rows_to_batch([(at("9:00"), 1), (at("11:30"), 2)], open_store(path).schema)]
    output = TaskOutput(Batch("query", "run", 0, ""), {}, open_store(path).stream, [open_store(path).stage(rows[0])])
    admitted = output_module.admit

    def overtaken(*arguments):
        found = admitted(*arguments)
        with opened(path, "fast") as fast:
            send(fast, promise="12:00")
            fast.abandon()
        return found

    monkeypatch.setattr(output_module, "admit", overtaken)
    if not reject:
        with pytest.raises(rt.DisorderedOutputError, match=r"1 row of this batch is below 2\d{3}-\d\d-\d\dT11:00:00Z"):
            writer.commit([output], 0)
        assert (rt.describeStream(path).rows, rt.describeStream(path).rejected) == (0, 0)
        monkeypatch.undo()
        with pytest.raises(rt.DisorderedOutputError):  # tried again, it does not pass for landed
            writer.commit([output], 0)
    else:
        writer.commit([output], 0)
        assert (rt.describeStream(path).rows, rt.describeStream(path).rejected) == (1, 1)
