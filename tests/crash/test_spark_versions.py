"""One checkpoint under both PySpark versions that the project supports, forth and back."""

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.crash.driver import counts
from tests.crash.drivers import ROOT, Driver, Feed, expected, lawful, rows
from tests.sparksession import running, start


@pytest.fixture
def other() -> str:
    """The interpreter of the other environment: .venv or .venv-oldest beside it."""
    for name in (".venv", ".venv-oldest"):
        python = ROOT / name / "bin" / "python"
        if python.exists() and python.absolute() != Path(sys.executable).absolute():
            ask = [python, "-c", "import pyspark; print(pyspark.__version__)"]
            said = subprocess.run(ask, capture_output=True, text=True, check=False)
            if said.returncode == 0 and said.stdout.strip() != pyspark.__version__:
                return str(python)
    pytest.skip("there is no other PySpark: `make test-long` sets up .venv-oldest beside .venv")


@pytest.mark.long
def test_a_checkpoint_goes_on_under_the_other_pyspark_and_back(spark: SparkSession, tmp_path: Path, other: str) -> None:
    feed, sink = Feed(tmp_path), str(tmp_path / "counts.rowtime")
    feed.send(2)
    here(spark, tmp_path)
    assert rows(sink) == expected(feed.path)
    feed.send(2)
    with Driver(tmp_path, python=other) as driver:
        driver.do("go")
        assert driver.ended() == 0
    assert rows(sink) == expected(feed.path)
    feed.send(2)
    here(spark, tmp_path)
    assert rows(sink) == expected(feed.path)
    lawful(sink)


def here(spark: SparkSession, folder: Path) -> None:
    """The driver's query in this session."""
    with running(start(counts(spark, folder), folder / "counts.rowtime", folder / "checkpoint")) as query:
        query.processAllAvailable()
