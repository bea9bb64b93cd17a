"""The files of a checkpoint under a local master: as Spark writes them, without a process for each."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

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

folder, files, *managers = sys.argv[1:]
os.umask(0o027)
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = rt.configure(builder).getOrCreate()
for number, manager in enumerate(managers):
    spark.conf.set(files, manager)
    rows = spark.readStream.format("rowtime").load(f"{folder}/stream")
    writer = rows.groupBy(F.window("rowtime", "1 hour")).count().writeStream.format("noop")
    writer.option("checkpointLocation", f"{folder}/{number}").trigger(availableNow=True).start().awaitTermination()
"""


def run(folder: Path, *managers: str) -> list[list[str]]:
    """Runs a query with each; returns the arguments of the chmods that its checkpoint, the folder 0, 1 ..., took."""
    programs, log = folder / "programs", folder / "log"
    programs.mkdir()
    (programs / "chmod").write_text(CHMOD)
    (programs / "chmod").chmod(0o755)
    for number in range(len(managers)):
        (folder / str(number)).mkdir()
        (folder / str(number)).chmod(0o2770)  # files of a folder that a group shares stay the group's
    rt.createStream(str(folder / "stream"), "rowtime TIMESTAMP NOT NULL")
    with rt.openSink(str(folder / "stream")) as sink:
        sink.sendRow(("2026-01-05T10:00:00Z",))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CHMOD_LOG": str(log)}
    environment |= {"PATH_BEFORE": os.environ["PATH"], "PATH": f"{programs}:{os.environ['PATH']}"}
    environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)  # that of the tests starts no chmod either
    command = [sys.executable, "-c", DRIVER, str(folder), FILES, *managers]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = log.read_text().splitlines() if log.exists() else []
    return [[line for line in said if f"{folder}/{number}" in line] for number in range(len(managers))]


def modes(checkpoint: Path) -> dict[str, str]:
    """The permissions of its files and folders, by their names without ids."""
    found = {str(path.relative_to(checkpoint)): oct(path.stat().st_mode) for path in checkpoint.rglob("*")}
    return {re.sub(r"[0-9a-f]{8}-[-0-9a-f]{27}", "ID", name): mode for name, mode in found.items()}


@pytest.mark.night
def test_they_have_the_names_and_permissions_that_spark_gives_them(tmp_path: Path) -> None:
    ours, theirs = run(tmp_path, CHECKPOINT_FILES, OF_SPARK)
    files = modes(tmp_path / "0")
    assert "offsets/.0.crc" in files
    assert files == modes(tmp_path / "1")
    assert not ours
    if not theirs:
        pytest.skip("Hadoop has its native library here")


class Files:
    """The files of a checkpoint in ``folder``, as a query writes them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._jvm: Any = spark._jvm
        self._folder = self._jvm.org.apache.hadoop.fs.Path(f"file:{folder}")
        hadoop = self._jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
        hadoop.unset("fs.file.impl")  # which tests/sparkhome.py sets
        self._manager = self._jvm.sparkrowtime.support.CheckpointFiles(self._folder, hadoop)

    def written(self, text: str, *, overwrites: bool) -> Any:
        """A file with a text that has no name yet; ``close`` gives it the name ``0``."""
        stream = self._manager.createAtomic(self._jvm.org.apache.hadoop.fs.Path(self._folder, "0"), overwrites)
        stream.write(bytearray(text.encode()))
        return stream

    def text(self) -> str:
        """What is read, with its checksum."""
        stream = self._manager.open(self._jvm.org.apache.hadoop.fs.Path(self._folder, "0"))
        return bytes(stream.readAllBytes()).decode()


@pytest.mark.night
def test_of_many_that_write_a_file_one_succeeds(spark: SparkSession, tmp_path: Path) -> None:
    """Two queries that run with one checkpoint write the same batch: the others must know that they have not."""
    writers = 4
    with ThreadPoolExecutor(writers) as threads:
        for turn in range(50):
            (folder := tmp_path / str(turn)).mkdir()
            all_wrote, files = Barrier(writers), Files(spark, folder)

            def write(text: str, files: Files = files, all_wrote: Barrier = all_wrote) -> str | None:
                stream = files.written(text, overwrites=False)
                all_wrote.wait()
                try:
                    stream.close()
                except Py4JJavaError as error:
                    assert "FileAlreadyExistsException" in str(error.java_exception)
                    return None
                return text

            texts = [text for text in threads.map(write, "abcd") if text]
            assert texts == [files.text()]
            assert sorted(path.name for path in folder.iterdir() if "tmp" not in path.name) == [".0.crc", "0"]


def test_what_a_repeated_batch_writes_replaces_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path)
    for text in ("first", "second"):
        files.written(text, overwrites=True).close()
        assert files.text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == [".0.crc", "0"]
