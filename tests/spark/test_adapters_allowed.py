"""Adapters beside queries: only those that the driver's environment names are imported, whoever asks."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_rowtime as rt
from spark_rowtime.spark.session import ADAPTERS_VARIABLE
from tests.spark.import_mark import MARK
from tests.spark.query_output import refused
from tests.sparksession import wait_for


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
        rt.InvalidOptionError, "is not allowed to run", "Allowed are: env:ROWTIME_TEST_ALLOWED, spark_rowtime.kafka"
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


ATTACKS = {
    "import os": ({"decoder": "os:system"}, "The argument 'decoder' names the function 'os:system'"),
    "another case": ({"BOUNDS": "os:system"}, "The argument 'bounds' names the function"),
    "a module": ({"bounds": "tests.spark.imported:Feed"}, "add 'tests.spark.imported:Feed' to the setting"),
    "a library": (
        {"kafka.plugin.library.paths": "/tmp/evil.so"},
        "paths' cannot be given beside a query",
    ),
    "a program": ({"kafka.sasl.kerberos.kinit.cmd": "touch /tmp/evil"}, "cannot be given beside a query"),
    "a file": ({"kafka.ssl.ca.location": "/etc/shadow"}, "cannot be given beside a query"),
    "the log": ({"kafka.debug": "all"}, "cannot be given beside a query"),
    "a file of the registry": ({"registry.ssl.ca.location": "/etc/shadow"}, "of the registry's client are"),
    "a dict": ({"options": "{'plugin.library.paths': 'evil'}"}, "cannot be given as a text"),
    "another topic": ({"malformed": "kafka://localhost:1/other"}, "add 'kafka://localhost:1/other' to the setting"),
    "a secret": ({"kafka.sasl.password": "{env:PGPASSWORD}"}, "add 'env:PGPASSWORD' to the setting"),
    "a secret in an address": ({"registry.url": "http://evil/{env:PGPASSWORD}"}, "environment variable PGPASSWORD"),
}


@pytest.mark.each
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_author_of_sql_loads_no_code_and_learns_no_secret(
    spark: SparkSession, tmp_path: Path, dropped, attack: str
) -> None:
    """KafkaFeed is allowed; what its options name is not: nothing is imported, and no process is started."""
    MARK.unlink(missing_ok=True)
    (given, said), path = ATTACKS[attack], str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    options = {"path": path, "adapter": "spark_rowtime.kafka:KafkaFeed", "adapter.servers": "localhost:1"}
    options |= {"adapter.topics": "orders", **{f"adapter.{name}": text for name, text in given.items()}}
    told = ", ".join(f"'{name}' \"{text}\"" for name, text in options.items())
    with refused(rt.InvalidOptionError, said):
        spark.sql(f"CREATE TABLE hosted USING rowtime OPTIONS ({told})")
        spark.readStream.table("hosted").writeStream.format("noop").start().processAllAvailable()
    assert not MARK.exists()
    assert rt.describeStream(path).producers == ()


def test_what_the_environment_names_may_be_named(spark: SparkSession, tmp_path: Path) -> None:
    """A function and a variable, as an adapter is."""
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    reader = spark.readStream.format("rowtime").option("adapter", "spark_rowtime.kafka:KafkaFeed")
    reader = reader.option("adapter.servers", "localhost:1").option("adapter.topics", "orders")
    reader = reader.option("adapter.decoder", "tests.kafka.feeds:allowed").option("adapter.bounds", "resolved")
    reader = reader.option("adapter.kafka.sasl.password", "{env:ROWTIME_TEST_ALLOWED}")
    assert reader.load(path).columns == ["rowtime"]


def test_configure_puts_the_setting_into_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, ADAPTERS_VARIABLE, "before")
    builder = SparkSession.Builder()
    rt.configure(builder.master("local[1]"))
    assert os.environ[ADAPTERS_VARIABLE] == "before"
    rt.configure(builder.config("spark.rowtime.adapters", "my.feeds:Orders"))
    assert os.environ[ADAPTERS_VARIABLE] == "my.feeds:Orders"
