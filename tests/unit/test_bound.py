"""RowtimeBound: the laws of its docstring, and how bounds combine."""

import pickle
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import us, when

from spark_rowtime import InvalidOptionError, RowtimeBound
from spark_rowtime.bounds.bound import as_bound, stronger, weaker
from spark_rowtime.types.timestamps import END, LARGEST, LEAST, from_micros

MICROS = st.integers(LEAST, LARGEST - 1)
BOUNDS = st.builds(lambda micros, strict: RowtimeBound(from_micros(micros), strict), MICROS, st.booleans())
FLOORS = st.none() | st.integers(1, 50)
EPOCH = datetime.fromtimestamp(0, UTC)


@given(MICROS)
def test_canonical(micros):
    """canonical: non-strict t has floor t, strict t floor t + 1 us; one floor: equal, and one hash."""
    t = from_micros(micros)
    assert RowtimeBound(t).floor == micros
    assert RowtimeBound(t, strict=True).floor == micros + 1
    strict, next_one = RowtimeBound(t, strict=True), RowtimeBound(t + timedelta(microseconds=1))
    assert strict == next_one
    assert hash(strict) == hash(next_one)


@given(BOUNDS, BOUNDS)
def test_total_order(one, other):
    """total order: bounds compare as their floors do."""
    assert (one < other) == (one.floor < other.floor)
    assert (one <= other) == (one.floor <= other.floor)
    assert (one > other) == (one.floor > other.floor)
    assert (one == other) == (one.floor == other.floor)


@given(MICROS)
def test_strict_is_stronger(micros):
    t = from_micros(micros)
    assert RowtimeBound(t, strict=True) > RowtimeBound(t)


@given(st.integers(1, 5), st.booleans(), st.integers(1, 8))
def test_admission(t, strict, rowtime):
    """admission: a row is late exactly when its rowtime is below the floor."""
    bound = RowtimeBound(from_micros(t), strict)
    promised = rowtime > t if strict else rowtime >= t
    assert (rowtime < bound.floor) == (not promised)


@given(BOUNDS)
def test_pickles(bound):
    again = pickle.loads(pickle.dumps(bound))
    assert (again, again.time, again.strict) == (bound, bound.time, bound.strict)


@given(st.integers(-1000, 1000) | st.integers(LARGEST - 5, LARGEST + 1))
def test_a_computed_floor_pickles_too(floor):
    bound = RowtimeBound.fromFloor(floor)
    assert pickle.loads(pickle.dumps(bound)).floor == floor == bound.floor


def test_what_it_says():
    assert str(RowtimeBound(when("12:05"))) == "every later row is at or after 2006-09-11T12:05:00Z"
    assert str(RowtimeBound(when("12:05"), strict=True)) == "every later row is after 2006-09-11T12:05:00Z"
    assert repr(RowtimeBound(when("12:05"))) == "RowtimeBound('2006-09-11T12:05:00Z')"
    assert repr(RowtimeBound(when("12:05"), True)) == "RowtimeBound('2006-09-11T12:05:00Z', strict=True)"
    assert eval(repr(RowtimeBound(when("12:05"), True))) == RowtimeBound(when("12:05"), True)


def test_strict_five_is_non_strict_five_and_a_tick():
    assert RowtimeBound(when("5:00"), strict=True) == RowtimeBound(when("5:00:00.000001"))


def test_time_is_aware_utc():
    bound = RowtimeBound(datetime(2006, 9, 11, 14, 5, tzinfo=timezone(timedelta(hours=2))), strict=True)
    assert bound.time == when("12:05")
    assert bound.time.utcoffset() == timedelta(0)
    assert bound.strict is True


@pytest.mark.parametrize(
    "t",
    [
        when("12:05"),
        "2006-09-11T12:05:00Z",
        "2006-09-11 12:05",
        datetime(2006, 9, 11, 12, 5),
        pa.scalar(us("12:05"), pa.timestamp("us")),
    ],
)
def test_takes_every_form_of_time(t):
    assert RowtimeBound(t).floor == us("12:05")


def test_naive_times_are_in_tz():
    assert RowtimeBound("2006-09-11T14:05", tz="Europe/Berlin").floor == us("12:05")
    assert RowtimeBound(when("12:05"), tz="Europe/Berlin").floor == us("12:05")


@pytest.mark.parametrize("t", [EPOCH, EPOCH - timedelta(days=1), datetime.max, "noon", 12, None])
def test_refuses_what_is_no_rowtime(t):
    with pytest.raises(InvalidOptionError):
        RowtimeBound(t)


def test_immutable():
    bound = RowtimeBound(when("12:05"))
    for name in ("time", "strict", "floor", "other"):
        with pytest.raises(AttributeError):
            setattr(bound, name, 1)


def test_compares_with_bounds_only():
    bound = RowtimeBound(when("12:05"))
    assert bound != when("12:05")
    assert bound != bound.floor
    with pytest.raises(TypeError):
        assert bound < bound.floor


def key(floor):
    return float("-inf") if floor is None else floor


@given(FLOORS, FLOORS, FLOORS)
def test_stronger_and_weaker_are_max_and_min_with_none_below_all(a, b, c):
    assert key(stronger(a, b)) == max(key(a), key(b))
    assert key(weaker(a, b)) == min(key(a), key(b))
    assert stronger(a, stronger(b, c)) == stronger(stronger(a, b), c)
    assert weaker(a, weaker(b, c)) == weaker(weaker(a, b), c)


def test_as_bound():
    assert as_bound(None) is None
    assert as_bound(us("12:05")) == RowtimeBound(when("12:05"))


def test_the_end_of_time_is_a_bound_but_no_time_gives_it():
    end, last = RowtimeBound.END, from_micros(LARGEST)
    with pytest.raises(InvalidOptionError, match=r"call close\(complete=True\)"):
        RowtimeBound(last, strict=True)
    assert RowtimeBound(last) < end
    assert not RowtimeBound(last).isEnd
    assert (end.isEnd, end.floor, end.time, end.strict) == (True, END, last, True)
    for same in (end, str(end), RowtimeBound.fromFloor(END), RowtimeBound.fromFloor(END + 1), as_bound(END)):
        assert RowtimeBound(same) == end
    assert (str(end), repr(end)) == ("no row follows", "RowtimeBound.END")
    assert pickle.loads(pickle.dumps(end)) == end


def test_the_end_of_time_is_stronger_than_any_bound_and_weakens_none():
    assert stronger(END, LARGEST) == END
    assert weaker(END, LARGEST) == LARGEST
    assert weaker(END, None) is None


@pytest.mark.parametrize("strict", ["no", 0, None])
def test_strict_is_true_or_false(strict):
    with pytest.raises(InvalidOptionError, match="strict"):
        RowtimeBound(when("10:00"), strict)


@pytest.mark.parametrize("strict", [False, True])
def test_a_bound_is_taken_for_a_bound_and_so_is_its_text(strict):
    bound = RowtimeBound("2006-09-11T12:05:00.5Z", strict)
    for same in (bound, str(bound)):
        assert RowtimeBound(same) == bound
        assert RowtimeBound(same).strict is strict
        with pytest.raises(InvalidOptionError, match="is already a bound"):
            RowtimeBound(same, tz="Europe/Berlin")
    assert RowtimeBound(bound, strict=strict) == bound
    if not strict:
        with pytest.raises(InvalidOptionError, match="is already a bound"):
            RowtimeBound(bound, strict=True)


def test_no_bound_says_where_it_comes_from():
    with pytest.raises(InvalidOptionError, match="are None while nothing is promised"):
        RowtimeBound(None)


def test_half_the_text_of_a_bound_is_none():
    for text in ("every later row is", "every later row is after", "every later row is before 2006-09-11"):
        with pytest.raises(InvalidOptionError, match="is not a time"):
            RowtimeBound(text)
