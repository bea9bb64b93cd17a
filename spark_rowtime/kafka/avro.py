"""Avro records in Confluent's wire format: a schema registry has the schema that a message names by its id."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from spark_rowtime.errors import InvalidOptionError, KafkaUnavailableError
from spark_rowtime.kafka.client import library
from spark_rowtime.kafka.malformed import MalformedError

REGISTRY = "registry."
"""What the names of the options of the schema registry's client begin with."""
_NUMBERS = ("timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "cache.capacity")


class AvroRecords:
    """Reads the record of a message. ``options`` are those of confluent-kafka's SchemaRegistryClient, with ``url``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        registry = library("confluent_kafka.schema_registry")
        self._serialization = library("confluent_kafka.serialization")
        self._refused = library("confluent_kafka.schema_registry.error").SchemaRegistryError
        self._address = _without_secrets(options["url"])
        try:
            client = registry.SchemaRegistryClient({name: _typed(name, text) for name, text in options.items()})
        except (ValueError, TypeError):
            client = None
        if client is None:
            raise InvalidOptionError(
                f"The client of the schema registry refuses one of the options {sorted(options)}: there is no such "
                "option, or its value cannot be used. (Values are not shown: they may be secret.)",
                option=f"{REGISTRY}*",
            )
        self._read = library("confluent_kafka.schema_registry.avro").AvroDeserializer(client)

    def __call__(self, message: Any) -> Any:
        where = self._serialization.SerializationContext(message.topic(), self._serialization.MessageField.VALUE)
        try:
            return _with_texts(self._read(message.value(), where))
        except self._refused as error:
            if error.http_status_code == 404:
                raise MalformedError("the schema registry has no schema of its id") from None
            raise self._unavailable(f"status {error.http_status_code}") from None
        except OSError as error:
            raise self._unavailable(type(error).__name__) from None
        except Exception as error:  # noqa: BLE001
            if type(error).__module__.startswith("httpx"):
                raise self._unavailable(type(error).__name__) from None
            raise MalformedError(f"it is not Avro in Confluent's wire format: {error}") from None

    def _unavailable(self, code: str) -> KafkaUnavailableError:
        return KafkaUnavailableError(
            f"The schema registry {self._address} has not answered: {code}. Look whether it runs, and at the options "
            "registry.*.",
            servers=self._address,
            code=code,
        )


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
