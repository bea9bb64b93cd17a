"""The address of a topic: kafka://HOST:PORT,HOST:PORT/TOPIC."""

import re
from typing import Any, NamedTuple

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.short_repr import short_repr

KAFKA = "kafka://"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
FORM = "kafka://HOST:9092/TOPIC, or kafka://HOST:9092,HOST:9092/TOPIC"


class TopicAddress(NamedTuple):
    """A topic, and the brokers that are asked first."""

    servers: str
    topic: str

    def __str__(self) -> str:
        return f"{KAFKA}{self.servers}/{self.topic}"


def topic_address(target: Any) -> TopicAddress:
    """Takes an address apart. InvalidOptionError, which does not show the text, if it has a user or a password."""
    text = target.removeprefix(KAFKA) if isinstance(target, str) and target.startswith(KAFKA) else ""
    if "@" in text:
        raise InvalidOptionError(
            "The address of a topic has a user or a password before '@'. Addresses are printed and logged, so they "
            f"must not contain secrets. Write {FORM}, and give sasl.username and sasl.password as settings of the "
            "client. (The address is not shown.)",
            option="target",
        )
    servers, _, topic = text.partition("/")
    hosts = servers.split(",")
    if all(map(_HOST.fullmatch, hosts)) and _is_topic(topic):
        return TopicAddress(servers, topic)
    raise InvalidOptionError(
        f"{short_repr(target)} does not name a topic. Write {FORM}. A topic's name has letters, digits, '.', '_' and "
        "'-', at most 249; settings of the client are given apart from it.",
        option="target",
        value=short_repr(target),
    )


def _is_topic(name: str) -> bool:
    return bool(_TOPIC.fullmatch(name)) and name not in (".", "..")
