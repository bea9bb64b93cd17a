"""Waits: which partitions wait because their next message cannot be decoded just now, and for how long."""

from spark_rowtime.errors import MessageNotReadyError
from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.topics import Part

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
"""How long a partition waits before a message is decoded again for which its decoder was not ready."""


class Waits:
    """The partitions that wait. The pauses before one message grow; the next message begins with the first one."""

    def __init__(self) -> None:
        self._until: dict[Part, float] = {}
        self._pauses: dict[Part, tuple[int | None, float]] = {}
        """Of partitions that have waited: for which offset, and how many seconds."""

    def __contains__(self, part: Part) -> bool:
        return part in self._until

    def __bool__(self) -> bool:
        return bool(self._until)

    def begin(self, feed: PartitionReader, now: float, error: MessageNotReadyError) -> None:
        """Lets a partition wait from ``now`` on for its next message."""
        offset, pause = self._pauses.get(feed.part, (None, 0.0))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS) if offset == feed.next else FIRST_PAUSE_SECONDS
        self._pauses[feed.part] = feed.next, pause
        self._until[feed.part] = now + pause
        text = "The message at offset %s of %s cannot be decoded just now; it is tried again in %s s: %s"
        LOG.warning(text, feed.next, feed.part.producer, pause, error)

    def end(self, now: float) -> list[Part]:
        """The partitions whose pause has passed by ``now``; they wait no longer."""
        ended = [part for part, until in self._until.items() if now >= until]
        for part in ended:
            del self._until[part]
        return ended

    def forget(self, part: Part) -> None:
        """The partition was let go."""
        self._until.pop(part, None)
        self._pauses.pop(part, None)
