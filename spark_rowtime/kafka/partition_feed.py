"""PartitionFeed: one partition of a topic whose messages are rows."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import MessageNotReadyError, SchemaMismatchError
from spark_rowtime.kafka.dead_letters import DeadLetters
from spark_rowtime.kafka.decoding import Bounded, Decoder
from spark_rowtime.kafka.malformed import MalformedError, MalformedMessages, kept_cause, undecodable
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.topics import Part
from spark_rowtime.producer.sink import StreamSink

FULL_ROWS = 65536
"""So many rows are committed without a wait."""


class PartitionFeed(PartitionReader):
    """Sends the rows and the bounds of the messages of one partition."""

    def __init__(
        self,
        part: Part,
        open_sink: Callable[[], StreamSink],
        decode: Decoder,
        malformed: MalformedMessages | DeadLetters | None,
    ) -> None:
        self._decode, self._malformed = decode, malformed
        super().__init__(part, open_sink)
        self._rows = 0

    @property
    def full(self) -> bool:
        """Whether there are so many rows that they should be committed."""
        return self._rows >= FULL_ROWS

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

    def flush(self) -> None:
        """Commits what was taken. A partition that is idle stays so, whatever markers have come."""
        if self._malformed is not None:
            self._malformed.flush()
        super().flush()
        self._rows = 0

    def drop(self) -> None:
        """Lets go of the partition, which another host takes over. What was not committed is left to that one."""
        with ExitStack() as ends:  # each of them, also if the other raises
            if self._malformed is not None:
                ends.callback(self._malformed.close)
            ends.callback(super().drop)

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
        if why is not None:
            self._tell_once(
                "The message at offset %s of partition %s of topic %s is a bound, and no row: %s. It and further ones "
                "count as bounds alone. A decoder that returns None for them says that this is meant.",
                *(message.offset(), self.part.number, self.part.topic, why),
            )

    def _reject(self, message: Any, cause: str) -> None:
        """Keeps a message that is no row, or raises MessageDecodeError; what came before it is committed then."""
        if self._malformed is None:
            if self.pending:
                self.flush()
            raise undecodable(message, cause)
        self._malformed.keep(message, kept_cause(cause))
        self._took(message)


def _rows(found: Any) -> list[Any]:
    if found is None:
        return []
    return found if type(found) is list else [found]
