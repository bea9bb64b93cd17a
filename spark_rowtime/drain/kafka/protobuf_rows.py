"""Rows as Protobuf messages."""

import base64
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from spark_rowtime.drain.kafka.encoders import RowFormat
from spark_rowtime.drain.kafka.row_formats import dicts_of, require_names, unsupported
from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.kafka.client import library

_types = pa.types
_TIMESTAMP = ".google.protobuf.Timestamp"
_PLAIN: list[tuple[Any, str]] = [
    (_types.is_boolean, "BOOL"),
    (_types.is_int64, "INT64"),
    (_types.is_integer, "INT32"),
    (_types.is_float32, "FLOAT"),
    (_types.is_float64, "DOUBLE"),
    (_types.is_binary, "BYTES"),
]
"""The types of Protobuf for plain ones of Arrow; the first that fits. Others are texts."""
_KEYS = (_types.is_integer, _types.is_boolean, _types.is_string)


class ProtobufRows(RowFormat):
    """Rows as messages of the type ``Row``. A column that may be NULL has presence.

    Decimals, dates and times without a zone are texts, as in JSON. Protobuf has no NULL for an array or a map, nor in
    one: SchemaMismatchError, which names the column, for such a row.
    """

    kind = "PROTOBUF"
    index = b"\0"  # the first message of the file

    def __init__(self, schema: pa.Schema) -> None:
        require_names(schema, "Protobuf")
        self._descriptors = library("google.protobuf.descriptor_pb2")
        self._file = self._descriptors.FileDescriptorProto(
            name="row.proto",
            syntax="proto3",
            dependency=["google/protobuf/timestamp.proto"],
            message_type=[self._message("Row", ".Row", [*schema])],
        )
        pool = library("google.protobuf.descriptor_pool").DescriptorPool()
        times = library("google.protobuf.timestamp_pb2").DESCRIPTOR
        pool.AddSerializedFile(times.serialized_pb)
        _add_file(pool, self._file)
        row = pool.FindMessageTypeByName("Row")
        self._class = library("google.protobuf.message_factory").GetMessageClass(row)

    @property
    def text(self) -> str:
        return base64.b64encode(self._file.SerializeToString()).decode()

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        return [self._class.SerializeToString(_filled(self._class(), row)) for row in dicts_of(rows)]

    def _message(self, name: str, path: str, fields: list[pa.Field]) -> Any:
        message = self._descriptors.DescriptorProto(name=name)
        for number, field in enumerate(fields, start=1):
            self._add(message, path, field, number, field.name)
        return message

    def _add(self, message: Any, path: str, field: pa.Field, number: int, column: str) -> None:
        """Adds a field to a message; ``path``: the full name of the message."""
        kind = field.type
        added = message.field.add(name=field.name, number=number, label=1)
        if _types.is_map(kind):
            self._add_entry(message, path, field, added, column)
        elif _types.is_list(kind):
            added.label = 3
            self._set_type(message, path, added, kind.value_type, column)
        else:
            self._set_type(message, path, added, kind, column)
            if field.nullable and not added.type_name:
                added.proto3_optional, added.oneof_index = True, len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _add_entry(self, message: Any, path: str, field: pa.Field, added: Any, column: str) -> None:
        """A map is a repeated message of keys and values."""
        kind, name = field.type, f"{_camel_case(field.name)}Entry"
        if not any(fits(kind.key_type) for fits in _KEYS):
            raise unsupported(column, kind, "the keys of a map in Protobuf are texts, whole numbers or truth values")
        keys = [pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type, nullable=False)]
        entry = self._message(name, f"{path}.{name}", keys)
        entry.options.map_entry = True
        message.nested_type.append(entry)
        added.label, added.type, added.type_name = 3, added.TYPE_MESSAGE, f"{path}.{name}"

    def _set_type(self, message: Any, path: str, added: Any, kind: pa.DataType, column: str) -> None:
        if _types.is_list(kind) or _types.is_map(kind):
            raise unsupported(column, kind, "Protobuf has no arrays and maps in arrays and maps")
        if _types.is_timestamp(kind) and kind.tz:
            added.type, added.type_name = added.TYPE_MESSAGE, _TIMESTAMP
        elif _types.is_struct(kind):
            name = f"{_camel_case(added.name)}Struct"
            message.nested_type.append(self._message(name, f"{path}.{name}", [*kind]))
            added.type, added.type_name = added.TYPE_MESSAGE, f"{path}.{name}"
        else:
            plain = next((name for fits, name in _PLAIN if fits(kind)), "STRING")
            added.type = getattr(added, f"TYPE_{plain}")


def _add_file(pool: Any, file: Any) -> None:
    """Raises SchemaMismatchError for names that Protobuf cannot have in one message, such as ``a_b`` and ``aB``."""
    try:
        pool.AddSerializedFile(file.SerializeToString())
    except TypeError as error:
        what = str(error).rpartition(": ")[2]
        raise SchemaMismatchError(
            f"Protobuf cannot tell these names of columns, or of fields within one, apart: {what}. Names must differ "
            "in more than _ and the letter behind it. Rename one in the stream's query or feed, or drain with another "
            "encoder.",
        ) from None


def _camel_case(name: str) -> str:
    """The name as Protobuf's compiler has it in the types that it adds for maps."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _filled(message: Any, values: dict[str, Any]) -> Any:
    """The message with these values of its fields, which may be named like what messages have."""
    fields = type(message).DESCRIPTOR.fields_by_name
    for name, value in values.items():
        place = getattr(message, name)
        if fields[name].is_repeated:
            _put_all(place, _required(value, name), name)
        elif value is not None:
            _put(value, partial(getattr, message, name), partial(setattr, message, name))
    return message


def _put_all(place: Any, values: Any, name: str) -> None:
    """Fills an array or a map."""
    if isinstance(values, dict):
        for key, value in values.items():
            _put(_required(value, name), partial(place.__getitem__, key), partial(place.__setitem__, key))
    else:
        for value in values:
            _put(_required(value, name), getattr(place, "add", None), place.append)


def _put(value: Any, message: Any, put: Callable[[Any], object]) -> None:
    """Puts a value into a place. ``message`` returns the message in that place, where values are messages."""
    if isinstance(value, dict):
        struct = message()
        type(struct).SetInParent(struct)
        _filled(struct, value)
    elif isinstance(value, datetime) and value.tzinfo is not None:
        message().FromDatetime(value)
    else:
        put(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, date) else value


def _required(value: Any, name: str) -> Any:
    if value is not None:
        return value
    raise SchemaMismatchError(
        f"Protobuf has no NULL for an array or a map, nor in one, and {name!r} has one. Write others in the stream's "
        "query, or drain with another encoder.",
        column=name,
    )
