"""The three questions that latestOffset answers: Spark's own, and the two of the extension."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from unit_support import row, us

import spark_rowtime as rt
from spark_rowtime.spark.offset import LEAST_SENT, PLAN, READER, SHIM
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
