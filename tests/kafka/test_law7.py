"""Bounds never change a result, only when it appears, where they lie beside topics: random schedules and queries.

CI tries a few seeds. Others: ``ROWTIME_LAW7_SEEDS=0:40 pytest tests/kafka/test_law7.py``. tests/law7/test_law7.py has
the other variables. At least one stream of each query is a topic that Spark's own Kafka source reads, with limits,
and some topics have rows below their bounds: a query keeps these as late, and the batch leaves them out.

In the second test the producers send rows alone, and a watch derives the bounds: beside the query, where it begins
again and again, with other delays; or in the driver of the query.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.law7 import feed
from tests.law7.cases import cases
from tests.law7.seeds import numbers, try_seed
from tests.law7.statistics import counted

TITLE = "law 7 beside topics"


@pytest.fixture
def figures(request: Any) -> Counter[str]:
    """The counters to which all cases of the run add."""
    return counted(request.config, TITLE)


@pytest.mark.parametrize("number", numbers("8:9"))
def test_bounds_never_change_a_result(
    spark: Any, kafka: Any, tmp_path: Path, figures: Counter[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(feed, "broker", kafka)
    try_seed(spark, cases(beside=True), number, tmp_path, figures)


@pytest.mark.long
@pytest.mark.parametrize("number", numbers("0:3"))
def test_bounds_of_a_watch_never_change_a_result(
    spark: Any, kafka: Any, tmp_path: Path, figures: Counter[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Nor is a row late that keeps what is declared of its topic."""
    monkeypatch.setattr(feed, "broker", kafka)
    try_seed(spark, cases(beside=True, watch=True), number, tmp_path, figures)
