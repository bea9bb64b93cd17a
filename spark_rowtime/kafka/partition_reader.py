"""PartitionReader: one partition of a topic as a producer of a stream, and how far it was read."""

import time
from collections.abc import Callable
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import RowtimeAheadError
from spark_rowtime.kafka.checkpoint import Checkpoint, LastRead
from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.topics import Part
from spark_rowtime.producer.sink import StreamSink

COMMIT_SECONDS = 0.1
"""Seconds after which what was taken is committed."""
LAG_SECONDS = 10.0
"""Seconds after which the partition's end is committed again, where nothing is taken and more comes."""


class PartitionReader:
    """Takes the messages of one partition, and commits what it keeps of them with the offset behind them.

    Law (*once*): ``next`` is the offset of the next message. A message below it was taken; a commit has what is kept
    of all messages below ``next``, and as its checkpoint ``position``: ``next``, or the offset behind markers of
    transactions that follow it. After an error ``flush`` is not called any more.
    """

    def __init__(self, part: Part, open_sink: Callable[[], StreamSink], commit_seconds: float = COMMIT_SECONDS) -> None:
        self.part, self._commit_seconds = part, commit_seconds
        self.sink = open_sink()
        assert self.sink.checkpoint is not None, "a partition has a checkpoint before it is read"
        self._checkpoint = Checkpoint.read(self.sink.checkpoint, part.producer)
        self.next = self._checkpoint.offset
        self.last = self._checkpoint.last
        """The last message that was taken; None: it is not known, or there was none."""
        self.end: int | None = None
        """The end of the partition that the consumer has met; None: none yet."""
        self.known_end = 0
        """The end of the partition as the client last knew it, messages of open transactions included."""
        self.idle = False
        """Whether the stream does not wait for the partition, because nothing comes."""
        self.shorter = False
        """Whether the brokers have named an end below ``next``."""
        self._promised = False
        """Whether there is a bound that is not committed."""
        self._told: set[str] = set()
        self.committed_at = self.taken_at = time.monotonic()

    @property
    def topic_id(self) -> str:
        """The id of the topic."""
        return self._checkpoint.topic_id

    @property
    def stored(self) -> int:
        """The offset that the stream has."""
        return self._checkpoint.offset

    @property
    def followed(self) -> bool:
        """Whether a host has read the partition since its start, or what is declared, was written."""
        return self._checkpoint.followed

    @property
    def at_end(self) -> bool:
        """Whether all messages that the consumer may see have been taken."""
        return self.end is not None and self.end >= self.next

    @property
    def may_be_quiet(self) -> bool:
        """Whether something is to be promised where the brokers say that nothing has come behind ``position``."""
        return self.at_end

    @property
    def position(self) -> int:
        """The offset behind all that was taken, and behind markers of transactions that follow it."""
        return max(self.next, self.end or 0) if self.at_end else self.next

    @property
    def full(self) -> bool:
        """Whether there is so much that it should be committed at once."""
        return False

    @property
    def pending(self) -> bool:
        """Whether there are messages, markers of transactions behind them, or bounds that are not committed."""
        return self._promised or self.position != self._checkpoint.offset

    def due(self, now: float) -> bool:
        """Whether what was taken is to be committed now, or how far the partition's end has gone on meanwhile."""
        since = now - self.committed_at
        if self.pending:
            return self.full or since > self._commit_seconds
        return self.known_end > (self._checkpoint.end or self.position) and since > LAG_SECONDS

    def reaches(self, end: int) -> bool:
        """Whether all messages below ``end`` have been taken."""
        return end <= self.position

    def take(self, messages: list[Any]) -> None:
        """Takes messages in the order of their offsets."""
        raise NotImplementedError

    def promise(self, bound: RowtimeBound, **cut: Any) -> None:
        """Sends a bound, with the cut that it has. One that says nothing new is left out, as feeds repeat theirs.

        So is one that lies too far ahead, which would hold all that comes behind it; the log says so once.
        """
        now = self.sink.getRowtimeBound()
        if now is not None and bound.floor <= now.floor:
            return
        try:
            self._send_bound(bound, **cut)
            self._promised = True
        except RowtimeAheadError as error:
            self._tell_ahead(str(error))

    def flush(self) -> None:
        """Commits what was taken. A partition that is idle stays so, whatever markers have come."""
        end = max(self.known_end, self.position)
        self._checkpoint = self._checkpoint._replace(offset=self.position, last=self.last, end=end)
        if self.idle:
            self.sink.flush_idle(self._checkpoint.text(), **self._behind())
        else:
            self.sink.flush(self._checkpoint.text())
        self._promised = False
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
        self.sink.abandon()

    def go_on_at(self, offset: int) -> None:
        """Leaves out what lies before the offset, or takes the messages from there on again, since those are others."""
        self.next, self.end, self.last, self.shorter = offset, None, None, False

    def _send_bound(self, bound: RowtimeBound, **cut: Any) -> None:
        self.sink.sendRowtimeBound(bound, **cut)

    def _behind(self) -> dict[str, Any]:
        """The cut at which an idle partition stops holding the stream; none where its rows are in the stream."""
        return {}

    def _tell_ahead(self, why: str) -> None:
        self._tell_once(
            "A bound at offset %s of partition %s of topic %s promises nothing, and neither do further ones that lie "
            "too far ahead: %s",
            *(self.position, self.part.number, self.part.topic, why),
        )

    def _tell_once(self, text: str, *values: object) -> None:
        """Logs a text the first time that it is to be told of this partition."""
        if text not in self._told:
            self._told.add(text)
            LOG.warning(text, *values)

    def _took(self, message: Any) -> None:
        """Counts a message, and all before it, as taken."""
        self.next, epoch = message.offset() + 1, message.leader_epoch()
        self.last = None if epoch is None else LastRead(self.next, epoch)
        self.taken_at = time.monotonic()
