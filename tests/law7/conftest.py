"""Statistics of a run."""

from collections import Counter
from typing import Any

import pytest

from tests.law7.statistics import counted, show


@pytest.fixture
def figures(request: Any) -> Counter[str]:
    """The counters to which all cases of the run add."""
    return counted(request.config, "law 7")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints what the cases contained, which shows whether they tested enough."""
    show(terminalreporter, config, "law 7")
