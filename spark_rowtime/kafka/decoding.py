"""Decoders: what a message of a topic says: rows, a bound, or nothing. They raise MalformedError."""

import json
from collections.abc import Callable, Container, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import InvalidOptionError, MessageDecodeError, RowtimeError, SchemaMismatchError
from spark_rowtime.kafka.client import library
from spark_rowtime.kafka.json_values import JsonNumber, value_reader
from spark_rowtime.kafka.malformed import MalformedError, require_decodable
from spark_rowtime.kafka.message_headers import raise_left_behind
from spark_rowtime.kafka.times import time_reader
from spark_rowtime.kafka.watermarks import Watermark, bound_of
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import LARGEST, LEAST, from_micros, to_datetime

Decoder = Callable[[Any], Any]
"""Takes a message; returns a row (a mapping or a tuple), a list of rows, a RowtimeBound, or None for no row."""
MESSAGE_TIME = "kafka.timestamp"
"""As ``rowtime``: the time of the message, not a field of its value."""
_ABOUT_VALUES = (InvalidOptionError, SchemaMismatchError, MessageDecodeError)
"""Errors of this library that say what is wrong with a value."""
_JSON = json.JSONDecoder(parse_float=JsonNumber)


def json_record(message: Any) -> Any:
    """The JSON value of a message, in UTF-8."""
    return json_of(message.value())


def json_of(value: bytes, decoder: json.JSONDecoder = _JSON) -> Any:
    """The JSON value of bytes, in UTF-8; MalformedError if they are none."""
    require_decodable(value)
    try:
        text = str(value, "utf-8")
        if text[:1] == "{":  # this way is twice as fast
            record, end = decoder.raw_decode(text)
            if end == len(text):
                return record
        return decoder.decode(text)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise MalformedError(f"it is not JSON: {error}") from None


def record_decoder(
    schema: pa.Schema,
    record: Decoder,
    rowtime: str = ROWTIME,
    row: str = "",
    unit: str | None = None,
    watermark: Watermark | None = None,
    skips: bool = False,
    columns: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
) -> Decoder:
    """Returns the function that decodes messages whose value is a record with named fields.

    ``record`` reads the record from a message. ``rowtime`` is the path of the field with the time, its parts separated
    by points, or ``kafka.timestamp``. ``row`` is the path of the record, or list of records, that has the columns;
    empty: the record itself. ``columns`` reads those columns that are a part of the message. ``skips``: whether
    tombstones, and records without a row, are left out; otherwise they are malformed.
    """
    row_at, time_of, row_of = _field(row), time_of_record(rowtime, unit), _row_reader(schema, columns)

    def decode(message: Any) -> Any:
        if message.value() is None:
            return no_row("it is a tombstone, a message without a value")
        read = record(message)
        if type(read) is not dict:
            raise MalformedError(f"its value {short_repr(read)} is not a record with fields")
        if watermark is not None and (bound := bound_of(watermark, read, message)) is not None:
            return bound
        found = row_at(read)
        if found is None:
            return no_row(f"it has no {row!r}, as where a row was deleted")
        time = time_of(message, read)
        rows = [row_of(one, time) for one in found] if type(found) is list else row_of(found, time)
        return _filled(rows, {name: part(message) for name, part in columns.items()}) if columns else rows

    def no_row(why: str) -> None:
        if not skips:
            raise MalformedError(f"{why}; tombstones='skip' leaves such messages out")

    return decode


def time_of_record(rowtime: str, unit: str | None) -> Callable[[Any, Any], Any]:
    """Returns the function that gives the time of a message and its record. ``rowtime``: as for ``record_decoder``."""
    if rowtime == MESSAGE_TIME:
        return lambda message, _: message_time(message)
    field, reader = _field(rowtime), time_reader(unit)

    def time(_: Any, record: Any) -> Any:
        value = field(record)
        if value is None:
            raise MalformedError(f"it has no time: its field {rowtime!r} is missing or null")
        return reader(value)

    return time


def message_time(message: Any) -> Any:
    """The time that the producer, or the broker, gave a message."""
    micros = message.timestamp()[1] * 1000
    if micros < LEAST:
        raise MalformedError("it has no timestamp")
    if micros > LARGEST:
        raise MalformedError(f"its timestamp, {micros // 1000} ms since 1970, is beyond the year 9999")
    return from_micros(micros)


def stamped_by_broker(decode: Decoder) -> Decoder:
    """A decoder of messages whose time must be the broker's. A topic's setting says nothing of earlier messages."""
    append_time = library().TIMESTAMP_LOG_APPEND_TIME

    def decoded(message: Any) -> Any:
        if message.timestamp()[0] != append_time:
            raise MalformedError(
                "its time is its producer's (CreateTime), not the broker's: it was sent while the topic had another "
                "message.timestamp.type. With bounds='append-time', read the topic into a new stream with "
                "start='latest', or declare a lateness instead"
            )
        return decode(message)

    return decoded


def called(function: Decoder) -> Decoder:
    """A decoder of the user's. What it raises says what is wrong with the message.

    OSError and the errors of this library are no statement about the message, and pass: something was not reached.
    """

    def decode(message: Any) -> Any:
        try:
            found = function(message)
            raise_left_behind()
        except Exception as error:
            if isinstance(error, OSError | RowtimeError) and not isinstance(error, _ABOUT_VALUES):
                raise
            raise MalformedError(f"{type(error).__name__}: {error}") from error
        return found

    return decode


def with_bounds(function: Decoder, decode: Decoder) -> Decoder:
    """A decoder of messages of which ``function`` says the bound, None if they are none.

    A message may be both a row and a bound, which follows the row then. One that is no row is a bound alone.
    """
    bound_of = bound_function(function)

    def decoded(message: Any) -> Any:
        bound = bound_of(message)
        if bound is None:
            return decode(message)
        try:
            found = decode(message)
        except MalformedError as error:
            return Bounded(None, bound, str(error))
        if isinstance(found, RowtimeBound):
            return max(found, bound, key=lambda one: one.floor)
        return Bounded(found, bound)

    return decoded


class Bounded(NamedTuple):
    """What a message says that is a bound: its rows, and the bound behind them. ``no_row``: why there are none."""

    rows: Any
    bound: RowtimeBound
    no_row: str | None = None


def bound_function(function: Decoder) -> Callable[[Any], RowtimeBound | None]:
    """A function of the user's that says which bound a message is, with the errors of ``called``."""
    return called(lambda message: _bound(function(message)))


def _bound(found: Any) -> RowtimeBound | None:
    return found if found is None or isinstance(found, RowtimeBound) else RowtimeBound(found)


def function_named(given: Any, option: str) -> Any:
    """A function, or the one that the text ``module:function`` names; InvalidOptionError if there is none."""
    if callable(given):
        return given
    module, _, name = str(given).partition(":")
    try:
        found = getattr(import_module(module), name) if name else None
    except (ImportError, AttributeError, ValueError):
        found = None
    if callable(found):
        return found
    raise InvalidOptionError(
        f"{option}={short_repr(given)} names no function. Give a function, or its name as module:function.",
        option=option,
        value=short_repr(given),
    )


def _field(path: str) -> Callable[[Any], Any]:
    """Returns the function that gives the field of a record at a path, None if there is none."""
    names = path.split(".") if path else []
    if not names:
        return lambda record: record

    def field(record: Any) -> Any:
        for name in names:
            if type(record) is not dict:
                return None
            record = record.get(name)
        return record

    return field


def _filled(rows: Any, values: Mapping[str, Any]) -> Any:
    """A row, or a list of rows, with the values of more columns."""
    for row in rows if type(rows) is list else [rows]:
        row.update(values)
    return rows


def _row_reader(schema: pa.Schema, others: Container[str]) -> Callable[[Any, Any], dict[str, Any]]:
    """Returns the function that makes a row of a record and a time; ``others``: the columns that are not in records.

    Fields that are no columns are left out.
    """
    names = [name for name in schema.names if name != ROWTIME and name not in others]
    times = [name for name in names if pa.types.is_timestamp(schema.field(name).type)]
    readers = [(name, read) for name in names if (read := value_reader(schema.field(name).type)) is not None]

    def row(record: Any, time: Any) -> dict[str, Any]:
        if type(record) is not dict:
            raise MalformedError(f"{short_repr(record)} is not a record with fields")
        found = {name: record.get(name) for name in names}
        for name in times:
            if isinstance(text := found[name], str):
                found[name] = _column_time(text, name)
        for name, read in readers:
            if isinstance(value := found[name], str | list | dict | JsonNumber):
                found[name] = read(value)
        found[ROWTIME] = time
        return found

    return row


def _column_time(text: str, name: str) -> Any:
    try:
        return to_datetime(text)
    except InvalidOptionError as error:
        raise MalformedError(f"{name}: {error}") from None
