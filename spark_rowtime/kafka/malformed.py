"""Messages that are no rows: the error while one is decoded, and the stream that keeps them."""

from datetime import datetime
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import MessageDecodeError
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.reader.reader import openReader
from spark_rowtime.stream import createStream
from spark_rowtime.types.timestamps import LARGEST, LEAST, from_micros, wall_clock

SCHEMA = (
    "rowtime TIMESTAMP NOT NULL, topic STRING NOT NULL, partition INT NOT NULL, offset BIGINT NOT NULL, "
    "cause STRING NOT NULL, sent TIMESTAMP, key BINARY, value BINARY"
)
"""``rowtime`` is when the message was rejected, ``sent`` the message's own time, if a stream can hold it."""

CAUSE_CHARACTERS = 2000
"""How much of a cause is kept: that of a decoder of the user's may have any length."""
LARGEST_BYTES = 128 << 20
"""A larger value is not decoded: brokers limit its compressed size alone, and a decoder needs several times more."""
KEPT_BYTES = 1 << 20
"""How much of a key and of a value the stream keeps, and a topic of those that are larger than ``LARGEST_BYTES``."""


class MalformedError(Exception):
    """What is wrong with a message. It never leaves this package."""


class MalformedMessages:
    """Keeps the messages of one partition that are no rows, in a stream of their own, each once.

    Law (*once*): a message is there if the stream has one with the same topic, partition, offset, time, key and value,
    as far as it keeps these.
    So a feed that died before its own commit finds the message that it meets again. Other messages at offsets that the
    stream knows are kept: those of another feed with this stream, or of a partition that was truncated, or of a topic
    that was created again. The stream's checkpoint is the offset behind all that it has of the topic with this id: only
    below that is looked.
    """

    def __init__(self, path: str, producer: str, topic_id: str) -> None:
        createStream(path, SCHEMA, existOk=True)
        self._path = path
        self._sink = openSink(path, producer=producer, rowsImplyBounds=False, onLate="reject")
        self._topic_id = topic_id
        self._next = _stored(self._sink.checkpoint, producer, topic_id)
        self._there: set[bytes] | None = None

    def keep(self, message: Any, cause: str) -> None:
        """Stores a message, unless it is there."""
        stamp, place = message.timestamp()[1] * 1000, (message.topic(), message.partition(), message.offset())
        sent = stamp if LEAST <= stamp <= LARGEST else None
        what = (message.offset(), sent, kept_part(message.key()), kept_part(message.value()))
        cause += cut_note(message.key(), message.value())
        if message.offset() < self._next:
            self._there = _stored_messages(self._path, *place[:2]) if self._there is None else self._there
            if _identity(*what) in self._there:
                return
        self._sink.sendRow((self._now(), *place, cause, None if sent is None else from_micros(sent), *what[2:]))
        self._next = max(self._next, message.offset() + 1)
        self._sink.flush(checkpoint=Checkpoint(self._topic_id, self._next).text())
        if self._there is not None:
            self._there.add(_identity(*what))

    def _now(self) -> datetime:
        """The time, or the stream's bound, if another host whose clock is ahead has raised that: no message is late."""
        bound = self._sink.getRowtimeBound()
        return from_micros(wall_clock() if bound is None else max(wall_clock(), bound.floor))

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


def _stored_messages(path: str, topic: str, partition: int) -> set[bytes]:
    """The messages of a partition that the stream has."""
    found: set[bytes] = set()
    with openReader(path, order="arrival") as reader:
        for train in reader:
            rows = pa.Table.from_batches([train.rows])
            of_it = rows.filter((pc.field("topic") == topic) & (pc.field("partition") == partition))
            sent = of_it["sent"].cast(pa.int64())
            columns = (column.to_pylist() for column in (of_it["offset"], sent, of_it["key"], of_it["value"]))
            found.update(map(_identity, *columns))
    return found


def _identity(offset: int, sent: int | None, key: bytes | None, value: bytes | None) -> bytes:
    """What tells a message from others of its partition, as a digest; ``sent`` in microseconds."""
    return sha256(repr((offset, sent, kept_part(key), kept_part(value))).encode()).digest()


def kept_cause(cause: str) -> str:
    """The cause as it is kept with a message: of some length, and in Unicode, whatever a decoder has raised."""
    return cause[:CAUSE_CHARACTERS].encode(errors="backslashreplace").decode()


def kept_part(value: bytes | None) -> bytes | None:
    """What is kept of a key or of a value."""
    return None if value is None else value[:KEPT_BYTES]


def cut_note(key: bytes | None, value: bytes | None) -> str:
    """What a cause says of a key and a value of which not all is kept."""
    parts = (("key", key), ("value", value))
    whole = [f"{len(part)} bytes of its {name}" for name, part in parts if part is not None and len(part) > KEPT_BYTES]
    return f" (Of the {' and the '.join(whole)}, the first {KEPT_BYTES} are kept.)" if whole else ""


def require_decodable(value: bytes) -> None:
    """Raises MalformedError for a value that is not decoded since it is too large."""
    if len(value) > LARGEST_BYTES:
        raise MalformedError(f"its value has {len(value)} bytes, and those above {LARGEST_BYTES} are not decoded")


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
