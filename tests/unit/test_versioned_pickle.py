"""What a driver ships to a Python that has not the driver's version of this package."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import spark_rowtime as rt
from spark_rowtime.operators.asof_processor import AsOfProcessor
from spark_rowtime.operators.chunks import pack
from spark_rowtime.operators.processor import FrameProcessor
from spark_rowtime.spark.batch_reader import RowtimeBatchReader
from spark_rowtime.spark.batch_writer import RowtimeBatchWriter
from spark_rowtime.spark.datasource import RowtimeDataSource
from spark_rowtime.spark.rejected_source import RejectedStreamReader
from spark_rowtime.spark.sink import RowtimeStreamWriter
from spark_rowtime.spark.source import RowtimeStreamReader
from spark_rowtime.spark.versioned_pickle import VersionedPickle, versioned

KINDS = [
    *(RowtimeDataSource, RowtimeBatchReader, RowtimeStreamReader, RejectedStreamReader),
    *(RowtimeBatchWriter, RowtimeStreamWriter, FrameProcessor, AsOfProcessor),
]
LOAD = "import pickle, sys; made = pickle.load(sys.stdin.buffer); callable(made) and next(made(iter([])), None)"


def said(value: object, folder: Path) -> str:
    """The error of a Python that unpickles the value and finds packages in the folder first."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {LOAD}"]
    done = subprocess.run(command, input=cloudpickle.dumps(value), capture_output=True, check=False, cwd=folder)
    return done.stderr.decode()


def empty(kind: type[VersionedPickle]) -> Any:
    return kind.__new__(kind)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Callable[[str], Path]:
    """A folder with a package of our name and this content."""

    def make(content: str) -> Path:
        (tmp_path / "spark_rowtime").mkdir()
        (tmp_path / "spark_rowtime" / "__init__.py").write_text(content)
        return tmp_path

    return make


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_all_that_tasks_unpickle_has_a_version(kind: type[VersionedPickle]) -> None:
    made = cloudpickle.loads(cloudpickle.dumps(empty(kind)))
    assert type(made) is kind
    assert vars(made).keys() <= {"_adapter_arguments", "_joins", "_event_wait", "_registration", "_reporter", "_watch"}


def test_another_version_is_named(elsewhere: Callable[[str], Path]) -> None:
    folder = elsewhere("__version__ = '0.0.7'")
    for value in (empty(RowtimeStreamWriter), versioned(pack)):
        error = said(value, folder)
        assert f"ImportError: The driver of this query uses spark-rowtime {rt.__version__}, but on" in error
        assert f"spark-rowtime is version 0.0.7 for {sys.executable}. Install it there: pip install" in error


def test_a_package_that_is_missing_is_named(elsewhere: Callable[[str], Path]) -> None:
    folder = elsewhere("raise ModuleNotFoundError('No module named spark_rowtime')")
    for value in (empty(RowtimeStreamReader), versioned(pack)):
        assert f"spark-rowtime is not installed for {sys.executable}" in said(value, folder)


def test_the_same_version_runs(tmp_path: Path) -> None:
    assert said(versioned(pack), tmp_path) == ""
