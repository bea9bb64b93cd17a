"""PartitionFeed: one partition of a topic as a producer of a stream."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import ProducerFencedError, SchemaMismatchError
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.decoding import Decoder
from spark_rowtime.kafka.malformed import MalformedError, MalformedMessages, undecodable
from spark_rowtime.kafka.topics import Part
from spark_rowtime.producer.sink import StreamSink

FULL_ROWS = 65536
"""So many rows are committed without a wait."""


class PartitionFeed:
    """Sends the messages of one partition, and commits them with the offset behind them.

    Law (*once*): ``next`` is the offset of the next message. A message below it was taken; a commit has the rows of
    all messages below ``next``, and ``next`` as its checkpoint. After an error ``flush`` is not called any more.
    """

    def __init__(
        self, part: Part, open_sink: Callable[[], StreamSink], decode: Decoder, malformed: MalformedMessages | None
    ) -> None:
        self.part, self._open, self._decode, self._malformed = part, open_sink, decode, malformed
        self.sink: StreamSink | None = open_sink()
        assert self.sink.checkpoint is not None, "a partition has a checkpoint before it is read"
        self._checkpoint = Checkpoint.read(self.sink.checkpoint, part.producer)
        self.next = self._stored = self._checkpoint.offset
        self.end: int | None = None
        """The end of the partition that the consumer has met; None: none yet."""
        self._rows = 0
        self.committed_at = self.taken_at = time.monotonic()

    @property
    def topic_id(self) -> str:
        """The id of the topic."""
        return self._checkpoint.topic_id

    @property
    def at_end(self) -> bool:
        """Whether all messages that the consumer may see have been taken."""
        return self.end is not None and self.end >= self.next

    @property
    def position(self) -> int:
        """The offset behind all that was taken, and behind markers of transactions that follow it."""
        return max(self.next, self.end or 0) if self.at_end else self.next

    @property
    def full(self) -> bool:
        """Whether there are so many rows that they should be committed."""
        return self._rows >= FULL_ROWS

    @property
    def pending(self) -> bool:
        """Whether messages were taken that are not committed."""
        return self.next != self._stored

    def take(self, messages: list[Any]) -> None:
        """Takes messages in the order of their offsets."""
        given: list[tuple[Any, Any]] = []
        decode, first = self._decode, self.next
        for message in messages:
            if message.offset() < first:  # of an earlier assignment: it was taken before
                continue
            try:
                found = decode(message)
            except MalformedError as error:
                self._send(given)
                self._reject(message, str(error))
                continue
            if isinstance(found, RowtimeBound):
                self._send(given)
                self.promise(found)
                self.next = message.offset() + 1
            else:
                given.append((message, found))
        self._send(given)
        self.taken_at = time.monotonic()

    def promise(self, bound: RowtimeBound) -> None:
        """Sends a bound. One that says nothing new is left out, as change feeds repeat theirs after a restart."""
        sink = self._opened()
        now = sink.getRowtimeBound()
        if now is None or bound.floor > now.floor:
            sink.sendRowtimeBound(bound)

    def flush(self) -> None:
        """Commits what was taken."""
        if self.sink is not None:
            self._checkpoint = self._checkpoint._replace(offset=self.position)
            self.sink.flush(checkpoint=self._checkpoint.text())
            self._stored, self._rows = self.next, 0
        self.committed_at = time.monotonic()

    def leave(self) -> None:
        """Lets the stream go on without this partition until its next message."""
        if self.sink is not None:
            self.flush()
            self.sink.close()
            self.sink = None

    def drop(self) -> None:
        """Lets go of the partition, which another host takes over. What was not committed is left to that one."""
        with ExitStack() as ends:  # each of them, also if the other raises
            if self._malformed is not None:
                ends.callback(self._malformed.close)
            if self.sink is not None:
                ends.callback(self.sink.abandon)

    def _send(self, given: list[tuple[Any, Any]]) -> None:
        """Sends the rows of messages, and clears the list."""
        if not given:
            return
        rows = [row for _, found in given for row in _rows(found)]
        try:
            if rows:
                self._opened().sendRows(rows)
        except SchemaMismatchError:
            self._send_each(given)
        self._rows += len(rows)
        self.next = given[-1][0].offset() + 1
        given.clear()

    def _send_each(self, given: list[tuple[Any, Any]]) -> None:
        """Sends the rows of one message after the other, since the sink has refused a row of some message."""
        for message, found in given:
            try:
                self._opened().sendRows(_rows(found))
            except SchemaMismatchError as error:
                self._reject(message, str(error))
            self.next = message.offset() + 1

    def _reject(self, message: Any, cause: str) -> None:
        """Keeps a message that is no row, or raises MessageDecodeError; what came before it is committed then."""
        if self._malformed is None:
            if self.pending:
                self.flush()
            raise undecodable(message, cause)
        self._malformed.keep(message, cause)
        self.next = message.offset() + 1

    def _opened(self) -> StreamSink:
        """The sink; after ``leave`` it is opened again, unless another host has read on meanwhile."""
        if self.sink is None:
            sink = self._open()
            if Checkpoint.read(sink.checkpoint or "", self.part.producer) != self._checkpoint:
                sink.abandon()
                raise self._read_elsewhere(sink.checkpoint)
            self.sink = sink
        return self.sink

    def _read_elsewhere(self, found: str | None) -> ProducerFencedError:
        return ProducerFencedError(
            f"Another host has read {self.part.producer} on since this one let it go: the stream has {found}, not "
            f"{self._checkpoint.text()}. Nothing of this host was sent.",
            producer=self.part.producer,
        )


def _rows(found: Any) -> list[Any]:
    if found is None:
        return []
    return found if type(found) is list else [found]
