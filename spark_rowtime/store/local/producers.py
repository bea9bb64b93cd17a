"""The producers' rows in the catalog."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from isal.isal_zlib import crc32

from spark_rowtime.bounds.clock import COUNTING, GONE, Event, ProducerClock, Status
from spark_rowtime.store import expiry
from spark_rowtime.store.base import LastSeen, ProducerInfo
from spark_rowtime.store.expiry import Ticking
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, crc, intact, seal
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import END

LARGE_CHECKPOINT = 1024
"""A checkpoint of at least this many characters has a row of its own, which only the next checkpoint rewrites."""

_TICKING = "name, status, floor, lease, seen, sent"
_REST = "epoch, accepted, rejected, number, checkpoint, declaration, disorder, holder, receipt_seq, receipt_floor"
_ALL = f"SELECT {_TICKING}, {_REST}, seal FROM producers"  # noqa: S608  (constants)
_GONE = frozenset(status.value for status in GONE.values())
_SAVE = (
    f"INSERT OR REPLACE INTO producers ({_TICKING}, {_REST}, ticking, seal) "  # noqa: S608
    f"VALUES ({', '.join('?' * 18)})"
)


@dataclass(slots=True)
class Known:
    """One producer: its public state, its holder, and the receipt of its last commit."""

    name: str
    status: str
    floor: int | None
    lease: int | None
    seen: int
    sent: int
    epoch: int
    accepted: int
    rejected: int
    number: int
    checkpoint: str | bytes | None
    """For a large checkpoint, its CRC-32; the table ``checkpoints`` holds the checkpoint itself."""
    declaration: str
    disorder: str
    holder: str
    receipt_seq: int
    receipt_floor: int | None
    counted: tuple[bool, int] = (False, 0)
    """Whether the row in the catalog is of an attached producer, and how many rejected rows it has."""

    @property
    def counts(self) -> tuple[bool, int]:
        """The same of this object, which may not be saved yet."""
        return self.status in (Status.ATTACHED, Status.IDLE), self.rejected

    def last_seen(self, now: int) -> LastSeen:
        """Returns when the producer was last seen, at the uptime ``now``."""
        lease = -1 - self.lease if self.lease is not None and self.let_go else self.lease
        return LastSeen(max(now - self.seen, 0), max(now - self.sent, 0), lease)

    def tick(self, clock: ProducerClock | None, gone: Status) -> None:
        """Takes over the producer's state from the clock. ``gone`` is its status if the clock no longer has it."""
        self.status = clock.status.value if clock else gone.value
        gone_at = END if gone is Status.COMPLETE else self.floor
        self.floor = clock.floor if clock else gone_at
        if clock and self.let_go:
            self.let_go = False

    @property
    def let_go(self) -> bool:
        """Whether the producer was detached by hand. Its lease is then stored as ``-1 - lease``."""
        return self.lease is not None and self.lease < 0

    @let_go.setter
    def let_go(self, now: bool) -> None:
        if self.lease is not None and now != self.let_go:
            self.lease = -1 - self.lease


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
    catalog.execute("INSERT INTO producer_totals VALUES (?, ?, ?, ?, ?, ?, ?)", (*totals, seal(totals)))


def newcomer(catalog: Catalog, name: str, status: Status) -> Known:
    """Returns a producer that has never attached, or was forgotten.

    Its epoch will be above those of all forgotten producers, so that whoever held it before is fenced.
    """
    epoch = totals(catalog).forgotten_epoch
    return Known(name, status.value, None, None, 0, 0, epoch, 0, 0, 0, None, "", "", "", 0, None)


def find(catalog: Catalog, name: str) -> Known | None:
    """Returns the producer, if it ever attached."""
    row = catalog.execute(f"{_ALL} WHERE name = ?", (name,)).fetchone()
    return _known(row) if row else None


def everyone(catalog: Catalog) -> list[Known]:
    """Returns all producers that ever attached, by name."""
    return [_known(row) for row in catalog.execute(f"{_ALL} ORDER BY name")]


def _known(row: tuple[Any, ...]) -> Known:
    intact((*row[:10], crc(row[10]), *row[11:]), "producers")
    record = Known(*row[:-1])
    record.counted = record.counts
    return record


def info(catalog: Catalog, record: Known) -> ProducerInfo:
    """Returns the public state of the producer."""
    return ProducerInfo(
        record.name, Status(record.status), record.epoch, record.floor, record.accepted, record.rejected, record.number,
        _checkpoint(catalog, record), record.declaration, record.disorder,
    )  # fmt: skip


def _checkpoint(catalog: Catalog, record: Known) -> str | None:
    if not isinstance(record.checkpoint, bytes):
        return record.checkpoint
    row = catalog.execute("SELECT producer, value, seal FROM checkpoints WHERE producer = ?", (record.name,)).fetchone()
    if row is None or _mark(intact(row, "checkpoints")[1]) != record.checkpoint:
        raise Damaged(f"the checkpoint of producer {short_repr(record.name)} is not the one that was stored")
    value: str = row[1]
    return value


def set_checkpoint(catalog: Catalog, record: Known, checkpoint: str) -> None:
    """Replaces the checkpoint. Call it in a transaction, before :func:`save`."""
    if len(checkpoint) >= LARGE_CHECKPOINT:
        values = (record.name, checkpoint)
        catalog.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", (*values, seal(values)))
        record.checkpoint = _mark(checkpoint)
        return
    if isinstance(record.checkpoint, bytes):
        catalog.execute("DELETE FROM checkpoints WHERE producer = ?", (record.name,))
    record.checkpoint = checkpoint


def _mark(checkpoint: str) -> bytes:
    return crc32(checkpoint.encode("utf-8", "surrogatepass")).to_bytes(4, "big")


def save(catalog: Catalog, record: Known) -> None:
    """Writes the producer's row. Call it in a transaction."""
    ticking = (record.name, record.status, record.floor, record.lease, record.seen, record.sent)
    values = (
        *ticking, record.epoch, record.accepted, record.rejected, record.number, record.checkpoint, record.declaration,
        record.disorder, record.holder, record.receipt_seq, record.receipt_floor,
    )  # fmt: skip
    if record.counts != record.counted:
        _count(catalog, record)
    sealed = (*values[:10], crc(record.checkpoint), *values[11:])
    catalog.execute(_SAVE, (*values, seal(ticking), seal(sealed)))


def _count(catalog: Catalog, record: Known) -> None:
    before, (attached, rejected), (counts, rejects) = totals(catalog), record.counted, record.counts
    more = {"attached": before.attached + counts - attached, "rejected": before.rejected + rejects - rejected}
    set_totals(catalog, before._replace(**more))
    record.counted = record.counts


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


def members(catalog: Catalog) -> list[Ticking]:
    """Returns the expected producers, and the attached ones, idle or not."""
    return _ticking(catalog, f"floors WHERE {_MEMBERS}")


def clock_of(catalog: Catalog, name: str) -> ProducerClock | None:
    """Returns the producer's state in the clock; None if it is neither expected nor attached."""
    row = catalog.execute(f"SELECT {_TICKING}, ticking FROM producers WHERE name = ?", (name,)).fetchone()  # noqa: S608
    if row is None or intact(row, "producers")[1] in _GONE:
        return None
    return ProducerClock(Status(row[1]), row[2])


def extreme(catalog: Catalog, but: str | None, *, strongest: bool = False) -> tuple[str, ProducerClock] | None:
    """Returns the weakest, or the strongest, producer that counts, apart from ``but``, and its state.

    An expected producer has no floor: it is below all that are attached.
    """
    order = "floor DESC, name DESC" if strongest else "floor, name"
    for status in reversed(COUNTING) if strongest else COUNTING:
        where = f"{_MEMBERS} AND status = '{status}' AND name IS NOT ? ORDER BY {order} LIMIT 1"
        if found := _ticking(catalog, f"floors WHERE {where}", but):
            return found[0][0], ProducerClock(status, found[0][2])
    return None


def has_idle(catalog: Catalog, but: str | None) -> bool:
    """Returns whether a producer is idle, apart from ``but``."""
    return bool(_ticking(catalog, f"floors WHERE {_MEMBERS} AND status = 'idle' AND name IS NOT ? LIMIT 1", but))


def overdue(catalog: Catalog, now: int, idle_timeout: int | None) -> list[Event]:
    """Returns the events for producers whose time is up; see :func:`spark_rowtime.store.expiry.overdue`.

    Reads only these producers.
    """
    found = _ticking(catalog, f"leases WHERE {_LEASED} AND seen + lease < ?", now)
    if idle_timeout is not None:
        found += _ticking(catalog, "silences WHERE status = 'attached' AND sent < ?", now - idle_timeout)
    return expiry.overdue(dict.fromkeys(found), now, idle_timeout)


def _ticking(catalog: Catalog, index: str, *values: object) -> list[Ticking]:
    """Returns the producers that an index has, ``index``: its name and what follows it in the statement."""
    rows = catalog.execute(f"SELECT {_TICKING}, ticking FROM producers INDEXED BY {index}", values)  # noqa: S608
    return [(row[0], Status(row[1]), *row[2:]) for row in (intact(row, "producers") for row in rows)]
