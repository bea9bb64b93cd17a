"""The wheel and the source distribution: built without PySpark, used without it as far as no Spark is needed."""

import os
import shutil
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from spark_rowtime.spark.jars import VERSIONS
from tests.packaging.conftest import hatchling, one
from tests.packaging.test_jars import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]  # Maven may take 300 s for each version of Spark
CORE = """
import json, subprocess, sys
import spark_rowtime as rt
import spark_rowtime.adapter.process, spark_rowtime.announce.announcer, spark_rowtime.cli, spark_rowtime.testing
import spark_rowtime.kafka.address, spark_rowtime.drain.tables.open
import spark_rowtime.serve, spark_rowtime.diagnosis.why

rt.createStream("orders.rowtime", "rowtime TIMESTAMP NOT NULL, n INT")
with rt.openSink("orders.rowtime", producer="Berlin") as sink:
    sink.sendRow(("2026-01-05T10:00:00Z", 1))
    sink.sendRowtimeBound("2026-01-05T11:00:00Z")
with rt.openReader("orders.rowtime") as reader:
    rows = sum(train.rows.num_rows for train in reader)
try:
    rt.configure(None)
except rt.ExtraNotInstalledError as error:
    said = str(error)
print(json.dumps([rows, said, "pyspark" in sys.modules]))
"""


def test_the_wheel_has_a_jar_for_each_version_and_the_same_bytes_each_time(dist: Path, tmp_path: Path) -> None:
    names = zipfile.ZipFile(one(dist, "*.whl")).namelist()
    assert sorted(name for name in names if name.endswith(".jar")) == [
        f"spark_rowtime/jars/spark-rowtime_spark{minor}.jar" for minor in VERSIONS
    ]
    assert {"pyspark_rowtime.py", "spark_rowtime/store/postgres/one_trip_commit.sql"} <= set(names)
    hatchling(ROOT, tmp_path)
    for pattern in ("*.whl", "*.tar.gz"):
        assert one(dist, pattern).read_bytes() == one(tmp_path, pattern).read_bytes()


def test_a_source_distribution_is_built_without_a_jdk_and_without_pyspark(dist: Path, tmp_path: Path) -> None:
    """By a Python that finds neither, and no Maven: from the jars that it holds."""
    with tarfile.open(one(dist, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "hidden" / "pyspark").mkdir(parents=True)
    (tmp_path / "hidden" / "pyspark" / "__init__.py").write_text("raise ImportError('not here')")
    project = one(tmp_path, "spark_rowtime-*")
    hatchling(project, tmp_path / "again", PATH="/nowhere", PYTHONPATH=str(tmp_path / "hidden"))
    assert one(tmp_path / "again", "*.whl").read_bytes() == one(dist, "*.whl").read_bytes()


def test_without_pyspark_all_that_needs_no_spark_works(dist: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", one(dist, "*.whl")]
    subprocess.run(install, check=True, capture_output=True, timeout=500)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    done = subprocess.run([python, "-c", CORE], cwd=tmp_path, env=kept, capture_output=True, text=True, check=False)
    assert done.stdout.startswith('[1, "What runs in Spark needs pyspark'), done.stderr
    assert "pip install 'spark-rowtime[spark]'" in done.stdout
    assert os.access(one(environment, "lib/*/site-packages/spark_rowtime/spark/worker-python"), os.X_OK)
    rowtime = environment / "bin" / "rowtime"
    for command, part in (("describe", "Berlin"), ("jar", "spark-rowtime[spark]")):
        words = [rowtime, command, *(["orders.rowtime"] if command == "describe" else [])]
        said = subprocess.run(words, cwd=tmp_path, env=kept, capture_output=True, text=True, check=False)
        assert part in said.stdout + said.stderr
    shutil.rmtree(environment)
