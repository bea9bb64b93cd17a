"""Quiet partitions: what is known of a partition whose end was reached, and where nothing comes."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.inquiry import Inquiry, in_background
from spark_rowtime.kafka.partition_feed import PartitionFeed
from spark_rowtime.kafka.topics import Part, Topics
from spark_rowtime.types.timestamps import LEAST, from_micros, wall_clock

LOOK_SECONDS = 1.0
"""Seconds between two looks at the ends of partitions."""
HANGING_SECONDS = 60.0
"""A transaction that is open for so long is logged."""

Action = Callable[[PartitionFeed], object]


class _Look(NamedTuple):
    """A question for the ends of partitions. ``clock``: when it was asked; what is appended later has a later time."""

    clock: int
    ends: Inquiry[dict[Part, int]]


class QuietPartitions:
    """Moves the bound over partitions where nothing comes.

    A partition is quiet only if its last message was taken and no transaction is open behind it: rows of an open
    transaction have got their times already. ``delay``: microseconds by which the clocks of this host and of the
    brokers may differ, and by which a message may be stamped before it can be seen; None: the partitions' times are
    not the brokers'. ``idle``: seconds after which the stream no longer waits for a quiet partition; None: it waits.
    With ``delay`` no partition becomes idle, since each goes on with the brokers' clock.

    The brokers are asked in the background: a partition without a leader holds no other back.
    """

    def __init__(
        self,
        topics: Topics,
        delay: int | None,
        idle: float | None,
        ask: Callable[[Callable[[], dict[Part, int]]], Inquiry[dict[Part, int]]] = in_background,
    ) -> None:
        self._topics, self._delay, self._idle, self._ask = topics, delay, idle, ask
        self._looked = 0.0
        self._look: _Look | None = None
        self._waits: dict[PartitionFeed, tuple[int, float]] = {}
        """Of partitions that do not go on although there is more: their positions, and since when."""

    def look(self, feeds: Iterable[PartitionFeed], guarded: Callable[[Part, Action], None]) -> None:
        """Asks for the ends of the partitions whose end was reached, if a look is due, and uses what was answered.

        ``guarded`` does something with a partition that another host may have taken over.
        """
        now, ended = time.monotonic(), {feed.part: feed for feed in feeds if feed.at_end}
        if self._look is None and now - self._looked >= LOOK_SECONDS and ended:
            self._looked = now
            self._look = _Look(wall_clock(), self._ask(partial(self._topics.known_ends, list(ended))))
        if self._look is not None and self._look.ends.done:
            clock, ends, self._look = self._look.clock, self._look.ends.result, None
            for feed in sorted((ended[part] for part in ended if part in ends), key=_bound, reverse=True):
                self._see(feed, ends[feed.part], now, clock, guarded)

    def _see(
        self, feed: PartitionFeed, end: int, now: float, clock: int, guarded: Callable[[Part, Action], None]
    ) -> None:
        if end > feed.position:
            self._waits_for_transaction(feed, now)
            guarded(feed.part, PartitionFeed.wake)
        else:
            self._waits.pop(feed, None)
            guarded(feed.part, partial(self._is_quiet, now=now, clock=clock))

    def _is_quiet(self, feed: PartitionFeed, now: float, clock: int) -> None:
        if self._delay is None:
            if self._idle is not None and now - feed.taken_at >= self._idle:
                feed.rest()
        elif clock - self._delay >= LEAST:
            feed.promise(RowtimeBound(from_micros(clock - self._delay)))
            feed.flush()

    def _waits_for_transaction(self, feed: PartitionFeed, now: float) -> None:
        position, since = self._waits.get(feed, (None, now))
        if position != feed.position:  # it has gone on since the last look, and more has come
            since = now
        hangs = now - since >= HANGING_SECONDS
        self._waits[feed] = feed.position, now if hangs else since
        if hangs:
            LOG.warning(
                "Partition %s of topic %s does not go on behind offset %s: a transaction that began there is still "
                "open. kafka-transactions.sh find-hanging names it; the stream waits for it.",
                feed.part.number,
                feed.part.topic,
                feed.position,
            )


def _bound(feed: PartitionFeed) -> int:
    """The partition's bound. The partition with the least is let go last: where all are idle, the bound has stayed."""
    found = feed.sink.getRowtimeBound()
    return 0 if found is None else found.floor
