"""The table of faults that the tests of this folder print at the end. docs/guarantees.md contains it."""

from collections.abc import Callable

import pytest

from tests.crash.tally import FAULTS, Tally, table


@pytest.fixture
def tally() -> Callable[[str], Tally]:
    """``tally(fault)`` is the line of the table for that fault."""
    return lambda fault: FAULTS.setdefault(fault, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if FAULTS:
        terminalreporter.write_sep("-", "faults injected")
        for line in table():
            terminalreporter.write_line(line)
