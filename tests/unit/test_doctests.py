"""The examples in the docstrings of the public modules run and print what they show."""

import doctest
import importlib
import inspect
import warnings

import pytest
from unit_support import collect_leftovers

from spark_rowtime.store.memory import STREAMS

MODULES = [
    "spark_rowtime",
    "spark_rowtime.adapter.adapter",
    "spark_rowtime.adapter.contract",
    "spark_rowtime.adapter.sinks",
    "spark_rowtime.bounds.bound",
    "spark_rowtime.bounds.train",
    "spark_rowtime.diagnosis.explanation",
    "spark_rowtime.diagnosis.wait",
    "spark_rowtime.diagnosis.why",
    "spark_rowtime.errors",
    "spark_rowtime.producer.floors",
    "spark_rowtime.producer.lifecycle",
    "spark_rowtime.producer.rowsink",
    "spark_rowtime.producer.sink",
    "spark_rowtime.reader.reader",
    "spark_rowtime.stream",
    "spark_rowtime.stream_description",
    "spark_rowtime.stream_info",
]


@pytest.fixture(autouse=True)
def no_streams_left():
    """Removes the streams that the examples create in memory."""
    before = set(STREAMS)
    yield
    for path in set(STREAMS) - before:
        del STREAMS[path]


class Finder(doctest.DocTestFinder):
    """Finds the examples of functions behind a decorator, too; the standard finder takes these for another module's."""

    def _from_module(self, module, object):  # noqa: A002
        return super()._from_module(module, inspect.unwrap(object) if inspect.isfunction(object) else object)


def test_the_examples_of_decorated_functions_are_found():
    modules = ("spark_rowtime.stream", "spark_rowtime.stream_description")
    found = [test for name in modules for test in Finder().find(importlib.import_module(name))]
    assert {test.name.rpartition(".")[2] for test in found if test.examples} >= {"createStream", "describeStream"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_show(name):
    collect_leftovers()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner = doctest.DocTestRunner()
        for examples in Finder().find(importlib.import_module(name), name):
            runner.run(examples)
    assert runner.tries > 0
    assert runner.failures == 0
