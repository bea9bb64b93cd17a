"""CheckedLog: checks that each event of a log follows from those before it."""

from collections.abc import Iterator
from typing import Any

from spark_rowtime.bounds.clock import KINDS, logged_event
from spark_rowtime.store.base import StreamSettings
from spark_rowtime.store.local.catalog import CATALOG
from spark_rowtime.store.widths import width_class


class CheckedLog:
    """Takes the events one by one. Of each it keeps only the clock, the totals and the segments' names."""

    def __init__(self, settings: StreamSettings) -> None:
        self._settings = settings
        self._clock = settings.clock()
        self._rows = 0
        self.last = 0
        """The seq of the last event."""
        self._whole = True
        self._broken = False
        self.segments: set[str] = set()
        """The names of the segments that hold rows."""

    def faults(self, event: tuple[Any, ...], first: int) -> Iterator[str]:
        """Yields what is wrong with the next event. ``first`` is the seq at which the log begins now."""
        if event[12] is not None:
            self.segments.add(event[12])
        if self._broken:
            return
        if event[0] != self.last + 1 and first > self.last + 1:
            self._begin(event)
        elif event[0] != self.last + 1:
            self._broken = True
            yield f"{CATALOG}: seq {self.last + 1} to {event[0] - 1} are missing from the log"
        else:
            yield from self._follows(event)

    def _begin(self, event: tuple[Any, ...]) -> None:
        """Starts again at ``event``, which cannot be checked because the events before it were removed."""
        self._whole, self._clock = False, self._settings.clock()
        self.last, self._clock.floor, self._clock.largest, self._rows = event[0], *event[5:8]

    def _follows(self, event: tuple[Any, ...]) -> Iterator[str]:
        seq, kind, producer, _, floor, stream_floor, largest, total, count, *place = event
        clock, self.last = self._clock, seq
        self._rows += count or 0
        if total != self._rows or (stream_floor or 0) < (clock.floor or 0) or (largest or 0) < (clock.largest or 0):
            yield f"{CATALOG}: event {seq} does not follow from the one before it (rows, bound or largest rowtime)"
        if place[2] is not None and place[2] != width_class(place[0], place[1]):
            yield f"{CATALOG}: train {seq} is at the wrong place in the index"
        if kind not in KINDS:
            self._whole = False
            yield f"{CATALOG}: event {seq} is of no kind that there is"
        if self._whole:
            clock.apply(logged_event(kind, producer, floor, place[1]))
            if clock.floor != stream_floor:
                yield f"{CATALOG}: the bound at seq {seq} does not follow from the events up to it"
        clock.floor, clock.largest = stream_floor, largest
