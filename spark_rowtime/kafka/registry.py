"""The schema registry: its options, its client, and its errors in the tree of this project."""

from collections.abc import Mapping
from contextlib import suppress
from json import JSONDecodeError
from typing import Any
from urllib.parse import urlsplit

from spark_rowtime.errors import InvalidOptionError, KafkaUnavailableError, SchemaMismatchError
from spark_rowtime.kafka.client import library
from spark_rowtime.kafka.settings import filled

REGISTRY = "registry."
"""What the names of the options of the schema registry's client begin with."""
_NO_SCHEMA = (40401, 40402, 40403)
"""The registry's codes for a subject, a version and a schema that it does not have."""
_NOT_TAKEN = (409, 422)
"""Its answers for a schema that it refuses."""
_NUMBERS = ("timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "cache.capacity")


def registry_settings(given: Mapping[str, str]) -> dict[str, str]:
    """The options of the registry's client among those given. ``{env:NAME}`` stands for a variable."""
    own = {name: text for name, text in given.items() if name.startswith(REGISTRY)}
    return {name.removeprefix(REGISTRY): filled(text, name) for name, text in own.items()}


def require_registry(settings: Mapping[str, str], option: str, value: str) -> None:
    """Raises InvalidOptionError if the settings do not name the registry, which this value of an option needs."""
    if "url" not in settings:
        raise InvalidOptionError(
            f"{option}={value!r} needs the address of the schema registry: registry.url='http://registry:8081'.",
            option="registry.url",
        )


class Registry:
    """A schema registry. ``options`` are those of confluent-kafka's SchemaRegistryClient, with ``url``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        registry = library("confluent_kafka.schema_registry")
        self.refused = library("confluent_kafka.schema_registry.error").SchemaRegistryError
        self._address = _without_secrets(options["url"])
        self.client: Any = None
        with suppress(ValueError, TypeError):
            self.client = registry.SchemaRegistryClient({name: _typed(name, text) for name, text in options.items()})
        if self.client is None:
            raise InvalidOptionError(
                f"The client of the schema registry refuses one of the options {sorted(options)}: there is no such "
                "option, or its value cannot be used. (Values are not shown: they may be secret.)",
                option=f"{REGISTRY}*",
            )

    def require_answer(self, error: Exception) -> None:
        """Raises KafkaUnavailableError for an error of the registry, unless it says that there is no such schema."""
        if isinstance(error, self.refused):
            if not _says_missing(error):
                raise self.unavailable(f"status {error.http_status_code}") from None
        elif isinstance(error, OSError | JSONDecodeError) or type(error).__module__.startswith("httpx"):
            raise self.unavailable(type(error).__name__) from None

    def unavailable(self, code: str) -> KafkaUnavailableError:
        """The error for a registry that has not answered what was asked."""
        return KafkaUnavailableError(
            f"The schema registry {self._address} has not answered: {code}. Check that it runs, and the options "
            "registry.*.",
            servers=self._address,
            code=code,
        )

    def id_of(self, subject: str, schema: Any) -> int:
        """The id of a schema under a subject. It is registered if it is not there.

        Raises:
            SchemaMismatchError: The registry refuses it, as where later versions must be compatible.
            KafkaUnavailableError: The registry does not answer.
        """
        for ask in (self._known, self.client.register_schema):
            try:
                found = ask(subject, schema)
            except Exception as error:  # noqa: BLE001
                self._require_taken(error, subject)
                raise self.unavailable(type(error).__name__) from None
            if found is not None:
                return int(found)
        raise self.unavailable("no id")

    def _known(self, subject: str, schema: Any) -> int | None:
        """The id of a schema that is registered; None if it is not. It needs no right to write."""
        try:
            return int(self.client.lookup_schema(subject, schema).schema_id)
        except self.refused as error:
            if not _says_missing(error):
                raise
            return None

    def _require_taken(self, error: Exception, subject: str) -> None:
        """Raises SchemaMismatchError if the registry says that the schema cannot be one of this subject."""
        if isinstance(error, self.refused) and error.http_status_code in _NOT_TAKEN:
            raise SchemaMismatchError(
                f"The schema registry {self._address} does not take the schema of the stream's columns under the "
                f"subject {subject!r}: {error.error_message}. Drain into another topic, or change what the registry "
                "requires of later versions.",
                path=subject,
            ) from None
        self.require_answer(error)


def _says_missing(error: Any) -> bool:
    """Whether a registry says that there is no such schema, and not a proxy that there is no such page."""
    return error.http_status_code == 404 and error.error_code in _NO_SCHEMA


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
