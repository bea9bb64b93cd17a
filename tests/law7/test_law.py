"""The machine can fail: what the comparison takes for a difference, and what not."""

import math
from collections import Counter

import pytest

from tests.law7 import law
from tests.law7.streamed import Step

ROW, OTHER = ("10:00", 1, 2), ("10:05", 1, 2)


def step(surely: int, *rows, at_most: int | None = None, cut: float = math.inf) -> Step:
    """A batch of a query with one source."""
    return Step(((surely, cut),), ((surely if at_most is None else at_most, cut),), Counter(rows))


@pytest.mark.parametrize("batch", [[ROW], [ROW, ROW, OTHER], [ROW, ("10:06", 1, 2)]])
def test_another_result(batch) -> None:
    with pytest.raises(law.BoundsChangedTheResultError, match="all bounds: missing"):
        law.same("all bounds", [step(1, ROW), step(2, OTHER)], Counter(batch))


def test_the_same_result() -> None:
    law.same("all bounds", [step(1, ROW), step(2, OTHER)], Counter([OTHER, ROW]))


LATER = {
    "a batch later": ([step(1), step(2, ROW)], [step(1, ROW), step(2)]),
    "one of two equal rows": ([step(1, ROW), step(2, ROW)], [step(1, ROW, ROW), step(2)]),
    "only when more was below the cut": ([step(2, cut=5), step(2, ROW, cut=9)], [step(2, ROW, cut=5)]),
    "after a poll": ([step(1), step(1), step(2, ROW)], [step(1, ROW), step(2)]),
}


@pytest.mark.parametrize(("full", "fewer"), LATER.values(), ids=LATER)
def test_later(full, fewer) -> None:
    with pytest.raises(law.BoundsChangedTheResultError, match="only without bounds"):
        law.never_later(full, fewer)


NOT_LATER = {
    "earlier": ([step(1, ROW), step(2)], [step(1), step(2, ROW)]),
    "at the same place": ([step(1), step(2, ROW)], [step(1), step(2, ROW)]),
    "in a batch without new data": ([step(1), step(1, ROW), step(2)], [step(1, ROW), step(2)]),
    "batches are cut elsewhere": ([step(3, ROW)], [step(2, ROW), step(3)]),
    "in the midst of an event": ([step(1, at_most=2), step(2, ROW)], [step(1, ROW, at_most=2), step(2)]),
}


@pytest.mark.parametrize(("full", "fewer"), NOT_LATER.values(), ids=NOT_LATER)
def test_not_later(full, fewer) -> None:
    law.never_later(full, fewer)


IN_THE_NEXT_BATCH = [step(1), step(3), step(4, ROW), step(4)]
AT_ONCE = [step(2, ROW), step(4), step(4)]


def test_with_a_lag_a_result_may_come_in_the_next_batch() -> None:
    law.never_later(IN_THE_NEXT_BATCH, AT_ONCE, lag=1)
    with pytest.raises(law.BoundsChangedTheResultError):
        law.never_later(IN_THE_NEXT_BATCH, AT_ONCE)


def test_with_a_lag_no_result_may_come_two_batches_later_or_in_another_poll() -> None:
    two_later = [step(2), step(3), step(4, ROW)]
    after_the_poll = [step(2), step(2)._replace(ends_poll=True), step(4, ROW)]
    for later in (two_later, after_the_poll):
        with pytest.raises(law.BoundsChangedTheResultError):
            law.never_later(later, AT_ONCE, lag=1)


def test_what_bounds_were_good_for() -> None:
    assert law.earlier([step(1, ROW), step(1), step(2, OTHER), step(2)], [step(1), step(2, ROW, OTHER), step(2)]) == 1
