"""Any value through sendRow and sendRows: it goes round exactly, or the call is refused and nothing of it lands."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import spark_rowtime as rt
from spark_rowtime.types.short_repr import short_repr
from tests.hostile.feeds import MANY, TIME, Feed
from tests.hostile.kinds import ANYTHING, KINDS, Odd, same


def refused_by_name(error: rt.SchemaMismatchError, value: Any) -> None:
    assert error.values["column"] == "v"
    assert error.values["value"] == short_repr(value)
    assert short_repr(value) in str(error)
    assert len(str(error)) < 1000


def one_by_one(feed: Feed, value: Any) -> None:
    by_row = feed.outcome(lambda: feed.sink.sendRow((TIME, value)))
    by_rows = feed.outcome(lambda: feed.sink.sendRows([(TIME, None), {"rowtime": TIME, "v": value}]))
    if isinstance(by_row, rt.SchemaMismatchError):
        refused_by_name(by_row, value)
        assert isinstance(by_rows, rt.SchemaMismatchError)
        refused_by_name(by_rows, value)
        return
    [got] = by_row
    assert same(value, got, feed.kind)
    assert not isinstance(by_rows, rt.SchemaMismatchError)
    assert same(None, by_rows[0], feed.kind)
    assert same(value, by_rows[1], feed.kind)
    by_arrow = feed.outcome(lambda: feed.sink.sendRows(feed.arrow(pa.array([got], feed.kind))))
    assert not isinstance(by_arrow, rt.SchemaMismatchError)
    assert same(got, by_arrow[0], feed.kind)


@pytest.mark.search
@pytest.mark.parametrize("kind", KINDS)
def test_a_value_of_the_type_goes_round(kind: str) -> None:
    with Feed(kind) as feed:

        @MANY
        @given(KINDS[kind])
        def check(value: Any) -> None:
            one_by_one(feed, value)

        check()


@pytest.mark.search
@pytest.mark.parametrize("kind", KINDS)
def test_any_value_goes_round_or_is_refused(kind: str) -> None:
    with Feed(kind) as feed:

        @MANY
        @given(ANYTHING)
        def check(value: Any) -> None:
            one_by_one(feed, value)

        check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_cannot_be_shown_is_refused(kind: str) -> None:
    with Feed(kind) as feed:
        for value in (Odd(), [Odd()], -(10**5000), [10**5000]):
            one_by_one(feed, value)
            assert feed.landed() == []


@pytest.mark.parametrize("kind", ["DECIMAL(10,2)", "ARRAY<DECIMAL(38,38)>", "BIGINT", "DOUBLE"])
def test_a_number_of_millions_of_digits_is_refused(kind: str) -> None:
    """Arrow makes zeros of some, and of one with millions of digits the process dies."""
    zero = ["0e-9000000"] if "DECIMAL" in kind else []
    few = ["1e-999", "1.23e-77", "99999999e-120", f"0.{'0' * 80}123"]
    numbers = [Decimal(text) for text in ("1e-9000000", f"0.{'1' * 5_000_000}", "1e9000000", "1e-1000027", *few, *zero)]
    with Feed(kind) as feed:
        for value in [*numbers, *([number] for number in numbers)]:
            with pytest.raises(rt.SchemaMismatchError):
                feed.sink.sendRow((TIME, value))
            with pytest.raises(rt.SchemaMismatchError):
                feed.sink.sendRows([(TIME, value)])
        assert feed.landed() == []


def test_times_of_numpy_in_an_array_are_no_numbers() -> None:
    rt.createStream("memory://numpy-times", "rowtime TIMESTAMP NOT NULL, x ARRAY<BIGINT>")
    with (
        rt.openSink("memory://numpy-times") as sink,
        pytest.raises(rt.SchemaMismatchError, match=r"Row 0: x=.*it is not a whole number"),
    ):
        sink.sendRow((TIME, np.array(["2026-01-05"], "M8[ns]")))
