"""Casts Arrow columns to a stream's types: each value is kept exactly, or the column is refused.

Arrow's own casts parse texts, print numbers, truncate dates, and turn finite numbers into infinite ones. Rounding
that is inherent in a type is allowed: FLOAT keeps the nearest number, times are cut to microseconds
towards the past. An array from a caller may also contain what its type forbids; this is checked, too.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.types.values import check_years

_Is = Callable[[pa.DataType], bool]
MICROS = pa.timestamp("us")
_TYPES = pa.types
_EXACT: list[tuple[_Is, tuple[_Is, ...]]] = [
    (_TYPES.is_integer, (_TYPES.is_integer, _TYPES.is_floating, _TYPES.is_decimal)),
    (_TYPES.is_float32, (_TYPES.is_integer, _TYPES.is_float16)),
    (_TYPES.is_float64, (_TYPES.is_integer, _TYPES.is_floating)),
    (_TYPES.is_decimal, (_TYPES.is_integer, _TYPES.is_decimal)),
    (_TYPES.is_string, (_TYPES.is_large_string, _TYPES.is_string_view)),
    (_TYPES.is_binary, (_TYPES.is_large_binary, _TYPES.is_binary_view, _TYPES.is_fixed_size_binary)),
    (_TYPES.is_timestamp, (_TYPES.is_timestamp,)),
    (_TYPES.is_date, (_TYPES.is_date,)),
]
"""Target types, and the source types from which Arrow's safe cast, or the one below, keeps or refuses each value."""


def cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Casts the column to ``kind``; raises pa.ArrowException or ValueError, which state the reason."""
    column.validate(full=True)
    if column.type != kind:
        if not _castable(column.type, kind):
            raise ValueError(f"{column.type} cannot be cast to {kind} without loss")
        column = pa.chunked_array([_cast(chunk, kind) for chunk in column.chunks], kind)
    for chunk in column.chunks:
        _check(chunk)
    return column


def way_to_times(given: pa.DataType, kind: pa.DataType) -> str:
    """Which cast makes times of a column of texts or of numbers, as a sentence; empty for other columns."""
    if not _TYPES.is_timestamp(kind):
        return ""
    if _TYPES.is_string(given) or _TYPES.is_large_string(given):
        return " Of texts in ISO 8601, column.cast(pa.timestamp('us', 'UTC')) makes times."
    if _TYPES.is_integer(given):
        return (
            " Of numbers, column.cast(pa.timestamp(unit, 'UTC')) makes times; unit is 's', 'ms' or 'us', as they count."
        )
    return ""


def _castable(given: pa.DataType, kind: pa.DataType, part: bool = False) -> bool:
    """Whether ``_EXACT`` allows the cast. ``part``: the type is part of a nested type."""
    types = pa.types
    if types.is_dictionary(given):
        return not part and _castable(given.value_type, kind)
    if given == kind or types.is_null(given):
        return True
    if kind.num_fields:
        return _castable_parts(given, kind)
    if types.is_float32(kind) and types.is_float64(given):
        return not part
    return any(into(kind) and any(one(given) for one in sources) for into, sources in _EXACT)


def _castable_parts(given: pa.DataType, kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_list(kind):
        lists = types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given)
        return bool(lists) and _castable(given.value_type, kind.value_type, part=True)
    if types.is_map(kind):
        keys = bool(types.is_map(given)) and _castable(given.key_type, kind.key_type, part=True)
        return keys and _castable(given.item_type, kind.item_type, part=True)
    same = bool(types.is_struct(given)) and [f.name for f in given] == [f.name for f in kind]
    return same and all(_castable(one.type, other.type, part=True) for one, other in zip(given, kind, strict=True))


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        array = floored(array).cast(MICROS)
    done = array.cast(kind)
    if pa.types.is_float32(kind) and _infinite(done) > _infinite(array):
        raise ValueError(f"{pc.max(pc.abs(array.filter(pc.is_finite(array))))} is beyond the largest FLOAT")
    return done


def floored(times: pa.Array) -> pa.Array:
    """Returns nanoseconds, rounded down, as microseconds in integers; floor_temporal overflows at the earliest time."""
    nanos = times.cast(pa.int64())
    micros = pc.divide(nanos, 1000)
    return pc.if_else(pc.greater(pc.multiply(micros, 1000), nanos), pc.subtract(micros, 1), micros)


def _infinite(array: pa.Array) -> int:
    return pc.sum(pc.is_inf(array)).as_py() or 0 if pa.types.is_floating(array.type) else 0


def _check(array: pa.Array) -> None:
    """Raises ValueError for values that a type forbids and Arrow does not check."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        check_years(array)
    elif pa.types.is_list(kind):
        _check_part(array.flatten(), kind.value_field)
    elif pa.types.is_struct(kind):
        for part, field in zip(array.drop_null().flatten(), kind, strict=True):
            _check_part(part, field)
    elif pa.types.is_map(kind):
        _check_map(array.drop_null())


def _check_part(part: pa.Array, field: pa.Field) -> None:
    if part.null_count and not field.nullable:
        raise ValueError(f"its part {field.name!r} is NOT NULL, but {part.null_count} of the part's values are null")
    _check(part)


def _check_map(array: pa.MapArray) -> None:
    keys = pa.ListArray.from_arrays(array.offsets, array.keys)
    items = pa.ListArray.from_arrays(array.offsets, array.items).flatten()
    flat, row = keys.flatten(), pc.list_parent_indices(keys)
    _check_part(flat, array.type.key_field)
    _check_part(items, array.type.item_field)
    if array.type.key_type.num_fields:
        twice = any(key in pairs[:at] for pairs in keys.to_pylist() for at, key in enumerate(pairs))
    else:
        pairs = pa.table({"row": row, "key": flat})
        twice = pairs.group_by(["row", "key"]).aggregate([]).num_rows < len(flat)
    if twice:
        raise ValueError("a map has the same key twice")
