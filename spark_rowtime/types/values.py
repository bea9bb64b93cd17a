"""Converts Python values for a stream's columns: each value is kept exactly, or refused.

Arrow alone accepts values that it does not keep: the text "ab" as an ARRAY of two, 1.5 as a DATE, 1e300 as an
infinite FLOAT, an incomplete STRUCT; and a MAP made of [None] crashes the process. Rounding that is inherent in a
type is allowed: FLOAT keeps the nearest number, times are cut to microseconds towards the past.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, partial
from numbers import Integral, Real
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.timestamps import to_datetime

Rule = Callable[[Any], Any]

MISFITS = (pa.ArrowException, ValueError, TypeError, ArithmeticError, InvalidOptionError)
"""The errors that :func:`column` and a rule raise for values that do not fit."""
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The ends of the years 1 to 9999, the range of Python and of Spark, in microseconds."""
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The same range in days."""
_YEARS = {
    True: (pa.int64(), FIRST_TIME, LAST_TIME, "microseconds"),
    False: (pa.int32(), FIRST_DAY, LAST_DAY, "days"),
}
LARGEST_FLOAT = 3.4028235677973362e38
"""Numbers below this limit round to a finite FLOAT."""
BEYOND_WHOLE = 1 << 64
"""No column of whole numbers holds this."""
MOST_LOST_DIGITS = 38
"""A Decimal may have so many digits more behind the point than its column. Beyond that Arrow makes zeros of some, and
ends the process for one with millions."""


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Converts the values into an Arrow array of ``kind``; raises one of MISFITS."""
    if not set(map(type, values)) <= _plain(kind):
        values = list(map(rule(kind), values))
    elif pa.types.is_decimal(kind):
        for value in values:
            if type(value) is Decimal:
                _require_scale(value, kind.scale)
    array = _doubles(values) if pa.types.is_float64(kind) else pa.array(values, kind)
    if pa.types.is_timestamp(kind):
        check_years(array)
    return array


def _doubles(values: Sequence[Any]) -> pa.Array:
    """Arrow itself takes no whole number from 2^63 on, such as the 100000000000000000000 of JavaScript's JSON."""
    try:
        return pa.array(values, pa.float64())
    except pa.ArrowInvalid:
        return pa.array(list(map(rule(pa.float64()), values)), pa.float64())


def check_years(array: pa.Array | pa.ChunkedArray) -> None:
    """Raises ValueError if a timestamp or a date lies outside the years 1 to 9999."""
    whole, first, last, unit = _YEARS[pa.types.is_timestamp(array.type)]
    ends = pc.min_max(array.cast(whole))
    for at in (ends["min"].as_py(), ends["max"].as_py()):
        if at is not None and not first <= at <= last:
            raise ValueError(f"{at} {unit} since 1970 is outside the years 1 to 9999 in UTC")


def within_years(array: pa.Array) -> pa.Array:
    """The timestamps or dates, where one outside the years 1 to 9999 is the nearest one within."""
    whole, first, last, _ = _YEARS[pa.types.is_timestamp(array.type)]
    least, most = pa.scalar(first, whole), pa.scalar(last, whole)
    above = pc.max_element_wise(array.cast(whole), least, skip_nulls=False)
    return pc.min_element_wise(above, most, skip_nulls=False).cast(array.type)


@cache
def _plain(kind: pa.DataType) -> frozenset[type]:
    """The Python types whose values Arrow itself keeps exactly in such a column, or refuses."""
    types = pa.types
    some: set[type] = {type(None)}
    if types.is_integer(kind):
        some.add(int)
    elif types.is_float64(kind):
        some |= {float, int}
    elif types.is_decimal(kind):
        some |= {Decimal, int}
    else:
        exact = {pa.bool_(): bool, pa.string(): str, pa.binary(): bytes, pa.date32(): date}
        some |= {exact[kind]} if kind in exact else set()
    return frozenset(some)


@cache
def rule(kind: pa.DataType) -> Rule:
    """A function that returns a value as Arrow will keep it, as a copy if it is mutable; it raises one of MISFITS."""
    check = _flat_rule(kind) if kind.num_fields == 0 else _nested_rule(kind)

    def take(value: Any) -> Any:
        value = value.as_py() if isinstance(value, pa.Scalar) else value
        return None if value is None else check(value)

    return take


def _flat_rule(kind: pa.DataType) -> Rule:
    types = pa.types
    rules: list[tuple[Callable[[pa.DataType], bool], Rule]] = [
        (types.is_boolean, _boolean),
        (types.is_integer, _whole),
        (types.is_float32, _float),
        (types.is_float64, _double),
        (types.is_decimal, partial(_decimal, scale=kind.scale if types.is_decimal(kind) else 0)),
        (types.is_string, _text),
        (types.is_binary, _bytes),
        (types.is_date, _date),
        (types.is_timestamp, _time),
    ]
    return next(take for is_kind, take in rules if is_kind(kind))


def _boolean(value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):  # numpy's
        return bool(value)
    raise ValueError("it is neither True nor False")


def _whole(value: Any) -> int:
    number = None if type(value) is bool else value
    if isinstance(number, Integral) or (isinstance(number, Real) and value % 1 == 0):
        return int(value)
    if isinstance(number, Decimal) and -BEYOND_WHOLE < value < BEYOND_WHOLE and value == value.to_integral_value():
        return int(value)
    raise ValueError("it is not a whole number")


def _double(value: Any) -> float:
    if type(value) is not bool and isinstance(value, Real):
        number = float(value)
        if number == value or value != value:  # noqa: PLR0124  (NaN)
            return number
    raise ValueError("it is not a number that a DOUBLE holds exactly")


def _float(value: Any) -> float:
    number = _double(value)
    if LARGEST_FLOAT <= abs(number) < float("inf"):
        raise ValueError("it is beyond the largest FLOAT")
    return number


def _require_scale(value: Decimal, scale: int) -> None:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent - scale > MOST_LOST_DIGITS:
        raise ValueError("it has more digits behind the point than the column")


def _decimal(value: Any, scale: int) -> Decimal | int:
    if isinstance(value, Decimal):
        _require_scale(value, scale)
        return value
    if type(value) is not bool and isinstance(value, Integral):
        return int(value)
    raise ValueError("it is neither a Decimal nor a whole number")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("it is not a string")


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise ValueError("it is not bytes")


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise ValueError("it is not a date without a time of day")


def _time(value: Any) -> datetime:
    time = to_datetime(value)
    return time.astimezone(UTC) if time.tzinfo is not None else time


def _nested_rule(kind: pa.DataType) -> Rule:
    if pa.types.is_list(kind):
        return _list_rule(kind)
    return _map_rule(kind) if pa.types.is_map(kind) else _struct_rule(kind)


def _list_rule(kind: pa.ListType) -> Rule:
    item = _child(kind.value_field, "an element")

    def take(value: Any) -> list[Any]:
        array = getattr(value, "ndim", 0) == 1  # numpy's
        if isinstance(value, str | bytes | bytearray | memoryview) or not (array or isinstance(value, Sequence)):
            raise TypeError("it is not a sequence")
        numbers = array and value.dtype.kind not in "mM"  # of times, numpy would make numbers, too
        return [item(one) for one in (value.tolist() if numbers else value)]

    return take


def _map_rule(kind: pa.MapType) -> Rule:
    key, item = _child(kind.key_field, "a key"), _child(kind.item_field, "a value")

    def take(value: Any) -> list[tuple[Any, Any]]:
        pairs = list(value.items()) if isinstance(value, Mapping) else value
        if not isinstance(pairs, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
            raise ValueError("it is neither a mapping nor a sequence of pairs")
        taken = [(key(one), item(other)) for one, other in pairs]
        if _any_twice([one for one, _ in taken]):
            raise ValueError("the same key occurs twice")
        return taken

    return take


def _any_twice(keys: list[Any]) -> bool:
    try:
        return len(set(keys)) < len(keys)
    except TypeError:  # lists and dicts
        return any(key in keys[:at] for at, key in enumerate(keys))


def named(row: Any) -> Any:
    """A tuple that names its fields, such as a namedtuple or a Spark Row, as a mapping; any other value unchanged."""
    if not isinstance(row, tuple) or type(row) is tuple:
        return row
    names = getattr(row, "__fields__", None) or getattr(row, "_fields", None) or ()
    return dict(zip(names, row, strict=True)) if len(row) == len(names) == len(set(names)) else row


def _struct_rule(kind: pa.StructType) -> Rule:
    names = [field.name for field in kind]
    fields = {field.name: _child(field, repr(field.name)) for field in kind}

    def take(value: Any) -> dict[str, Any]:
        value = named(value)
        if isinstance(value, tuple | list) and len(value) == len(names):
            value = dict(zip(names, value, strict=True))
        if not isinstance(value, Mapping) or value.keys() != fields.keys():
            raise ValueError(f"it is not a mapping or sequence of the fields {names}; give None for an absent value")
        return {name: field(value[name]) for name, field in fields.items()}

    return take


def _child(field: pa.Field, what: str) -> Rule:
    """The rule for a part of a nested value: the rule of its type, and a check that a NOT NULL part is present."""
    take = rule(field.type)
    if field.nullable:
        return take

    def there(value: Any) -> Any:
        value = take(value)
        if value is None:
            raise ValueError(f"{what} is null, but NOT NULL")
        return value

    return there
