"""``spark-submit --packages`` takes the extension from a Maven repository, which `make wheel` writes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_jars import MINOR, ROOT, build

ONLY_FILES = """<ivysettings>
  <settings defaultResolver="files"/>
  <resolvers><ibiblio name="files" m2compatible="true" root="file://{repository}"/></resolvers>
</ivysettings>"""
"""A session that looks into one folder, and not into Maven Central."""
PROGRAM = """
from pyspark.sql import SparkSession, functions as f
import spark_rowtime as rt

rt.createStream("s", "rowtime TIMESTAMP NOT NULL, n INT")
with rt.openSink("s", producer="Berlin") as sink:
    sink.sendRow(("2006-09-11T10:05:00Z", 1))
    sink.sendRowtimeBound("2006-09-11T11:00:00Z")
spark = SparkSession.builder.getOrCreate()
hours = spark.readStream.format("rowtime").load("s").groupBy(f.window("rowtime", "1 hour")).count()
writer = hours.writeStream.format("memory").queryName("hours").option("checkpointLocation", "checkpoint")
writer.trigger(availableNow=True).start().awaitTermination()
print("closed:", spark.table("hours").count())
"""


@pytest.mark.night
@pytest.mark.usefixtures("dist")
def test_the_jar_from_a_repository_closes_the_last_window(tmp_path: Path) -> None:
    repository = tmp_path / "maven"
    subprocess.run([sys.executable, "java-shim/repository.py", repository], cwd=ROOT, check=True, capture_output=True)
    (tmp_path / "ivy.xml").write_text(ONLY_FILES.format(repository=repository))
    (tmp_path / "program.py").write_text(PROGRAM)
    package = f"{build.GROUP}:spark-rowtime_spark{MINOR}:{build.project_version()}"
    settings = {
        "spark.jars.ivySettings": tmp_path / "ivy.xml",
        "spark.jars.ivy": tmp_path / "ivy",
        "spark.sql.extensions": "sparkrowtime.RowtimeExtensions",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = Path(sys.executable).with_name("spark-submit")
    command = [submit, "--master", "local[2]", "--packages", package, *words, "program.py"]
    named = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=named, capture_output=True, text=True, check=False, timeout=500)
    assert "closed: 1" in done.stdout, done.stderr
