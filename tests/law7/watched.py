"""A topic whose bounds a watch derives: what is declared of it, what the watch has to make of that, and its rows."""

from contextlib import closing
from typing import Any

import spark_rowtime as rt
from spark_rowtime.kafka import KafkaWatch
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.store import open_store
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.types.timestamps import wall_clock
from tests.law7.calendars import MINUTE
from tests.law7.schedule import PARTITIONS, Row, Watched
from tests.spark.observed_query import micros
from tests.sparksession import wait_for
from tests.store.streams import infos

WEAKER, EARLIER_MICROS = 4, 180 * MINUTE
"""By how much a watch with fewer bounds declares less: its lateness, and its delay."""
SLACK_MICROS = 2 * MINUTE
"""The most by which a bound by the clock goes on while a watch runs. No time of a row is so close behind it."""
SHORT_SESSION = {"kafka.session.timeout.ms": "6000", "kafka.heartbeat.interval.ms": "500"}


class WrongBoundError(AssertionError):
    """A watch has made another bound of a topic than what is declared gives."""


class Watch:
    """What is declared of a topic, and the bound of each partition that a watch has to make of it.

    ``broken``: the ids of the rows that lie below what their own partition had promised before them.
    """

    def __init__(self, topic: Any, watched: Watched, *, weaker: bool) -> None:
        self.topic, self.reads, self.hosted = topic, watched.reads, watched.hosted
        self._earlier = EARLIER_MICROS if weaker else 0
        minutes = watched.lateness * (WEAKER if weaker else 1)
        self.declared = {"every": "0 seconds", "lateness": f"{minutes} minutes", **SHORT_SESSION}
        self._lateness = minutes * MINUTE
        self._read, self._clock = dict.fromkeys(range(PARTITIONS), 0), 0
        self.broken: set[int] = set()

    def sees(self, partition: int, row: Row) -> None:
        """A row is in the topic."""
        time = micros(row.rowtime)
        if time < self._bounds(partition)[1]:
            self.broken.add(row.id)
        if self.reads:
            self._read[partition] = max(self._read[partition], time - self._lateness)

    def follow(self, clock: str | None) -> None:
        """Runs a watch up to the ends of the partitions, and checks the bounds that are there then."""
        reached = None if clock is None else micros(clock) - self._earlier
        self._clock = max(self._clock, reached or 0)
        arguments = {"servers": self.topic.kafka.bootstrap, "topics": self.topic.name, "untilEnd": True}
        arguments |= self.given(reached)
        rt.runAdapter(KafkaWatch, self.topic.path, arguments=arguments, producer="watch", restarts=0)
        self._check()

    def given(self, reached: int | None) -> dict[str, str]:
        """What a watch is told of the topic. ``reached``: where the delay puts the bound now; None: without a delay."""
        given = self.declared if self.reads else {"bounds": "append-time", "every": "0 seconds", **SHORT_SESSION}
        return given if reached is None else {**given, "delay": f"{wall_clock() - reached} microseconds"}

    def settle(self) -> None:
        """Waits until the watch that a query hosts has followed all that the topic has, and checks its bounds."""
        wait_for(self._has_followed, "the watch of the query")
        self._check()

    def _check(self) -> None:
        """Law: each partition has the bound that its own rows and the clock give it, and the stream the weakest."""
        known = self._known()
        floors = [known[partition].floor or 0 for partition in range(PARTITIONS)]
        expected = [self._bounds(partition) for partition in range(PARTITIONS)]
        if not all(least <= floor <= most for floor, (least, most) in zip(floors, expected, strict=True)):
            raise WrongBoundError(f"the bounds of the partitions are {floors}, and must be in {expected}")
        bound = rt.describeStream(self.topic.path).bound
        if min(floors) != (0 if bound is None else bound.floor):
            raise WrongBoundError(f"the bound of the stream is {bound}, of partitions with {floors}")

    def _bounds(self, partition: int) -> tuple[int, int]:
        """The least and the largest bound of a partition: exactly one where its rows are ahead of the clock."""
        read = self._read[partition]
        return max(read, self._clock), max(read, self._clock + SLACK_MICROS if self._clock else 0)

    def _has_followed(self) -> bool:
        known = self._known()
        return all(
            partition in known and Checkpoint.read(known[partition].checkpoint or "", "").offset >= end
            for partition, end in self.topic.ends.items()
        )

    def _known(self) -> dict[int, ProducerInfo]:
        """The partitions that the stream has with a checkpoint."""
        with closing(open_store(self.topic.path)) as store:
            known = {info.name: info for info in infos(store) if info.checkpoint is not None}
        names = {partition: f"{self.topic.name}-{partition}" for partition in range(PARTITIONS)}
        return {partition: known[name] for partition, name in names.items() if name in known}


class Rows:
    """A producer of rows that knows nothing of bounds, with the methods of a sink."""

    def __init__(self, topic: Any) -> None:
        self.topic, self.client = topic, topic.client()

    def sendRows(self, rows: list[Row]) -> None:
        """Sends the rows."""
        for row in rows:
            self.client.produce(self.topic.name, **self.topic.message(row))
        self.client.flush()

    def flush(self, checkpoint: str | None = None) -> None:
        """Does nothing: the broker has the rows."""

    def close(self, *, complete: bool = False) -> None:
        """Ends."""

    abandon = close
