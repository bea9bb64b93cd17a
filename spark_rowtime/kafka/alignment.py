"""Alignment: pauses the partitions that are far ahead of the stream, so that their rows do not pile up in it."""

import time
from collections.abc import Callable, Iterable

from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.topics import Part

LOOK_SECONDS = 0.5
"""Seconds between two looks at the stream's bound."""
Switch = Callable[[list[Part]], object]


class Alignment:
    """Pauses each partition whose bound is more than ``most`` microseconds above the stream's, until it no longer is.

    ``floor`` returns the stream's floor; None: the stream has no bound, and nothing is paused. The idea, and the word,
    are Flink's (watermark alignment). Nothing is decided by it but when messages are read.
    """

    def __init__(self, most: int, floor: Callable[[], int | None]) -> None:
        self._most, self._floor = most, floor
        self._looked = 0.0
        self.paused: set[Part] = set()
        """The partitions that are not read."""

    def look(self, readers: Iterable[PartitionReader], pause: Switch, resume: Switch, *, ends: bool) -> None:
        """Pauses and resumes partitions, if a look is due.

        ``ends``: the feed ends with what is there now; then nothing waits for partitions that are read to their ends.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        found = list(readers)
        ahead = self._ahead(found)
        if ends and all(reader.at_end for reader in found if reader.part not in ahead):
            ahead = set()
        self._switch(sorted(ahead - self.paused), pause, "is paused")
        self._switch(sorted(self.paused - ahead), resume, "goes on")
        self.paused = ahead

    def forget(self, part: Part) -> None:
        """The partition was let go."""
        self.paused.discard(part)

    def _ahead(self, readers: Iterable[PartitionReader]) -> set[Part]:
        floor = self._floor()
        if floor is None:
            return set()
        bounds = {reader.part: reader.sink.getRowtimeBound() for reader in readers}
        return {part for part, bound in bounds.items() if bound is not None and bound.floor > floor + self._most}

    def _switch(self, parts: list[Part], switch: Switch, what: str) -> None:
        if parts:
            switch(parts)
            LOG.info("%s %s: alignment", ", ".join(part.producer for part in parts), what)
