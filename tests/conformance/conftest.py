"""What the conformance tests share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.streams import Pipe


@pytest.fixture
def pipe(spark: Any, tmp_path: Path) -> Iterator[Pipe]:
    """Streams in a folder of the test's own, and a query that is stopped in the end."""
    pipe = Pipe(spark, tmp_path)
    yield pipe
    pipe.stop()
