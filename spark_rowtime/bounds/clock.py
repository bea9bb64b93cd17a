"""StreamClock: the stream's bound as a pure fold over the events of its producers. It uses no wall clock."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.members import Members, ProducerClock, SortedMembers, Status

__all__ = ["GONE", "Detached", "Event", "Idled", "Joined", "Left", "ProducerClock", "Sent", "Status", "StreamClock"]


@dataclass(frozen=True, slots=True)
class Joined:
    """A producer opened its sink, for the first time, again, or as a takeover."""

    producer: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A train was committed: the producer's own floor after it, and its largest rowtime, in microseconds."""

    producer: str
    floor: int | None
    largest: int | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """A producer closed."""

    producer: str


@dataclass(frozen=True, slots=True)
class Idled:
    """A producer was silent for longer than idleTimeout."""

    producer: str


@dataclass(frozen=True, slots=True)
class Detached:
    """A producer's lease ended."""

    producer: str


Event = Joined | Sent | Left | Idled | Detached


GONE = {Left: Status.LEFT, Detached: Status.DETACHED}
"""The status of a producer after an event that removes it from the clock."""


@dataclass(slots=True)
class StreamClock:
    """The stream's bound.

    Laws, each a property test of the same name in tests/unit/test_clock.py:

    - *monotone*: ``floor`` never falls.
    - *safe*: where every row is at or above its producer's bound in force, no row is below a floor
      that was published before it.
    - *weakest*: while the stream has a bound, it is the weakest bound of the attached producers that are not
      idle, but never less than it was.
    - *remembers*: when the last producer leaves, the floor is at least the largest rowtime accepted.
    - *replay*: the same events give the same floors.

    ``bounds_before_rows=False``: there is no bound until the first row, as in SQLstream s-Server.
    ``max_lag``, in microseconds: how far the weakest producer may hold the strongest back.
    """

    bounds_before_rows: bool = True
    max_lag: int | None = None
    floor: int | None = None
    largest: int | None = None
    """The largest rowtime accepted so far."""
    producers: Members = field(default_factory=SortedMembers)
    """The attached producers, idle or not. A producer that has left is forgotten: it joins as a new one."""

    def in_force(self, producer: str) -> int | None:
        """The floor below which a row of ``producer`` is late."""
        clock = self.producers.get(producer)
        return stronger(self.floor, clock.floor if clock else None)

    def apply(self, event: Event) -> int | None:
        """Applies one event; returns the stream's floor after it."""
        if isinstance(event, Left | Detached):
            self.producers.remove(event.producer)
        else:
            self.producers[event.producer] = self._moved(event)
        if isinstance(event, Sent):
            self.largest = stronger(self.largest, event.largest)
        self.floor = stronger(self.floor, self._reached(event))
        return self.floor

    def replay(self, events: Iterable[Event]) -> int | None:
        """Applies all ``events``; returns the stream's floor after them."""
        for event in events:
            self.apply(event)
        return self.floor

    def holder(self) -> str | None:
        """The producer that holds the clock back: the weakest of those that count; None if none counts."""
        weakest = self.producers.weakest()
        return weakest[0] if weakest else None

    def copy(self) -> "StreamClock":
        """Returns a copy in memory, which the caller may keep. The cost grows with the number of producers."""
        return replace(self, producers=self.producers.copy())

    def _moved(self, event: Joined | Sent | Idled) -> ProducerClock:
        before = self.producers.get(event.producer) or ProducerClock(Status.ATTACHED, self.floor)
        match event:
            case Joined():
                return before
            case Sent():
                return ProducerClock(Status.ATTACHED, stronger(before.floor, event.floor))
            case Idled():
                return replace(before, status=Status.IDLE)

    def _reached(self, event: Event) -> int | None:
        if not self.bounds_before_rows and self.largest is None:
            return None
        if not self.producers:
            return self.largest if isinstance(event, Left) else None
        weakest = self.producers.weakest()
        return self._at_most_behind(weakest[1]) if weakest else None

    def _at_most_behind(self, weakest: int | None) -> int | None:
        """The weakest floor, or the strongest less ``max_lag`` if that is stronger."""
        strongest = None if self.max_lag is None else self.producers.strongest()
        if self.max_lag is None or strongest is None or strongest <= self.max_lag:
            return weakest
        return stronger(weakest, strongest - self.max_lag)
