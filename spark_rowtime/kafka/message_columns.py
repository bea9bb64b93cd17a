"""MessageColumns: columns that a feed fills from the message itself: its key, headers, place and time."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.message_headers import headers_of
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import LARGEST, from_micros
from spark_rowtime.types.values import FIRST_TIME

Read = Callable[[Any], Any]
"""Takes a message; returns the value of a column."""
_HEADER = "kafka.header."
_FORM = (
    "kafka.key, kafka.topic, kafka.partition, kafka.offset, kafka.timestamp, kafka.headers, or kafka.header.NAME for "
    "the last header of a name"
)
_types = pa.types


def column_places(columns: Mapping[str, str] | str | None) -> dict[str, str]:
    """The places in a message by column, from a dict or from a text such as ``shop=kafka.key,n=kafka.offset``."""
    if isinstance(columns, str):
        pairs = [pair.partition("=") for pair in columns.split(",") if pair.strip()]
        columns = {name.strip(): place.strip() for name, _, place in pairs}
    if columns is None or isinstance(columns, Mapping):
        found = dict(columns or {})
        for name, place in found.items():
            if not isinstance(place, str) or (place not in _PLACES and not _header_of(place)):
                raise _invalid(name, f"{short_repr(place)} is no part of a message. Give {_FORM}.")
        return found
    raise _invalid("", f"{short_repr(columns)} is no dict, and no text such as 'shop=kafka.key,n=kafka.offset'.")


def message_columns(places: Mapping[str, str], schema: pa.Schema) -> dict[str, Read]:
    """What reads each column of a stream that is a part of the message; InvalidOptionError where it cannot hold it."""
    return {name: _reader(name, place, schema) for name, place in places.items()}


def _reader(name: str, place: str, schema: pa.Schema) -> Read:
    if name == ROWTIME:
        raise _invalid(name, "the time of a row is named by rowtime: rowtime='kafka.timestamp'.")
    if name not in schema.names:
        raise _invalid(name, f"the stream has no such column, but {schema.names}.")
    kind = schema.field(name).type
    header = _header_of(place)
    read, types, wanted = (_last_header(header), _BYTES, "BINARY or STRING") if header else _PLACES[place]
    if not any(is_type(kind) for is_type in types):
        raise _invalid(name, f"{place} needs a column of the type {wanted}, and it is {kind}.")
    return _as_text(read, place) if _types.is_string(kind) and types is _BYTES else read


def _header_of(place: str) -> str:
    return place.removeprefix(_HEADER) if place.startswith(_HEADER) else ""


def _last_header(name: str) -> Read:
    def read(message: Any) -> Any:
        return next((value for key, value in reversed(headers_of(message)) if key == name), None)

    return read


def _as_text(read: Read, place: str) -> Read:
    def text(message: Any) -> Any:
        value = read(message)
        try:
            return value if value is None or isinstance(value, str) else value.decode()
        except UnicodeDecodeError as error:
            raise MalformedError(f"its {place} is no text in UTF-8: {error}") from None

    return text


_NO_TIME = -1
"""What Kafka writes for a message without a time."""


def _time(message: Any) -> Any:
    kind, millis = message.timestamp()
    has_time = kind and millis != _NO_TIME and FIRST_TIME <= millis * 1000 <= LARGEST
    return from_micros(millis * 1000) if has_time else None


def _headers(message: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in headers_of(message)]


def _is_headers(kind: pa.DataType) -> bool:
    """Whether a type is that of ``headers`` in Spark's Kafka source: ARRAY<STRUCT<key STRING, value BINARY>>."""
    if not _types.is_list(kind) or not _types.is_struct(kind.value_type):
        return False
    return [(field.name, field.type) for field in kind.value_type] == [("key", pa.string()), ("value", pa.binary())]


def _invalid(name: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"columns: {f'{name!r}: ' if name else ''}{why}", option="columns", column=name or None)


_BYTES = (_types.is_binary, _types.is_string)
_PLACES: dict[str, tuple[Read, tuple[Callable[[pa.DataType], bool], ...], str]] = {
    "kafka.key": (lambda message: message.key(), _BYTES, "BINARY or STRING"),
    "kafka.topic": (lambda message: message.topic(), (_types.is_string,), "STRING"),
    "kafka.partition": (lambda message: message.partition(), (_types.is_int32, _types.is_int64), "INT or BIGINT"),
    "kafka.offset": (lambda message: message.offset(), (_types.is_int64,), "BIGINT"),
    "kafka.timestamp": (_time, (_types.is_timestamp,), "TIMESTAMP"),
    "kafka.headers": (
        _headers,
        (_is_headers,),
        "ARRAY<STRUCT<key STRING, value BINARY>>, as that of Spark's Kafka source",
    ),
}
