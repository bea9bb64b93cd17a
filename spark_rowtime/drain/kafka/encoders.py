"""Encoders: what makes rows, and the bound behind them, the values of a drain's messages."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, ClassVar

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.drain.kafka.json_rows import RESOLVED, json_rows, require_json, require_no_resolved
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.avro import HEADER
from spark_rowtime.kafka.client import library
from spark_rowtime.kafka.records import FORMATS
from spark_rowtime.kafka.registry import Registry, require_registry
from spark_rowtime.types.arguments import to_choice
from spark_rowtime.types.short_repr import short_repr

Value = Callable[[dict[str, Any]], bytes | str]
"""What makes a row the value of a message."""
_NANOS_OF_MICRO = 1000
_LARGEST_NANOS = (1 << 63) - 1
"""The largest time that readers of ``resolved`` can keep, in nanoseconds: in the year 2262."""
_BOUND = pa.schema([pa.field(RESOLVED, pa.string(), nullable=False)])
"""The one column of the message of a bound."""


_KINDS = {
    "avro": ("avro_rows", "AvroRows"),
    "json-schema": ("json_schema", "JsonSchemaRows"),
    "protobuf": ("protobuf_rows", "ProtobufRows"),
}
"""The modules of formats, which are imported where they are used, and their classes."""


def resolved_text(bound: RowtimeBound) -> str:
    """The time of a bound: nanoseconds, a point, and a logical clock of 0.

    The time is the least that a later row may have. That of the end of time is the largest which readers can keep.
    """
    return f"{min(bound.floor * _NANOS_OF_MICRO, _LARGEST_NANOS)}.0000000000"


def resolved_message(bound: RowtimeBound) -> bytes:
    """The message of a bound in JSON, as CockroachDB's changefeeds write it."""
    return json.dumps({"resolved": resolved_text(bound)}, separators=(",", ":")).encode()


class Encoder(ABC):
    """Encodes the messages of one topic."""

    @abstractmethod
    def rows(self, rows: pa.RecordBatch) -> list[bytes]:
        """The values of the rows, in their order."""

    def bound(self, bound: RowtimeBound) -> bytes:
        """The value of the message of a bound, in JSON if the encoder has no other."""
        return resolved_message(bound)


class JsonEncoder(Encoder):
    """JSON, without a registry."""

    def __init__(self, schema: pa.Schema) -> None:
        require_no_resolved(schema)
        require_json(schema)

    def rows(self, rows: pa.RecordBatch) -> list[bytes]:
        return json_rows(rows)


class FunctionEncoder(Encoder):
    """What a function of the user's makes of each row, as a dict. Bounds are JSON."""

    def __init__(self, value: Value) -> None:
        if not callable(value):
            raise InvalidOptionError(
                f"value={short_repr(value)} cannot be called. Give a function that takes a row as a dict and returns "
                "bytes or a text; or leave it out for JSON.",
                option="value",
            )
        self._value = value

    def rows(self, rows: pa.RecordBatch) -> list[bytes]:
        return [_encoded(self._value(row)) for row in rows.to_pylist()]


def _encoded(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        with suppress(UnicodeEncodeError):  # half of a surrogate pair is no character
            return value.encode()
    raise InvalidOptionError(
        f"value= has returned {short_repr(value)}, a {type(value).__name__}, for a row. It must return bytes, "
        "or a text in Unicode.",
        option="value",
    )


class RowFormat(ABC):
    """A format of a schema registry for rows of some columns; SchemaMismatchError for columns that it cannot have.

    ``kind``: what the registry calls the format. ``index``: the bytes between the id of the schema and the row.
    """

    kind: ClassVar[str]
    index: ClassVar[bytes] = b""

    @abstractmethod
    def __init__(self, schema: pa.Schema) -> None: ...

    @property
    @abstractmethod
    def text(self) -> str:
        """The schema, as the registry takes it."""

    @abstractmethod
    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        """The rows, in their order."""


class RegistryEncoder(Encoder):
    """Messages in Confluent's wire format, whose schemas are in a registry.

    The schema of rows has the subject ``TOPIC-value``, as other clients name it; that of bounds, which are records with
    the one field ``resolved``, has ``TOPIC-resolved``.
    """

    def __init__(self, registry: Registry, topic: str, schema: pa.Schema, kind: type[RowFormat]) -> None:
        require_no_resolved(schema)
        self._rows, self._bound = kind(schema), kind(_BOUND)
        self._begin = _begin(registry, f"{topic}-value", self._rows)
        self._begin_bound = _begin(registry, f"{topic}-{RESOLVED}", self._bound)

    def rows(self, rows: pa.RecordBatch) -> list[bytes]:
        return [self._begin + value for value in self._rows.encode(rows)]

    def bound(self, bound: RowtimeBound) -> bytes:
        row = pa.RecordBatch.from_pydict({RESOLVED: [resolved_text(bound)]}, _BOUND)
        return self._begin_bound + self._bound.encode(row)[0]


def _begin(registry: Registry, subject: str, form: RowFormat) -> bytes:
    """What the values begin with: a zero and the id of the schema, which is registered if it is not there."""
    schema = library("confluent_kafka.schema_registry").Schema(form.text, form.kind)
    return bytes(HEADER.pack(0, registry.id_of(subject, schema))) + form.index


def encoder_of(name: str, schema: pa.Schema, topic: str, registry: Mapping[str, str]) -> Encoder:
    """The encoder of that name for rows with these columns. ``registry``: the options of the registry's client."""
    if to_choice(name, "encoder", *FORMATS) == "json":
        return JsonEncoder(schema)
    require_registry(registry, "encoder", name)
    module, kind = _KINDS[name]
    made: type[RowFormat] = getattr(import_module(f"spark_rowtime.drain.kafka.{module}"), kind)
    return RegistryEncoder(Registry(registry), topic, schema, made)
