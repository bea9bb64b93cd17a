"""A checkpoint of an earlier version goes on: its open window, its batch that Spark had not logged, its streams."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_rowtime as rt
from tests.golden.write_checkpoint import FEED, HERE, hourly
from tests.sparksession import running, start
from tests.streams import bound, drained, opened, send


@pytest.mark.smoke
@pytest.mark.parametrize("golden", sorted(HERE.glob("checkpoint-*")), ids=lambda folder: folder.name)
def test_a_golden_checkpoint_goes_on(spark: SparkSession, tmp_path: Path, golden: Path) -> None:
    shutil.copytree(golden, tmp_path, dirs_exist_ok=True)
    path = str(tmp_path / "hours.rowtime")
    reader = rt.openReader(path)
    assert drained(reader) == [("10:00", "a", 2), ("10:00", "b", 1)]
    assert reader.getRowtimeBound() == bound("10:00", strict=True)
    with running(start(hourly(spark, tmp_path), path, tmp_path / "checkpoint")) as query:
        query.processAllAvailable()
        assert drained(reader) == [], "the last batch was run again"
        send(opened(tmp_path / "source.rowtime", **FEED), ("10:59", "a"), promise="11:00")
        query.processAllAvailable()
    assert drained(reader) == [("11:00", "a", 2)]
    assert reader.getRowtimeBound() == bound("11:00", strict=True)
