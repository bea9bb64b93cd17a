"""Fixtures that several unit tests share."""

import pytest
from sink_support import FailingStore
from unit_support import HandClock, new_stream

from spark_rowtime.store import STREAMS


@pytest.fixture
def path():
    return new_stream()


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def failing(path):
    made = STREAMS[path]
    STREAMS[path] = FailingStore(path, made.schema, made.settings)
    return STREAMS[path]
