"""Objects in S3, read by tasks through Hadoop's own file system for it, that of hadoop-aws: by command.

``ROWTIME_S3A=1 python -m pytest tests/spark/test_s3a.py`` fetches 20 MB of jars with Maven, once.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import spark_rowtime as rt
from scripts.mavenjars import MissingJarsError
from spark_rowtime.store import open_store
from tests.conftest import set_s3_environment
from tests.postgresserver import PostgresServer
from tests.s3server import S3Server
from tests.spark.over_s3a import s3a_jars
from tests.streams import at, opened

pytestmark = pytest.mark.skipif("ROWTIME_S3A" not in os.environ, reason="fetches 20 MB of jars; ROWTIME_S3A=1 has it")
LONG = "a" * 40_000
"""Two rows with this text are an object, one is none."""


def filled(path: str, folder: str) -> str:
    """A stream with three objects and a small train."""
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT, text STRING", location=f"s3://rows/{folder}")
    with opened(path, "a") as feed:
        for minutes in ((1, 2), (3, 4), (5,), (6, 7, 8)):
            feed.sendRows([(at(f"10:{minute:02d}"), minute, LONG) for minute in minutes])
            feed.flush()
    return path


def test_hadoop_aws_reads_the_rows_that_python_reads(
    postgres: PostgresServer, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says which object is gone."""
    set_s3_environment(monkeypatch)
    try:
        s3a_jars()
    except MissingJarsError as missing:
        pytest.skip(str(missing))
    path, gone = (filled(postgres.url(f"s3a/{name}"), f"{tmp_path.name}/{name}") for name in ("whole", "gone"))
    with open_store(gone) as store:
        lost = next(iter(store.objects.sizes()))
        store.objects.remove([lost])
        url = store.objects.for_hadoop(lost)
    program = [sys.executable, "-m", "tests.spark.over_s3a", path, gone, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-5000:]
    said = json.loads((tmp_path / "said.json").read_text())
    native, python = said["True"], said["False"]
    assert said["class"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert (native["native"], python["native"]) == (True, False)
    assert sum(map(len, native["batches"])) == 8
    assert native == {**python, "native": True}
    assert f"The object {url} is gone, although a commit names it" in re.sub(r"\s+", " ", said["gone"]["error"])
