"""Which tests are long: `make test` leaves them to `make test-long`.

- Those with the mark ``long``, at a test, a file (``pytestmark``) or a case (``pytest.param(..., marks=...)``).
- In WITH_QUERIES, where a case takes a second or more: of a test with many cases those after the first. Where each case
  is a promise of its own, the mark ``each`` keeps all of them short.

Those with the mark ``night`` are left to `make test-night`: they take a minute or more of two cores, and what they
show a shorter test shows with fewer kills, fewer versions or smaller sizes. So are, in WITH_QUERIES, of the long cases
of a test those after the first LONG_CASES.

So a new test is short by itself, in the job of its folder. A test with the mark ``search`` tries cases at random: it is
short, and `make test-long` runs it again with its whole budget.
"""

from collections import Counter

import pytest

WITH_QUERIES = ("cluster", "conformance", "crash", "kafka", "lakehouse", "spark", "tables")
"""Folders whose tests start queries, brokers or processes."""
LONG_CASES = 1


def mark_long(items: list[pytest.Item]) -> None:
    """Gives the marks ``long`` and ``night`` to the cases that have them by the rule."""
    short, long = Counter[str](), Counter[str]()
    for item in filter(_has_long_cases, items):
        test = item.nodeid.partition("[")[0]
        if not item.get_closest_marker("long"):
            short[test] += 1
            if short[test] == 1:
                continue
            item.add_marker(pytest.mark.long)
        long[test] += 1
        if long[test] > LONG_CASES:
            item.add_marker(pytest.mark.night)


def _has_long_cases(item: pytest.Item) -> bool:
    return item.path.parent.name in WITH_QUERIES and not item.get_closest_marker("each")
