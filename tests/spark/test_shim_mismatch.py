"""A Spark that is not the one this library was written for: a query fails, it never runs without its bounds."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest

import spark_rowtime as rt
from tests.streams import opened, send

EXECUTION = "org/apache/spark/sql/execution/streaming/runtime/MicroBatchExecution.class"

GONE = {
    "a private field": ("watermarkPropagator", "expected a field MicroBatchExecution.watermarkPropagator"),
    "a method": ("watermarkTracker_$eq", "a class, method or field that it does not have: java.lang.NoSuchMethodError"),
}


def tried() -> str:
    """What the manifest of the jar says."""
    with ZipFile(rt.jarPath()) as jar:
        said = jar.read("META-INF/MANIFEST.MF").decode()
    [versions] = [line.partition(": ")[2] for line in said.splitlines() if line.startswith("Spark-Versions-Tried")]
    return versions


def without(member: str, folder: Path) -> None:
    """Spark's class with another name for a member of it, in the class file's own names and nowhere else."""
    [jar] = Path(pyspark.__file__).parent.glob("jars/spark-sql_*.jar")
    with ZipFile(jar) as classes:
        code = classes.read(EXECUTION)
    name, other = (len(text).to_bytes(2) + text.encode() for text in (member, member[:-1] + "_"))
    assert code.count(name) == 1
    (folder / EXECUTION).parent.mkdir(parents=True)
    (folder / EXECUTION).write_bytes(code.replace(name, other))


@pytest.mark.parametrize("what", GONE)
def test_a_changed_spark_is_refused(tmp_path: Path, what: str) -> None:
    member, expected = GONE[what]
    without(member, tmp_path / "classes")
    path, said = str(tmp_path / "s.rowtime"), tmp_path / "said.json"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    send(opened(path), ("10:00", 1), promise="11:00")
    program = [sys.executable, "-m", "tests.spark.changed_spark", path, str(tmp_path / "classes"), str(said)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(said.read_text())
    for part in ("ShimMismatchError", f"Spark {version('pyspark')}", f"tested with ({tried()})", expected):
        assert part in found["error"]
    assert found["batches"] == 0, "nothing has been written"
    assert found["rows"] == 1, "bounds=ignore needs nothing of Spark's inside"
