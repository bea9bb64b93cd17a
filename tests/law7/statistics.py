"""Counters of all cases of a run, which are printed at its end."""

from collections import Counter, defaultdict
from typing import Any

import pytest

_ALL = pytest.StashKey[defaultdict[str, Counter[str]]]()


def counted(config: pytest.Config, title: str) -> Counter[str]:
    """The counters under this title."""
    return config.stash.setdefault(_ALL, defaultdict(Counter))[title]


def show(terminalreporter: Any, config: pytest.Config, title: str) -> None:
    """Prints them, if anything was counted."""
    figures = counted(config, title)
    if figures:
        terminalreporter.section(title)
        terminalreporter.write_line(", ".join(f"{n} {name}" for name, n in figures.most_common()))
