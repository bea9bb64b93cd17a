"""One checkpoint under two versions of Spark that the project supports, forth and back."""

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.crash.driver import counts
from tests.crash.drivers import ROOT, Driver, Feed, expected, lawful, rows
from tests.sparksession import running, start

OTHER = "4.2"


@pytest.mark.night
@pytest.mark.timeout(900)  # the first time the other PySpark is installed: 450 MB
def test_a_checkpoint_goes_on_under_another_spark_and_back(spark: SparkSession, tmp_path: Path) -> None:
    feed, sink = Feed(tmp_path), str(tmp_path / "counts.rowtime")
    feed.send(2)
    here(spark, tmp_path)
    assert rows(sink) == expected(feed.path)
    feed.send(2)
    with Driver(tmp_path, command=[ROOT / "scripts" / "on-spark.sh", OTHER, sys.executable]) as driver:
        driver.do("go")
        assert driver.ended() == 0
    assert rows(sink) == expected(feed.path)
    feed.send(2)
    here(spark, tmp_path)
    assert rows(sink) == expected(feed.path)
    lawful(sink)


def here(spark: SparkSession, folder: Path) -> None:
    """The driver's query in this session."""
    with running(start(counts(spark, folder), folder / "counts.rowtime", folder / "checkpoint")) as query:
        query.processAllAvailable()
