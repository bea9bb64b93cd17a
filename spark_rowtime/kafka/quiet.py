"""Quiet partitions: what is known of a partition whose end was reached, and where nothing comes."""

import time
from collections.abc import Callable, Iterable
from functools import partial

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import KafkaUnavailableError
from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.partition_feed import PartitionFeed
from spark_rowtime.kafka.topics import Part, Topics
from spark_rowtime.types.timestamps import LEAST, from_micros, wall_clock

LOOK_SECONDS = 1.0
"""Seconds between two looks at the ends of partitions."""
HANGING_SECONDS = 60.0
"""A transaction that is open for so long is logged."""

Action = Callable[[PartitionFeed], object]


class QuietPartitions:
    """Moves the bound over partitions where nothing comes.

    A partition is quiet only if its last message was taken and no transaction is open behind it: rows of an open
    transaction have got their times already. ``delay``: microseconds by which the clocks of this host and of the
    brokers may differ, and by which a message may be stamped before it can be seen; None: the partitions' times are
    not the brokers'. ``idle``: seconds after which the stream no longer waits for a quiet partition; None: it waits.
    """

    def __init__(self, topics: Topics, delay: int | None, idle: float | None) -> None:
        self._topics, self._delay, self._idle = topics, delay, idle
        self._looked = 0.0
        self._waits: dict[PartitionFeed, tuple[int, float]] = {}
        """Of partitions that do not go on although there is more: their positions, and since when."""

    def look(self, feeds: Iterable[PartitionFeed], guarded: Callable[[Part, Action], None]) -> None:
        """Looks at the partitions whose end was reached, if a look is due.

        ``guarded`` does something with a partition that another host may have taken over.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked, clock = now, wall_clock()  # the clock before the ends: what is appended later has a later time
        ended = {feed.part: feed for feed in feeds if feed.at_end}
        try:
            ends = self._topics.ends(ended, committed=False)
        except KafkaUnavailableError:
            LOG.debug("The ends of partitions are not known just now", exc_info=True)
            return
        for part, feed in ended.items():
            if ends[part] > feed.position:
                self._waits_for_transaction(feed, now)
            else:
                self._waits.pop(feed, None)
                guarded(part, partial(self._is_quiet, now=now, clock=clock))

    def _is_quiet(self, feed: PartitionFeed, now: float, clock: int) -> None:
        if self._delay is not None and feed.sink is not None and clock - self._delay >= LEAST:
            feed.promise(RowtimeBound(from_micros(clock - self._delay)))
            feed.flush()
        if self._idle is not None and now - feed.taken_at >= self._idle:
            feed.leave()

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
