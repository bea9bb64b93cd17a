"""StreamClock: the stream's bound as a pure fold over the events of its producers. It uses no wall clock."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from spark_rowtime.bounds.bound import is_end, stronger
from spark_rowtime.bounds.members import COUNTING, Members, ProducerClock, SortedMembers, Status
from spark_rowtime.types.timestamps import END

__all__ = [
    "COUNTING", "GONE", "KINDS", "Detached", "Event", "Expected", "Idled", "Joined", "Left", "ProducerClock", "Sent",
    "Status", "StreamClock", "completes", "logged_event",
]  # fmt: skip


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
    """A producer was silent for longer than idleTimeout, or has said that it sends nothing for now."""

    producer: str


@dataclass(frozen=True, slots=True)
class Detached:
    """A producer's lease ended."""

    producer: str


Event = Expected | Joined | Sent | Left | Idled | Detached


GONE = {Left: Status.LEFT, Detached: Status.DETACHED, Sent: Status.COMPLETE}
"""The status of a producer after an event that removes it from the clock."""


_BY_KIND: dict[str, Callable[[str], Event]] = {
    kind.__name__.lower(): kind for kind in (Expected, Joined, Left, Idled, Detached)
}


KINDS = frozenset({"sent", *_BY_KIND})
"""The names of the classes of events, as logs have them."""


def logged_event(kind: str, producer: str, floor: int | None, largest: int | None = None) -> Event:
    """Returns the event that a log has under the name of its class."""
    return Sent(producer, floor, largest) if kind == "sent" else _BY_KIND[kind](producer)


def completes(event: Event) -> bool:
    """Returns whether the event promises the end of time for its producer."""
    return isinstance(event, Sent) and is_end(event.floor)


@dataclass(slots=True)
class StreamClock:
    """The stream's bound.

    Laws, each a property test of the same name in tests/unit/test_clock.py:

    - *monotone*: ``floor`` never falls.
    - *safe*: where every row is at or above its producer's bound in force, no row is below a floor
      that was published before it.
    - *weakest*: while the stream has a bound, it is the weakest bound of the expected producers and of the attached
      ones that are not idle, but never less than it was.
    - *idle*: a producer that becomes idle raises the floor at most to what the others that count have promised; where
      none of these is left, the floor stays.
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
    producers: Members = field(default_factory=SortedMembers)
    """The expected producers, and the attached ones, idle or not. Others are forgotten: they join as new ones."""

    def in_force(self, producer: str) -> int | None:
        """The floor below which a row of ``producer`` is late."""
        clock = self.producers.get(producer)
        return stronger(self.floor, clock.floor if clock else None)

    def apply(self, event: Event) -> int | None:
        """Applies one event; returns the stream's floor after it."""
        if isinstance(event, Left | Detached) or completes(event):
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

    def holders(self) -> list[str]:
        """All producers that hold the clock back: it moves once each of them has sent or left. The weakest is first.

        The cost grows with the number of producers.
        """
        weakest = self.producers.weakest()
        floor = weakest[1] if weakest else None
        return self.producers.copy().up_to(max(floor or 0, self.floor or 0))

    def copy(self) -> "StreamClock":
        """Returns a copy in memory, which the caller may keep. The cost grows with the number of producers."""
        return replace(self, producers=self.producers.copy())

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
        weakest = self.producers.weakest()
        return self._at_most_behind(weakest[1]) if weakest else None

    def _at_most_behind(self, weakest: int | None) -> int | None:
        """The weakest floor, or the strongest less ``max_lag`` if that is stronger."""
        strongest = None if self.max_lag is None else self.producers.strongest()
        if self.max_lag is None or strongest is None or strongest <= self.max_lag:
            return weakest
        return stronger(weakest, strongest - self.max_lag)
