"""cast: each value of an Arrow column is kept exactly, or the column is refused."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_rowtime.types.exact_casts import cast
from spark_rowtime.types.values import FIRST_TIME, LAST_TIME

REFUSED = (pa.ArrowException, ValueError)
SIGNED = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
UNSIGNED = {pa.uint8(): 8, pa.uint16(): 16, pa.uint32(): 32, pa.uint64(): 64}
BITS = {kind: (-(1 << bits), (1 << bits) - 1) for kind, bits in SIGNED.items()} | {
    kind: (0, (1 << bits) - 1) for kind, bits in UNSIGNED.items()
}
FLOATS = {pa.float16(): 16, pa.float32(): 32, pa.float64(): 64}
DECIMALS = [pa.decimal128(5, 2), pa.decimal128(20, 0), pa.decimal128(38, 10)]
TARGETS = [*SIGNED, pa.float32(), pa.float64(), *DECIMALS]


def integers(kind: pa.DataType) -> st.SearchStrategy:
    least, largest = BITS[kind]
    edges = [e + step for e in (1 << n for n in (7, 8, 15, 16, 24, 31, 32, 53, 63)) for step in (-1, 0, 1)]
    near = [edge for edge in [*edges, *(-e for e in edges)] if least <= edge <= largest]
    return st.integers(least, largest) | st.sampled_from([0, 1, *near])


def decimals(kind: pa.DataType) -> st.SearchStrategy:
    most = 10**kind.precision - 1
    return st.integers(-most, most).map(lambda digits: Decimal(f"{digits}e-{kind.scale}")) | st.just(Decimal(1))


SOURCES = {
    **{kind: integers(kind) for kind in BITS},
    **{kind: st.floats(width=width) | st.sampled_from([0.5, 3.0, -0.0]) for kind, width in FLOATS.items()},
    **{kind: decimals(kind) for kind in DECIMALS},
}


def same(given: object, kept: object, kind: pa.DataType) -> bool:
    """Whether ``kept`` is the value itself; in a FLOAT, the nearest number to it."""
    if given is None or kept is None or (isinstance(given, float) and math.isnan(given)):
        return given is kept or (kept is not None and math.isnan(kept))
    return kept == (float(np.float32(given)) if kind == pa.float32() else given)


@settings(max_examples=300)
@given(st.sampled_from(list(SOURCES)), st.sampled_from(TARGETS), st.data())
def test_a_number_is_kept_exactly_or_refused(source, kind, data):
    values = data.draw(st.lists(st.none() | SOURCES[source], max_size=3))
    column = pa.chunked_array([pa.array([None if v is None else as_source(v, source) for v in values], source)])
    try:
        done = cast(column, kind)
    except REFUSED:
        return
    assert done.type == kind
    assert all(same(a, b, kind) for a, b in zip(column.to_pylist(), done.to_pylist(), strict=True))


def as_source(value: object, source: pa.DataType) -> object:
    return np.float16(value) if source == pa.float16() else value


@settings(max_examples=150)
@given(st.sampled_from(list(BITS)), st.sampled_from(list(SIGNED)), st.data())
def test_an_integer_is_kept_exactly_where_it_fits(source, kind, data):
    """The rule would be kept, too, by a cast that refuses everything."""
    value = data.draw(SOURCES[source])
    column = pa.chunked_array([pa.array([value], source)])
    least, largest = BITS[kind]
    if least <= value <= largest:
        assert cast(column, kind).to_pylist() == [value]
    else:
        with pytest.raises(REFUSED):
            cast(column, kind)


@pytest.mark.parametrize(
    ("given", "kind", "kept"),
    [
        (pa.array([3.0, -0.0, None]), pa.int32(), [3, 0, None]),
        (pa.array([Decimal("7.00")]), pa.int64(), [7]),
        (pa.array([7], pa.int8()), pa.decimal128(5, 2), [Decimal("7.00")]),
        (pa.array([Decimal("1.50")]), pa.decimal128(38, 10), [Decimal("1.5")]),
        (pa.array([0.1]), pa.float32(), [float(np.float32(0.1))]),
        (pa.array([math.inf, -math.inf]), pa.float32(), [math.inf, -math.inf]),
        (pa.array(["a", None], pa.large_string()), pa.string(), ["a", None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), pa.string(), ["a", "b", "a"]),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
        (pa.array([None, None], pa.null()), pa.int32(), [None, None]),
        (pa.array([date(2026, 1, 1)], pa.date64()), pa.date32(), [date(2026, 1, 1)]),
        (pa.array([[1, None]], pa.large_list(pa.int64())), pa.list_(pa.int32()), [[1, None]]),
        (pa.array([{"x": 1}], pa.struct([("x", pa.int64())])), pa.struct([("x", pa.int16())]), [{"x": 1}]),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), pa.map_(pa.string(), pa.int8()), [[("k", 1)]]),
    ],
    ids=lambda value: str(getattr(value, "type", value)).replace("\n", " "),
)
def test_what_can_be_kept_is_kept(given, kind, kept):
    assert cast(pa.chunked_array([given]), kind).to_pylist() == kept


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pa.array(["1"]), pa.int32()),
        (pa.array([1]), pa.string()),
        (pa.array([b"a"]), pa.string()),
        (pa.array(["a"]), pa.binary()),
        (pa.array([True]), pa.int8()),
        (pa.array([1]), pa.bool_()),
        (pa.array([0]), pa.timestamp("us")),
        (pa.array([0], pa.timestamp("us")), pa.date32()),
        (pa.array([date(2026, 1, 1)]), pa.timestamp("us")),
        (pa.array(["2026-01-01"]), pa.date32()),
        (pa.array([Decimal("0.1")]), pa.float64()),
        (pa.array([0.5]), pa.decimal128(5, 2)),
        (pa.array([[1.0]]), pa.list_(pa.float32())),
        (pa.array([{"x": 1}]), pa.struct([("y", pa.int64())])),
    ],
    ids=lambda value: str(getattr(value, "type", value)).replace("\n", " "),
)
def test_a_type_that_is_no_form_of_the_other_is_refused(given, kind):
    with pytest.raises(ValueError, match="without loss"):
        cast(pa.chunked_array([given]), kind)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_nanoseconds_are_cut_to_microseconds_towards_the_past(nanos):
    [kept] = cast(pa.chunked_array([pa.array([nanos], pa.timestamp("ns"))]), pa.timestamp("us")).cast(pa.int64())
    assert kept.as_py() == nanos // 1000


@given(st.sampled_from(["s", "ms", "us"]), st.sampled_from([None, "UTC", "Asia/Tokyo"]), st.data())
def test_a_time_of_another_unit_is_the_same_moment_within_the_years_1_to_9999(unit, zone, data):
    step = {"s": 1_000_000, "ms": 1000, "us": 1}[unit]
    at = data.draw(st.integers(-(2**63) // step + 1, 2**63 // step - 1) | st.integers(-(10**9), 10**9))
    column = pa.chunked_array([pa.array([at], pa.timestamp(unit, zone))])
    if FIRST_TIME <= at * step <= LAST_TIME:
        assert cast(column, pa.timestamp("us", zone)).cast(pa.int64()).to_pylist() == [at * step]
    else:
        with pytest.raises(REFUSED):
            cast(column, pa.timestamp("us", zone))


def test_a_finite_number_does_not_become_infinite():
    with pytest.raises(ValueError, match="beyond the largest FLOAT"):
        cast(pa.chunked_array([pa.array([1.0, 1e300])]), pa.float32())


def test_a_value_that_its_own_type_forbids_is_refused():
    item = pa.field("x", pa.int32(), nullable=False)
    with_null = pa.StructArray.from_arrays([pa.array([1, None], pa.int32())], fields=[item])
    listed = pa.ListArray.from_arrays([0, 2], with_null.field(0), type=pa.list_(item))
    twice = pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int32()))
    not_text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    for column, said in (
        (with_null, "its part 'x' is NOT NULL, but 1"),
        (listed, "its part 'x' is NOT NULL, but 1"),
        (twice, "key twice"),
        (not_text, "UTF8"),
    ):
        with pytest.raises(REFUSED, match=said):
            cast(pa.chunked_array([column]), column.type)


def test_a_key_twice_counts_within_one_map_only():
    kind = pa.map_(pa.struct([("x", pa.int32())]), pa.int32())
    keys = [({"x": 1}, 1), ({"x": 2}, 2)]
    assert cast(pa.chunked_array([pa.array([keys, keys], kind)]), kind).length() == 2
    with pytest.raises(ValueError, match="key twice"):
        cast(pa.chunked_array([pa.array([[*keys, keys[0]]], kind)]), kind)


def test_every_chunk_is_checked():
    fine, wrong = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), LAST_TIME + 1
    column = pa.chunked_array([fine, pa.array([wrong], pa.timestamp("us", "UTC"))])
    with pytest.raises(ValueError, match="years 1 to 9999"):
        cast(column, column.type)
