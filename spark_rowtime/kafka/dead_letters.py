"""DeadLetters: a topic that keeps messages which are no rows, as they were, with the cause in headers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spark_rowtime.errors import InvalidOptionError, KafkaUnavailableError
from spark_rowtime.kafka.address import TopicAddress
from spark_rowtime.kafka.client import REQUEST_SECONDS, library, new_client
from spark_rowtime.kafka.malformed import LARGEST_BYTES, MalformedError, cut_note, kept_part
from spark_rowtime.kafka.message_headers import headers_of
from spark_rowtime.kafka.settings import of_connections

CAUSE = "rowtime.cause"
"""The header with what is wrong; ``rowtime.topic``, ``.partition``, ``.offset`` and ``.timestamp`` say where it was."""
UNREADABLE = "rowtime.headers"
"""The header that a message has in the place of its own ones, if these cannot be read."""
_SETTINGS = {
    "enable.idempotence": True,
    "linger.ms": 5,
    "message.max.bytes": 1_000_000_000,
    "compression.type": "zstd",
}
"""How large a message may be is said by the topic, since some producer has sent it, maybe compressed."""


class DeadLetters:
    """Sends messages into a topic. ``settings`` are those of the feed's client.

    Law (*kept*): after ``flush`` the brokers have each message that was given before. A feed flushes before it commits,
    so a message may come again after a crash, and is never lost.
    """

    def __init__(self, address: TopicAddress, settings: Mapping[str, Any]) -> None:
        self._address = address
        options = {**of_connections(settings), "bootstrap.servers": address.servers, **_SETTINGS}
        self._producer: Any = new_client("producer", options)
        self._failed: Any = None

    def keep(self, message: Any, cause: str) -> None:
        """Sends a message, with its own key, value and headers, or without headers that nobody can read.

        Of one that is too large to be decoded it sends the beginning.
        """
        key, value, note = message.key(), message.value(), ""
        if any(part is not None and len(part) > LARGEST_BYTES for part in (key, value)):
            key, value, note = kept_part(key), kept_part(value), cut_note(key, value)
        try:
            headers, readable = headers_of(message), {}
        except MalformedError as error:
            headers, readable = [], {UNREADABLE: str(error)}
        own = {
            CAUSE: cause + note,
            "rowtime.topic": message.topic(),
            "rowtime.partition": message.partition(),
            "rowtime.offset": message.offset(),
            "rowtime.timestamp": message.timestamp()[1],
            **readable,
        }
        more = [(name, str(value).encode()) for name, value in own.items()]
        while not self._produced(value, key, [*headers, *more]):
            self.flush()

    def _produced(self, value: Any, key: Any, headers: Any) -> bool:
        """Sends a message; False if the client's buffer is full."""
        try:
            self._producer.produce(self._address.topic, value, key, headers=headers, on_delivery=self._note)
        except BufferError:
            return False
        except library().KafkaException as error:
            raise self._refused(error.args[0].name()) from error
        return True

    def flush(self) -> None:
        """Returns when the brokers have all messages; KafkaUnavailableError if they do not take one."""
        left = self._producer.flush(REQUEST_SECONDS)
        failed, self._failed = self._failed, None
        if left or failed is not None:
            raise self._refused("no answer" if failed is None else failed.name())

    def _refused(self, code: str) -> KafkaUnavailableError:
        return KafkaUnavailableError(
            f"The topic {self._address} for messages that are no rows does not take them: {code}. Create it if it "
            "is not there; check the rights of this client, and the topic's max.message.bytes. The feed continues "
            "before them.",
            servers=self._address.servers,
            topic=self._address.topic,
            code=code,
        )

    def close(self) -> None:
        """Nothing: the partitions of a feed share it."""

    def _note(self, error: Any, _: Any) -> None:
        self._failed = self._failed or error


def require_apart(address: TopicAddress, names: Sequence[str], pattern: "re.Pattern[str] | None") -> None:
    """Raises InvalidOptionError if the feed would read its own dead letters, which would be sent again without end."""
    if address.topic in names or (pattern is not None and pattern.fullmatch(address.topic)):
        raise InvalidOptionError(
            f"malformed={str(address)!r} is one of the topics that are read, so a message there that is no row would "
            "be read and sent again without end. Name another topic"
            + ("." if pattern is None else f", which the pattern {pattern.pattern!r} does not match."),
            option="malformed",
            value=str(address),
        )
