"""The three questions that latestOffset answers: Spark's own, and the two of the extension."""

import base64
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from unit_support import row, us, when

import spark_rowtime as rt
from spark_rowtime.spark.offset import FLOOR_AT, LATE, LEAST_SENT, NEWS, PLAN, READER, SHIM
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import RowtimeStreamReader


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, ticker STRING")
    with rt.openSink(path, producer="Berlin") as sink:
        for time in ("10:00", "10:01", "10:02"):
            sink.sendRow(row(time))
    return path


@pytest.fixture
def source(path: str):
    source = RowtimeStreamReader(Options({"path": path}, READ), 2)
    yield source
    source.stop()


def test_a_plan_names_the_trains_between_two_offsets(path: str, source: RowtimeStreamReader) -> None:
    start = {**source.initialOffset(), SHIM: True}
    end = source.latestOffset(start, ReadAllAvailable())
    plan = source.latestOffset({**start, PLAN: {"end": end, "parallelism": 2}}, ReadAllAvailable())
    trains = [train for partition in plan["partitions"] for train in partition]
    assert (plan["producers"], sum(train[4] for train in trains)) == (["'Berlin'"], 3)
    assert all(Path(file).is_relative_to(path) for file in plan["files"])
    empty = source.latestOffset({**end, SHIM: True, PLAN: {"end": end, "parallelism": 2}}, ReadAllAvailable())
    assert [train for partition in empty.get("partitions", []) for train in partition] == []


@pytest.mark.parametrize(("asked", "least"), [("9:00", "10:00"), ("10:01", "10:01"), ("10:01:30", "10:02")])
def test_the_least_rowtime_that_was_sent_from_a_time_on(source: RowtimeStreamReader, asked: str, least: str) -> None:
    end = source.latestOffset({**source.initialOffset(), SHIM: True}, ReadAllAvailable())
    assert source.latestOffset({**end, SHIM: True, LEAST_SENT: us(asked)}, ReadAllAvailable()) == {"least": us(least)}


def test_nothing_was_sent_after_the_last_row(source: RowtimeStreamReader) -> None:
    end = source.latestOffset({**source.initialOffset(), SHIM: True}, ReadAllAvailable())
    assert source.latestOffset({**end, SHIM: True, LEAST_SENT: us("11:00")}, ReadAllAvailable()) == {"least": None}


def test_only_sparks_own_question_registers_the_query(path: str, source: RowtimeStreamReader, tmp_path: Path) -> None:
    reader = str(tmp_path / "checkpoint" / "sources" / "0")
    start = {**source.initialOffset(), SHIM: True, READER: reader}
    source.latestOffset({**start, LEAST_SENT: us("9:00")}, ReadAllAvailable())
    source.latestOffset({**start, PLAN: {"end": start, "parallelism": 1}}, ReadAllAvailable())
    assert rt.describeStream(path).readers == ()


def test_a_bound_beside_topics_counts_where_its_cut_was_read(path: str, source: RowtimeStreamReader) -> None:
    with rt.openSink(path, producer="beside", rowsImplyBounds=False, linger="1 hour") as sink:
        sink.sendRowtimeBound(when("11:00"), cut={"orders": {0: 5}})
    end = source.latestOffset({**source.initialOffset(), SHIM: True}, ReadAllAvailable())
    for read, floor in ((4, us("10:02")), (5, us("11:00"))):
        asked = {**end, SHIM: True, FLOOR_AT: {"orders": {"0": read}}}
        assert source.latestOffset(asked, ReadAllAvailable()) == {"floor": floor}


def test_late_rows_beside_topics_are_kept(path: str, source: RowtimeStreamReader) -> None:
    rows = pa.record_batch({"rowtime": pa.array([us("9:00")], pa.timestamp("us", "UTC")), "ticker": ["X"]})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    late = {"reader": "q", "batch": 0, "bound": us("10:00"), "rows": base64.b64encode(out.getvalue()).decode()}
    for _ in range(2):
        start = {**source.initialOffset(), SHIM: True, LATE: late}
        assert source.latestOffset(start, ReadAllAvailable()) == {}
    assert rt.rejectedRows(path).column("ticker").to_pylist() == ["X"]


def test_available_now_ends_with_what_is_there_at_its_start(path: str, source: RowtimeStreamReader) -> None:
    start = {**source.initialOffset(), SHIM: True}
    then = source.latestOffset(start, ReadAllAvailable())
    source.prepareForTriggerAvailableNow()
    with rt.openSink(path, producer="Berlin") as sink:
        sink.sendRow(row("10:03"))
    assert source.latestOffset(start, ReadAllAvailable()) == then


def test_a_committed_batch_need_not_be_kept(path: str, source: RowtimeStreamReader, tmp_path: Path) -> None:
    reader = str(tmp_path / "checkpoint" / "sources" / "0")
    start = {**source.initialOffset(), SHIM: True, READER: reader}
    end = source.latestOffset(start, ReadAllAvailable())
    assert rt.describeStream(path).readers[0].unread == 3
    source.commit(end)
    assert rt.describeStream(path).readers[0].unread == 0


def test_the_end_of_a_query_ends_the_threads_that_wait_for_news(path: str, source: RowtimeStreamReader) -> None:
    asked = {**source.initialOffset(), SHIM: True, NEWS: {"seconds": 0, "streams": [path]}}
    source.latestOffset(asked, ReadAllAvailable())
    news = source._news
    source.stop()
    assert news is not None
    assert news._ended.is_set()
