"""For whom old rows and cuts stay: the registered readers, and for how long.

Law (*not for ever*; tests/store/test_postgres_folding.py): what a user who may only read has registered keeps rows and
cuts for HELD_MICROS. Only for what a user has registered who may write, they stay as long as it takes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from spark_rowtime.store.cut_folding import passed
from spark_rowtime.store.difference import between
from spark_rowtime.store.position import AFTER_ALL, Head, Position
from spark_rowtime.store.postgres import registrations
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.retention import HELD_MICROS, needs
from spark_rowtime.store.snapshot import ReaderInfo

_BEFORE = (
    "WITH RECURSIVE search (low, high) AS (SELECT %s::bigint, %s::bigint UNION ALL "
    "SELECT CASE WHEN e.time <= %s THEN e.seq ELSE low END, CASE WHEN e.time <= %s THEN high ELSE e.seq - 1 END "
    "FROM search JOIN rowtime.events e ON e.stream = %s AND e.seq = (low + high + 1) / 2 WHERE low < high) "
    "SELECT low FROM search WHERE low = high"
)
"""A search by halves: times never go back from event to event."""


class Needed(NamedTuple):
    """The positions after which nothing may be removed, each with the reason why: of all, and of those who may write.

    ``since``: the uptime since when something has to be committed to be kept for all.
    """

    for_all: Sequence[tuple[str, Position]]
    for_trusted: Sequence[tuple[str, Position]]
    since: int

    def who(self, seq: int, time: int, least: int, largest: int) -> str | None:
        """Returns who needs a train; None if nobody does."""
        needed = self.for_all if time > self.since else self.for_trusted
        return next((who for who, at in needed if between(at, AFTER_ALL, seq, least, largest)), None)


def needed(rows: Sequence[tuple[Any, ...]], head: Head, uptime: int, *, force: bool) -> Needed:
    """Returns what the readers need that ``registrations.ALL`` has found. ``force``: only what is not released."""
    readers = registrations.opened(rows, uptime)
    for_all, for_trusted = (
        needs([(one.name, one.position) for one in some], head, force)
        for some in (readers, [one for one in readers if one.trusted])
    )
    return Needed(for_all, for_trusted, uptime - HELD_MICROS)


def foldable(readers: Sequence[ReaderInfo], transaction: Transaction, retained: int | None) -> int:
    """Returns the event up to which cuts may be folded.

    ``retained``: how old they are at least, unless a user who may write has passed them; None: any age is too little.
    """
    by_trusted, by_any = passed(readers), passed(readers, trusted=False)
    aged = 0 if retained is None or by_any == by_trusted else last_before(transaction, by_any, retained)
    return max(by_trusted, aged)


def readers_of_cuts(transaction: Transaction) -> list[ReaderInfo]:
    """Returns the readers. Those that have been waited for long enough are beyond what was kept for so long."""
    rows = transaction.query(registrations.ALL, transaction.stream)
    found = registrations.opened(rows, transaction.at.uptime)
    if all(one.trusted for one in found):
        return found
    passed = last_before(transaction, transaction.head.seq, HELD_MICROS)
    return [one if one.trusted else _beyond(one, passed) for one in found]


def _beyond(reader: ReaderInfo, seq: int) -> ReaderInfo:
    return replace(reader, position=reader.position._replace(seq=max(reader.position.seq, seq)))


def last_before(transaction: Transaction, upto: int, age: int) -> int:
    """Returns the last event up to ``upto`` that is at least this old; 0 if none is that the log still has."""
    stream, first, time = transaction.stream, max(transaction.head.horizon, 1), transaction.at.uptime - age
    found = transaction.query(_BEFORE, first - 1, upto, time, time, stream)
    return next((seq for (seq,) in found if seq >= first), 0)
