"""Values of JSON as those of a column's type, in the forms in which a drain writes them (json_rows)."""

import base64
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa

Reader = Callable[[Any], Any]
"""Returns the value; one that the type cannot hold comes back unchanged, and the sink refuses it."""
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_types = pa.types


def value_reader(kind: pa.DataType) -> Reader | None:
    """Returns the reader for values of a type; None if they are in JSON as the sink takes them."""
    for is_kind, reader in _READERS.items():
        if is_kind(kind):
            return reader(kind)
    return None


def _text_reader(read: Callable[[str], Any]) -> Callable[[pa.DataType], Reader]:
    """Reads texts; every other value, and a text that is not of the type, is left as it is."""

    def reader(value: Any) -> Any:
        if isinstance(value, str) and "_" not in value:  # which Python takes within a number
            with suppress(ValueError, ArithmeticError):
                return read(value)
        return value

    return lambda _: reader


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _float_reader(_: pa.DataType) -> Reader:
    def reader(value: Any) -> Any:
        return float(value) if isinstance(value, str) and value in _NOT_FINITE else nearest_float(value)

    return reader


def _float_key(text: str) -> float | str:
    number = float(text)
    return number if text in _NOT_FINITE or isfinite(number) else text


def _list(kind: pa.DataType) -> Reader | None:
    read = value_reader(kind.value_type)
    return read and (lambda value: [read(item) for item in value] if type(value) is list else value)


def _struct(kind: pa.DataType) -> Reader:
    """Reads the fields that the column has. Others are left out, and those that are missing are NULL, as in a row."""
    readers = {field.name: value_reader(field.type) or _same for field in kind}

    def reader(value: Any) -> Any:
        return {name: read(value.get(name)) for name, read in readers.items()} if type(value) is dict else value

    return reader


def _map(kind: pa.DataType) -> Reader:
    key, item = _key_reader(kind.key_type), value_reader(kind.item_type) or _same

    def reader(value: Any) -> Any:
        return [(key(k), item(v)) for k, v in value.items()] if type(value) is dict else value

    return reader


def _key_reader(kind: pa.DataType) -> Reader:
    """Keys of an object are texts, also those of numbers and truth values."""
    if _types.is_integer(kind):
        return _text_reader(int)(kind)
    if _types.is_floating(kind):
        return _text_reader(_float_key)(kind)
    if _types.is_boolean(kind):
        return lambda text: {"true": True, "false": False}.get(text, text)
    return value_reader(kind) or _same


def _same(value: Any) -> Any:
    return value


_READERS: dict[Callable[[pa.DataType], bool], Callable[[pa.DataType], Reader | None]] = {
    _types.is_decimal: _text_reader(Decimal),
    _types.is_date: _text_reader(date.fromisoformat),
    _types.is_binary: _text_reader(_bytes),
    _types.is_floating: _float_reader,
    _types.is_map: _map,
    _types.is_list: _list,
    _types.is_struct: _struct,
}


class JsonNumber(Decimal):
    """A number as its text in JSON says it. Python's ``json`` would round it to a float."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def nearest_float(value: Any) -> Any:
    """The float nearest to a number of JSON. One beyond all floats stays as it is, and the sink refuses it."""
    if isinstance(value, JsonNumber) and isfinite(number := float(value)):
        return number
    return value
