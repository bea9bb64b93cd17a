"""StreamClock: the stream's bound as a pure fold over what its producers did. No wall clock."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from spark_rowtime.bounds.bound import stronger, weaker


class Status(StrEnum):
    """What a producer is to the clock."""

    ATTACHED = "attached"
    IDLE = "idle"
    """Attached, but silent for longer than idleTimeout: does not count until it sends again."""
    DETACHED = "detached"
    """Its lease ended, or it was detached by hand."""
    LEFT = "left"
    """It closed."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A producer opened its sink, for the first time, again, or as a takeover."""

    producer: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A train landed: the producer's own floor after it, and the largest rowtime in it, in microseconds."""

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
"""What a producer is after an event that takes it out of the clock."""


@dataclass(frozen=True, slots=True)
class ProducerClock:
    """One producer as the clock sees it; ``floor`` in microseconds, None: it has promised nothing."""

    status: Status
    floor: int | None


@dataclass(slots=True)
class StreamClock:
    """The stream's bound.

    Laws, each a property test of the same name in tests/unit/test_clock.py:

    - *monotone*: ``floor`` never falls.
    - *safe*: where every row is at or above its producer's bound in force, no row is below a floor
      that was published before it.
    - *weakest*: while it has a bound, that is the weakest of the attached producers' that are not
      idle, but never less than it was.
    - *remembers*: when the last producer leaves, the floor is at least the largest rowtime accepted.
    - *replay*: the same events give the same floors.

    ``bounds_before_rows=False``: no bound until the first row, as SQLstream s-Server has it.
    ``max_lag``, microseconds: how far the weakest producer may hold the strongest back.
    """

    bounds_before_rows: bool = True
    max_lag: int | None = None
    floor: int | None = None
    largest: int | None = None
    """The largest rowtime accepted so far."""
    producers: dict[str, ProducerClock] = field(default_factory=dict)
    """Those that are attached, idle or not. One that left is as one that never was: it joins anew."""

    def in_force(self, producer: str) -> int | None:
        """The floor below which a row of ``producer`` is late."""
        known = self.producers.get(producer)
        return stronger(self.floor, known.floor if known else None)

    def apply(self, event: Event) -> int | None:
        """Folds one event in; returns the stream's floor after it."""
        if isinstance(event, Left | Detached):
            self.producers.pop(event.producer, None)
        else:
            self.producers[event.producer] = self._moved(event)
        if isinstance(event, Sent):
            self.largest = stronger(self.largest, event.largest)
        self.floor = stronger(self.floor, self._reached(event))
        return self.floor

    def replay(self, events: Iterable[Event]) -> int | None:
        """Folds all ``events`` in."""
        for event in events:
            self.apply(event)
        return self.floor

    def holder(self) -> str | None:
        """The producer that holds the clock: the weakest of those that count; None without any."""
        counting = {n: p for n, p in self.producers.items() if p.status is Status.ATTACHED}
        return min(counting, key=lambda n: (counting[n].floor or 0, n), default=None)

    def _moved(self, event: Joined | Sent | Idled) -> ProducerClock:
        known = self.producers.get(event.producer) or ProducerClock(Status.ATTACHED, self.floor)
        match event:
            case Joined():
                return known
            case Sent():
                return ProducerClock(Status.ATTACHED, stronger(known.floor, event.floor))
            case Idled():
                return replace(known, status=Status.IDLE)

    def _reached(self, event: Event) -> int | None:
        if not self.bounds_before_rows and self.largest is None:
            return None
        if not self.producers:
            return self.largest if isinstance(event, Left) else None
        return self._merged([p.floor for p in self.producers.values() if p.status is Status.ATTACHED])

    def _merged(self, floors: list[int | None]) -> int | None:
        if not floors:
            return None
        weakest = floors[0]
        for floor in floors[1:]:
            weakest = weaker(weakest, floor)
        if self.max_lag is None:
            return weakest
        strongest = max((floor for floor in floors if floor is not None), default=0)
        return stronger(weakest, strongest - self.max_lag if strongest > self.max_lag else None)
