"""Statistics of a run."""

from collections import Counter
from typing import Any

import pytest

FIGURES = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = Counter()


@pytest.fixture
def figures(request: Any) -> Counter[str]:
    """The counters to which all cases of the run add."""
    return request.config.stash[FIGURES]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints what the cases contained, which shows whether they tested enough."""
    figures = config.stash[FIGURES]
    if figures:
        terminalreporter.section("law 7")
        terminalreporter.write_line(", ".join(f"{n} {name}" for name, n in figures.most_common()))
