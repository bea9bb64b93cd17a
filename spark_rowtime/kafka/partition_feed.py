"""PartitionFeed: one partition of a topic as a producer of a stream."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import MessageNotReadyError, SchemaMismatchError
from spark_rowtime.kafka.checkpoint import Checkpoint, LastRead
from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.decoding import Bounded, Decoder
from spark_rowtime.kafka.malformed import MalformedError, MalformedMessages, undecodable
from spark_rowtime.kafka.topics import Part
from spark_rowtime.producer.sink import StreamSink

FULL_ROWS = 65536
"""So many rows are committed without a wait."""


class PartitionFeed:
    """Sends the messages of one partition, and commits them with the offset behind them.

    Law (*once*): ``next`` is the offset of the next message. A message below it was taken; a commit has the rows of
    all messages below ``next``, and as its checkpoint ``position``: ``next``, or the offset behind markers of
    transactions that follow it. After an error ``flush`` is not called any more.
    """

    def __init__(
        self, part: Part, open_sink: Callable[[], StreamSink], decode: Decoder, malformed: MalformedMessages | None
    ) -> None:
        self.part, self._decode, self._malformed = part, decode, malformed
        self.sink = open_sink()
        assert self.sink.checkpoint is not None, "a partition has a checkpoint before it is read"
        self._checkpoint = Checkpoint.read(self.sink.checkpoint, part.producer)
        self.next = self._checkpoint.offset
        self.last = self._checkpoint.last
        """The last message that was taken; None: it is not known, or there was none."""
        self.end: int | None = None
        """The end of the partition that the consumer has met; None: none yet."""
        self.idle = False
        """Whether the stream does not wait for the partition, because nothing comes."""
        self._rows, self._noted = 0, False
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
        """Whether there are messages, or markers of transactions behind them, that are not committed."""
        return self.position != self._checkpoint.offset

    def take(self, messages: list[Any]) -> None:
        """Takes messages in the order of their offsets."""
        given: list[tuple[Any, Any]] = []
        decode, first, self.idle = self._decode, self.next, False
        for message in messages:
            if message.offset() < first:  # of an earlier assignment: it was taken before
                continue
            try:
                found = decode(message)
            except MalformedError as error:
                self._send(given)
                self._reject(message, str(error))
                continue
            except MessageNotReadyError:
                self._send(given)
                raise
            if isinstance(found, Bounded | RowtimeBound):
                bounded = found if isinstance(found, Bounded) else Bounded(None, found)
                self._send_with_bound(given, message, bounded)
            else:
                given.append((message, found))
        self._send(given)
        self.taken_at = time.monotonic()

    def promise(self, bound: RowtimeBound) -> None:
        """Sends a bound. One that says nothing new is left out, as change feeds repeat theirs after a restart."""
        now = self.sink.getRowtimeBound()
        if now is None or bound.floor > now.floor:
            self.sink.sendRowtimeBound(bound)

    def flush(self) -> None:
        """Commits what was taken. A partition that is idle stays so, whatever markers have come."""
        self._checkpoint = self._checkpoint._replace(offset=self.position, last=self.last)
        commit = self.sink.flush_idle if self.idle else self.sink.flush
        commit(self._checkpoint.text())
        self._rows = 0
        self.committed_at = time.monotonic()

    def rest(self) -> None:
        """Lets the stream go on without this partition until its next message. The partition's own bound stays."""
        if not self.idle:
            self.idle = True
            self.flush()

    def wake(self) -> None:
        """Lets the stream wait for this partition again."""
        if self.idle:
            self.idle = False
            self.flush()

    def drop(self) -> None:
        """Lets go of the partition, which another host takes over. What was not committed is left to that one."""
        with ExitStack() as ends:  # each of them, also if the other raises
            if self._malformed is not None:
                ends.callback(self._malformed.close)
            ends.callback(self.sink.abandon)

    def _send(self, given: list[tuple[Any, Any]]) -> None:
        """Sends the rows of messages, and clears the list."""
        if not given:
            return
        rows = [row for _, found in given for row in _rows(found)]
        try:
            if rows:
                self.sink.sendRows(rows)
        except SchemaMismatchError:
            self._send_each(given)
        self._rows += len(rows)
        self._took(given[-1][0])
        given.clear()

    def _send_with_bound(self, given: list[tuple[Any, Any]], message: Any, found: Bounded) -> None:
        """Sends the rows of messages and of the one that is a bound, then the bound, and clears the list."""
        given.append((message, found.rows))
        self._send(given)
        self._note_no_row(message, found.no_row)
        self.promise(found.bound)

    def _send_each(self, given: list[tuple[Any, Any]]) -> None:
        """Sends the rows of one message after the other, since the sink has refused a row of some message."""
        for message, found in given:
            try:
                self.sink.sendRows(_rows(found))
            except SchemaMismatchError as error:
                self._reject(message, str(error))
            self._took(message)

    def _note_no_row(self, message: Any, why: str | None) -> None:
        """Logs the first message that has a bound, but no row."""
        if why is not None and not self._noted:
            self._noted = True
            LOG.warning(
                "The message at offset %s of partition %s of topic %s is a bound, and no row: %s. It and further ones "
                "count as bounds alone. A decoder that returns None for them says that this is meant.",
                message.offset(),
                self.part.number,
                self.part.topic,
                why,
            )

    def _reject(self, message: Any, cause: str) -> None:
        """Keeps a message that is no row, or raises MessageDecodeError; what came before it is committed then."""
        if self._malformed is None:
            if self.pending:
                self.flush()
            raise undecodable(message, cause)
        self._malformed.keep(message, cause)
        self._took(message)

    def _took(self, message: Any) -> None:
        self.next, epoch = message.offset() + 1, message.leader_epoch()
        self.last = None if epoch is None else LastRead(self.next, epoch)

    def go_on_at(self, offset: int) -> None:
        """Leaves out what lies before the offset, or takes the messages from there on again, since those are others."""
        self.next, self.end, self.last = offset, None, None


def _rows(found: Any) -> list[Any]:
    if found is None:
        return []
    return found if type(found) is list else [found]
