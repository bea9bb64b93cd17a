"""The producers' rows in the catalog."""

from dataclasses import replace
from typing import Any, NamedTuple

from isal.isal_zlib import crc32

from spark_rowtime.bounds.clock import COUNTING, ProducerClock, Status
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, crc, intact, seal, sealed
from spark_rowtime.store.record import ProducerInfo, ProducerRecord
from spark_rowtime.types.short_repr import short_repr

LARGE_CHECKPOINT = 1024
"""A checkpoint of at least this many characters has a row of its own, which only the next checkpoint rewrites."""

_TICKING = "name, status, floor, lease, seen, sent"
_REST = "epoch, accepted, rejected, number, checkpoint, declaration, disorder, holder, receipt_seq, receipt_floor"
_ALL = f"SELECT {_TICKING}, {_REST}, seal FROM producers"  # noqa: S608  (constants)
_SAVE = (
    f"INSERT OR REPLACE INTO producers ({_TICKING}, {_REST}, ticking, seal) "  # noqa: S608
    f"VALUES ({', '.join('?' * 18)})"
)


class Totals(NamedTuple):
    """The ``attached`` producers, idle ones included, and all rejected rows; and what the forgotten producers had.

    ``forgotten_epoch`` is the largest epoch of a forgotten producer.
    """

    attached: int
    rejected: int
    forgotten: int
    forgotten_accepted: int
    forgotten_rejected: int
    forgotten_epoch: int


_TOTALS = ", ".join(Totals._fields)


def totals(catalog: Catalog) -> Totals:
    """Returns the totals in the catalog. A catalog of an older format has none until the first of them changes."""
    row = catalog.execute(f"SELECT {_TOTALS}, seal FROM producer_totals").fetchone()  # noqa: S608
    if row is not None:
        return Totals(*intact(row, "producer_totals"))
    counted = "COALESCE(SUM(status IN ('attached', 'idle')), 0), COALESCE(SUM(rejected), 0)"
    attached, rejected = catalog.execute(f"SELECT {counted} FROM producers").fetchone()  # noqa: S608
    return Totals(attached, rejected, 0, 0, 0, 0)


def set_totals(catalog: Catalog, totals: Totals) -> None:
    """Replaces the totals. Call it in a transaction."""
    catalog.execute("DELETE FROM producer_totals")
    catalog.execute("INSERT INTO producer_totals VALUES (?, ?, ?, ?, ?, ?, ?)", sealed(totals))


def find(catalog: Catalog, name: str) -> ProducerRecord | None:
    """Returns the producer, if it ever attached. In place of a large checkpoint it has the CRC-32 of that."""
    row = catalog.execute(f"{_ALL} WHERE name = ?", (name,)).fetchone()
    return _opened(row) if row else None


def everyone(catalog: Catalog) -> list[ProducerRecord]:
    """Returns all producers that ever attached, by name."""
    return [_opened(row) for row in catalog.execute(f"{_ALL} ORDER BY name")]


def verify(catalog: Catalog) -> None:
    """Raises Damaged if a row does not match the checksum of what leases and the clock are read from."""
    for row in catalog.execute(f"SELECT {_TICKING}, ticking FROM producers"):  # noqa: S608
        intact(row, "producers")


def names(catalog: Catalog) -> list[str]:
    """Returns the names of all producers that ever attached."""
    return [name for (name,) in catalog.execute("SELECT name FROM producers")]


def _opened(row: tuple[Any, ...]) -> ProducerRecord:
    intact((*row[:10], crc(row[10]), *row[11:]), "producers")
    name, status, floor, lease, seen, sent, *rest = row[:-1]
    by_hand = lease is not None and lease < 0
    return ProducerRecord(name, Status(status), floor, -1 - lease if by_hand else lease, seen, sent, by_hand, *rest)


def with_checkpoint(catalog: Catalog, record: ProducerRecord) -> ProducerRecord:
    """Returns the producer with its checkpoint, however large it is."""
    if not isinstance(record.checkpoint, bytes):
        return record
    row = catalog.execute("SELECT producer, value, seal FROM checkpoints WHERE producer = ?", (record.name,)).fetchone()
    if row is None or _mark(intact(row, "checkpoints")[1]) != record.checkpoint:
        raise Damaged(f"the checkpoint of producer {short_repr(record.name)} is not the one that was stored")
    return replace(record, checkpoint=row[1])


def info(catalog: Catalog, record: ProducerRecord) -> ProducerInfo:
    """Returns the public state of the producer."""
    return with_checkpoint(catalog, record).info


class Stored(NamedTuple):
    """What is counted of a producer as the catalog has it, and what its row has for a checkpoint."""

    attached: bool = False
    rejected: int = 0
    checkpoint: str | bytes | None = None


NEW = Stored()
"""Stands for a producer that the catalog does not have."""


def stored(record: ProducerRecord | None) -> Stored:
    """Returns the stored part of a producer's record; ``NEW`` if there is none."""
    return NEW if record is None else Stored(record.attached, record.rejected, record.checkpoint)


def save(catalog: Catalog, record: ProducerRecord, before: Stored) -> Stored:
    """Writes the producer's row, and counts it. ``before``: as the catalog has it. Call it in a transaction.

    Returns how the catalog has it now. That a producer was let go is kept of one with a lease, as ``-1 - lease``.
    """
    attached = record.attached
    if (attached, record.rejected) != before[:2]:
        so_far = totals(catalog)
        more = so_far.attached + attached - before.attached, so_far.rejected + record.rejected - before.rejected
        set_totals(catalog, so_far._replace(attached=more[0], rejected=more[1]))
    checkpoint = _stored_checkpoint(catalog, record, before.checkpoint)
    lease = -1 - record.lease if record.detached_by_hand and record.lease is not None else record.lease
    ticking = (record.name, record.status.value, record.floor, lease, record.seen, record.sent)
    values = (
        *ticking, record.epoch, record.accepted, record.rejected, record.number, checkpoint, record.declaration,
        record.disorder, record.session, record.receipt_seq, record.receipt_floor,
    )  # fmt: skip
    sealed = (*values[:10], crc(checkpoint), *values[11:])
    catalog.execute(_SAVE, (*values, seal(ticking), seal(sealed)))
    return Stored(attached, record.rejected, checkpoint)


def _stored_checkpoint(catalog: Catalog, record: ProducerRecord, old: str | bytes | None) -> str | bytes | None:
    """Gives a large checkpoint that is new a row of its own. Returns what the producer's row has."""
    new = record.checkpoint
    if isinstance(new, str) and len(new) >= LARGE_CHECKPOINT:
        values = (record.name, new)
        catalog.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", sealed(values))
        return _mark(new)
    if isinstance(old, bytes) and new != old:
        catalog.execute("DELETE FROM checkpoints WHERE producer = ?", (record.name,))
    return new


def _mark(checkpoint: str) -> bytes:
    return crc32(checkpoint.encode("utf-8", "surrogatepass")).to_bytes(4, "big")


def forgettable(catalog: Catalog, before: int, most: int) -> list[str]:
    """Returns producers that left before the uptime ``before`` and have neither a checkpoint nor rejected rows.

    One that is complete stays, since it must not open again.
    """
    found = catalog.execute(
        "SELECT name FROM producers WHERE status = 'left' AND checkpoint IS NULL AND seen < ? "
        "AND name NOT IN (SELECT producer FROM rejected) LIMIT ?",
        (before, most),
    )
    return [name for (name,) in found]


def forget(catalog: Catalog, name: str, before: int) -> bool:
    """Removes the producer, unless it has come back since it was ``forgettable``. Call it in a transaction."""
    record, so_far = find(catalog, name), totals(catalog)
    if record is None or record.status != Status.LEFT or record.seen >= before:
        return False
    catalog.execute("DELETE FROM producers WHERE name = ?", (name,))
    catalog.execute("DELETE FROM key_floors WHERE producer = ?", (name,))
    changed = so_far._replace(
        forgotten=so_far.forgotten + 1,
        forgotten_accepted=so_far.forgotten_accepted + record.accepted,
        forgotten_rejected=so_far.forgotten_rejected + record.rejected,
        forgotten_epoch=max(so_far.forgotten_epoch, record.epoch),
    )
    set_totals(catalog, changed)
    return True


_MEMBERS = "status IN ('attached', 'idle', 'expected')"
_LEASED = "status IN ('attached', 'idle') AND lease IS NOT NULL"


def extreme(catalog: Catalog, but: str | None, *, strongest: bool = False) -> tuple[str, ProducerClock] | None:
    """Returns the weakest, or the strongest, producer that counts, apart from ``but``, and its state.

    An expected producer has no floor: it is below all that are attached.
    """
    order = "floor DESC, name DESC" if strongest else "floor, name"
    for status in reversed(COUNTING) if strongest else COUNTING:
        where = f"{_MEMBERS} AND status = '{status}' AND name IS NOT ? ORDER BY {order} LIMIT 1"
        if found := _ticking(catalog, f"floors WHERE {where}", but):
            return found[0]
    return None


def has_idle(catalog: Catalog, but: str) -> bool:
    """Returns whether a producer is idle, apart from ``but``."""
    return bool(_ticking(catalog, f"floors WHERE {_MEMBERS} AND status = 'idle' AND name IS NOT ? LIMIT 1", but))


def overdue(catalog: Catalog, now: int, idle_timeout: int | None) -> list[ProducerRecord]:
    """Returns the attached producers whose time is up. Reads only these."""
    found = _ticking(catalog, f"leases WHERE {_LEASED} AND seen + lease < ?", now)
    if idle_timeout is not None:
        found += _ticking(catalog, "silences WHERE status = 'attached' AND sent < ?", now - idle_timeout)
    records = [find(catalog, name) for name in dict.fromkeys(name for name, _ in found)]
    return [record for record in records if record is not None]


def _ticking(catalog: Catalog, index: str, *values: object) -> list[tuple[str, ProducerClock]]:
    """Returns the producers that an index has, ``index``: its name and what follows it in the statement."""
    rows = catalog.execute(f"SELECT {_TICKING}, ticking FROM producers INDEXED BY {index}", values)  # noqa: S608
    return [(row[0], ProducerClock(Status(row[1]), row[2])) for row in (intact(row, "producers") for row in rows)]
