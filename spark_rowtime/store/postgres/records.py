"""The producers' rows in the database."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple

from spark_rowtime.bounds.clock import ProducerClock, Status
from spark_rowtime.store.cells import COUNT, COUNT_OR_NONE, STATUS, TIME, TIME_OR_NONE, Cells
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.eras import OF_MEMBERS
from spark_rowtime.store.postgres.log_state import NEWEST
from spark_rowtime.store.postgres.strange_rows import require
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.store.settings import StreamSettings

PRODUCER_COLUMNS = (
    "name, status, floor, lease, seen, sent, let_go, epoch, accepted, rejected, number, checkpoint, declaration, "
    "disorder, holder, receipt_seq, receipt_floor"
)
_NAMES = PRODUCER_COLUMNS.split(", ")
_CELLS = Cells(
    _NAMES,
    **dict.fromkeys(("floor", "receipt_floor"), TIME_OR_NONE),
    **dict.fromkeys(("seen", "sent"), TIME),
    **dict.fromkeys(("epoch", "accepted", "rejected", "number", "receipt_seq"), COUNT),
    status=STATUS,
    lease=COUNT_OR_NONE,
)
_MEMBER_CELLS = Cells(_NAMES, status=STATUS, floor=TIME_OR_NONE)
ALL = f"SELECT {PRODUCER_COLUMNS} FROM rowtime.producers WHERE stream = %s ORDER BY name"  # noqa: S608  (constants)
ONE = f"SELECT {PRODUCER_COLUMNS}, era FROM rowtime.producers WHERE stream = %s AND name = %s {NEWEST}"  # noqa: S608
_SOME = (
    "SELECT p.* FROM unnest(%s::text[]) wanted CROSS JOIN LATERAL (SELECT "  # noqa: S608
    f"{PRODUCER_COLUMNS}, era FROM rowtime.producers WHERE stream = %s AND name = wanted {NEWEST}) p"
)
_INSERT = f"INSERT INTO rowtime.producers (stream, {PRODUCER_COLUMNS}, era) VALUES (%s{', %s' * len(_NAMES)}, %s)"  # noqa: S608
_DELETE = "DELETE FROM rowtime.producers WHERE stream = %s AND name = %s"
_UPDATE = (
    f"UPDATE rowtime.producers SET ({', '.join(_NAMES[1:])}, era) = "  # noqa: S608
    f"({', '.join(['%s'] * len(_NAMES))}) WHERE stream = %s AND name = %s AND era = %s"
)
_REST = attrgetter(*(field.name for field in fields(ProducerRecord)[2:]))
NAMES = "SELECT name FROM rowtime.producers WHERE stream = %s"
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
_OVERDUE = (
    f"SELECT {PRODUCER_COLUMNS}, era FROM rowtime.producers WHERE {OF_MEMBERS} "  # noqa: S608
    "((status IN ('attached', 'idle') AND seen + lease < %s) OR (status = 'attached' AND sent < %s))"
)
_NEXT_DUE = (
    "SELECT LEAST(MIN(seen + lease), MIN(sent + %s::bigint) FILTER (WHERE status = 'attached')) FROM rowtime.producers "  # noqa: S608
    f"WHERE {OF_MEMBERS} status IN ('attached', 'idle')"
)


class Stored(NamedTuple):
    """A producer as the database has it, and the era of its row; not known of a row of ALL."""

    record: ProducerRecord
    era: int = 0


def stored(row: tuple[Any, ...]) -> Stored:
    """Returns the producer of a row that ends with its era."""
    return Stored(opened(row), row[-1])


def opened(row: tuple[Any, ...]) -> ProducerRecord:
    """Returns the producer of a row of ALL or ONE. Raises StoreCorruptError if it is none that a store writes."""
    require(_CELLS, row, "producers")
    name, status, *rest = row[: len(_NAMES)]
    return ProducerRecord(name, Status(status), *rest)


def values(record: ProducerRecord) -> tuple[Any, ...]:
    """Returns the values of PRODUCER_COLUMNS."""
    return record.name, record.status.value, *_REST(record)


def some(stream: int, names: Sequence[str]) -> Statement:
    """Returns the query for those of the producers that the stream knows."""
    return _SOME, (list(names), stream)


def save(transaction: Transaction, record: ProducerRecord, settings: StreamSettings, before: Stored | None) -> Stored:
    """Writes the producer's row, and counts it in the head. ``before``: as the database has it. Returns it as it is."""
    head, (attached, rejected), (counts, rejects) = transaction.head, _counts(before), _counts(Stored(record))
    head.attached, head.rejected = head.attached + counts - attached, head.rejected + rejects - rejected
    if record.attached and record.lease is not None:
        head.due_at(record.seen + record.lease)
    if record.status is Status.ATTACHED and settings.idleTimeout is not None:
        head.due_at(record.sent + settings.idleTimeout)
    if before is not None:
        transaction.write(_UPDATE, *values(record)[1:], head.era, transaction.stream, record.name, before.era)
    else:
        transaction.write(_DELETE, transaction.stream, record.name)
        transaction.write(_INSERT, transaction.stream, *values(record), head.era)
    return Stored(record.copy(), head.era)


def _counts(stored: Stored | None) -> tuple[bool, int]:
    """Returns whether the producer is attached, and how many rejected rows it has."""
    return (False, 0) if stored is None else (stored.record.attached, stored.record.rejected)


def weakest_but(stream: int, name: str) -> Statement:
    """Returns the query for the weakest producer that counts, apart from ``name``."""
    return WEAKEST, (stream, stream, name, stream, stream, name)


def strongest_but(stream: int, name: str) -> Statement:
    """Returns the query for the producer that counts with the highest floor, apart from ``name``."""
    return _STRONGEST, (stream, stream, name)


def idle_but(stream: int, name: str) -> Statement:
    """Returns the query for a producer that is idle, apart from ``name``."""
    return _IDLE, (stream, stream, name)


def member(rows: list[tuple[Any, ...]]) -> tuple[str, ProducerClock] | None:
    """Returns the producer in the first of ``rows``, and its state in the clock."""
    if not rows:
        return None
    name, status, floor = rows[0][:3]
    require(_MEMBER_CELLS, rows[0], "producers")
    return name, ProducerClock(Status(status), floor)


def overdue(stream: int, now: int, idle_timeout: int | None) -> Statement:
    """Returns the query for the producers whose time is up."""
    return _OVERDUE, (stream, stream, now, -1 if idle_timeout is None else now - idle_timeout)


def renew_due(transaction: Transaction, idle_timeout: int | None) -> None:
    """Computes when something is due next, and notes it in the head."""
    ((due,),) = transaction.query(_NEXT_DUE, idle_timeout, transaction.stream, transaction.stream)
    transaction.head.due = due
    transaction.changed = True
