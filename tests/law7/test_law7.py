"""Bounds never change a result, only when it appears: random schedules and queries, by seed.

`make test` tries one seed; `make test-night` four on each other Spark, with ``ROWTIME_LAW7_SHORT=1``: half of the
actions. Any others: ``ROWTIME_LAW7_SEEDS=0:200 python -m pytest tests/law7``; one again: ``ROWTIME_LAW7_SEEDS=17:18``;
one of the kinds of kinds.py alone: ``ROWTIME_LAW7_KINDS="null keys"``, also one that is known to fail.
``ROWTIME_LAW7_STORE=postgres``: the streams are in PostgreSQL. tests/kafka/test_law7.py takes the same variables, and
has topics of Kafka among the streams. A case that fails is printed, and made smaller as far as that goes in minutes.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.law7 import as_of, feed
from tests.law7.cases import cases
from tests.law7.seeds import numbers, try_seed


@pytest.fixture(autouse=True)
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the streams are."""
    if os.environ.get("ROWTIME_LAW7_STORE") == "postgres":
        monkeypatch.setattr(feed, "database", request.getfixturevalue("postgres").url())


@pytest.mark.smoke
@pytest.mark.parametrize("number", numbers("8:9"))
def test_bounds_never_change_a_result(spark, tmp_path: Path, figures: Counter[str], number: int) -> None:
    try_seed(spark, cases(), number, tmp_path, figures)


@pytest.mark.long
@pytest.mark.parametrize("number", numbers("0:2"))
def test_bounds_never_change_an_as_of_join(spark, tmp_path: Path, figures: Counter[str], number: int) -> None:
    """With ties, NULL keys, each direction and both types."""
    try_seed(spark, as_of.cases_of_joins(), 2 * number, tmp_path, figures)  # odd seeds are of certain kinds
