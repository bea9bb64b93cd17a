"""The streams in memory of a test are gone after it."""

from collections.abc import Iterator

import pytest

from spark_rowtime.store.memory import STREAMS


@pytest.fixture(autouse=True)
def no_streams_left() -> Iterator[None]:
    before = set(STREAMS)
    yield
    for path in set(STREAMS) - before:
        del STREAMS[path]
