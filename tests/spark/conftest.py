"""The fixtures that the Spark tests share."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.streams import Pipe
from tests.tables.conftest import lake

__all__ = ["lake", "pipe"]

IN_DATABASE = os.environ.get("ROWTIME_SPARK_STORE") == "postgres"
"""Whether the streams of all tests that take ``pipe`` are in PostgreSQL."""


@pytest.fixture
def pipe(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pipe]:
    """Streams in the test's own folder, and a query that is stopped at the end of the test."""
    pipe = request.getfixturevalue("database_pipe") if IN_DATABASE else Pipe(spark, tmp_path)
    yield pipe
    pipe.stop()


@pytest.fixture
def database_pipe(spark: Any, tmp_path: Path, postgres: Any) -> Iterator[Pipe]:
    """The same, with streams in PostgreSQL."""
    pipe = Pipe(spark, tmp_path, postgres.url())
    yield pipe
    pipe.stop()
