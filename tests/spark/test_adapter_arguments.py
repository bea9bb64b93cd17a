"""Adapters beside queries: arguments as options, several producers, and no value of an argument in what Spark shows."""

import os
import signal
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import spark_rowtime as rt
from tests.spark.query_output import refused
from tests.sparksession import running, start, wait_for

SECRET = "hunter2-hunter2"
FEED = "tests.spark.hosted_feed:Shops"


def hosted(spark: SparkSession, path: str, **arguments: object) -> DataFrame:
    reader = spark.readStream.format("rowtime").option("adapter", FEED).option("producer", "--shops")
    for name, value in arguments.items():
        reader = reader.option(f"adapter.{name}", str(value))
    return reader.load(path)


def processes() -> list[int]:
    """The processes that host the adapter."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if FEED.encode() in command:
            found.append(int(folder.name))
    return found


def shown(frame: DataFrame) -> str:
    with redirect_stdout(StringIO()) as text:
        frame.explain(extended=True)
        frame.explain(mode="formatted")
    return text.getvalue()


def promised(path: str, last_row: int) -> Callable[[], Any]:
    return lambda: rt.describeStream(path).bound == rt.RowtimeBound(f"2006-09-11T10:0{last_row}:{len(SECRET)}Z")


@pytest.mark.night
def test_two_producers_with_arguments_are_killed_and_go_on(spark: SparkSession, tmp_path: Path) -> None:
    path, out, checkpoint = (str(tmp_path / name) for name in ("s.rowtime", "out.rowtime", "checkpoint"))
    frame = hosted(spark, path, password=SECRET, lastRow=2)
    with running(start(frame, out, checkpoint)) as query:
        wait_for(promised(path, 2), "the rows of the first run")
        query.processAllAvailable()
        [process] = processes()
        with pytest.raises(rt.StoreUnavailableError, match="'--shops' is already hosted"):
            rt.runAdapter("tests.spark.hosted_feed:Feed", path, producer="--shops")
        text = shown(frame) + str(query.lastProgress) + Path(f"/proc/{process}/cmdline").read_text()
        os.kill(process, signal.SIGKILL)
        with pytest.raises(StreamingQueryException, match="ended with code -9") as caught:
            query.awaitTermination(240)
    with running(start(hosted(spark, path, password=SECRET, lastRow=4), out, checkpoint)) as query:
        wait_for(promised(path, 4), "the rows of the second run")
        query.processAllAvailable()
    with rt.openReader(out) as reader:
        assert sorted(n for train in reader for n in train.rows["n"].to_pylist()) == [0, 1, 2, 3, 100, 101, 102, 103]
    assert [(p.name, p.checkpoint, p.epoch) for p in rt.describeStream(path).producers] == [
        ("Berlin", "4", 2),
        ("Oslo", "4", 2),
    ]
    files = [file for folder in (path, out, checkpoint) for file in Path(folder).rglob("*") if file.is_file()]
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []
    assert "rowtime" in text
    assert SECRET not in text + str(caught.value)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pasword": SECRET, "lastRow": 1}, ("UnknownOptionError", "Did you mean 'password'?")),
        ({"password": SECRET}, ("InvalidOptionError", "needs lastRow", "option('adapter.lastRow', VALUE)")),
        ({"password": "", "lastRow": SECRET}, ("InvalidOptionError", "'lastRow' of adapter", "must be a whole number")),
    ],
)
def test_a_wrong_argument_is_refused_at_load(
    spark: SparkSession, tmp_path: Path, arguments: dict[str, object], said: tuple[str, ...]
) -> None:
    with pytest.raises(PySparkException) as caught:
        hosted(spark, str(tmp_path / "s.rowtime"), **arguments)
    text = str(caught.value)
    assert [part for part in said if part not in text] == []
    assert SECRET not in text
    assert not (tmp_path / "s.rowtime").exists()


@pytest.mark.parametrize("option", ["adapter.shop", "producer"])
def test_an_option_for_an_adapter_that_is_not_given_is_refused(
    spark: SparkSession, tmp_path: Path, option: str
) -> None:
    with refused(rt.InvalidOptionError, f"The option {option} is for an adapter, but no adapter is given"):
        spark.readStream.format("rowtime").option(option, SECRET).load(str(tmp_path / "s.rowtime"))
