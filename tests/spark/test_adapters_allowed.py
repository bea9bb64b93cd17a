"""Adapters beside queries: only those that the driver's environment names are imported, whoever asks."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_rowtime as rt
from spark_rowtime.spark.session import ADAPTERS_VARIABLE
from tests.spark.query_output import refused
from tests.sparksession import wait_for

MARK = Path(tempfile.gettempdir()) / "rowtime-test-imported"


def table(kind: str, adapter: str) -> Callable[[SparkSession, str], object]:
    """Makes a table or view with the adapter in its options, and reads it."""

    def ask(spark: SparkSession, path: str) -> object:
        spark.sql(f"CREATE {kind} hosted USING rowtime OPTIONS (path '{path}', adapter '{adapter}')")
        return spark.readStream.table("hosted").schema

    return ask


ASKED = {
    "option": lambda spark, path: (
        spark.readStream.format("rowtime").option("adapter", "tests.spark.imported:Feed").load(path)
    ),
    "batch": lambda spark, path: spark.read.format("rowtime").option("adapter", "tests.spark.imported:Feed").load(path),
    "another class": lambda spark, path: (
        spark.readStream.format("rowtime").option("adapter", "tests.spark.hosted_feed:Other").load(path)
    ),
    "table": table("TABLE", "tests.spark.imported:Feed"),
    "view": table("TEMPORARY VIEW", "tests.spark.imported:Feed"),
    "with schema": lambda spark, path: (
        spark.readStream.format("rowtime")
        .schema("rowtime TIMESTAMP NOT NULL")
        .option("adapter", "tests.spark.imported:Feed")
        .load(path)
        .writeStream.format("noop")
        .start()
        .processAllAvailable()
    ),
}


@pytest.fixture
def dropped(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.dropTempView("hosted")
    spark.sql("DROP TABLE IF EXISTS hosted")


@pytest.mark.parametrize("how", ASKED)
def test_an_adapter_that_is_not_named_is_not_imported(spark: SparkSession, tmp_path: Path, dropped, how: str) -> None:
    MARK.unlink(missing_ok=True)
    spark.sql("SET spark.rowtime.adapters = tests.spark.imported:Feed")  # whoever may write SQL may write this
    path = str(tmp_path / "s.rowtime")
    with refused(
        rt.InvalidOptionError, "is not allowed to run", "Allowed are: tests.crash.numbers:Numbers, tests.spark"
    ):
        ASKED[how](spark, path)
    assert not MARK.exists()
    assert not Path(path).exists()
    subprocess.run([sys.executable, "-c", "import tests.spark.imported"], check=True)
    assert MARK.exists(), "the mark is one"


def test_an_adapter_that_is_named_is_hosted_whoever_asks(spark: SparkSession, tmp_path: Path, dropped) -> None:
    path = str(tmp_path / "s.rowtime")
    spark.sql(f"CREATE TABLE hosted USING rowtime OPTIONS (path '{path}', adapter 'tests.spark.hosted_feed:Feed')")
    query = spark.readStream.table("hosted").writeStream.format("memory").queryName("hosted_rows").start()
    try:
        wait_for(lambda: rt.describeStream(path).bound == rt.RowtimeBound("2006-09-11T11:00:00Z"), "the feed's end")
        query.processAllAvailable()
        assert [row.n for row in spark.table("hosted_rows").collect()] == [0, 1, 2]
    finally:
        query.stop()


def test_configure_puts_the_setting_into_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, ADAPTERS_VARIABLE, "before")
    builder = SparkSession.Builder()
    rt.configure(builder.master("local[1]"))
    assert os.environ[ADAPTERS_VARIABLE] == "before"
    rt.configure(builder.config("spark.rowtime.adapters", "my.feeds:Orders"))
    assert os.environ[ADAPTERS_VARIABLE] == "my.feeds:Orders"
