"""Which errors end an adapter at once: those of its program, not those that a library raises in an outage."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.adapter.adapter import host
from spark_rowtime.adapter.program_errors import is_program_error
from spark_rowtime.types.extras import import_extra

LIBRARY = '''
def read(connection):
    """As a client whose connection has ended."""
    return connection.readline()

def later(callback):
    return callback()

def missing():
    raise NotImplementedError("no such call in this version")
'''


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An installed package."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "feed_client.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "feed_client", raising=False)
    import feed_client

    return feed_client


class Feed:
    schema = "rowtime TIMESTAMP NOT NULL"


def caught(call: Any) -> BaseException:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_an_error_in_the_adapter_is_its_program_s(library: Any) -> None:
    assert is_program_error(caught(lambda: None.readline), Feed)
    assert is_program_error(caught(library.read), Feed), "a call with the wrong arguments"
    assert is_program_error(caught(lambda: library.later(lambda: nobody)), Feed), "in a callback"  # noqa: F821
    assert is_program_error(caught(lambda: int([])), Feed), "in a function written in C"
    assert is_program_error(caught(lambda: rt.RowtimeBound("2006-09-11").nothing), Feed)


def test_an_error_out_of_a_library_is_the_feed_s(library: Any) -> None:
    assert not is_program_error(caught(lambda: library.read(None)), Feed)
    assert not is_program_error(caught(library.missing), Feed)
    assert not is_program_error(caught(lambda: asyncio.run(None)), Feed), "the standard library"


def test_a_packaged_adapter_is_no_library(library: Any) -> None:
    packaged = type("Packaged", (Feed,), {"__module__": "feed_client.adapters"})
    assert is_program_error(caught(lambda: library.read(None)), packaged)


class Adapter:
    pass


def test_what_a_client_in_c_makes_of_an_interrupt_ends_it() -> None:
    assert is_program_error(SystemError("returned NULL without setting an exception"), Adapter)


def test_a_missing_module_and_a_wrong_option_end_it_wherever_they_are_raised(library: Any) -> None:
    library.json = None
    assert is_program_error(caught(lambda: library.later(lambda: __import__("no_such_module"))), Feed)
    assert is_program_error(caught(lambda: library.later(lambda: compile("1 +", "x", "eval"))), Feed)
    assert is_program_error(caught(lambda: library.later(lambda: rt.RowtimeBound("noon"))), Feed)
    assert is_program_error(caught(lambda: import_extra("no_such_module", "kafka", "It")), Feed)


@pytest.mark.parametrize("error", [ConnectionError, KeyError, ValueError, IndexError, AssertionError, RuntimeError])
def test_other_errors_are_the_feed_s(error: type[Exception]) -> None:
    assert not is_program_error(error(), Feed)


def test_the_host_restarts_after_an_outage_that_a_library_reports_by_a_type_error(library: Any, tmp_path: Path) -> None:
    class Reading(Feed):
        connections = [None, None]

        def run(self, sink: rt.RowSink) -> None:
            if self.connections:
                library.read(self.connections.pop())

    waited: list[float] = []
    host(Reading, f"memory://{tmp_path}", delays=[1, 2], wait=waited.append)
    assert waited == [1, 2]
