"""The producers that count for a stream's clock, in the order of their floors."""

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any, Protocol

from sortedcontainers import SortedList


class Status(StrEnum):
    """The state of a producer, which decides whether it counts for the clock."""

    EXPECTED = "expected"
    """The stream waits for the producer, which has not opened its sink yet; it has promised nothing."""
    ATTACHED = "attached"
    IDLE = "idle"
    """Attached, but silent for longer than idleTimeout, or by its own word: it does not count until it sends again."""
    DETACHED = "detached"
    """The producer's lease ended, or the producer was detached by hand."""
    LEFT = "left"
    """The producer closed its sink, or somebody closed the producer."""
    COMPLETE = "complete"
    """The producer has promised the end of time: it will never send again."""


COUNTING = (Status.EXPECTED, Status.ATTACHED)
"""The producers that the stream waits for. An expected one has no floor, and so is below all that have one."""


@dataclass(frozen=True, slots=True)
class ProducerClock:
    """A producer's state in the clock; ``floor`` in microseconds, None: the producer has promised nothing."""

    status: Status
    floor: int | None


class Members(Protocol):
    """The expected producers, and the attached ones, idle or not. Only the cost of ``copy`` grows with their number."""

    def __bool__(self) -> bool:
        """Whether there is any producer."""

    def get(self, producer: str, /) -> ProducerClock | None:
        """Returns the state of ``producer``; None if it is neither expected nor attached."""

    def __setitem__(self, producer: str, clock: ProducerClock, /) -> None:
        """Adds ``producer``, or replaces its state."""

    def remove(self, producer: str) -> None:
        """Removes ``producer``, if it is there."""

    def weakest(self) -> tuple[str, int | None] | None:
        """Returns the producer with the lowest floor among those that are not idle, and the floor; None: all are idle.

        Of several with the same floor an expected one is first, then the first by name.
        """

    def strongest(self) -> int | None:
        """Returns the highest floor among the producers that are not idle; None: none of them has promised anything."""

    def copy(self) -> "SortedMembers":
        """Returns all members, for the caller to keep. The cost grows with their number."""


class SortedMembers(MutableMapping[str, ProducerClock], Members):
    """Members in memory: a mapping from names, and the producers that are not idle sorted by floor and name.

    Law (*in step*; tests/unit/test_members.py): ``weakest``, ``strongest`` and ``up_to`` are what a scan of the mapping
    gives.
    """

    def __init__(self, members: Mapping[str, ProducerClock] | None = None) -> None:
        self._clocks = dict(members or {})
        counting = (place(name, clock) for name, clock in self._clocks.items() if clock.status in COUNTING)
        self._counting = SortedList(counting)

    def __getitem__(self, producer: str) -> ProducerClock:
        return self._clocks[producer]

    def __setitem__(self, producer: str, clock: ProducerClock) -> None:
        self.remove(producer)
        self._clocks[producer] = clock
        if clock.status in COUNTING:
            self._counting.add(place(producer, clock))

    def __delitem__(self, producer: str) -> None:
        clock = self._clocks.pop(producer)
        if clock.status in COUNTING:
            self._counting.remove(place(producer, clock))

    def __iter__(self) -> Iterator[str]:
        return iter(self._clocks)

    def __len__(self) -> int:
        return len(self._clocks)

    def __bool__(self) -> bool:
        return bool(self._clocks)

    def get(self, producer: str, default: Any = None, /) -> Any:
        """See :class:`Members`."""
        return self._clocks.get(producer, default)

    def remove(self, producer: str) -> None:
        """See :class:`Members`."""
        if producer in self._clocks:
            del self[producer]

    def weakest(self) -> tuple[str, int | None] | None:
        """See :class:`Members`."""
        name = self._counting[0][-1] if self._counting else None
        return None if name is None else (name, self._clocks[name].floor)

    def strongest(self) -> int | None:
        """See :class:`Members`."""
        return self._clocks[self._counting[-1][-1]].floor if self._counting else None

    def up_to(self, floor: int) -> list[str]:
        """Returns the producers that are not idle whose floor is at most ``floor``, the weakest first."""
        return [place[-1] for place in takewhile(lambda place: place[0] <= floor, self._counting)]

    def copy(self) -> "SortedMembers":
        """See :class:`Members`."""
        return SortedMembers(self._clocks)


def place(producer: str, clock: ProducerClock) -> tuple[int, bool, str]:
    """Returns what sorts the producers that count: by their floors, then expected ones first, then by name."""
    return clock.floor or 0, clock.status is Status.ATTACHED, producer
