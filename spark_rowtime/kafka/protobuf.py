"""Protobuf records in Confluent's wire format, by the descriptors that a schema registry gives."""

import base64
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from importlib import import_module
from typing import Any

from spark_rowtime.kafka.avro import HEADER, RegistryRecords
from spark_rowtime.kafka.client import library

_WELL_KNOWN = (
    *(f"google.protobuf.{name}_pb2" for name in ("any", "descriptor", "duration", "empty", "field_mask", "struct")),
    *(f"google.protobuf.{name}_pb2" for name in ("timestamp", "wrappers")),
    *(f"confluent_kafka.schema_registry.confluent.{name}_pb2" for name in ("meta", "type.decimal")),
    *(f"google.type.{name}_pb2" for name in ("date", "datetime", "decimal", "money", "timeofday")),
)
"""The modules of files that come with Protobuf or with registries, which name them as imports, and do not tell them.

Not each of them is there: those of google.type come with a package of their own (googleapis-common-protos).
"""
_TIMESTAMP, _WRAPPERS = "google.protobuf.Timestamp", "google/protobuf/wrappers.proto"
MOST_FIELDS = 10_000_000
"""How many fields the records of one message may have. One in a list takes two bytes, however many fields it has."""
_VARINT_BITS = 35
"""No index needs more."""
_FORMAT = "serialized"
"""The registry then gives a schema as a FileDescriptorProto in Base64, so no compiler is needed here."""


class ProtobufRecords(RegistryRecords):
    """Reads Protobuf messages as records: fields by name, enums by the names of their values.

    A field with presence that is not set is None; another one has its default, as in Protobuf. A Timestamp is a time,
    to the microsecond towards the past; a wrapper is its value.
    """

    format = "Protobuf"
    schema_form = (_FORMAT,)

    def _reader(self) -> Callable[[int, bytes, Any], Any]:
        self._pools = library("google.protobuf.descriptor_pool")
        self._classes = library("google.protobuf.message_factory")
        self._descriptors = library("google.protobuf.descriptor_pb2")
        self._known: dict[tuple[int, tuple[int, ...]], Any] = {}
        """The class of the message with a path of indexes in a schema."""
        return self._decoded

    def _decoded(self, schema: int, value: bytes, where: Any) -> dict[str, Any]:
        path, start = _path(value, HEADER.size)
        if (schema, path) not in self._known:
            self._known[schema, path] = self._class(schema, path, f"{where.topic}-value")
        return _Records().record(self._known[schema, path].FromString(value[start:]))

    def _class(self, schema: int, path: tuple[int, ...], subject: str) -> Any:
        pool = self._pools.DescriptorPool()
        for name in _WELL_KNOWN:
            with suppress(ModuleNotFoundError):
                pool.AddSerializedFile(import_module(name).DESCRIPTOR.serialized_pb)
        file = self._added(pool, f"schema-{schema}", self._client.get_schema(schema, subject, _FORMAT))
        first, *rest = path
        found = [*file.message_types_by_name.values()][first]
        for index in rest:
            found = found.nested_types[index]
        return self._classes.GetMessageClass(found)

    def _added(self, pool: Any, name: str, schema: Any) -> Any:
        """Adds a file, and before it those that it imports, to the pool; returns its descriptor."""
        for reference in schema.references or []:
            version = self._client.get_version(reference.subject, reference.version, fmt=_FORMAT)
            self._added(pool, reference.name, version.schema)
        proto = self._descriptors.FileDescriptorProto.FromString(base64.b64decode(schema.schema_str))
        proto.name = name
        pool.AddSerializedFile(proto.SerializeToString())
        return pool.FindFileByName(name)


def _path(value: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The indexes that lead to the message in its schema, and where its bytes begin. A single 0: the first message."""
    count, at = _varint(value, at)
    if count == 0:
        return (0,), at
    path = []
    for _ in range(count):
        index, at = _varint(value, at)
        path.append(index)
    return tuple(path), at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """A number from 0 on in Protobuf's zigzag form, and the place behind it."""
    number = shift = 0
    while shift < _VARINT_BITS:
        byte = value[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            if number & 1:
                break
            return number >> 1, at
    raise ValueError("its message indexes are none")


class _Records:
    """Makes records of one message, and of those in it, up to ``MOST_FIELDS``."""

    def __init__(self) -> None:
        self._fields = 0

    def record(self, message: Any) -> dict[str, Any]:
        """The record of a message."""
        fields = type(message).DESCRIPTOR.fields
        self._fields += len(fields)
        if self._fields > MOST_FIELDS:
            raise ValueError(f"its records have more than {MOST_FIELDS} fields")
        return {field.name: self._field(message, field) for field in fields}

    def _field(self, message: Any, field: Any) -> Any:
        value = getattr(message, field.name)
        if field.is_repeated:
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                item = field.message_type.fields_by_name["value"]
                return {key: self._value(item, one) for key, one in value.items()}
            return [self._value(field, one) for one in value]
        if field.has_presence and not message.HasField(field.name):
            return None
        return self._value(field, value)

    def _value(self, field: Any, value: Any) -> Any:
        if field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            return value if known is None else known.name
        if field.message_type is None:
            return value
        if field.message_type.full_name == _TIMESTAMP:
            return value.ToDatetime(UTC)
        if field.message_type.file.name == _WRAPPERS:
            return value.value
        return self.record(value)
