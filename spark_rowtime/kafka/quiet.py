"""Quiet partitions: what is known of a partition whose end was reached, and where nothing comes."""

import time
from collections.abc import Callable, Container, Iterable
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.kafka.broker_clock import BrokerClock
from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.inquiry import in_background
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.topics import Newest, Part, Topics
from spark_rowtime.kafka.unanswered import Unanswered
from spark_rowtime.types.timestamps import LEAST, from_micros, wall_clock

LOOK_SECONDS = 1.0
"""Seconds between two looks at the ends of partitions."""
SILENT_SECONDS = 10.0
"""The brokers are asked, too, for a partition whose end was not reached if nothing has come of it for so long."""
HANGING_SECONDS = 60.0
"""A transaction that is open for so long is logged."""

Action = Callable[[PartitionReader], object]


class Ends(NamedTuple):
    """The ends of partitions, and of those whose messages the brokers stamp the newest ones.

    ``failed``: the errors of those whose leaders have not answered.
    """

    ends: dict[Part, int]
    newest: dict[Part, Newest]
    failed: dict[Part, Exception]


class _Look(NamedTuple):
    """A question for the ends of partitions. ``clock``: when it was asked; what is appended later has a later time.

    ``positions``: those of the partitions at that time.
    """

    clock: int
    answer: Future[Ends]
    positions: dict[Part, int]


class QuietPartitions:
    """Moves the bound over partitions where nothing comes.

    A partition is quiet only if its last message was taken and no transaction is open behind it: rows of an open
    transaction have got their times already. ``delay``: by how many microseconds a message may be seen after its time,
    as far as the brokers' clock is known; None: nothing is known of that. ``stamped``: the topics whose messages have
    the brokers' time. ``idle``: seconds after which the stream no longer waits for a quiet partition; None: it waits.
    With ``delay`` no partition becomes idle, since each goes on with the brokers' clock.

    The brokers are asked in the background: a partition without a leader holds no other back.
    """

    def __init__(
        self,
        topics: Topics,
        delay: int | None,
        idle: float | None,
        ask: Callable[[Callable[[], Ends]], Future[Ends]] = in_background,
        stamped: Container[str] = (),
    ) -> None:
        self._topics, self._delay, self._idle, self._ask, self._stamped = topics, delay, idle, ask, stamped
        self._clock = BrokerClock()
        self._looked = 0.0
        self._paused: Container[Part] = ()
        self._look: _Look | None = None
        self._answered: dict[Part, int] = {}
        """The position of each partition when the last question that was answered was asked."""
        self._waits: dict[Part, tuple[int, float]] = {}
        """Of partitions that do not go on although there is more: their positions, and since when."""
        self._unanswered = Unanswered()

    def look(
        self,
        feeds: Iterable[PartitionReader],
        guarded: Callable[[Part, Action], None],
        paused: Container[Part] = (),
    ) -> None:
        """Asks for the ends of the partitions whose end was reached, if a look is due, and uses what was answered.

        ``guarded`` does something with a partition that another host may have taken over. ``paused``: those that are
        not read for a while.
        """
        self._paused = paused
        now, read = time.monotonic(), {feed.part: feed for feed in feeds}
        ended = {part: feed for part, feed in read.items() if feed.may_be_quiet}
        self._waits = {part: wait for part, wait in self._waits.items() if part in read}
        self._unanswered.keep(read)
        asked = [f for part, f in read.items() if part in ended or now - f.taken_at >= SILENT_SECONDS]
        if self._look is None and now - self._looked >= LOOK_SECONDS and asked:
            self._looked = now
            positions = {feed.part: feed.position for feed in asked}
            self._look = _Look(wall_clock(), self._ask(partial(self._ends, list(positions))), positions)
        if self._look is not None and self._look.answer.done():
            look, self._look = self._look, None
            (ends, newest, failed), answered = look.answer.result(), wall_clock()
            self._unanswered.note(failed, look.positions, now)
            self._answered |= {part: at for part, at in look.positions.items() if part in ends}
            for feed in sorted((ended[part] for part in ended if part in ends), key=_bound, reverse=True):
                part, end = feed.part, ends[feed.part]
                clock = self._clock.at(part, end, newest.get(part), look.clock, answered)
                self._see(feed, end, now, clock, guarded)

    @property
    def promises(self) -> bool:
        """Whether a quiet partition promises something."""
        return self._delay is not None

    def has_answered(self, feed: PartitionReader, end: int) -> bool:
        """Whether the brokers have said what there was behind a partition that had been read up to ``end``."""
        return self._answered.get(feed.part, -1) >= end

    def _ends(self, parts: list[Part]) -> Ends:
        ends, failed = self._topics.known_ends(parts)
        stamped = [part for part in ends if part.topic in self._stamped]
        return Ends(ends, self._stamps(stamped) if stamped else {}, failed)

    def _stamps(self, parts: list[Part]) -> dict[Part, Newest]:
        """The newest messages, if the brokers still stamp the topic: a producer's time says nothing of their clock."""
        found = self._topics.newest(parts)
        still = self._topics.surely_with_append_time({part.topic for part in found})
        return {part: newest for part, newest in found.items() if part.topic in still}

    def _see(
        self, feed: PartitionReader, end: int, now: float, clock: int, guarded: Callable[[Part, Action], None]
    ) -> None:
        if not feed.reaches(end):
            if feed.part not in self._paused:
                self._waits_for_transaction(feed, now)
            guarded(feed.part, PartitionReader.wake)
        else:
            self._waits.pop(feed.part, None)
            guarded(feed.part, partial(self._is_quiet, now=now, clock=clock))

    def _is_quiet(self, feed: PartitionReader, now: float, clock: int) -> None:
        if self._delay is None:
            if self._idle is not None and now - feed.taken_at >= self._idle:
                feed.rest()
        elif clock - self._delay >= LEAST:
            feed.promise(RowtimeBound(from_micros(clock - self._delay)))

    def _waits_for_transaction(self, feed: PartitionReader, now: float) -> None:
        position, since = self._waits.get(feed.part, (None, now))
        if position != feed.position:  # it has gone on since the last look, and more has come
            since = now
        hangs = now - since >= HANGING_SECONDS
        self._waits[feed.part] = feed.position, now if hangs else since
        if hangs:
            LOG.warning(
                "Partition %s of topic %s does not go on behind offset %s: a transaction that began there is still "
                "open. kafka-transactions.sh find-hanging names it; the stream waits for it.",
                feed.part.number,
                feed.part.topic,
                feed.position,
            )


def _bound(feed: PartitionReader) -> int:
    """The partition's bound.

    The partition with the lowest bound is set idle last, so that the stream's bound does not move while all become
    idle.
    """
    found = feed.sink.getRowtimeBound()
    return 0 if found is None else found.floor
