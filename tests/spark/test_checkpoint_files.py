"""The files of a checkpoint under a local master: as Spark writes them, without a process for each."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import spark_rowtime as rt
from spark_rowtime.spark.settings import CHECKPOINT_FILES, FILES

PACKAGE = "streaming" if pyspark.__version__.startswith("4.0.") else "streaming.checkpointing"
OF_SPARK = f"org.apache.spark.sql.execution.{PACKAGE}.FileSystemBasedCheckpointFileManager"
CHMOD = """#!/bin/sh
echo "$@" >> "$CHMOD_LOG"
PATH=$PATH_BEFORE exec chmod "$@"
"""
DRIVER = """
import os, sys
import spark_rowtime as rt
from pyspark.sql import SparkSession, functions as F

folder, files, manager = sys.argv[1:]
os.umask(0o027)
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(files, manager)
rows = rt.configure(builder).getOrCreate().readStream.format("rowtime").load(f"{folder}/stream")
writer = rows.groupBy(F.window("rowtime", "1 hour")).count().writeStream.format("noop")
writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()
"""


def run(folder: Path, manager: str) -> list[str]:
    """Runs a query; returns the arguments of the chmods that its checkpoint took."""
    programs, log = folder / "programs", folder / "log"
    programs.mkdir(parents=True)
    (programs / "chmod").write_text(CHMOD)
    (programs / "chmod").chmod(0o755)
    rt.createStream(str(folder / "stream"), "rowtime TIMESTAMP NOT NULL")
    with rt.openSink(str(folder / "stream")) as sink:
        sink.sendRow(("2026-01-05T10:00:00Z",))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CHMOD_LOG": str(log)}
    environment |= {"PATH_BEFORE": os.environ["PATH"], "PATH": f"{programs}:{os.environ['PATH']}"}
    environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)  # that of the tests starts no chmod either
    command = [sys.executable, "-c", DRIVER, str(folder), FILES, manager]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = log.read_text().splitlines() if log.exists() else []
    return [line for line in said if f"{folder}/checkpoint" in line]


def modes(checkpoint: Path) -> dict[str, str]:
    """The permissions of its files and folders, by their names without ids."""
    found = {str(path.relative_to(checkpoint)): oct(path.stat().st_mode) for path in checkpoint.rglob("*")}
    return {re.sub(r"[0-9a-f]{8}-[-0-9a-f]{27}", "ID", name): mode for name, mode in found.items()}


def test_they_have_the_names_and_permissions_that_spark_gives_them(tmp_path: Path) -> None:
    managers = {"ours": CHECKPOINT_FILES, "spark": OF_SPARK}
    processes = {name: run(tmp_path / name, manager) for name, manager in managers.items()}
    ours, theirs = (modes(tmp_path / name / "checkpoint") for name in processes)
    assert "offsets/.0.crc" in ours
    assert ours == theirs
    assert not processes["ours"]
    if not processes["spark"]:
        pytest.skip("Hadoop has its native library here")
