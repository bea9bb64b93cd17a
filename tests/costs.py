"""What tests cost: processor seconds of this process and all that it has started, whatever else the machine does.

    python -m pytest -p tests.costs tests/spark

prints the most expensive files and tests at the end. Linux.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SHOWN = 30
COSTS: Counter[str] = Counter()
_TICKS = os.sysconf("SC_CLK_TCK")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = processor_seconds()
    result = yield
    COSTS[item.nodeid] += processor_seconds() - before
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for title, costs in (("files", _by_file()), ("tests", COSTS)):
        total = sum(costs.values())
        terminalreporter.write_sep("-", f"processor seconds, {title}: {total:.0f}")
        for name, seconds in costs.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:7.1f}  {name}")


def processor_seconds() -> float:
    """Of this process, its descendants that run, and those that have ended and were waited for."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(place.parent.name)] = int(fields[1])
        seconds[int(place.parent.name)] = sum(map(int, fields[11:15])) / _TICKS
    return sum(seconds[process] for process in seconds if _descends(process, parents))


def _descends(process: int, parents: dict[int, int]) -> bool:
    while process not in (0, os.getpid()):
        process = parents.get(process, 0)
    return process != 0


def _by_file() -> Counter[str]:
    files: Counter[str] = Counter()
    for name, seconds in COSTS.items():
        files[name.partition("::")[0]] += seconds
    return files
