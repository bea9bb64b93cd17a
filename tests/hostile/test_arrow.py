"""Arrow data of any type through sendRows: each value is kept exactly, or the call is refused and names the column."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spark_rowtime as rt
from tests.hostile.feeds import MANY, TIME, Feed
from tests.hostile.kinds import DATES, KINDS, TEXTS, same

NUMBERS = st.integers(-300, 300) | st.integers(-(2**63), 2**64 - 1)
TICKS = st.integers(-(2**63), 2**63 - 1)
SOURCES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.null(): st.none(),
    pa.bool_(): st.booleans(),
    **dict.fromkeys((pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()), NUMBERS),
    pa.float16(): st.floats(width=16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | st.integers(-99, 99).map(float) | st.just(3.5e38),
    pa.decimal128(5, 1): st.decimals(-99, 99, places=1),
    pa.decimal256(60, 2): st.decimals(-99, 99, places=1),
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), TEXTS),
    pa.dictionary(pa.int8(), pa.string()): TEXTS,
    **{kind: st.binary(max_size=4) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())},
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.date32(): DATES | st.integers(-(2**31), 2**31 - 1),
    pa.date64(): DATES,
    **{pa.timestamp(unit): TICKS for unit in ("s", "ms", "us", "ns")},
    **{pa.timestamp(unit, "Asia/Kolkata"): TICKS for unit in ("s", "us", "ns")},
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(),
    pa.list_(pa.int64()): st.lists(st.none() | NUMBERS, max_size=3),
    pa.list_(pa.float64(), 2): st.lists(st.floats(), min_size=2, max_size=2),
    pa.large_list(pa.large_string()): st.lists(st.none() | TEXTS, max_size=3),
    pa.list_(pa.list_(pa.timestamp("ns"))): st.lists(st.lists(TICKS, max_size=2), max_size=2),
    pa.map_(pa.string(), pa.int64()): st.lists(st.tuples(st.sampled_from("ab"), st.none() | NUMBERS), max_size=3),
    pa.map_(pa.date32(), pa.list_(pa.float64())): st.lists(st.tuples(DATES, st.none()), max_size=2),
    pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.binary())]))]): st.fixed_dictionaries(
        {"a": st.none() | NUMBERS, "b": st.none() | st.fixed_dictionaries({"c": st.none() | st.binary(max_size=2)})}
    ),
    pa.struct([("b", pa.int64()), ("a", pa.int64())]): st.just({"b": 1, "a": 2}),
}
"""Arrow types, the stream's own and others, with values."""


@st.composite
def arrays(draw: st.DrawFn) -> pa.Array:
    """One to three values of some type, some of them null."""
    kind = draw(st.sampled_from(list(SOURCES)))
    values = draw(st.lists(st.none() | SOURCES[kind], min_size=1, max_size=3))
    fits = [value for value in values if _made(value, kind)] or [None]
    return pa.array(fits, kind)


def _made(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, ValueError, OverflowError):
        return False
    return True


@pytest.mark.search
@pytest.mark.parametrize("kind", KINDS)
def test_arrow_data_goes_round_or_is_refused(kind: str) -> None:
    with Feed(kind) as feed:

        @MANY
        @given(arrays())
        def check(array: pa.Array) -> None:
            got = feed.outcome(lambda: feed.sink.sendRows(feed.arrow(array)))
            if isinstance(got, rt.SchemaMismatchError):
                assert got.values["column"] == "v"
                assert array.type != feed.kind or pa.types.is_temporal(array.type) or pa.types.is_map(array.type)
                return
            assert len(got) == len(array)
            for given_value, got_value in zip(array, got, strict=True):
                assert same(given_value, got_value, feed.kind)

        check()


def raw_text(ends: list[int], data: bytes) -> pa.Array:
    """Texts that end there in ``data``, as another library may hand them over: nobody has looked at them."""
    offsets = b"".join(end.to_bytes(4, "little") for end in [0, *ends])
    return pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


NOT_NULL = "STRUCT<a: INT NOT NULL>"
MALFORMED = [
    ("STRING", lambda: raw_text([2], b"\xff\xfe"), "UTF8"),
    ("STRING", lambda: raw_text([1 << 30, 2], b"ab"), "offset"),
    ("FLOAT", lambda: pa.array([1e39, None]), "1e+39"),
    ("FLOAT", lambda: pa.array([-1e300, float("inf")]), "1e+300"),
    ("DATE", lambda: pa.array([2_932_897], pa.date32()), "years 1 to 9999"),
    ("TIMESTAMP", lambda: pa.array([-(2**62)], pa.timestamp("us")), "years 1 to 9999"),
    ("MAP<STRING, INT>", lambda: pa.array([[("a", 1)], [("b", 1), ("b", 2)]], pa.map_("string", "int32")), "twice"),
    (NOT_NULL, lambda: pa.array([{"a": 1}, {"a": None}], pa.struct([("a", pa.int32())])), "has nulls"),
    (
        "ARRAY<STRUCT<a: INT NOT NULL>>",
        lambda: pa.array([[{"a": None}]], pa.list_(pa.struct([("a", pa.int32())]))),
        "null",
    ),
    (NOT_NULL, lambda: pa.array([{"b": 1}]), "without loss"),
    ("ARRAY<STRING>", lambda: pa.array(["ab"]), "without loss"),
]
"""A type, Arrow data that its column must not take, and what the error says."""


@pytest.mark.parametrize(("kind", "made", "said"), MALFORMED)
def test_malformed_arrow_data_is_refused(kind: str, made: Any, said: str) -> None:
    with Feed(kind) as feed:
        error = feed.outcome(lambda: feed.sink.sendRows(feed.arrow(made())))
        assert isinstance(error, rt.SchemaMismatchError)
        assert "Column 'v'" in str(error)
        assert said in str(error)


@pytest.mark.parametrize(("names", "twice"), [("rowtime v v", "v"), ("rowtime rowtime v", "rowtime"), ("v x x", "x")])
def test_a_column_that_is_there_twice_is_named(names: str, twice: str) -> None:
    with Feed("STRING") as feed:
        array = pa.array([TIME])
        rows = pa.Table.from_arrays([array, array, array], names=names.split())
        error = feed.outcome(lambda: feed.sink.sendRows(rows))
        assert isinstance(error, rt.SchemaMismatchError)
        assert f"more than once ['{twice}']" in str(error)


def test_null_parts_that_may_be_null_are_taken() -> None:
    with Feed("STRUCT<a: INT NOT NULL>") as feed:
        assert feed.outcome(lambda: feed.sink.sendRows(feed.arrow(pa.array([None, {"a": 1}])))) == [None, {"a": 1}]


def test_finer_digits_are_cut_towards_the_past() -> None:
    nanos = [-1, -1000, -1001, 1999, None]
    with Feed("TIMESTAMP_NTZ") as feed:
        got = feed.outcome(lambda: feed.sink.sendRows(feed.arrow(pa.array(nanos, pa.timestamp("ns")))))
        assert got == [value and dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value // 1000) for value in nanos]


def test_megabytes_in_one_value() -> None:
    text = "größe" * 1_000_000
    with Feed("STRING") as feed:
        for send in (
            lambda: feed.sink.sendRow((TIME, text)),
            lambda: feed.sink.sendRows([(TIME, text)]),
            lambda: feed.sink.sendRows(feed.arrow(pa.array([text]))),
        ):
            assert feed.outcome(send) == [text]
