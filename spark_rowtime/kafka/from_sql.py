"""What the author of a SQL text may say to an adapter of Kafka.

It is nothing that loads code, opens files, tells secrets, or writes into topics.
"""

from collections.abc import Collection, Mapping

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.address import KAFKA
from spark_rowtime.kafka.client import PREFIX
from spark_rowtime.kafka.records import FORMATS as RECORD_FORMATS
from spark_rowtime.kafka.settings import variables
from spark_rowtime.kafka.watermarks import FORMATS

CLIENT_OPTIONS = frozenset(
    {
        *("broker.address.family", "check.crcs", "client.id", "client.rack", "connections.max.idle.ms"),
        *("fetch.error.backoff.ms", "fetch.max.bytes", "fetch.message.max.bytes", "fetch.min.bytes"),
        *("fetch.queue.backoff.ms", "fetch.wait.max.ms", "group.id", "group.instance.id", "heartbeat.interval.ms"),
        *("max.partition.fetch.bytes", "max.poll.interval.ms", "metadata.max.age.ms", "queued.max.messages.kbytes"),
        *("queued.min.messages", "receive.message.max.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms"),
        *("retry.backoff.max.ms", "retry.backoff.ms", "sasl.mechanism", "sasl.mechanisms", "sasl.password"),
        *("sasl.username", "security.protocol", "session.timeout.ms", "socket.connection.setup.timeout.ms"),
        *("socket.keepalive.enable", "socket.nagle.disable", "socket.timeout.ms", "ssl.ca.pem", "ssl.certificate.pem"),
        *("ssl.endpoint.identification.algorithm", "ssl.key.password", "ssl.key.pem"),
        "topic.metadata.refresh.interval.ms",
    }
)
"""The options of the client. Others load libraries (``plugin.library.paths``), start programs
(``sasl.kerberos.kinit.cmd``), open files (``ssl.ca.location``) or addresses, or write to the log."""
REGISTRY_OPTIONS = frozenset({"registry.url", "registry.basic.auth.user.info"})
_FUNCTIONS = {"decoder": RECORD_FORMATS, "bounds": ("rows", "append-time", *FORMATS)}
"""The arguments that may name functions, and what they have that is none."""


def require_allowed(texts: Mapping[str, str], allowed: Collection[str]) -> None:
    """Raises InvalidOptionError for an argument that is not for authors of SQL.

    ``allowed`` has the functions that arguments may name, as ``module:function``, the environment variables whose
    values they may stand for, as ``env:NAME``, and topics for messages that are no rows, as ``kafka://HOST:PORT/TOPIC``.
    """
    for name, text in texts.items():
        if name in _FUNCTIONS and text not in _FUNCTIONS[name]:
            _require(text, allowed, name, f"names the function {text!r}, which would be imported")
        if name == "malformed" and text.startswith(KAFKA):
            _require(text, allowed, name, f"sends messages into the topic {text}")
        if name == "config" or (name.startswith(PREFIX) and name.removeprefix(PREFIX) not in CLIENT_OPTIONS):
            raise _not_for_sql(name, f"of Kafka's client are: {', '.join(sorted(CLIENT_OPTIONS))}")
        if name.startswith("registry.") and name not in REGISTRY_OPTIONS:
            raise _not_for_sql(name, f"of the registry's client are: {', '.join(sorted(REGISTRY_OPTIONS))}")
        for variable in variables(text):
            entry = f"env:{variable}"
            _require(entry, allowed, name, f"would send the environment variable {variable} to a server of its choice")


def _require(entry: str, allowed: Collection[str], name: str, what: str) -> None:
    if not {part.strip() for part in entry.split(",")}.issubset(allowed):  # which is a list with commas, too
        raise InvalidOptionError(
            f"The argument {name!r} {what}. SQL can say that, too, so it has to be allowed, as an adapter is: add "
            f"{entry!r} to the setting spark.rowtime.adapters, or to ROWTIME_ADAPTERS in the driver's environment.",
            option=name,
            value=entry,
        )


def _not_for_sql(name: str, those: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"The argument {name!r} cannot be given beside a query: it might load code or open a file, and SQL can give "
        f"it, too. Those {those}. Set others in a class of your own, class Orders(KafkaFeed), whose constructor passes "
        "options={...}, and allow that class; or host the feed by itself: rowtime run.",
        option=name,
    )
