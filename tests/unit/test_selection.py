"""`make test`, `make test-long` and `make test-night` together run every test, and each file is in one job.

Those that a variable asks for are in `make test-night`: see test_run_tests.py.
"""

import runpy
from collections import Counter
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.selection import WITH_QUERIES, mark_long

ROOT = Path(__file__).parents[2]
CASES = ("f[a]", "f[b]", "f[c]", "f[d]")


@pytest.fixture(scope="module")
def runner() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "run_tests.py"))


def test_every_file_is_in_one_job(runner: dict[str, Any]) -> None:
    jobs = Counter(
        file
        for job in runner["TESTS"]
        for named in runner["files"](job)
        for file in ([ROOT / named] if named.endswith(".py") else (ROOT / named).rglob("test_*.py"))
    )
    assert set(jobs) == set((ROOT / "tests").rglob("test_*.py"))
    assert set(jobs.values()) == {1}


def test_every_test_is_in_one_of_the_three_and_only_searches_are_in_two(runner: dict[str, Any]) -> None:
    """Whatever marks a test has."""
    for long, search, night in product((False, True), repeat=3):
        marks = {"long": long, "search": search, "night": night}
        found = [eval(runner["SELECTED"][kind], marks) for kind in ("test", "long", "night")]
        assert found == [not long and not night, (long or search) and not night, night]
        assert sum(found) == (2 if search and not long and not night else 1)


def test_every_test_for_the_night_is_in_a_job_of_it(runner: dict[str, Any]) -> None:
    long, night = (
        {job.name for job in runner["jobs"](kind) if runner["SELECTED"][kind] in job._command}
        for kind in ("long", "night")
    )
    assert night >= long == set(runner["TESTS"])


def test_folders_with_queries_are_there() -> None:
    assert all(any((ROOT / "tests" / folder).glob("test_*.py")) for folder in WITH_QUERIES)


@pytest.mark.parametrize(
    ("folder", "marked", "short", "night"),
    [
        ("spark", {}, ["f[a]", "g"], ["f[c]", "f[d]"]),
        ("unit", {}, ["f[a]", "f[b]", "f[c]", "f[d]", "g"], []),
        ("spark", {"f[a]": "long"}, ["f[b]", "g"], ["f[c]", "f[d]"]),
        ("spark", dict.fromkeys(CASES, "each"), [*CASES, "g"], []),
        ("spark", {"g": "long"}, ["f[a]"], ["f[c]", "f[d]"]),
        ("spark", dict.fromkeys(CASES, "long"), ["g"], ["f[b]", "f[c]", "f[d]"]),
        ("unit", dict.fromkeys(CASES, "long"), ["g"], []),
    ],
)
def test_of_many_cases_with_queries_the_first_is_short_and_the_next_one_is_long(
    folder: str, marked: dict[str, str], short: list[str], night: list[str]
) -> None:
    tests = [Item(folder, name, marked.get(name)) for name in (*CASES, "g")]
    mark_long(tests)  # type: ignore[arg-type]
    assert [test.nodeid.rpartition(":")[2] for test in tests if "long" not in test.marks] == short
    assert [test.nodeid.rpartition(":")[2] for test in tests if "night" in test.marks] == night


class Item:
    """What mark_long sees of a test."""

    def __init__(self, folder: str, name: str, mark: str | None) -> None:
        self.nodeid, self.marks = f"tests/{folder}/test_x.py::{name}", {mark} - {None}
        self.path = ROOT / "tests" / folder / "test_x.py"

    def get_closest_marker(self, name: str) -> Any:
        return SimpleNamespace(name=name) if name in self.marks else None

    def add_marker(self, mark: Any) -> None:
        self.marks.add(mark.name)
