"""Workers of a local Spark find PySpark where pip has installed it, compiled, and not in the archive of sources."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import spark_rowtime as rt
from spark_rowtime.spark.worker_python import PROGRAM, VARIABLES

INSTALLED = Path(pyspark.__file__).parent
DRIVER = """
import spark_rowtime as rt
from pyspark.sql import SparkSession

spark = rt.configure(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")).getOrCreate()

def seen(_):
    import os, pickle, pyspark, sys
    from pyspark.sql import Row
    return [(pyspark.__file__, sys.path[0], sys.argv[0], sys.executable, pickle.loads(pickle.dumps(Row(a=1))).a)]

print(*spark.sparkContext.parallelize([1], 1).mapPartitions(seen).first(), sep="\\n")
"""


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has no Spark yet, and in which nobody has named a Python."""
    monkeypatch.setattr(SparkContext, "_gateway", None)
    for name in (*VARIABLES, "ROWTIME_PYTHON", "ROWTIME_TEST_RUN", "MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)


def named(master: str) -> list[str | None]:
    """What the two variables are after rt.configure, and the Python that executors' environments have."""
    builder = rt.configure(SparkSession.builder.config("spark.master", master))
    of_executors = "spark.executorEnv.ROWTIME_PYTHON"
    return [*(os.environ.get(name) for name in VARIABLES), builder._options.pop(of_executors, None)]


@pytest.mark.night
@pytest.mark.parametrize(("python", "place"), [(None, INSTALLED), (sys.executable, "pyspark.zip")])
def test_a_worker_of_a_local_spark_imports_the_installed_pyspark(
    python: str | None, place: str | Path, tmp_path: Path, unset: None
) -> None:
    """With SPARK_HOME as it comes, since that of the tests is a folder of theirs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SPARK_HOME": str(INSTALLED)}
    if python:
        environment |= dict.fromkeys(VARIABLES, python)
    command = [sys.executable, "-c", DRIVER]
    found = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    module, first, program, executable, value = found.stdout.splitlines()[-5:]
    assert str(place) in module
    assert (executable, value) == (sys.executable, "1")
    assert program.endswith("daemon.py")
    assert "spark_rowtime/spark" not in first


@pytest.mark.usefixtures("unset")
def test_what_the_user_has_named_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/a/python")
    assert named("local[2]") == ["/a/python", str(PROGRAM), None]
    assert named("yarn") == ["/a/python", *[sys.executable] * 2]  # a child of such a driver inherits the program


@pytest.mark.usefixtures("unset")
def test_a_spark_that_runs_or_has_executors_gets_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named("spark://host:7077") == [sys.executable, sys.executable, None]
    for name in VARIABLES:
        monkeypatch.delenv(name)
    monkeypatch.setattr(SparkContext, "_gateway", "of a JVM that has another environment")
    assert named("local[2]") == [sys.executable, sys.executable, None]


@pytest.mark.usefixtures("unset")
def test_executors_of_a_driver_that_had_a_local_spark_before_get_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its JVM names the program to them, for data sources; so they are told which Python that starts."""
    assert named("local[2]") == [str(PROGRAM), str(PROGRAM), None]
    monkeypatch.setattr(SparkContext, "_gateway", "of the JVM that had it")
    assert named("local[2]") == [str(PROGRAM), str(PROGRAM), None]
    assert named("spark://host:7077") == [sys.executable] * 3


def test_other_programs_are_run_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import sys; print(sys.argv[1:])")
    environment = {**os.environ, "ROWTIME_PYTHON": sys.executable}
    for arguments, said in ((["-c", "print(1)"], "1"), (["-m", "other", "a b"], "['a b']")):
        done = subprocess.run(
            [PROGRAM, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == said


@pytest.mark.usefixtures("unset")
def test_a_folder_that_is_gone_keeps_no_worker_from_starting(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    environment = {**os.environ, "ROWTIME_PYTHON": sys.executable, "SPARK_HOME": "", "PYTHONPATH": ""}
    script = 'cd "$1" && rmdir "$1" && exec "$2" -m pyspark.version'
    done = subprocess.run(
        ["sh", "-c", script, "sh", str(gone), PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_program_alone_says_what_to_do() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ROWTIME_PYTHON"}
    done = subprocess.run([PROGRAM, "-c", "0"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "call rt.configure once the builder has its master, or set PYSPARK_PYTHON" in done.stderr
