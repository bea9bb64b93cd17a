"""PartitionWatch: one partition of a topic whose messages stay where they are; its bounds follow their offsets."""

from collections.abc import Callable, Mapping
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import CutRegressionError
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.message_floors import Floor
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.topics import Part
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.types.timestamps import END, show_micros


class PartitionWatch(PartitionReader):
    """Keeps the bound that the messages of one partition promise, and commits it with the offsets that it follows.

    Law (*follows*): a commit has the strongest bound that anything before its offset promises, and this offset as cut.
    So has one by which the partition becomes idle: until a query has read up to there, it is held as before. A message
    without a time promises nothing, nor does one whose time is above ``ceiling``: the bound is weaker then.
    """

    def __init__(
        self,
        part: Part,
        open_sink: Callable[[], StreamSink],
        floor: Floor,
        every: float,
        ceiling: Callable[[], int | None],
        declared: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(part, open_sink, every)
        self._checkpoint = self._checkpoint._replace(declared=declared)
        self._floor_of, self._ceiling = floor, ceiling
        self._floor = 0
        """The strongest promise that was made."""
        self._cut = 0
        """The offset below which no cut may lie, where a partition was truncated."""

    def take(self, messages: list[Any]) -> None:
        """Takes messages in the order of their offsets."""
        new = [message for message in messages if message.offset() >= self.next]
        if not new:
            return
        self.idle = False
        ceiling = self._ceiling()
        floor = max((self._promised_by(message, ceiling) for message in new), default=0)
        self._took(new[-1])
        if floor > self._floor:
            self.promise(RowtimeBound.fromFloor(floor))

    def flush(self) -> None:
        """Commits the bound with the offset that it follows."""
        try:
            self._flush()
        except CutRegressionError as error:  # the partition was truncated, and lost="skip" goes on
            self._cut = error.values["said"]
            self._flush()

    def _flush(self) -> None:
        if self._promised:
            self.sink.sendRowtimeBound(RowtimeBound.fromFloor(self._floor), **self._behind())
        super().flush()

    def promise(self, bound: RowtimeBound, **_: Any) -> None:
        """Keeps a bound, also one that the brokers' clock promises. One above ``ceiling`` is left out."""
        if _within(self._ceiling(), bound.floor):
            super().promise(bound)
        else:
            self._tell_ahead(_ahead(bound.floor))

    def _send_bound(self, bound: RowtimeBound, **_: Any) -> None:
        self._floor = max(self._floor, bound.floor)

    def _behind(self) -> dict[str, Any]:
        topic, number = self.part
        return {"cut": {topic: {number: max(self.position, self._cut)}}, "topicIds": {topic: self.topic_id}}

    def _promised_by(self, message: Any, ceiling: int | None) -> int:
        """The floor of later messages; 0 if this one promises nothing."""
        try:
            floor = self._floor_of(message) or 0
        except MalformedError as error:
            self._tell(message, str(error))
            return 0
        if _within(ceiling, floor):
            return floor
        self._tell(message, _ahead(floor))
        return 0

    def _tell(self, message: Any, why: str) -> None:
        """Logs the first message that promises nothing."""
        self._tell_once(
            "The message at offset %s of partition %s of topic %s gives no bound: %s. It and further ones count "
            "as messages that promise nothing.",
            *(message.offset(), self.part.number, self.part.topic, why),
        )


def _within(ceiling: int | None, floor: int) -> bool:
    """Whether a bound is not too far ahead; the end of time never is."""
    return ceiling is None or floor <= ceiling or floor >= END


def _ahead(floor: int) -> str:
    return f"the bound would be {show_micros(floor)}, further ahead of the clock than maxAhead"


class UnreadPartition(PartitionWatch):
    """A partition of which no message is read: what the brokers say of its end is enough.

    Whatever is appended behind the end that the brokers name is seen after the time when they were asked.
    """

    looked = False

    @property
    def at_end(self) -> bool:
        """Whether the brokers have said where the end is."""
        return self.looked

    @property
    def may_be_quiet(self) -> bool:
        """The brokers are always asked."""
        return True

    def take(self, messages: list[Any]) -> None:
        """Does nothing: a message that has come before the client was told to pause says nothing of its time."""

    def reaches(self, end: int) -> bool:
        """Goes to ``end``, since nothing has to be read before it, unless the partition has become shorter."""
        self.shorter = end < self.next
        if not self.shorter:
            self.next, self.last, self.looked = end, None, True
        return not self.shorter
