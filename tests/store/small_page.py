"""A page in memory for searches: a stream as one value that can be compared, and as little of it as decides."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple, NoReturn, TypeVar

from spark_rowtime.bounds.clock import Event, ProducerClock, Status
from spark_rowtime.bounds.members import COUNTING, place
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.commits import Rejected, Staged
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.page import Page
from spark_rowtime.store.position import Head
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.store.settings import StreamSettings
from tests.store.streams import batch

Result = TypeVar("Result")
LATE = Rejected("late", 1, batch(1))
"""Stands for each rejection."""
_VALUES = attrgetter(*(field.name for field in fields(ProducerRecord)))
"""A record as a tuple. ``astuple`` copies each value, which took most of the time of a search."""


class Stream(NamedTuple):
    """A stream between two transactions.

    ``records``: the producers, as tuples, in the order of their names; ``late``: of each the number of rejections that
    only its last commit has found; ``cuts``: those of the log, in one partition, each with its offset.
    """

    floor: int | None = None
    largest: int | None = None
    records: tuple[tuple[Any, ...], ...] = ()
    late: tuple[tuple[str, int], ...] = ()
    cuts: tuple[tuple[int, str, int | None, int | None], ...] = ()
    seq: int = 0

    def record(self, name: str) -> ProducerRecord | None:
        """The producer, if it is known."""
        return next((ProducerRecord(*one) for one in self.records if one[0] == name), None)

    def plain(self) -> "Stream":
        """The stream by what decides: neither counts, nor times, nor numbers and epochs but how they compare."""
        cuts = tuple((at, *cut[1:]) for at, cut in enumerate(self.cuts, 1))
        return self._replace(records=tuple(map(_plain, self.records)), cuts=cuts, seq=len(cuts))


def _plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    name, status, floor, lease, *_ = values
    return tuple(_VALUES(ProducerRecord(name, status, floor, lease, epoch=1, session="1", declaration="{}")))


class SmallPage(Page):
    """See :class:`Page`. ``landed``: the rows that this transaction has logged, one train a row."""

    now = wall = 0

    def __init__(self, stream: Stream) -> None:
        self.head = Head(stream.seq, stream.floor, stream.largest, 0)
        self._records = {one[0]: ProducerRecord(*one) for one in stream.records}
        self._late = {name: (self._records[name].number, count) for name, count in stream.late}
        """The commit that has them, and how many."""
        self._cuts = list(stream.cuts)
        self.landed: list[Any] = []

    def ended(self) -> Stream:
        """The stream with what was written here."""
        records = tuple(_VALUES(one) for _, one in sorted(self._records.items()))
        late = tuple((name, len(self.late_rows(one))) for name, one in sorted(self._records.items()))
        return Stream(self.head.floor, self.head.largest, records, late, tuple(self._cuts), self.head.seq)

    def forgotten_epoch(self) -> int:
        return 0

    def find(self, name: str) -> ProducerRecord | None:
        found = self._records.get(name)
        return found.copy() if found else None

    def names(self) -> Sequence[str]:
        return [*self._records]

    def weakest_but(self, name: str) -> tuple[str, ProducerClock] | None:
        counting = [one for one in self._clocks(name) if one[1].status in COUNTING]
        return min(counting, key=lambda one: place(*one), default=None)

    def strongest_floor_but(self, name: str) -> int | None:
        floors = [clock.floor or 0 for _, clock in self._clocks(name) if clock.status in COUNTING]
        return max(floors, default=0) or None

    def has_idle_but(self, name: str) -> bool:
        return any(clock.status is Status.IDLE for _, clock in self._clocks(name))

    def _clocks(self, but: str) -> list[tuple[str, ProducerClock]]:
        return [(name, one.clock) for name, one in self._records.items() if name != but and one.clock is not None]

    def overdue(self) -> Sequence[ProducerRecord]:
        return [one.copy() for one in self._records.values() if one.attached]

    def raised(self, bound: int) -> BoundOrigin | None:
        return None

    def late_rows(self, record: ProducerRecord) -> tuple[Rejected, ...]:
        number, count = self._late.get(record.name, (0, 0))
        return (LATE,) * (count if number == record.number else 0)

    def require_staged(self, trains: Sequence[Staged]) -> None:
        """Does nothing: there are no bytes."""

    def append(self, event: Event, head: Head, train: Staged | None) -> None:
        if train is not None:
            assert train.least >= (self.head.floor or 0), "no accepted row lies below a bound that was published"
            self.landed.append(train.location)
        assert (head.floor or 0) >= (self.head.floor or 0), "the bound never falls"
        self.head = head

    def save(self, record: ProducerRecord) -> None:
        self._records[record.name] = record.copy()

    def add_cut(self, logged: LoggedCut) -> None:
        end = None if logged.cut is None else logged.cut.offsets["topic"][0]
        self._cuts.append((logged.seq, logged.producer, logged.floor, end))

    def reject(self, producer: str, number: int, known: Sequence[Rejected], late: Sequence[Rejected]) -> None:
        self._late[producer] = number, len(late)

    def add_keys(self, *_: Any) -> NoReturn:
        raise NotImplementedError

    set_query_status = add_keys


def decided(
    stream: Stream, decision: Callable[[Ledger], Result], settings: StreamSettings
) -> tuple[Result, Stream, list[Any]]:
    """What one transaction decides: its result, the stream behind it, and the rows that it logged."""
    page = SmallPage(stream)
    result = decision(Ledger(page, "s", settings))
    return result, page.ended(), page.landed
