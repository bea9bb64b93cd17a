"""The producers that count for the clock, as the catalog has them."""

from spark_rowtime.bounds.members import COUNTING, Members, ProducerClock, SortedMembers, Status
from spark_rowtime.store.local import producers
from spark_rowtime.store.local.catalog import Catalog


class StoredMembers(Members):
    """See :class:`Members`. A call reads the rows of at most three producers, by the index ``floors``.

    One producer at a time may differ from its row: the one that was named last. Its row must be saved before another
    one is named.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._name: str | None = None
        self._clock: ProducerClock | None = None
        self._weakest: tuple[str, ProducerClock] | None = None
        self._strongest: tuple[str, ProducerClock] | None = None

    def forget(self) -> None:
        """Discards what was read. Call it at the start of each transaction."""
        self._name = None

    def __bool__(self) -> bool:
        return self._clock is not None or self._weakest is not None or producers.has_idle(self._catalog, self._name)

    def get(self, producer: str) -> ProducerClock | None:
        """See :class:`Members`."""
        self._turn_to(producer)
        return self._clock

    def __setitem__(self, producer: str, clock: ProducerClock) -> None:
        self._turn_to(producer)
        self._clock = clock

    def remove(self, producer: str) -> None:
        """See :class:`Members`."""
        self._turn_to(producer)
        self._clock = None

    def weakest(self) -> tuple[str, int | None] | None:
        """See :class:`Members`."""
        found = min(self._counting(self._weakest), key=_place, default=None)
        return (found[0], found[1].floor) if found else None

    def strongest(self) -> int | None:
        """See :class:`Members`."""
        if self._strongest is None:
            self._strongest = producers.extreme(self._catalog, self._name, strongest=True)
        found = max(self._counting(self._strongest), key=_place, default=None)
        return found[1].floor if found else None

    def copy(self) -> SortedMembers:
        """See :class:`Members`."""
        found = {name: ProducerClock(status, floor) for name, status, floor, *_ in producers.members(self._catalog)}
        return SortedMembers(found)

    def _turn_to(self, producer: str) -> None:
        if producer == self._name:
            return
        self._name, self._clock = producer, producers.clock_of(self._catalog, producer)
        self._weakest, self._strongest = producers.extreme(self._catalog, producer), None

    def _counting(self, other: tuple[str, ProducerClock] | None) -> list[tuple[str, ProducerClock]]:
        found = [] if other is None else [other]
        if self._name is not None and self._clock is not None and self._clock.status in COUNTING:
            found.append((self._name, self._clock))
        return found


def _place(member: tuple[str, ProducerClock]) -> tuple[int, bool, str]:
    name, clock = member
    return clock.floor or 0, clock.status is Status.ATTACHED, name
