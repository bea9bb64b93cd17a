"""A topic whose bounds a watch derives: what is declared of it, what the watch has to make of that, and its rows."""

from contextlib import closing
from typing import Any

import spark_rowtime as rt
from spark_rowtime.kafka import KafkaWatch
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.store import open_store
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


class Watch:
    """What is declared of a topic, and what a watch has to make of it: an oracle in five lines.

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
        if time < max(self._read[partition], self._clock + SLACK_MICROS):
            self.broken.add(row.id)
        if self.reads:
            self._read[partition] = max(self._read[partition], time - self._lateness)

    def follow(self, clock: str | None) -> None:
        """Runs a watch up to the ends of the partitions, and checks the bound that is there then."""
        given = self.declared if self.reads else {"bounds": "append-time", "every": "0 seconds", **SHORT_SESSION}
        if clock is not None:
            reached = micros(clock) - self._earlier
            self._clock = max(self._clock, reached)
            given = {**given, "delay": f"{wall_clock() - reached} microseconds"}
        arguments = {"servers": self.topic.kafka.bootstrap, "topics": self.topic.name, "untilEnd": True, **given}
        rt.runAdapter(KafkaWatch, self.topic.path, arguments=arguments, producer="watch", restarts=0)
        least = min(max(self._clock, read) for read in self._read.values())
        found = rt.describeStream(self.topic.path).bound
        floor = 0 if found is None else found.floor
        most = least + (SLACK_MICROS if self._clock else 0)
        assert least <= floor <= most, f"the bound is {floor}, and must be from {least} to {most}"

    def settle(self) -> None:
        """Waits until the watch that a query hosts has followed all that the topic has."""
        wait_for(self._has_followed, "the watch of the query", 120)

    def _has_followed(self) -> bool:
        with closing(open_store(self.topic.path)) as store:
            known = {info.name: info.checkpoint for info in infos(store)}
        names = {partition: f"{self.topic.name}-{partition}" for partition in range(PARTITIONS)}
        return all(
            (text := known.get(names[partition])) is not None and Checkpoint.read(text, "").offset >= end
            for partition, end in self.topic.ends.items()
        )


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
