"""The client of Kafka (confluent-kafka, pip extra ``kafka``): its options, and its errors in the tree of this project.

An option may be a password. No error here shows the value of one.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

from spark_rowtime.errors import InvalidOptionError, KafkaUnavailableError
from spark_rowtime.tables.table import required

LOG = logging.getLogger("spark_rowtime.kafka")
PREFIX = "kafka."
"""What the names of the client's options begin with where they stand beside other options."""
REQUEST_SECONDS = 20.0
"""How long a request to the broker may take."""
_PROPERTY = re.compile(r'property[: ]+"([^"]+)"')


def library(module: str = "confluent_kafka") -> Any:
    """Imports a module of the client; ExtraNotInstalledError without the pip extra."""
    return required(module, "kafka", "Kafka")


def client_options(given: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
    """The client's options, whose names may begin with ``kafka.``, without that.

    ``refused`` has the options that the caller sets itself, each with the reason.
    """
    options = {}
    for name, value in given.items():
        plain = name.removeprefix(PREFIX)
        if plain in refused:
            raise InvalidOptionError(f"The option {name!r} cannot be set: {refused[plain]} Leave it out.", option=name)
        options[plain] = value
    return options


def made(kind: str, options: Mapping[str, Any]) -> Any:
    """Makes a client; InvalidOptionError, which names the option but not its value, if the client refuses one."""
    confluent = library()
    classes = {"consumer": confluent.Consumer, "producer": confluent.Producer}
    if kind == "admin":
        classes["admin"] = library("confluent_kafka.admin").AdminClient
    try:
        return classes[kind]({**options, "logger": LOG})
    except (confluent.KafkaException, ValueError, TypeError) as error:
        found = _PROPERTY.search(str(error))
        name = f"the option {PREFIX + found[1]!r}" if found else f"one of the options {sorted(options)}"
    raise InvalidOptionError(
        f"Kafka's client refuses {name}: there is no such option, or its value cannot be used. (Values are not shown: "
        "they may be secret.)",
        option=found[1] if found else None,
    )


def unavailable(servers: str, error: Any, what: str) -> KafkaUnavailableError:
    """The error for a KafkaError, or an exception around one, of a broker that cannot be used."""
    inner = error.args[0] if isinstance(error, library().KafkaException) else error
    name = inner.name() if hasattr(inner, "name") else type(inner).__name__
    said = inner.str() if hasattr(inner, "str") else str(inner)
    return KafkaUnavailableError(
        f"{what} failed at Kafka's brokers {servers}: {name} ({said}). Look whether they run and can be reached, and "
        "whether the options for TLS and SASL (security.protocol, ssl.*, sasl.*) are theirs.",
        servers=servers,
        code=name,
    )
