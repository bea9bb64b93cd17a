"""rt.configure: what a user has set wins, wherever it was set; only a local master gets settings of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import spark_rowtime as rt
from spark_rowtime.spark.settings import FILES, PARTITIONS

EXTENSION = "sparkrowtime.RowtimeExtensions"
OURS = {FILES, PARTITIONS}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a process that has no Spark yet, and in which nobody has said anything."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    for name in ("MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


def configured(**options: str) -> dict[str, str]:
    """The builder's options after configure; ``_`` stands for a dot."""
    builder = SparkSession.builder
    for key, value in options.items():
        builder = builder.config(key.replace("_", "."), value)
    return dict(rt.configure(builder)._options)


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[4, 2]", 4), ("local[*]", os.cpu_count()), (None, os.cpu_count())],
)
def test_a_local_master_gets_settings(master: str | None, cores: int) -> None:
    options = configured(**({"spark_master": master} if master else {}))
    assert options[PARTITIONS] == str(cores)
    assert options[FILES] == "sparkrowtime.support.CheckpointFiles"


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "local-cluster[2,1,1024]", "k8s://https://host"])
def test_another_master_gets_the_extension_alone(master: str) -> None:
    options = configured(spark_master=master)
    assert options.keys().isdisjoint(OURS)
    assert options["spark.sql.extensions"] == EXTENSION


def test_the_builder_wins_before_and_after() -> None:
    builder = SparkSession.builder.config(PARTITIONS, 7)
    options = rt.configure(builder).config(FILES, "my.Files")._options
    assert [options[PARTITIONS], options[FILES]] == ["7", "my.Files"]


def test_spark_defaults_conf_wins(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        f"# comment\n{PARTITIONS}  9\n{FILES}=my.Files\nspark.jars /a.jar,/b.jar\nspark.sql.extensions=x.Other\n"
    )
    options = configured()
    assert options.keys().isdisjoint(OURS)
    assert options["spark.jars"] == f"/a.jar,/b.jar,{rt.jarPath()}"
    assert options["spark.sql.extensions"] == f"x.Other,{EXTENSION}"


def test_the_words_for_spark_submit_win(monkeypatch: pytest.MonkeyPatch) -> None:
    words = f"--conf '{FILES}=my.Files' --jars /a.jar pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", words)
    options = configured()
    assert FILES not in options
    assert PARTITIONS in options
    assert options["spark.jars"] == f"/a.jar,{rt.jarPath()}"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")
    assert configured().keys().isdisjoint(OURS)


def test_a_master_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    assert configured().keys().isdisjoint(OURS)


def test_a_session_is_no_builder() -> None:
    with pytest.raises(rt.InvalidOptionError, match=r"takes SparkSession\.builder, not a SparkSession: the jar"):
        rt.configure(object.__new__(SparkSession))  # type: ignore[arg-type]


def test_twice_is_once() -> None:
    once = rt.configure(SparkSession.builder)
    before = dict(once._options)
    assert rt.configure(once)._options == before


RUNNING = """
import sys
from pyspark.sql import SparkSession
import spark_rowtime as rt
from tests.sparksession import wait_for

session = SparkSession.builder.master("local[1]").getOrCreate()
try:
    rt.configure(SparkSession.builder)
except rt.ShimMissingError as error:
    print(error)
session.stop()
session = rt.configure(SparkSession.builder.master("local[1]")).getOrCreate()
assert rt.configure(SparkSession.builder).getOrCreate() is session
print(session.conf.get("spark.sql.extensions"))
query = session.readStream.format("rowtime").load(sys.argv[1]).writeStream.format("noop").start()
query.processAllAvailable()
session._jsc.stop()
wait_for(lambda: not query._jsq.isActive(), "the query of the stopped session to end")
error = query._jsq.exception()
print(repr(error.get().getMessage()) if error.isDefined() else "no error")
"""


@pytest.mark.long
def test_a_running_session_without_the_extension_is_not_returned(tmp_path: Path) -> None:
    """Its JVM has the jar: a session after stop() gets the extension. A query that still runs blames no version."""
    rt.createStream(str(tmp_path / "s.rowtime"), "rowtime TIMESTAMP NOT NULL, x INT")
    words = f"--jars {rt.jarPath()} --conf spark.ui.enabled=false pyspark-shell"
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": words, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-c", RUNNING, str(tmp_path / "s.rowtime")]
    run = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    refused, extensions, stopped = run.stdout.splitlines()
    assert f"without {EXTENSION}, and getOrCreate would return that session. Call spark.stop() first" in refused
    assert extensions == EXTENSION
    assert "ShimMismatchError" not in stopped


def test_where_spark_runs_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    assert configured().keys().isdisjoint(OURS)
