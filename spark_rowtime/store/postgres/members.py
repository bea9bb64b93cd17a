"""The producers that count for the clock, as the database has them."""

from typing import Any

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.members import COUNTING, Members, ProducerClock, SortedMembers, Status
from spark_rowtime.store.postgres import records
from spark_rowtime.store.postgres.records import Record
from spark_rowtime.store.postgres.transaction import Transaction


class StoredMembers(Members):
    """See :class:`Members`, within one transaction. A call reads the rows of at most three producers.

    One producer at a time may differ from its row: the one that ``turn_to`` named last. Its row must be saved before
    another one is named.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._name = ""
        self._clock: ProducerClock | None = None
        self._weakest: tuple[str, ProducerClock] | None = None

    def turn_to(self, record: Record | str, weakest: list[tuple[Any, ...]] | None = None) -> None:
        """Names the producer that may change. ``weakest`` is the answer to ``weakest_but``, if it is known already."""
        self._name = record if isinstance(record, str) else record.name
        self._clock = None if isinstance(record, str) else _clock(record)
        if weakest is None:
            weakest = self._transaction.ask(records.weakest_but(self._transaction.stream, self._name))
        self._weakest = records.member(weakest)

    def __bool__(self) -> bool:
        if self._clock is not None or self._weakest is not None:
            return True
        return records.has_idle(self._transaction, self._name)

    def get(self, producer: str) -> ProducerClock | None:
        """See :class:`Members`."""
        assert producer == self._name, "the producer was not named"
        return self._clock

    def __setitem__(self, producer: str, clock: ProducerClock) -> None:
        assert producer == self._name, "the producer was not named"
        self._clock = clock

    def remove(self, producer: str) -> None:
        """See :class:`Members`."""
        assert producer == self._name, "the producer was not named"
        self._clock = None

    def weakest(self) -> tuple[str, int | None] | None:
        """See :class:`Members`."""
        found = [self._weakest] if self._weakest else []
        if self._clock is not None and self._clock.status in COUNTING:
            found.append((self._name, self._clock))
        first = min(found, key=_place, default=None)
        return (first[0], first[1].floor) if first else None

    def strongest(self) -> int | None:
        """See :class:`Members`."""
        own = self._clock.floor if self._clock is not None and self._clock.status in COUNTING else None
        return stronger(own, records.strongest_floor_but(self._transaction, self._name))

    def copy(self) -> SortedMembers:
        """See :class:`Members`."""
        return sorted_members(self._transaction.ask(records.members(self._transaction.stream)))


def sorted_members(rows: list[tuple[Any, ...]]) -> SortedMembers:
    """Returns the producers of the rows of ``records.members``."""
    return SortedMembers({name: ProducerClock(Status(status), floor) for name, status, floor, *_ in rows})


def _clock(record: Record) -> ProducerClock | None:
    alive = record.status in (Status.ATTACHED, Status.IDLE, Status.EXPECTED)
    return ProducerClock(Status(record.status), record.floor) if alive else None


def _place(member: tuple[str, ProducerClock]) -> tuple[int, bool, str]:
    name, clock = member
    return clock.floor or 0, clock.status is Status.ATTACHED, name
