"""The fixtures that the Spark tests share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.streams import Pipe
from tests.tables.conftest import lake

__all__ = ["lake", "pipe"]


@pytest.fixture
def pipe(spark: Any, tmp_path: Path) -> Iterator[Pipe]:
    """Streams in the test's own folder, and a query that is stopped at the end of the test."""
    pipe = Pipe(spark, tmp_path)
    yield pipe
    pipe.stop()
