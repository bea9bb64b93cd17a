"""Streams in PostgreSQL read and written by a real Spark: windows, restarts, tables, views; what tasks do not do."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql.functions import col, count, lit, window

import spark_rowtime as rt
from spark_rowtime.reader.release import Release
from spark_rowtime.spark.partition import plan
from spark_rowtime.store import open_store
from spark_rowtime.store.position import Position
from tests.postgresserver import PostgresServer
from tests.spark.query_output import finish, rows_of, table
from tests.sparksession import wait_for
from tests.store.test_postgres_silent_server import STOPPED_SECONDS, still
from tests.streams import Pipe, at, bound, opened, send


def hourly(frame):
    counts = frame.groupBy(window("rowtime", "1 hour")).agg(count("*").alias("n"))
    return counts.select(col("window.end").alias("rowtime"), "n")


def test_windows_close_by_the_bound_across_restarts_and_moves(
    database_pipe: Pipe, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query from one stream of a database into another, killed between batches, and moved to a copy in a folder.

    The password that the driver uses is in no file of the checkpoint, and in no plan.
    """
    monkeypatch.setenv("PGPASSWORD", "s3cret-pass")
    pipe = database_pipe
    source = opened(pipe.create("s", "x INT"), "feed", rowsImplyBounds=False)
    send(source, ("9:10", 1), ("9:40", 2), ("10:05", 3), promise="10:00")
    query = pipe.run(hourly(pipe.read("s")))
    assert pipe.step() == [("10:00", 2)]
    assert pipe.bound == bound("10:00", strict=True)
    plans = str(query.explain()) + query._jsq.toString() + str(query.lastProgress.json)
    query.stop()

    send(source, ("10:30", 4), promise="11:00")
    query = pipe.run(hourly(pipe.read("s")))
    assert pipe.step() == [("11:00", 2)]
    assert query.lastProgress.sources[0].metrics["clockHeldBy"] == "feed"
    query.stop()

    send(source, ("11:30", 5), promise="12:00")
    source.close()
    rt.copyStream(pipe.path("s"), str(tmp_path / "moved"))
    moved = pipe.spark.readStream.format("rowtime").load(str(tmp_path / "moved"))
    pipe.run(hourly(moved))
    assert pipe.step() == [("12:00", 1)]
    files = [file for file in (tmp_path / "checkpoint").rglob("*") if file.is_file()]
    assert len(files) > 10
    shown = plans + "".join(file.read_bytes().decode("latin-1") for file in files)
    assert "s3cret" not in shown
    assert rt.describeStream(pipe.path("out")).rejected == 0


def test_tables_batches_and_views(database_pipe: Pipe) -> None:
    pipe = database_pipe
    path = pipe.create("s", "x INT")
    with opened(path, "feed", onLate="reject") as feed:
        send(feed, ("10:00", 1), ("10:01", 2), promise="10:05")
        send(feed, ("9:00", 3))
    pipe.spark.sql(f"CREATE TABLE pg_orders USING rowtime OPTIONS (path '{path}')")
    try:
        assert [row.x for row in pipe.spark.sql("SELECT x FROM pg_orders ORDER BY x").collect()] == [1, 2]
    finally:
        pipe.spark.sql("DROP TABLE pg_orders")
    frame = pipe.spark.range(3).select(
        lit(at("11:00")).cast("timestamp").alias("rowtime"), col("id").cast("int").alias("x")
    )
    frame.repartition(3).write.format("rowtime").mode("append").option("producer", "batch").save(path)
    assert [x for _, x in rows_of(pipe.spark, path)] == [1, 2, 0, 1, 2]
    assert [row[-1] for row in table(pipe.spark, path, "rejected")] == [3]
    assert {row[0]: row[3:5] for row in table(pipe.spark, path, "producers")} == {"feed": (2, 1), "batch": (3, 0)}
    events = [(row[1], row[2], row[3]) for row in table(pipe.spark, path, "bounds")]
    assert (events[0], sum(rows for *_, rows in events)) == (("feed", "joined", 0), 5)

    seen: list[int] = []
    rejected = pipe.spark.readStream.format("rowtime").option("view", "rejected").load(path)
    finish(rejected.writeStream.foreachBatch(lambda rows, _: seen.extend(r.x for r in rows.collect())).start())
    assert seen == [3]


READ = """
import pickle, sys
sys.modules["psycopg"] = None  # the extra is not installed there
from spark_rowtime.spark.partition import read_slices
for partition in pickle.load(sys.stdin.buffer):
    for rows in read_slices(partition):
        print(rows.column("x").to_pylist())
"""


def test_a_task_reads_its_rows_without_the_database_and_without_the_extra(postgres: PostgresServer) -> None:
    path = postgres.url("tasks/s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    with opened(path, "feed") as feed:
        send(feed, ("10:00", 1), ("10:01", 2))
        send(feed, ("10:02", 3))
    with open_store(path) as store:
        parts = plan(store, Release("arrival"), Position(0, None, None), Position(store.head().seq, None, None), 2)
    done = subprocess.run([sys.executable, "-c", READ], input=pickle.dumps(parts), capture_output=True, check=False)
    assert done.stdout.decode().splitlines() == ["[1, 2]", "[3]"], done.stderr.decode()


@pytest.mark.long
def test_an_adapter_that_spark_hosts_feeds_a_stream_of_the_database(database_pipe: Pipe) -> None:
    path = database_pipe.path("hosted")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    reader = database_pipe.spark.readStream.format("rowtime").option("adapter", "tests.spark.hosted_feed:Feed")
    database_pipe.run(hourly(reader.option("producer", "feed").load(path)))
    wait_for(lambda: rt.describeStream(path).bound == rt.RowtimeBound("2006-09-11T11:00:00Z"), "the feed's bound")
    assert database_pipe.step() == [("11:00", 3)]
    assert [(p.name, p.checkpoint) for p in rt.describeStream(path).producers] == [("feed", "3")]


def test_trains_that_are_longer_than_a_text_of_json_may_be(database_pipe: Pipe) -> None:
    """A train of 16 MB, and one batch of it with smaller ones: 30 MB in all."""
    pipe = database_pipe
    path = pipe.create("s", "x INT, b BINARY")
    with opened(path, "feed") as feed:
        for number, size in enumerate([16_000_000, *[2_000_000] * 7]):
            feed.sendRow((f"2006-09-11T10:{number:02d}:00Z", number, bytes(size)))
            feed.flush()
    seen: list[tuple[int, int]] = []
    sizes = pipe.read("s").selectExpr("x", "length(b) AS size")
    finish(sizes.writeStream.foreachBatch(lambda rows, _: seen.extend(map(tuple, rows.collect()))).start())
    assert sorted(seen) == [(0, 16_000_000), *((number, 2_000_000) for number in range(1, 8))]


@pytest.mark.night
def test_a_query_of_a_server_that_stands_still_stops_and_goes_on_later(
    database_pipe: Pipe, postgres: PostgresServer
) -> None:
    """Spark waits for the answer to a question of the source; the source gives it up."""
    pipe = database_pipe
    source = opened(pipe.create("s", "x INT"), "feed", rowsImplyBounds=False)
    send(source, ("9:10", 1), promise="10:00")
    read = pipe.spark.readStream.format("rowtime").load(pipe.path("s") + "?application_name=silent_query")
    query = pipe.run(hourly(read))
    assert pipe.step() == [("10:00", 1)]
    with still(postgres, "silent_query"), ThreadPoolExecutor(1) as thread:
        thread.submit(query.stop).result(3 * STOPPED_SECONDS)
    send(source, ("10:10", 1), promise="11:00")
    pipe.run(hourly(pipe.read("s")))
    assert pipe.step() == [("11:00", 1)]
    source.close()
