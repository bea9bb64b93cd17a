"""Bounds never change a result, only when it appears, where they lie beside topics: random schedules and queries.

CI tries a few seeds. Others: ``ROWTIME_LAW7_SEEDS=0:40 pytest tests/kafka/test_law7.py``. tests/law7/test_law7.py has
the other variables. At least one stream of each query is a topic that Spark's own Kafka source reads, with limits,
and some topics have rows below their bounds: a query keeps these as late, and the batch leaves them out.

In the second test the producers send rows alone, and a watch derives the bounds: beside the query, where it begins
again and again, with other delays; or in the driver of the query.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.law7 import feed
from tests.law7.cases import cases
from tests.law7.feed import Feed, LeftOut
from tests.law7.schedule import Poll, Schedule
from tests.law7.seeds import case_of, numbers, try_seed
from tests.law7.statistics import counted
from tests.law7.watched import Watch, WrongBoundError

TITLE = "law 7 beside topics"
WATCHED = "0:3"
"""The seeds of the second test."""
OTHERWISE: dict[str, Callable[[dict[str, str]], dict[str, str]]] = {
    "lateness 0": lambda given: {**given, "lateness": "0 minutes"},
    "lateness doubled": lambda given: {**given, "lateness": f"{2 * int(given['lateness'].split()[0])} minutes"},
    "delay 0": lambda given: {**given, "delay": "0 seconds"},
}
"""What a watch is told instead of what is declared."""


@pytest.fixture
def figures(request: Any) -> Counter[str]:
    """The counters to which all cases of the run add."""
    return counted(request.config, TITLE)


@pytest.mark.long
@pytest.mark.parametrize("number", numbers("8:9"))
def test_bounds_never_change_a_result(
    spark: Any, kafka: Any, tmp_path: Path, figures: Counter[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(feed, "broker", kafka)
    try_seed(spark, cases(topic_bounds=True), number, tmp_path, figures)


@pytest.mark.night
@pytest.mark.parametrize("number", numbers(WATCHED))
def test_bounds_of_a_watch_never_change_a_result(
    spark: Any, kafka: Any, tmp_path: Path, figures: Counter[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Nor is a row late that keeps what is declared of its topic."""
    monkeypatch.setattr(feed, "broker", kafka)
    try_seed(spark, cases(topic_bounds=True, watch=True), number, tmp_path, figures)


@pytest.mark.long
@pytest.mark.parametrize("otherwise", OTHERWISE)
def test_a_watch_that_is_told_something_else_makes_other_bounds_in_one_of_the_seeds(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, otherwise: str
) -> None:
    monkeypatch.setattr(feed, "broker", kafka)
    told, change = Watch.given, OTHERWISE[otherwise]
    monkeypatch.setattr(Watch, "given", lambda watch, reached: _changed(told(watch, reached), change))
    seeds = [case_of(cases(topic_bounds=True, watch=True), number).schedule for number in numbers(WATCHED)]
    assert any(_differs(schedule, tmp_path / str(number)) for number, schedule in enumerate(seeds))


def _changed(given: dict[str, str], change: Callable[[dict[str, str]], dict[str, str]]) -> dict[str, str]:
    """What a watch is told instead, without names that it is not told now."""
    return {name: value for name, value in change({"lateness": "0 minutes", **given}).items() if name in given}


def _differs(schedule: Schedule, folder: Path) -> bool:
    """Whether a watch makes other bounds in a schedule. In the place of a query's, one follows up to each poll."""
    played = Feed(folder, schedule, LeftOut())
    try:
        for number, event in enumerate(schedule.events):
            played.apply(number, event)
            for watch in played.watches.values():
                if isinstance(event, Poll) and watch.hosted:
                    watch.follow(None)
    except WrongBoundError:
        return True
    finally:
        played.close()
    return False
