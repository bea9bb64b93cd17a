"""Tries the case of a seed; which seeds a run tries."""

import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.law7.cases import lively
from tests.law7.grammar import Source
from tests.law7.kinds import kinds_of, wanted
from tests.law7.machine import Case, tried

Trial = Callable[[Any, Case, Path], Counter[str]]
"""Runs a case in a folder, raises an error if a law does not hold, and returns its statistics."""


def numbers(usual: str) -> range:
    """The seeds of ROWTIME_LAW7_SEEDS, such as "0:200", or the ``usual`` ones."""
    first, last = map(int, os.environ.get("ROWTIME_LAW7_SEEDS", usual).split(":"))
    return range(first, last)


def case_of(cases: SearchStrategy[Case], number: int) -> Case:
    """The case of a seed, without trying it."""
    found: list[Case] = []
    with_seed(_lively(cases, number), number, found.append)
    return found[0]


def try_seed(
    spark: Any,
    cases: SearchStrategy[Case],
    number: int,
    folder: Path,
    figures: Counter[str],
    trial: Trial = tried,
) -> None:
    """Tries one case, and adds its statistics to ``figures``."""

    def try_one(case: Case) -> None:
        found = trial(spark, case, Path(tempfile.mkdtemp(dir=folder)))
        parts = Counter(type(part).__name__ for part in case.query.parts() if not isinstance(part, Source))
        figures.update({"cases": 1, **found, **parts, **dict.fromkeys(kinds_of(case), 1)})

    with_seed(_lively(cases, number), number, try_one)


def _lively(cases: SearchStrategy[Case], number: int) -> SearchStrategy[Case]:
    return cases.filter(lively).filter(lambda case: wanted(case, number))


def with_seed(cases: SearchStrategy[Any], number: int, act: Callable[[Any], object]) -> None:
    """Tries the case of a seed by ``act``; one for which that raises an error is made smaller, and printed."""

    @seed(number)
    @settings(
        max_examples=1,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )
    @given(cases)
    def with_one(case: Any) -> None:
        act(case)

    with_one()
