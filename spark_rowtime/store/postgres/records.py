"""The producers' rows in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from spark_rowtime.bounds.clock import Event, ProducerClock, Status
from spark_rowtime.store import expiry
from spark_rowtime.store.base import LastSeen, ProducerInfo, StreamSettings
from spark_rowtime.store.expiry import Ticking
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.eras import OF_MEMBERS
from spark_rowtime.store.postgres.heads import NEWEST
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.postgres.writes import PRODUCER_COLUMNS, PRODUCER_NAMES, UPDATE_PRODUCER
from spark_rowtime.types.timestamps import END

ALL = f"SELECT {PRODUCER_COLUMNS} FROM rowtime.producers WHERE stream = %s ORDER BY name"  # noqa: S608  (constants)
ONE = f"SELECT {PRODUCER_COLUMNS}, era FROM rowtime.producers WHERE stream = %s AND name = %s {NEWEST}"  # noqa: S608
_SOME = (
    "SELECT p.* FROM unnest(%s::text[]) wanted CROSS JOIN LATERAL (SELECT "  # noqa: S608
    f"{PRODUCER_COLUMNS}, era FROM rowtime.producers WHERE stream = %s AND name = wanted {NEWEST}) p"
)
_INSERT = (
    f"INSERT INTO rowtime.producers (stream, {PRODUCER_COLUMNS}, era) VALUES (%s{', %s' * len(PRODUCER_NAMES)}, %s)"  # noqa: S608
)
_DELETE = "DELETE FROM rowtime.producers WHERE stream = %s AND name = %s"
VALUES = attrgetter(*PRODUCER_NAMES)
_TICKING = f"SELECT name, status, floor, lease, seen, sent FROM rowtime.producers WHERE {OF_MEMBERS}"  # noqa: S608
_MEMBERS = f"{_TICKING} status IN ('attached', 'idle', 'expected')"
_MEMBER = f"SELECT name, status, floor FROM rowtime.producers WHERE {OF_MEMBERS}"  # noqa: S608
_FIRST = "ORDER BY floor NULLS FIRST, name LIMIT 1"
WEAKEST = (
    f"SELECT name, status, floor FROM (({_MEMBER} status = 'expected' AND name <> %s {_FIRST}) UNION ALL "  # noqa: S608
    f"({_MEMBER} status = 'attached' AND name <> %s {_FIRST})) found ORDER BY status DESC LIMIT 1"
)
"""An expected producer has no floor. The order is that of the index ``floors``; by name alone, the server may choose to
read all producers in the order of the primary key."""
_STRONGEST = f"{_MEMBER} status = 'attached' AND name <> %s ORDER BY floor DESC NULLS LAST, name DESC LIMIT 1"
_IDLE = f"{_MEMBER} status = 'idle' AND name <> %s LIMIT 1"
_OVERDUE = f"{_TICKING} ((status IN ('attached', 'idle') AND seen + lease < %s) OR (status = 'attached' AND sent < %s))"
_NEXT_DUE = (
    "SELECT LEAST(MIN(seen + lease), MIN(sent + %s::bigint) FILTER (WHERE status = 'attached')) FROM rowtime.producers "  # noqa: S608
    f"WHERE {OF_MEMBERS} status IN ('attached', 'idle')"
)


@dataclass(slots=True)
class Record:
    """One producer: its public state, its holder, and the receipt of its last commit."""

    name: str
    status: str
    floor: int | None
    lease: int | None
    seen: int
    sent: int
    let_go: bool
    epoch: int
    accepted: int
    rejected: int
    number: int
    checkpoint: str | None
    declaration: str
    disorder: str
    holder: str
    receipt_seq: int
    receipt_floor: int | None
    era: int = 0
    """That of its row in the database; not known of a row of ALL."""
    counted: tuple[bool, int] = (False, 0)
    """Whether the row in the database is of an attached producer, and how many rejected rows it has."""
    stored: bool = True
    """Whether the database has a row of the producer."""

    @property
    def counts(self) -> tuple[bool, int]:
        """The same of this object, which may not be saved yet."""
        return self.status in (Status.ATTACHED, Status.IDLE), self.rejected

    @property
    def info(self) -> ProducerInfo:
        """What the store says of the producer."""
        return ProducerInfo(
            self.name, Status(self.status), self.epoch, self.floor, self.accepted, self.rejected, self.number,
            self.checkpoint, self.declaration, self.disorder,
        )  # fmt: skip

    def last_seen(self, now: int) -> LastSeen:
        """Returns when the producer was last seen, at the uptime ``now``."""
        return LastSeen(max(now - self.seen, 0), max(now - self.sent, 0), self.lease)

    def tick(self, clock: ProducerClock | None, gone: Status) -> None:
        """Takes over the producer's state from the clock. ``gone`` is its status if the clock no longer has it."""
        self.status = clock.status.value if clock else gone.value
        gone_at = END if gone is Status.COMPLETE else self.floor
        self.floor = clock.floor if clock else gone_at
        if clock:
            self.let_go = False


def opened(row: tuple[Any, ...]) -> Record:
    """Returns the producer of a row of ALL or ONE."""
    record = Record(*row)
    record.counted = record.counts
    return record


def newcomer(name: str, status: Status, epoch: int) -> Record:
    """Returns a producer that has never attached, or was forgotten. ``epoch``: the largest of a forgotten producer."""
    return Record(name, status, None, None, 0, 0, False, epoch, 0, 0, 0, None, "", "", "", 0, None, stored=False)


def find(transaction: Transaction, name: str) -> Record | None:
    """Returns the producer of that name."""
    rows = transaction.query(ONE, transaction.stream, name)
    return opened(rows[0]) if rows else None


def find_all(transaction: Transaction, names: Sequence[str]) -> dict[str, Record]:
    """Returns those of the producers that the stream knows."""
    rows = transaction.query(_SOME, list(names), transaction.stream)
    return {row[0]: opened(row) for row in rows}


def save(transaction: Transaction, record: Record, settings: StreamSettings) -> None:
    """Writes the producer's row, and counts it in the head."""
    head, (attached, rejected), (counts, rejects) = transaction.head, record.counted, record.counts
    head.attached, head.rejected = head.attached + counts - attached, head.rejected + rejects - rejected
    record.counted = record.counts
    if record.status in (Status.ATTACHED, Status.IDLE) and record.lease is not None:
        head.due_at(record.seen + record.lease)
    if record.status == Status.ATTACHED and settings.idleTimeout is not None:
        head.due_at(record.sent + settings.idleTimeout)
    values = VALUES(record)
    if record.stored:
        transaction.write(UPDATE_PRODUCER, *values[1:], head.era, transaction.stream, record.name, record.era)
    else:
        transaction.write(_DELETE, transaction.stream, record.name)
        transaction.write(_INSERT, transaction.stream, *values, head.era)
    record.stored, record.era = True, head.era


def weakest_but(stream: int, name: str) -> Statement:
    """Returns the query for the weakest producer that counts, apart from ``name``."""
    return WEAKEST, (stream, stream, name, stream, stream, name)


def members(stream: int) -> Statement:
    """Returns the query for the producers that count."""
    return _MEMBERS, (stream, stream)


def strongest_but(stream: int, name: str) -> Statement:
    """Returns the query for the producer that counts with the highest floor, apart from ``name``."""
    return _STRONGEST, (stream, stream, name)


def idle_but(stream: int, name: str) -> Statement:
    """Returns the query for a producer that is idle, apart from ``name``."""
    return _IDLE, (stream, stream, name)


def strongest_floor_but(transaction: Transaction, name: str) -> int | None:
    """Returns the highest floor of the producers that count, apart from ``name``; an expected one has none."""
    found = transaction.ask(strongest_but(transaction.stream, name))
    return found[0][2] if found else None


def member(rows: list[tuple[Any, ...]]) -> tuple[str, ProducerClock] | None:
    """Returns the producer in the first of ``rows``, and its state in the clock."""
    if not rows:
        return None
    name, status, floor = rows[0][:3]
    return name, ProducerClock(Status(status), floor)


def has_idle(transaction: Transaction, but: str) -> bool:
    """Returns whether a producer is idle, apart from ``but``."""
    return bool(transaction.ask(idle_but(transaction.stream, but)))


def overdue_query(stream: int, now: int, idle_timeout: int | None) -> Statement:
    """Returns the query for the producers whose time is up."""
    return _OVERDUE, (stream, stream, now, -1 if idle_timeout is None else now - idle_timeout)


def overdue(rows: list[tuple[Any, ...]], now: int, idle_timeout: int | None) -> list[Event]:
    """Returns the events for the rows of ``overdue_query``; see :func:`spark_rowtime.store.expiry.overdue`."""
    return expiry.overdue(map(_ticking, rows), now, idle_timeout)


def renew_due(transaction: Transaction, idle_timeout: int | None) -> None:
    """Computes when something is due next, and notes it in the head."""
    ((due,),) = transaction.query(_NEXT_DUE, idle_timeout, transaction.stream, transaction.stream)
    transaction.head.due = due
    transaction.changed()


def _ticking(row: tuple[Any, ...]) -> Ticking:
    name, status, floor, lease, seen, sent = row
    return name, Status(status), floor, lease, seen, sent
