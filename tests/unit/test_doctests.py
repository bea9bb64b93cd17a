"""The examples in the docstrings of the public modules run and print what they show."""

import doctest
import importlib
import warnings

import pytest

from spark_rowtime.store.memory import STREAMS

MODULES = [
    "spark_rowtime",
    "spark_rowtime.adapter.adapter",
    "spark_rowtime.bounds.bound",
    "spark_rowtime.bounds.train",
    "spark_rowtime.errors",
    "spark_rowtime.producer.floors",
    "spark_rowtime.producer.lifecycle",
    "spark_rowtime.producer.rowsink",
    "spark_rowtime.producer.sink",
    "spark_rowtime.reader.reader",
    "spark_rowtime.stream",
]


@pytest.fixture(autouse=True)
def no_streams_left():
    """Removes the streams that the examples create in memory."""
    before = set(STREAMS)
    yield
    for path in set(STREAMS) - before:
        del STREAMS[path]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_show(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
