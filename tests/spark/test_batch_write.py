"""df.write.format("rowtime").mode("append"): all rows in one commit, or none, whatever fails."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from tests.spark.query_output import refused, rows_of
from tests.sparksession import wait_for
from tests.streams import Pipe, at, bound, opened, send

ROWS, MANY = 30_000, 6_000
KINDS = "d DECIMAL(10,2), day DATE, tags ARRAY<STRING>, m MAP<STRING, INT>, p STRUCT<a: INT>, b BINARY"


def frame(pipe: Pipe, *rows: tuple[str, int], parts: int = 2) -> DataFrame:
    found = pipe.spark.createDataFrame([(at(time), x) for time, x in rows], "t STRING, x INT").repartition(parts)
    return found.select(F.col("t").cast("timestamp").alias("rowtime"), "x")


def save(rows: DataFrame, path: str, **options: Any) -> None:
    writer = rows.write.format("rowtime").mode("append")
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.save(path)


def many(pipe: Pipe) -> DataFrame:
    """Rows of every kind, with nulls, in four partitions."""
    return pipe.spark.range(0, MANY, 1, 4).selectExpr(
        "timestamp_seconds(id + 1) AS rowtime", "CAST(id AS INT) AS x",
        "CAST(id / 7 AS DECIMAL(10,2)) AS d", "date_add(DATE'2006-09-11', CAST(id % 400 AS INT)) AS day",
        "IF(id % 3 = 0, NULL, array(CAST(id AS STRING), NULL)) AS tags",
        "map('k', IF(id % 5 = 0, NULL, CAST(id AS INT))) AS m",
        "named_struct('a', IF(id % 5 = 0, NULL, CAST(id AS INT))) AS p", "CAST(CAST(id AS STRING) AS BINARY) AS b",
    )  # fmt: skip


@pytest.mark.smoke
def test_all_rows_come_back_and_the_producer_has_left(pipe: Pipe) -> None:
    path = pipe.create("s", f"x INT, {KINDS}")
    rows = many(pipe)
    save(rows, path, producer="Berlin")
    back = pipe.spark.read.format("rowtime").load(path)
    text = [F.to_json(F.struct("*"))]
    assert sorted(back.select(*text).collect()) == sorted(rows.select(*text).collect())
    info = rt.describeStream(path)
    [known] = info.producers
    assert (info.rows, known.name, known.status.value, known.accepted) == (MANY, "Berlin", "left", MANY)
    assert info.bound == rt.RowtimeBound(back.agg(F.max("rowtime")).collect()[0][0].astimezone()), "as after a close"
    with closing(open_store(path)) as store:
        kinds = store.bounds().column("event").to_pylist()
    assert kinds[0] == "joined"
    assert {*kinds[1:-1]} == {"sent"}
    assert kinds[-1] == "left"
    assert check_store(path).damage == []


def test_rows_below_the_bound(pipe: Pipe) -> None:
    """As of a streaming sink: the write fails as a whole, or such rows are rejected."""
    path = pipe.create("s", "x INT")
    rows = frame(pipe, ("9:00", 1), ("10:30", 2), ("10:10", 3))
    with opened(path, "feed") as feed:
        send(feed, promise="10:00")
        with refused(
            rt.DisorderedOutputError,
            "1 row of this batch is below",
            "another producer ('feed') has already",
            "'reject'",
        ):
            save(rows, path)
        info = rt.describeStream(path)
        assert (info.rows, info.rejected, info.bound) == (0, 0, bound("10:00"))
        assert info.holder == "feed", "the producer of the write that failed holds nobody back"
        save(rows, path, onDisorder="reject", producer="backfill")
        info = rt.describeStream(path)
        assert (info.rows, info.rejected, info.bound) == (2, 1, bound("10:00")), "rows in no order imply no bound"
    [late] = rt.rejectedRows(path).to_pylist()
    assert (late["x"], late["producer"], late["boundOf"], late["boundBy"]) == (1, "backfill", "stream", "feed")
    assert rows_of(pipe.spark, path) == [("10:10", 3), ("10:30", 2)]
    later = frame(pipe, ("11:00", 4), ("12:00", 5))
    save(later, path)
    assert rt.describeStream(path).bound == bound("12:00"), "nobody else is attached"
    save(later, path, onDisorder="reject")
    assert rt.describeStream(path).rows == 5, "a write that is repeated appends again what is in time"


@pytest.mark.long
def test_another_column_is_the_rowtime(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT, t TIMESTAMP")
    rows = frame(pipe, ("9:00", 1)).select("x", F.col("rowtime").alias("t"))
    save(rows, path, rowtime="t")
    save(rows.limit(0), path, rowtime="t")
    [row] = pipe.spark.read.format("rowtime").load(path).collect()
    assert (row.rowtime, row.x) == (row.t, 1)


def test_a_task_that_fails_leaves_nothing(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")

    def failing(batches: Any) -> Any:
        for batch in batches:
            yield batch
            if 5_000 in batch.column("x").to_pylist():
                raise RuntimeError("this task fails")

    rows = many(pipe).select("rowtime", "x").mapInArrow(failing, "rowtime TIMESTAMP, x INT")
    with pytest.raises(PySparkException, match="this task fails"):
        save(rows, path)
    info = rt.describeStream(path)
    assert (info.rows, info.seq, info.bound) == (0, 0, None)
    save(frame(pipe, ("9:00", 1)), path)
    assert rows_of(pipe.spark, path) == [("09:00", 1)]


PROGRAM = """
import os, sys, time
from pathlib import Path
from pyspark import TaskContext
from pyspark.sql import SparkSession
import spark_rowtime as rt

path, gate, kind = sys.argv[1:]

def slow(batches):
    for batch in batches:
        yield batch
        if kind == "kill" and TaskContext.get().partitionId() == 1:
            Path(gate + ".reached").touch()
            while not Path(gate).exists():
                time.sleep(0.01)
    if kind == "retry" and TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")

builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
spark = rt.configure(builder.config("spark.log.level", "OFF")).getOrCreate()
rows = spark.range(0, 30000, 1, 2).selectExpr("timestamp_seconds(id + 1) AS rowtime", "CAST(id AS INT) AS x")
rows = rows.mapInArrow(slow, "rowtime TIMESTAMP, x INT")
rows.write.format("rowtime").mode("append").save(path)
print("saved")
"""


def program(path: str, gate: Path, kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, path, str(gate), kind]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.long
def test_a_driver_killed_in_the_middle_leaves_nothing_and_tasks_that_ran_twice_count_once(tmp_path: Path) -> None:
    path, gate = str(tmp_path / "s"), tmp_path / "gate"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    killed = program(path, gate, "kill")
    try:
        wait_for(Path(f"{gate}.reached").exists, "the task that waits")
        wait_for(lambda: list((Path(path) / "segments").iterdir()), "staged rows")
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
    info = rt.describeStream(path)
    assert (info.rows, info.seq, info.producers) == (0, 0, ())
    again = program(path, gate, "retry")
    assert again.communicate(timeout=240)[0].strip() == "saved"
    with rt.openReader(path) as reader:
        found = [x for train in reader for x in train.rows.column("x").to_pylist()]
    assert found == [*range(ROWS)], "each row once, though each task ran twice"
    assert check_store(path).damage == []


@pytest.mark.long
def test_a_complete_write_ends_the_stream(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    save(frame(pipe, ("10:00", 1)), path, producer="history", complete="true")
    info = rt.describeStream(path)
    assert (info.rows, info.bound, info.producers[0].status.value) == (1, rt.RowtimeBound.END, "complete")
    with pytest.raises(PySparkException, match=r"Producer .history. of .* is complete"):
        save(frame(pipe, ("10:01", 2)), path, producer="history")
    assert rt.describeStream(path).rows == 1


def test_what_a_batch_write_refuses(pipe: Pipe) -> None:
    path, rows = pipe.create("s", "x INT"), frame(pipe, ("9:00", 1))
    with refused(rt.InvalidOptionError, "append-only", "mode('append')"):
        rows.write.format("rowtime").mode("overwrite").save(path)
    for mode in ("ignore", "errorifexists"):
        with pytest.raises(PySparkException, match='"Append"'):
            rows.write.format("rowtime").mode(mode).save(path)
    with refused(rt.StreamNotFoundError, "createStream"):
        save(rows, pipe.path("nowhere"))
    with refused(rt.UnknownOptionError, "'producr'", "'producer'"):
        save(rows, path, producr="Berlin")
    with refused(rt.SchemaMismatchError, "rowtime"):
        save(rows.select("x"), path)
    assert rt.describeStream(path).rows == 0


def test_insert_into_a_table(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    sql = pipe.spark.sql
    sql(f"CREATE TABLE written USING rowtime OPTIONS (path '{path}')")
    try:
        sql(f"INSERT INTO written VALUES (TIMESTAMP'{at('9:00')}', 1)")
        sql(f"INSERT INTO written (x, rowtime) SELECT 2, TIMESTAMP'{at('9:30')}'")
        frame(pipe, ("10:00", 3)).writeTo("written").append()
        assert rows_of(pipe.spark, path) == [("09:00", 1), ("09:30", 2), ("10:00", 3)]
        with refused(rt.InvalidOptionError, "append-only"):
            sql(f"INSERT OVERWRITE written VALUES (TIMESTAMP'{at('11:00')}', 1)")
    finally:
        sql("DROP TABLE written")


def test_a_table_has_options_for_reading_and_for_writing(pipe: Pipe) -> None:
    """Each is used where it belongs; one that belongs nowhere is refused when the table is created."""
    path = pipe.create("s", "x INT")
    sql = pipe.spark.sql
    sql(f"CREATE TABLE both USING rowtime OPTIONS (path '{path}', hold = '1 hour', onDisorder = 'reject')")
    try:
        for time in ("10:00", "9:45"):
            sql(f"INSERT INTO both VALUES (TIMESTAMP'{at(time)}', 1)")
        assert rows_of(pipe.spark, path) == [("10:00", 1)]
        assert rt.describeStream(path).rejected == 1
        assert pipe.spark.table("both").count() == 1
        with refused(rt.UnknownOptionError, "'ondisordr'", "'onDisorder'"):
            sql(f"CREATE TABLE typo USING rowtime OPTIONS (path '{path}', onDisordr = 'fail')")
    finally:
        sql("DROP TABLE both")
