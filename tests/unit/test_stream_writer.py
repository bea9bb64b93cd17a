"""The streaming sink's commit without Spark: each batch once, in the stream that its tasks have seen."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType
from unit_support import us

import spark_rowtime as rt
from spark_rowtime.spark.datasource import RowtimeDataSource
from spark_rowtime.spark.options import WRITE, Options
from spark_rowtime.spark.query_batch import Batch
from spark_rowtime.spark.sink import RowtimeStreamWriter
from spark_rowtime.spark.task_output import TaskOutput
from spark_rowtime.store import open_store
from tests.landed import landed

SCHEMA = StructType([StructField("rowtime", TimestampType(), nullable=False), StructField("n", IntegerType())])
ARROW = pa.schema([pa.field("rowtime", pa.timestamp("us", "UTC"), nullable=False), pa.field("n", pa.int32())])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "hourly.rowtime")


def writer(path: str) -> RowtimeStreamWriter:
    return RowtimeStreamWriter(Options({"path": path}, WRITE), SCHEMA)


def task(number: int, *numbers: int, run: str = "run", floor: int | None = None, **more: Any) -> TaskOutput:
    """What a task with these rows tells the commit of a batch."""
    times = pa.array([us("10:00")] * len(numbers), pa.int64()).view(ARROW.types[0])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, ARROW) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays([times, pa.array(numbers, pa.int32())], schema=ARROW))
    floors = {} if floor is None else {"rowtime": floor}
    return TaskOutput(
        Batch("query", run, number, f"{number}"), floors, rows=out.getvalue().to_pybytes() if numbers else b"", **more
    )


def test_a_batch_that_is_committed_again_is_there_once(path: str) -> None:
    """Whether one task or several bring its rows; the bound comes with them."""
    for given in ([task(0, 1, 2, floor=us("10:00"))], [task(1, 3), task(1), task(1, 4)], [task(2, floor=us("11:00"))]):
        for _ in range(2):
            writer(path).commit(given, given[0].batch.number)
    assert landed(path) == [1, 2, 3, 4]
    bound = rt.describeStream(path).bound
    assert bound is not None
    assert bound.floor == us("11:00")


def test_a_stream_that_is_gone_between_tasks_and_commit_is_not_created_again(path: str) -> None:
    for number, seen in ((0, "of the tasks"), (1, "")):
        with pytest.raises(rt.DataLostError, match="no stream"):
            writer(path).commit([task(number, stream=seen)], number)
        assert not Path(path).exists()


def test_rows_that_were_staged_in_another_stream_are_refused(path: str) -> None:
    writer(path).commit([task(0, 1)], 0)
    with pytest.raises(rt.DataLostError, match="deleted and created again"):
        writer(path).commit([task(1, 2), task(1, 3, stream="another")], 1)
    assert landed(path) == [1]


def test_an_older_run_of_the_query_is_fenced(path: str) -> None:
    writer(path).commit([task(0, 1, run="old")], 0)
    writer(path).commit([task(1, 2, run="new")], 1)
    with pytest.raises(rt.ProducerFencedError):
        writer(path).commit([task(2, 3, run="old")], 2)
    with pytest.raises(rt.DataLostError, match="batches up to 1"):
        writer(path).commit([task(3, 4, run="new")], 3)
    writer(path).commit([task(2, 5, run="new")], 2)
    assert landed(path) == [1, 2, 5]


def test_a_query_that_begins_where_another_one_writes_is_told(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """Once, with its first batch: it may be the same query without its checkpoint."""
    writer(path).commit([task(0, 1)], 0)
    assert not caplog.records
    other = [replace(task(number, number), batch=Batch("again", "run", number, f"{number}")) for number in (0, 1)]
    for each in other:
        writer(path).commit([each], each.batch.number)
    [record] = caplog.records
    assert "spark-query writes there, too" in record.getMessage()
    assert f"rowtime detach {path} spark-query" in record.getMessage()


def test_a_query_does_not_write_into_the_stream_that_it_reads(path: str) -> None:
    writer(path).commit([task(0, 1)], 0)
    stream = json.dumps({"stream": open_store(path).stream, "seq": 4})
    batch = Batch.said_by({"rowtime.batchEnd": f"7\n{stream}", "streaming.sql.batchId": "0"}.get)
    with pytest.raises(rt.InvalidOptionError, match="reads the stream that it writes"):
        writer(path).commit([replace(task(0, 2), batch=batch)], 0)
    assert landed(path) == [1]


def test_a_relative_path_in_the_folder_of_a_session_of_connect_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark removes the folder after the session, and the results with it."""
    folder = tmp_path / "spark-1" / "userFiles-2" / "3"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    with pytest.raises(rt.InvalidOptionError, match=r"(?s)relative path 's.rowtime'.*ends with the session.*absolute"):
        RowtimeStreamWriter(Options({"path": "s.rowtime"}, WRITE), SCHEMA)
    with pytest.raises(rt.StreamNotFoundError, match=r"A relative path is one of the server's; give an absolute one"):
        RowtimeDataSource({"path": "s.rowtime"}).schema()
    for absolute in (str(folder / "s.rowtime"), (folder / "s.rowtime").as_uri()):
        RowtimeStreamWriter(Options({"path": absolute}, WRITE), SCHEMA)
        with pytest.raises(rt.StreamNotFoundError, match=r"creates a stream\.$"):
            RowtimeDataSource({"path": absolute}).schema()


def test_a_table_writer_says_that_it_is_not_for_connect() -> None:
    connect = pytest.importorskip("pyspark.sql.connect.dataframe")
    batch = connect.DataFrame.__new__(connect.DataFrame)
    with pytest.raises(
        rt.InvalidOptionError, match=r"(?s)not possible over Spark Connect.*rowtime drain STREAM delta:/t"
    ):
        rt.tableWriter("delta:/t")(batch, 0)
