"""Avro records in Confluent's wire format: a schema registry has the schema that a message names by its id."""

import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from json import JSONDecodeError
from typing import Any, ClassVar
from urllib.parse import urlsplit
from uuid import UUID

from spark_rowtime.errors import InvalidOptionError, KafkaUnavailableError
from spark_rowtime.kafka.client import library
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.settings import filled

REGISTRY = "registry."
"""What the names of the options of the schema registry's client begin with."""
TRIES, TRY_SECONDS = 4, 0.5
"""How often the registry is asked for a schema that it does not have, and the pause between."""
MISSING_SECONDS = 60.0
"""For so long such a schema is asked for once only, with each message."""
_NO_SCHEMA = (40401, 40402, 40403)
"""The registry's codes for a subject, a version and a schema that it does not have."""
HEADER = struct.Struct(">bI")
_NUMBERS = ("timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "cache.capacity")


def registry_settings(more: Mapping[str, str]) -> dict[str, str]:
    """The options of the registry's client among those of an adapter. ``{env:NAME}`` stands for a variable."""
    return {name.removeprefix(REGISTRY): filled(text, name) for name, text in more.items() if name.startswith(REGISTRY)}


def avro_records(settings: Mapping[str, str]) -> "AvroRecords":
    """What reads Avro records; InvalidOptionError if the settings do not name the registry."""
    require_registry(settings, "avro")
    return AvroRecords(settings)


def require_registry(settings: Mapping[str, str], decoder: str) -> None:
    """Raises InvalidOptionError if the settings do not name the registry."""
    if "url" not in settings:
        raise InvalidOptionError(
            f"decoder={decoder!r} needs the address of the schema registry: registry.url='http://registry:8081'.",
            option="registry.url",
        )


class RegistryRecords(ABC):
    """Reads the record of a message. ``options`` are those of confluent-kafka's SchemaRegistryClient, with ``url``.

    A message is malformed if its bytes are no record of its schema, or if the registry says more than once that there
    is no such schema. Whatever else the registry answers, or does not, is no statement about the message:
    KafkaUnavailableError.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        registry = library("confluent_kafka.schema_registry")
        self._serialization = library("confluent_kafka.serialization")
        self._refused = library("confluent_kafka.schema_registry.error").SchemaRegistryError
        self._address = _without_secrets(options["url"])
        self._missing: dict[int, float] = {}
        """Until when a schema is taken for missing that the registry did not have."""
        self._client: Any = None
        with suppress(ValueError, TypeError):
            self._client = registry.SchemaRegistryClient({name: _typed(name, text) for name, text in options.items()})
        if self._client is None:
            raise InvalidOptionError(
                f"The client of the schema registry refuses one of the options {sorted(options)}: there is no such "
                "option, or its value cannot be used. (Values are not shown: they may be secret.)",
                option=f"{REGISTRY}*",
            )
        self._read = self._reader()

    format: ClassVar[str]
    """What the messages are, for errors."""
    schema_form: ClassVar[tuple[str, ...]] = ()
    """The form in which the registry is asked for schemas, if not as texts. Its client keeps them whatever the form."""

    @abstractmethod
    def _reader(self) -> Callable[[bytes, Any], Any]:
        """What reads the bytes of a message; whatever it raises besides errors of the registry is about these bytes."""

    def __call__(self, message: Any) -> Any:
        where = self._serialization.SerializationContext(message.topic(), self._serialization.MessageField.VALUE)
        try:
            return self._record(message, where)
        except MalformedError:
            if (schema := schema_id(message.value())) is None:
                raise
        self._require_schema(schema, f"{message.topic()}-value")
        return self._record(message, where)

    def _record(self, message: Any, where: Any) -> Any:
        try:
            return self._read(message.value(), where)
        except Exception as error:  # noqa: BLE001
            self._require_registry(error)
            raise MalformedError(f"it is not {self.format} in Confluent's wire format: {error}") from None

    def _require_registry(self, error: Exception) -> None:
        """Raises KafkaUnavailableError for an error of the registry, unless it says that there is no such schema."""
        if isinstance(error, self._refused):
            if not _says_missing(error):
                raise self._unavailable(f"status {error.http_status_code}") from None
        elif isinstance(error, OSError | JSONDecodeError) or type(error).__module__.startswith("httpx"):
            raise self._unavailable(type(error).__name__) from None

    def _require_schema(self, schema: int, subject: str) -> None:
        """Raises MalformedError if the registry says again and again that it has no such schema.

        A registry of several nodes knows a new schema a moment later everywhere.
        """
        tries = 1 if time.monotonic() < self._missing.get(schema, 0.0) else TRIES
        for pause in [0.0, *[TRY_SECONDS] * (tries - 1)]:
            time.sleep(pause)
            try:
                self._client.get_schema(schema, subject, *self.schema_form)
            except Exception as error:  # noqa: BLE001
                self._require_registry(error)
                if not isinstance(error, self._refused):
                    raise self._unavailable(type(error).__name__) from None
            else:
                self._missing.pop(schema, None)
                return
        self._missing[schema] = time.monotonic() + MISSING_SECONDS
        raise MalformedError(f"the schema registry has no schema of its id, {schema}")

    def _unavailable(self, code: str) -> KafkaUnavailableError:
        return KafkaUnavailableError(
            f"The schema registry {self._address} has not answered: {code}. Check that it runs, and the options "
            "registry.*.",
            servers=self._address,
            code=code,
        )


class AvroRecords(RegistryRecords):
    """Reads Avro records."""

    format = "Avro"

    def _reader(self) -> Callable[[bytes, Any], Any]:
        read = library("confluent_kafka.schema_registry.avro").AvroDeserializer(self._client)
        return lambda value, where: _with_texts(read(value, where))


def schema_id(value: bytes) -> int | None:
    """The id of a message's schema; None if the message does not begin with one."""
    return int(HEADER.unpack_from(value)[1]) if len(value) > HEADER.size and value[0] == 0 else None


def _says_missing(error: Any) -> bool:
    """Whether a registry says that there is no such schema, and not a proxy that there is no such page."""
    return error.http_status_code == 404 and error.error_code in _NO_SCHEMA


def _with_texts(value: Any) -> Any:
    """The value with the logical type uuid as a text, which a STRING holds."""
    kind = type(value)
    if kind is dict:
        return {name: _with_texts(part) for name, part in value.items()}
    if kind is list:
        return [_with_texts(part) for part in value]
    return str(value) if kind is UUID else value


def _typed(name: str, text: str) -> str | int:
    return int(text) if name in _NUMBERS and text.isdigit() else text


def _without_secrets(url: str) -> str:
    """The address without a user and a password."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    except ValueError:  # its text has a part of the address, which may be one of the password
        pass
    raise InvalidOptionError(
        "The address of the schema registry is not one. Write 'http://registry:8081', and give a user and a password "
        "as registry.basic.auth.user.info. (It is not shown: it may have a password.)",
        option="registry.url",
    )
