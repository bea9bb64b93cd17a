"""The client of Kafka (confluent-kafka, pip extra ``kafka``): its options, and its errors in the tree of this project.

An option may be a password. No error here shows the value of one.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from spark_rowtime.errors import InvalidOptionError, KafkaUnavailableError
from spark_rowtime.kafka.settings import filled, of_connections
from spark_rowtime.types.extras import import_extra

LOG = logging.getLogger("spark_rowtime.kafka")
PREFIX = "kafka."
"""What the names of the client's options begin with where they stand beside other options."""
REQUEST_SECONDS = 30.0
"""How long a request to the brokers may take."""
FIRST_SECONDS = 3.0
"""How long the first attempt of a request may take; each further one twice as long."""
RETRY_SECONDS = 0.1
"""The pause before the next attempt."""
PASSING = ("_TIMED_OUT", "_TRANSPORT", "NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "OFFSET_NOT_AVAILABLE")
"""Kafka's errors for a broker that has died, and for a partition whose leader is being elected.

OFFSET_NOT_AVAILABLE: a new leader does not know yet that its replicas have all that the old one has acknowledged.
"""
_REFUSED = {
    "error_cb": "errors of connections are told by this project's own errors.",
    "logger": "messages of the client go to the log spark_rowtime.kafka.",
}
_PROPERTY = re.compile(r'property[: ]+"([^"]+)"')


def library(module: str = "confluent_kafka") -> Any:
    """Imports a module of the client; ExtraNotInstalledError without the pip extra."""
    return import_extra(module, "kafka", "Kafka")


def client_options(given: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
    """The client's options, whose names may begin with ``kafka.``, without that.

    ``{env:NAME}`` in a value stands for an environment variable. ``refused`` has the options that the caller sets
    itself, each with the reason. ``error_cb`` and ``logger`` are refused here, too.
    """
    refused = {**_REFUSED, **refused}
    options = {}
    for name, value in given.items():
        plain = name.removeprefix(PREFIX)
        if plain in refused:
            raise InvalidOptionError(f"The option {name!r} cannot be set: {refused[plain]} Leave it out.", option=name)
        options[plain] = filled(value, plain)
    return options


def new_client(kind: str, options: Mapping[str, Any]) -> Any:
    """Makes a client; InvalidOptionError, which names the option but not its value, if the client refuses one.

    Of the options, an "admin" takes those that all clients have.
    """
    confluent = library()
    if kind == "admin":
        made, options = library("confluent_kafka.admin").AdminClient, of_connections(options)
    else:
        made = confluent.Consumer if kind == "consumer" else confluent.Producer
    try:
        return made({**options, "logger": LOG})
    except (confluent.KafkaException, ValueError, TypeError) as error:
        found = _PROPERTY.search(str(error))
        name = f"the option {found[1]!r}" if found else f"one of the options {sorted(options)}"
    raise InvalidOptionError(
        f"Kafka's client refuses {name}: there is no such option, or its value cannot be used. (Values are not shown: "
        "they may be secret.) The names are those of librdkafka: "
        "https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md.",
        option=found[1] if found else None,
    )


def describe_topics(admin: Any, names: Iterable[str], seconds: float) -> dict[str, Any]:
    """Asks for topics; returns by name the future of what the brokers say of it."""
    topics = library().TopicCollection(list(names))
    return _answers(admin, lambda left: admin.describe_topics(topics, request_timeout=left), seconds)


def list_offsets(admin: Any, asked: Mapping[Any, Any], seconds: float, **options: Any) -> dict[Any, Any]:
    """Asks for offsets; returns by partition the future of what its leader says."""

    def ask(left: float) -> dict[Any, Any]:
        answers = admin.list_offsets(dict(asked), request_timeout=left, **options)
        return {place: _with_offset(future) for place, future in answers.items()}

    return _answers(admin, ask, seconds)


def _with_offset(answer: Any) -> Any:
    """The future of an offset. Where one leader of several has not answered, the client says so by no error."""
    errors = library().KafkaError
    if answer.exception() is None and answer.result().offset == library().OFFSET_INVALID:
        answer = Future[Any]()
        answer.set_exception(library().KafkaException(errors(errors._TIMED_OUT, "its leader has not answered")))  # noqa: SLF001
    return answer


def _answers(admin: Any, ask: Callable[[float], dict[Any, Any]], seconds: float) -> dict[Any, Any]:
    """Asks until the brokers have answered, at most so many seconds; returns futures that are done.

    The client asks the broker that was the controller, or the leader of a partition, when it last looked at the
    cluster. That one may have died, or no longer lead; so the client looks again before the next attempt.
    """
    deadline, attempt = time.monotonic() + seconds, FIRST_SECONDS
    left = seconds
    while True:
        futures = ask(min(attempt, left))
        found = any(_may_pass(future.exception()) for future in futures.values())
        if not found or (left := deadline - time.monotonic() - RETRY_SECONDS) <= 0:
            return futures
        with suppress(library().KafkaException):
            admin.list_topics(timeout=min(FIRST_SECONDS, left))
        time.sleep(RETRY_SECONDS)
        attempt, left = attempt * 2, max(deadline - time.monotonic(), RETRY_SECONDS)


def _may_pass(error: Any) -> bool:
    """Whether an error comes from a broker that has died, or from a partition whose leader is being elected."""
    return isinstance(error, library().KafkaException) and error.args[0].name() in PASSING


class ConnectionErrors:
    """Listens to the errors of a client's connections: the last one says more than that a request has timed out."""

    def __init__(self) -> None:
        self.last: Any = None

    def __call__(self, error: Any) -> None:
        """Keeps a KafkaError. That all brokers are down says less than the one before."""
        if self.last is None or error.code() != library().KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            self.last = error


def admin_of(producer: Any, topic: str, seconds: float) -> Any:
    """A client for questions to the brokers that ``producer`` knows, without TLS and without a user."""
    brokers = producer.list_topics(topic, seconds).brokers.values()
    return new_client("admin", {"bootstrap.servers": ",".join(f"{broker.host}:{broker.port}" for broker in brokers)})


_UNANSWERED = ("_ALL_BROKERS_DOWN", "_TRANSPORT", "_TIMED_OUT")
"""Kafka's errors for brokers that end each connection, or do not answer."""


def plaintext_advice(options: Mapping[str, Any], error: Any) -> str:
    """What to try where nobody answers a client without TLS: a listener with TLS ends its connections, or waits."""
    plain = "plaintext" in str(options.get("security.protocol", "plaintext")).lower()
    name, said = name_and_text(error)
    if not plain or name not in _UNANSWERED or "Connect to" in said:  # nobody listens there
        return ""
    return (
        " This client connects without TLS. A port of the brokers that is for TLS takes no such connection: set "
        "security.protocol to SSL, or to SASL_SSL with a user."
    )


def unavailable(servers: str, error: Any, what: str, *, advice: str = "", **values: Any) -> KafkaUnavailableError:
    """The error for a KafkaError, or an exception around one, of a broker that cannot be used.

    ``servers`` is empty where the client is the caller's own.
    """
    name, said = name_and_text(error)
    return KafkaUnavailableError(
        f"{what} failed at {brokers(servers)}: {name} ({said}). Check that they run and can be reached, and "
        f"that the options for TLS and SASL (security.protocol, ssl.*, sasl.*) are theirs.{advice}",
        servers=servers or None,
        **values,
        code=name,
    )


def name_and_text(error: Any) -> tuple[str, str]:
    """What a KafkaError, or an exception around one, is called, and what it says."""
    inner = error.args[0] if isinstance(error, library().KafkaException) else error
    name = inner.name() if hasattr(inner, "name") else type(inner).__name__
    return name, inner.str() if hasattr(inner, "str") else str(inner)


def brokers(servers: str) -> str:
    """How an error names the brokers; ``servers`` may be empty."""
    return f"Kafka's brokers {servers}".rstrip()
