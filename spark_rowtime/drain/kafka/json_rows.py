"""Rows as JSON texts, one object a row, without a loss: whoever knows a column's type gets each value back.

Columns of plain types are written by Arrow's kernels, a column at a time; nested ones value by value.
"""

import base64
import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import SchemaMismatchError

RESOLVED = "resolved"
"""The field by which a consumer knows the message of a bound, so no column may have this name."""
_TEXT = pa.large_string()
_NOT_IN_STRINGS = '["\\\\\\x00-\\x1f]'
"""The characters that JSON does not allow within a string as they are."""
_NOT_PLAIN = np.isin(np.arange(256), [*range(0x20), *b'"\\'])
"""The same, by byte of UTF-8."""
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_types = pa.types


def require_no_resolved(schema: pa.Schema) -> None:
    """Raises SchemaMismatchError for a column that would make a row look like the message of a bound."""
    if RESOLVED in schema.names:
        raise SchemaMismatchError(
            f"A column {RESOLVED!r} would make a row look like the message of a bound. Rename it in the stream's "
            "query or feed, or give value=, a function that writes the rows.",
            column=RESOLVED,
        )


def require_json(schema: pa.Schema) -> None:
    """Raises SchemaMismatchError, which names the column, if rows of ``schema`` cannot be written as JSON exactly."""
    for field in schema:
        _require_type(field.type, field.name)


def _require_type(kind: pa.DataType, column: str) -> None:
    if _types.is_map(kind) and _types.is_nested(kind.key_type):
        raise SchemaMismatchError(
            f"Column {column!r} is {kind}: the keys of an object in JSON are texts, so a map whose keys are structs, "
            "arrays or maps cannot be written. Give value=, a function that writes the rows.",
            column=column,
            type=str(kind),
        )
    parts = [kind.field(i).type for i in range(kind.num_fields)]
    for part in parts:
        _require_type(part, column)


def json_rows(rows: pa.RecordBatch) -> list[bytes]:
    """Each row as a JSON object in UTF-8, with all columns in their order."""
    parts: list[Any] = []
    between = "{"
    for field, column in zip(rows.schema, rows.columns, strict=True):
        opening, text, closing = _value(column, field.name)
        parts += [_text(f"{between}{json.dumps(field.name, ensure_ascii=False)}:{opening}"), text]
        between = f"{closing},"
    joined = pc.binary_join_element_wise(*parts, _text(between[:-1] + "}"), _text(""))
    return list(joined.cast(pa.large_binary()).to_pylist())


def _value(column: pa.Array, name: str) -> tuple[str, pa.Array, str]:
    """A column's values as JSON texts, between what is the same before and behind each of them."""
    kind = column.type
    if column.null_count or not _is_quoted(kind):
        return "", json_texts(column, name), ""
    if _types.is_timestamp(kind):
        return '"', _local_time_texts(column), 'Z"' if kind.tz else '"'
    return '"', _characters(column), '"'


def json_texts(column: pa.Array, name: str) -> pa.Array:
    """Each value as a JSON text; that of a null is "null"."""
    kind = column.type
    if _types.is_nested(kind) or _types.is_binary(kind):
        return pa.array([_dump(_plain(value, kind, name)) for value in column.to_pylist()], _TEXT)
    if _types.is_floating(kind):
        text = _finite(column)
    elif _is_quoted(kind):
        text = _quoted(_characters(column))
    else:
        text = plain_texts(column)
    return text.fill_null("null")


def _is_quoted(kind: pa.DataType) -> bool:
    """Whether quotation marks make Arrow's texts of such values the strings that JSON has."""
    bare = _types.is_integer(kind) or _types.is_boolean(kind) or _types.is_floating(kind)
    return not (bare or _types.is_nested(kind) or _types.is_binary(kind))


def _characters(column: pa.Array) -> pa.Array:
    """What stands between the quotation marks."""
    text = plain_texts(column)
    return _escaped(text) if _types.is_string(column.type) else text


def plain_texts(column: pa.Array) -> pa.Array:
    """Each value of a column that is neither nested nor binary as a text; that of a null is null."""
    kind = column.type
    if _types.is_timestamp(kind):
        return _time_texts(column)
    if _types.is_decimal(kind):
        return _decimal_texts(column)
    return column.cast(_TEXT)


def _time_texts(column: pa.Array) -> pa.Array:
    """ISO 8601, with Z if the type has a zone, which is UTC."""
    text = _local_time_texts(column)
    return pc.binary_join_element_wise(text, _text("Z"), _text("")) if column.type.tz else text


def _local_time_texts(column: pa.Array) -> pa.Array:
    """ISO 8601 without a zone, with a fraction only where it is not zero."""
    text = column.cast(pa.timestamp("us")).cast(_TEXT)
    text = pc.ascii_rtrim(pc.ascii_rtrim(text, "0"), ".")
    return pc.replace_substring(text, " ", "T", max_replacements=1)


def _decimal_texts(column: pa.Array) -> pa.Array:
    text = column.cast(_TEXT)
    if pc.any(pc.match_substring(text, "E")).as_py():  # Arrow writes small ones as 1E-10
        return pa.array([None if value is None else format(value, "f") for value in column.to_pylist()], _TEXT)
    return text


def _finite(column: pa.Array) -> pa.Array:
    """Numbers as they are; what JSON has no number for as a text."""
    text = column.cast(_TEXT)
    if pc.all(pc.is_finite(column)).as_py() is not False:
        return text
    for arrow, name in _NOT_FINITE.items():
        text = pc.if_else(pc.equal(text, _text(arrow)), _text(f'"{name}"'), text)
    return text


def _escaped(text: pa.Array) -> pa.Array:
    if not _may_need_escapes(text):
        return text
    special = pc.match_substring_regex(text, _NOT_IN_STRINGS).fill_null(False)
    whole = [_dump(value)[1:-1] for value in text.filter(special).to_pylist()]
    return pc.replace_with_mask(text, special, pa.array(whole, _TEXT))


def _may_need_escapes(text: pa.LargeStringArray) -> bool:
    """Whether one of the characters is not allowed within a string; sooner known than by a regular expression."""
    _, offsets, characters = text.buffers()
    if not len(text) or characters is None:
        return False
    first, end = np.frombuffer(offsets, np.int64)[[text.offset, text.offset + len(text)]]
    return bool(_NOT_PLAIN[np.frombuffer(characters, np.uint8)[first:end]].any())


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_text('"'), text, _text('"'), _text(""))


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, _TEXT)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(value: Any, kind: pa.DataType, name: str) -> Any:
    """A value as ``json`` takes it."""
    if value is None:
        return None
    if _types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type, name) for field in kind}
    if _types.is_map(kind):
        return _object(value, kind, name)
    if _types.is_list(kind):
        return [_plain(item, kind.value_type, name) for item in value]
    return _SCALARS.get(type(value), _same)(value)


def _object(pairs: list[tuple[Any, Any]], kind: pa.MapType, name: str) -> dict[str, Any]:
    found = {_key(key, kind.key_type, name): _plain(value, kind.item_type, name) for key, value in pairs}
    if len(found) < len(pairs):
        raise SchemaMismatchError(
            f"Column {name!r} has a map with one key twice, which an object in JSON cannot have. Give value=, a "
            "function that writes the rows.",
            column=name,
        )
    return found


def _key(key: Any, kind: pa.DataType, name: str) -> str:
    plain = _plain(key, kind, name)
    return plain if isinstance(plain, str) else _dump(plain)


def _same(value: Any) -> Any:
    return value


def _moment(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _number(value: float) -> float | str:
    text = repr(value)
    return _NOT_FINITE.get(text, value)


_SCALARS: dict[type, Callable[[Any], Any]] = {
    datetime: _moment,
    date: date.isoformat,
    Decimal: lambda value: format(value, "f"),
    bytes: lambda value: base64.b64encode(value).decode(),
    float: _number,
}
