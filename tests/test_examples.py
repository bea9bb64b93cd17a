"""The examples run as they stand and print what they say that they print.

Most run in this process, with the session of all tests, to save the start of a JVM each. Those that need a process of
their own get one, and with ROWTIME_EXAMPLES_ALONE=1 all do, as a user would start them.
"""

import csv
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_rowtime as rt
from tests.javaoptions import OF_ALL
from tests.postgresserver import NO_SERVER, programs

EXAMPLES = Path(__file__).parent.parent / "examples"
IN_THIS_PROCESS = ["05_late_report.py", "06_join.py", "07_sql.py", "09_notebook.py"]
# Those that need Kafka run in tests/kafka: 13_topic_bounds.py, 14_into_a_topic.py, 15_kafka_in.py, 17_one_line.py.
# Those that need Delta Lake run in tests/lakehouse: 18_bronze_silver_gold.py, 19_tables_in_a_pipeline.py.
LATE_ONCE = """#!/bin/sh
case "$*" in *streaming_source_runner*) [ -e {was_late} ] || {{ touch {was_late}; sleep 15; }} ;; esac
exec {python} "$@"
"""
"""A Python whose first worker for a source takes more than the 10 s that Spark gives it."""
TASKS = "spark.sql.shuffle.partitions"
CONNECT = ("grpc", "grpc_status", "zstandard")
PIPELINES = (*CONNECT, "yaml", "pyspark.pipelines")


def output_of(example: str, *arguments: str, **variables: str) -> str:
    """What an example prints in a process of its own, with these variables in its environment."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    environment = {**os.environ, **OF_ALL, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


@pytest.fixture
def printed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., str]]:
    """A function: what an example prints in this process, in the session of the tests, whose settings come back."""
    tasks = spark.conf.get(TASKS)
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # the other tests need it

    def run(example: str, *arguments: str) -> str:
        if os.environ.get("ROWTIME_EXAMPLES_ALONE"):
            return output_of(example, *arguments)
        monkeypatch.setattr(sys, "argv", [example, *arguments])
        runpy.run_path(str(EXAMPLES / example), run_name="__main__")
        return capsys.readouterr().out

    yield run
    spark.conf.set(TASKS, tasks)


def promised(example: str) -> str:
    """The lines after "It prints:" at the top of an example."""
    text = (EXAMPLES / example).read_text()
    found = re.search(r'^It prints:\n\n(.*?)\n"""', text, re.MULTILINE | re.DOTALL)
    assert found, f"{example} does not say what it prints"
    return "".join(f"{line.strip()}\n" for line in found[1].splitlines())


def test_01_hourly_counts() -> None:
    hours = re.findall(r"^(\d\d:00) +(\d+) .*?(\d) of (\d) hours$", output_of("01_hourly_counts.py"), re.MULTILINE)
    assert [(hour, int(orders)) for hour, orders, *_ in hours] == [(f"{end}:00", 6) for end in range(10, 14)]
    assert all(int(plain) < int(of) for *_, plain, of in hours), "plain Spark has not closed the last hour"


@pytest.mark.long
@pytest.mark.usefixtures("state_on_heap")
def test_02_earthquakes(quakes: Path, printed: Callable[..., str]) -> None:
    with quakes.open() as lines:
        networks = [row["net"] for row in csv.DictReader(lines)]
    said = printed("02_earthquakes.py", str(quakes))
    assert f"{len(networks)} earthquakes of {len(set(networks))} networks, 0 rejected" in said
    assert "as the batch over the CSV: True" in said


@pytest.mark.parametrize("example", ["03_adapter.py", "04_consumer.py", "11_announce.py", "12_complete_hours.py"])
def test_an_example_in_a_process_of_its_own(example: str) -> None:
    assert output_of(example) == promised(example)


@pytest.mark.long
@pytest.mark.skipif(programs() is None or find_spec("psycopg") is None, reason=NO_SERVER)
def test_03_cluster() -> None:
    assert output_of("03_cluster.py") == promised("03_cluster.py")


@pytest.mark.long
@pytest.mark.skipif(any(find_spec(name) is None for name in CONNECT), reason=f"Spark Connect needs {CONNECT}")
def test_08_connect() -> None:
    """SPARK_TESTING: the server takes any free port, not 15002, so that several runs can be at once."""
    assert output_of("08_connect.py", SPARK_TESTING="1") == promised("08_connect.py")


@pytest.mark.long
@pytest.mark.smoke
@pytest.mark.skipif(any(find_spec(name) is None for name in PIPELINES), reason=f"pipelines need {PIPELINES}")
def test_16_pipeline(tmp_path: Path) -> None:
    assert output_of("16_pipeline.py", SPARK_TESTING="1", TMPDIR=str(tmp_path)) == promised("16_pipeline.py")
    [hourly] = tmp_path.glob("rowtime-*/hourly.rowtime")
    chain = rt.why(str(hourly), at="2006-09-11T12:00:00Z").chain
    assert [link.name for link in chain if link.kind == "query"] == ["hourly"], "the flow"


@pytest.mark.parametrize("example", IN_THIS_PROCESS)
def test_an_example_in_the_session_of_the_tests(example: str, printed: Callable[..., str]) -> None:
    assert printed(example) == promised(example)


@pytest.mark.long
def test_an_example_on_a_machine_that_starts_its_first_worker_too_late(tmp_path: Path) -> None:
    python, was_late = tmp_path / "python", tmp_path / "was-late"
    python.write_text(LATE_ONCE.format(was_late=was_late, python=sys.executable))
    python.chmod(0o755)
    assert output_of("06_join.py", PYSPARK_DRIVER_PYTHON=str(python)) == promised("06_join.py")
    assert was_late.exists()


@pytest.mark.long
def test_10_tests_of_ones_own(rowtime_test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.environ.get("ROWTIME_EXAMPLES_ALONE"):
        assert "4 passed" in output_of("10_test_own_pipeline.py")
        return
    command = [sys.executable, "-m", "pytest", "-v", str(EXAMPLES / "10_test_own_pipeline.py"), "-k", "TestMeterFeed"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert "3 passed" in done.stdout, done.stdout
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = runpy.run_path(str(EXAMPLES / "10_test_own_pipeline.py"))
    example["test_an_hour_comes_out_once_its_bound_has_passed"](rowtime_test)


def test_every_example_is_run() -> None:
    """A new file is named above, or is what one of them imports."""
    named = set(re.findall(r"\d\d_\w+\.py", Path(__file__).read_text()))
    assert {path.name for path in EXAMPLES.glob("*.py")} == named | {"meter_feed.py", "cluster_processes.py"}
