"""Column types with values that they keep, values of any kind at all, and what "the same value" means."""

import datetime as dt
import struct
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NAMES = [
    "it's",
    'say "x"',
    "a.b",
    "a`b",
    "größe-漢字-🚂",
    " ",
    "a b",
    "x\ny",
    "SELECT",
    "; DROP TABLE meta",
    "%s{}",
]
"""Odd names of columns, all of which Spark takes as well."""
WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
ZONES = st.sampled_from([None, dt.UTC, dt.timezone(dt.timedelta(hours=14)), dt.timezone(dt.timedelta(hours=-12))])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TIMES = st.datetimes(timezones=ZONES) | st.sampled_from([dt.datetime.min, dt.datetime.max])
DATES = st.dates()


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(1 - 10**precision, 10**precision - 1).map(lambda n: Decimal(n).scaleb(-scale, None))


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    **{name: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in WHOLE.items()},
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "STRING": TEXTS,
    "BINARY": st.binary(max_size=20),
    "DATE": DATES,
    "TIMESTAMP": TIMES,
    "TIMESTAMP_NTZ": TIMES,
    "DECIMAL(3,1)": decimals(3, 1),
    "DECIMAL(18,0)": st.integers(1 - 10**18, 10**18 - 1),
    "ARRAY<INT>": st.lists(st.none() | st.integers(-9, 9), max_size=3),
    "ARRAY<STRING>": st.lists(st.none() | TEXTS, max_size=3),
    "ARRAY<ARRAY<TIMESTAMP>>": st.lists(st.none() | st.lists(TIMES, max_size=2), max_size=2),
    "MAP<STRING, INT>": st.dictionaries(TEXTS, st.none() | st.integers(-9, 9), max_size=3),
    "MAP<DATE, ARRAY<DOUBLE>>": st.dictionaries(DATES, st.none() | st.lists(st.floats(), max_size=2), max_size=2),
    "STRUCT<a: INT, b: STRUCT<c: BINARY NOT NULL>>": st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(-9, 9),
            "b": st.none() | st.fixed_dictionaries({"c": st.binary(max_size=3)}),
        }
    ),
}
"""DDL of a type, and values that a column of it takes."""


class Odd:
    """A value whose repr fails, which no copy survives."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("no copy")

    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


class Color(str):
    """A subclass of str."""

    __slots__ = ()


_THINGS: list[Any] = [
    object(), int, len, ..., NotImplemented, 1 + 2j, Fraction(1, 3), Fraction(4, 2), Color("red"), range(3),
    dt.time(1), dt.timedelta(1), pd.NaT, pd.NA, pd.Timestamp("2020-01-01T00:00:00.123456789"), pd.Timestamp(-1),
    pd.Timestamp.min, pd.Timedelta(1), np.int8(5), np.uint64(2**64 - 1), np.float32(0.1), np.float16(0.5),
    np.bool_(True), np.str_("x"), np.bytes_(b"x"), np.datetime64("2020-01-01"), np.array([1, 2]), np.array([[1], [2]]),
    np.array(["a"]), pa.scalar(1), pa.scalar("x"), pa.scalar(None), pa.scalar([1]), pa.scalar(1, pa.timestamp("ns")),
    pa.scalar(2**62, pa.timestamp("us")), pa.array([1]), bytearray(b"x"), memoryview(b"xyz")[::2], {1, 2}, frozenset(),
    Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), Decimal("1E+999999"), Decimal("1E-999999"), 10**400,
    "\ud800", "a\x00b", "x" * 10_000, "2020-01-01", "2020-01-01T00:00:00.123456789Z", "24:00", "1", "\u0661",
    "'; DROP TABLE events; --", [[]], [()], {"a": 1}, {"a": 1, "b": None, "c": 2}, {None: 1}, [("a", 1), ("a", 2)],
    [(None, 1)], [("a",)], ("a", 1), {"a": 1, "b": {"c": None}}, {"b": None}, (1, (b"",)), (1, None), (x for x in ()),
]  # fmt: skip


def _thing(number: int) -> Any:
    return _THINGS[number]


_LEAVES = (
    st.integers(0, len(_THINGS) - 1).map(_thing)
    | st.none()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.text(st.characters(), max_size=5)
    | st.uuids()
    | st.times()
    | st.one_of(*KINDS.values())
)


def _held(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=2)


ANYTHING = _LEAVES | _held(_LEAVES) | _held(_LEAVES | _held(_LEAVES))
"""Values of any kind, most of which no column takes."""


def same(given: Any, got: Any, kind: pa.DataType) -> bool:
    """Whether ``got``, read from a column of ``kind``, is the value that was given."""
    types = pa.types
    if isinstance(given, pa.TimestampScalar) and given.is_valid:
        per_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[given.type.unit]
        return types.is_timestamp(kind) and given.value * 10**6 // per_second == _micros(got)
    if isinstance(given, pa.Scalar):
        given = given.as_py()
    if given is None or got is None:
        return given is got
    if types.is_list(kind):
        given = list(given)
        return len(given) == len(got) and all(same(a, b, kind.value_type) for a, b in zip(given, got, strict=True))
    if types.is_map(kind):
        pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
        keys = all(same(a[0], b[0], kind.key_type) for a, b in zip(pairs, got, strict=True))
        return keys and all(same(a[1], b[1], kind.item_type) for a, b in zip(pairs, got, strict=True))
    if types.is_struct(kind):
        values = [given[f.name] for f in kind] if isinstance(given, Mapping) else list(given)
        return all(same(value, got[f.name], f.type) for value, f in zip(values, kind, strict=True))
    return _same_leaf(given, got, kind)


def _same_leaf(given: Any, got: Any, kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_timestamp(kind):
        return _micros(given) == _micros(got)
    if types.is_floating(kind) and np.isnan(float(given)):
        return bool(np.isnan(got))
    if types.is_float32(kind) and not np.isinf(float(given)):
        given = struct.unpack("f", struct.pack("f", given))[0]
    if types.is_boolean(kind):
        return isinstance(given, bool | np.bool_) and bool(given) is got
    textual = (types.is_string(kind), str), (types.is_binary(kind), bytes | bytearray | memoryview)
    if any(is_kind and not isinstance(given, python) for is_kind, python in textual):
        return False
    if types.is_date(kind):
        return type(given) is dt.date and given == got
    return bool(given == got) and not isinstance(given, bool)


def _micros(time: Any) -> int:
    """Microseconds since 1970, by integers alone: an oracle of its own."""
    if isinstance(time, pd.Timestamp):
        return int(time.value) // 1000
    moment = dt.datetime.fromisoformat(time.strip()) if isinstance(time, str) else time
    moment = moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment
    return (moment - EPOCH) // dt.timedelta(microseconds=1)
