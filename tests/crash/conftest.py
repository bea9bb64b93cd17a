"""The table of faults that the tests of this folder print at the end. docs/guarantees.md contains it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import set_s3_environment
from tests.crash.places import in_database
from tests.crash.tally import FAULTS, Tally, table


@pytest.fixture
def tally() -> Callable[[str], Tally]:
    """``tally(fault)`` is the line of the table for that fault."""
    return lambda fault: FAULTS.setdefault(fault, Tally())


@pytest.fixture
def placed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str], Path]:
    """``placed(folder, kind)`` makes a folder whose streams are in a place of that kind of PLACES."""

    def place(folder: Path, kind: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if kind == "directory":
            return folder
        locations = {"folder": f"file://{folder}/rows", "s3": f"s3://rows/{folder.parent.name}/{folder.name}"}
        if kind == "s3":
            request.getfixturevalue("s3")
            set_s3_environment(monkeypatch)
        return in_database(folder, request.getfixturevalue("postgres").url(), locations.get(kind))

    return place


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if FAULTS:
        terminalreporter.write_sep("-", "faults injected")
        for line in table():
            terminalreporter.write_line(line)
