"""StreamClock: the stream's bound as a pure fold over the events of its producers. It uses no wall clock."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from spark_rowtime.bounds.bound import stronger, weaker
from spark_rowtime.types.timestamps import END


class Status(StrEnum):
    """The state of a producer, which decides whether it counts for the clock."""

    EXPECTED = "expected"
    """The stream waits for the producer, which has not opened its sink yet; it has promised nothing."""
    ATTACHED = "attached"
    IDLE = "idle"
    """Attached, but silent for longer than idleTimeout: the producer does not count until it sends again."""
    DETACHED = "detached"
    """The producer's lease ended, or the producer was detached by hand."""
    LEFT = "left"
    """The producer closed its sink, or somebody closed the producer."""
    COMPLETE = "complete"
    """The producer has promised the end of time: it will never send again."""


COUNTING = (Status.EXPECTED, Status.ATTACHED)
"""The producers that the stream waits for."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The creator of the stream named a producer that is to come."""

    producer: str


@dataclass(frozen=True, slots=True)
class Joined:
    """A producer opened its sink, for the first time, again, or as a takeover."""

    producer: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A train was committed: the producer's own floor after it, and its largest rowtime, in microseconds.

    With the floor END the producer is complete, and leaves the clock.
    """

    producer: str
    floor: int | None
    largest: int | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """A producer closed, or was closed by somebody else."""

    producer: str


@dataclass(frozen=True, slots=True)
class Idled:
    """A producer was silent for longer than idleTimeout."""

    producer: str


@dataclass(frozen=True, slots=True)
class Detached:
    """A producer's lease ended."""

    producer: str


Event = Expected | Joined | Sent | Left | Idled | Detached


GONE = {Left: Status.LEFT, Detached: Status.DETACHED, Sent: Status.COMPLETE}
"""The status of a producer after an event that removes it from the clock."""


def completes(event: Event) -> bool:
    """Returns whether the event promises the end of time for its producer."""
    return isinstance(event, Sent) and event.floor is not None and event.floor >= END


@dataclass(frozen=True, slots=True)
class ProducerClock:
    """A producer's state in the clock; ``floor`` in microseconds, None: the producer has promised nothing."""

    status: Status
    floor: int | None


@dataclass(slots=True)
class StreamClock:
    """The stream's bound.

    Laws, each a property test of the same name in tests/unit/test_clock.py:

    - *monotone*: ``floor`` never falls.
    - *safe*: where every row is at or above its producer's bound in force, no row is below a floor
      that was published before it.
    - *weakest*: while the stream has a bound, it is the weakest bound of the expected producers and of the attached
      ones that are not idle, but never less than it was.
    - *remembers*: when the last producer leaves, the floor is at least the largest rowtime accepted.
    - *end*: when the last producer becomes complete, the floor is END.
    - *replay*: the same events give the same floors.

    ``bounds_before_rows=False``: there is no bound until the first row, as in SQLstream s-Server.
    ``max_lag``, in microseconds: how far the weakest producer may hold the strongest back.
    """

    bounds_before_rows: bool = True
    max_lag: int | None = None
    floor: int | None = None
    largest: int | None = None
    """The largest rowtime accepted so far."""
    producers: dict[str, ProducerClock] = field(default_factory=dict)
    """The expected producers, and the attached ones, idle or not. Others are forgotten: they join as new ones."""

    def in_force(self, producer: str) -> int | None:
        """The floor below which a row of ``producer`` is late."""
        clock = self.producers.get(producer)
        return stronger(self.floor, clock.floor if clock else None)

    def apply(self, event: Event) -> int | None:
        """Applies one event; returns the stream's floor after it."""
        if isinstance(event, Left | Detached) or completes(event):
            self.producers.pop(event.producer, None)
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
        counting = {n: p for n, p in self.producers.items() if p.status in COUNTING}
        return min(
            counting, key=lambda n: (counting[n].floor or 0, counting[n].status is Status.ATTACHED, n), default=None
        )

    def holders(self) -> list[str]:
        """All producers that hold the clock back: it moves once each of them has sent or left. The weakest is first."""
        counting = {
            n: (p.floor or 0, p.status is Status.ATTACHED, n) for n, p in self.producers.items() if p.status in COUNTING
        }
        reached = max(min((floor for floor, *_ in counting.values()), default=0), self.floor or 0)
        return sorted((n for n, (floor, *_) in counting.items() if floor <= reached), key=lambda n: counting[n])

    def _moved(self, event: Expected | Joined | Sent | Idled) -> ProducerClock:
        before = self.producers.get(event.producer) or ProducerClock(Status.ATTACHED, self.floor)
        match event:
            case Expected():
                return ProducerClock(Status.EXPECTED, None)
            case Joined():
                return self._joined(before)
            case Sent():
                return ProducerClock(Status.ATTACHED, stronger(before.floor, event.floor))
            case Idled():
                return replace(before, status=Status.IDLE)

    def _joined(self, before: ProducerClock) -> ProducerClock:
        """A takeover changes nothing; an expected producer starts at the stream's bound."""
        return ProducerClock(Status.ATTACHED, self.floor) if before.status is Status.EXPECTED else before

    def _reached(self, event: Event) -> int | None:
        if completes(event) and not self.producers:
            return END
        if not self.bounds_before_rows and self.largest is None:
            return None
        if not self.producers:
            return self.largest if isinstance(event, Left) else None
        return self._merged([p.floor for p in self.producers.values() if p.status in COUNTING])

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
