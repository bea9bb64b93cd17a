"""The rows of a test of a pipeline are compared by value, not by how they look."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.testing.difference import difference, show

TIMES = [datetime(2026, 1, 5, 14, 30), datetime(2026, 1, 5, 14, 30, tzinfo=UTC)]
VALUES = [
    None,
    True,
    1,
    1.5,
    float("nan"),
    float("inf"),
    b"IBM",
    Decimal("1.5"),
    [1],
    {"a": None},
    TIMES[0].date(),
    *TIMES,
]
LOOKS = [show([value]) for value in VALUES]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_text_that_looks_like_another_value_is_not_equal_to_it(value: object) -> None:
    text = show([value])
    assert difference([(text,)], [(value,)]) == sorted([f"- {text!r}", f"+ {text}"], key=lambda line: line[2:])


values = st.sampled_from(VALUES) | st.text("IBM ,'\"09:.TN") | st.sampled_from(LOOKS)
rows = st.lists(values, min_size=2, max_size=2)


@given(rows, rows)
def test_two_rows_have_the_same_line_only_if_they_are_equal(one: list[object], other: list[object]) -> None:
    assert (difference([one], [other]) == []) == (repr(one) == repr(other))
