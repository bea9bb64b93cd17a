"""Avro records in Confluent's wire format: a schema registry has the schema that a message names by its id."""

import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from uuid import UUID

from spark_rowtime.kafka.avro_schemas import limit_decimals, require_bounded
from spark_rowtime.kafka.client import library
from spark_rowtime.kafka.malformed import MalformedError, require_decodable
from spark_rowtime.kafka.registry import Registry

TRIES, TRY_SECONDS = 4, 0.5
"""How often the registry is asked for a schema that it does not have, and the pause between."""
MISSING_SECONDS = 60.0
"""After the tries, a missing schema is asked for only once per message for this many seconds."""
MOST_AWAITED = 4
"""So many schemas are waited for in that time: anybody may send messages with ids that the registry never gave."""
HEADER = struct.Struct(">bI")
_LARGEST_ID = (1 << 31) - 1
"""Registries number schemas with Java's int."""


class RegistryRecords(ABC):
    """Reads the record of a message. ``options`` are those of the registry's client, with ``url``.

    A message is malformed if its bytes are no record of its schema, if that is of another format, or if the registry
    says more than once that there is no such schema. Whatever else the registry answers, or does not, is no statement
    about the message: KafkaUnavailableError.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._registry = Registry(options)
        self._client = self._registry.client
        self._serialization = library("confluent_kafka.serialization")
        self._there: set[int] = set()
        """The schemas that the registry has, of this format."""
        self._missing: dict[int, float] = {}
        """Until when a schema is taken for missing that the registry did not have."""
        self._read = self._reader()

    format: ClassVar[str]
    """What the messages are, for errors."""
    schema_form: ClassVar[tuple[str, ...]] = ()
    """The form in which the registry is asked for schemas, if not as texts. Its client keeps them whatever the form."""

    @abstractmethod
    def _reader(self) -> Callable[[int, bytes, Any], Any]:
        """What reads a message, given the id of its schema, its bytes and where it is from.

        Whatever it raises besides errors of the registry is about these bytes.
        """

    def __call__(self, message: Any) -> Any:
        schema = schema_id(message.value())
        if schema is None:
            raise self._malformed("it does not begin with the id of a schema")
        require_decodable(message.value())
        if schema not in self._there:
            self._require_schema(schema, f"{message.topic()}-value")
        where = self._serialization.SerializationContext(message.topic(), self._serialization.MessageField.VALUE)
        try:
            return self._read(schema, message.value(), where)
        except Exception as error:  # noqa: BLE001
            self._registry.require_answer(error)
            raise self._malformed(str(error)) from None

    def _malformed(self, why: str) -> MalformedError:
        return MalformedError(f"it is not {self.format} in Confluent's wire format: {why}")

    def _require_schema(self, schema: int, subject: str) -> None:
        """Raises MalformedError if the registry says again and again that it has no such schema, or has another format.

        A registry of several nodes knows a new schema a moment later everywhere.
        """
        awaited = self._awaits(schema)
        for pause in [0.0, *[TRY_SECONDS] * (TRIES - 1 if awaited else 0)]:
            time.sleep(pause)
            try:
                found = self._client.get_schema(schema, subject, *self.schema_form)
                kind = found.schema_type
            except Exception as error:  # noqa: BLE001
                self._registry.require_answer(error)
                if not isinstance(error, self._registry.refused):
                    raise self._registry.unavailable(type(error).__name__) from None
            else:
                self._missing.pop(schema, None)
                if kind.upper() != self.format.upper():
                    raise self._malformed(f"its schema, {schema}, is one of {kind}")
                self._there.add(schema)
                return
        if awaited:
            self._missing[schema] = time.monotonic() + MISSING_SECONDS
        raise MalformedError(f"the schema registry has no schema of its id, {schema}")

    def _awaits(self, schema: int) -> bool:
        """Whether to ask again for a schema that the registry does not have."""
        now = time.monotonic()
        self._missing = {one: until for one, until in self._missing.items() if now < until}
        return schema not in self._missing and len(self._missing) < MOST_AWAITED


class AvroRecords(RegistryRecords):
    """Reads Avro records."""

    format = "Avro"

    def _reader(self) -> Callable[[int, bytes, Any], Any]:
        self._deserializer = library("confluent_kafka.schema_registry.avro").AvroDeserializer(self._client)
        self._bounded: set[int] = set()
        """The schemas that may be read."""
        return self._decoded

    def _decoded(self, schema: int, value: bytes, where: Any) -> Any:
        if schema not in self._bounded:
            found = self._client.get_schema(schema, f"{where.topic}-value")
            parsed = self._deserializer._get_parsed_schema(found)  # noqa: SLF001  (what it will read by)
            require_bounded(parsed)
            limit_decimals(parsed)
            self._bounded.add(schema)
        return _with_texts(self._deserializer(value, where))


def schema_id(value: bytes | None) -> int | None:
    """The id of a message's schema; None if the message does not begin with one."""
    if value is None or len(value) <= HEADER.size or value[0] != 0:
        return None
    found = int(HEADER.unpack_from(value)[1])
    return found if found <= _LARGEST_ID else None


def _with_texts(value: Any) -> Any:
    """The value with the logical type uuid as a text, which a STRING holds."""
    kind = type(value)
    if kind is dict:
        return {name: _with_texts(part) for name, part in value.items()}
    if kind is list:
        return [_with_texts(part) for part in value]
    return str(value) if kind is UUID else value
