"""Messages that are no rows: the error while one is decoded, and the stream that keeps them."""

from typing import Any

from spark_rowtime.errors import MessageDecodeError
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.stream import createStream
from spark_rowtime.types.timestamps import LARGEST, LEAST, from_micros, wall_clock

SCHEMA = (
    "rowtime TIMESTAMP NOT NULL, topic STRING NOT NULL, partition INT NOT NULL, offset BIGINT NOT NULL, "
    "cause STRING NOT NULL, sent TIMESTAMP, key BINARY, value BINARY"
)
"""``rowtime`` is when the message was rejected, ``sent`` the message's own time, if a stream can hold it."""

CAUSE_CHARACTERS = 2000
"""How much of a cause is kept: that of a decoder of the user's may have any length."""


class MalformedError(Exception):
    """What is wrong with a message. It never leaves this package."""


class MalformedMessages:
    """Keeps the messages of one partition that are no rows, in a stream of their own, each once.

    A message is stored with the offset behind it as checkpoint. So if the feed dies before its own commit, it meets
    the message again and finds that it is stored. A topic that was created again has another id; its offsets are those
    of other messages.
    """

    def __init__(self, path: str, producer: str, topic_id: str) -> None:
        createStream(path, SCHEMA, existOk=True)
        self._sink = openSink(path, producer=producer, rowsImplyBounds=False, onLate="reject")
        self._topic_id = topic_id
        self._next = _stored(self._sink.checkpoint, producer, topic_id)

    def keep(self, message: Any, cause: str) -> None:
        """Stores a message, unless it is there."""
        if message.offset() < self._next:
            return
        stamp = message.timestamp()[1] * 1000
        sent = from_micros(stamp) if LEAST <= stamp <= LARGEST else None
        place = (message.topic(), message.partition(), message.offset())
        self._sink.sendRow((from_micros(wall_clock()), *place, cause, sent, message.key(), message.value()))
        self._next = message.offset() + 1
        self._sink.flush(checkpoint=Checkpoint(self._topic_id, self._next).text())

    def flush(self) -> None:
        """Nothing: each message is stored at once."""

    def close(self) -> None:
        """Ends the sink."""
        self._sink.close()


def _stored(text: str | None, producer: str, topic_id: str) -> int:
    """The offset below which the messages of this topic are stored."""
    if text is None:
        return 0
    found = Checkpoint.read(text, producer)
    return found.offset if found.topic_id == topic_id else 0


def kept_cause(cause: str) -> str:
    """The cause as it is kept with a message: of some length, and in Unicode, whatever a decoder has raised."""
    return cause[:CAUSE_CHARACTERS].encode(errors="backslashreplace").decode()


def undecodable(message: Any, cause: str) -> MessageDecodeError:
    """The error for a message that is no row."""
    return MessageDecodeError(
        f"The message at offset {message.offset()} of partition {message.partition()} of topic {message.topic()!r} is "
        f"not a row: {cause}. Mend the decoder or the stream's schema, or give malformed='PATH' or "
        "malformed='kafka://HOST:PORT/TOPIC' to keep such messages in a stream or a topic of their own and to go on.",
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        cause=cause,
    )
