"""The producers' rows in the catalog."""

from dataclasses import dataclass
from typing import Any

from isal.isal_zlib import crc32

from spark_rowtime.bounds.clock import Event, ProducerClock, Status
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


def newcomer(name: str, status: Status) -> Known:
    """Returns a producer that has never attached."""
    return Known(name, status.value, None, None, 0, 0, 0, 0, 0, 0, None, "", "", "", 0, None)


def expected(catalog: Catalog) -> list[str]:
    """Returns the names of the expected producers. Reads only what it returns."""
    found = catalog.execute(f"{_ALL} INDEXED BY expected WHERE status = 'expected'")
    return [_known(row).name for row in found]


def find(catalog: Catalog, name: str) -> Known | None:
    """Returns the producer, if it ever attached."""
    row = catalog.execute(f"{_ALL} WHERE name = ?", (name,)).fetchone()
    return _known(row) if row else None


def everyone(catalog: Catalog) -> list[Known]:
    """Returns all producers that ever attached, by name."""
    return [_known(row) for row in catalog.execute(f"{_ALL} ORDER BY name")]


def _known(row: tuple[Any, ...]) -> Known:
    intact((*row[:10], crc(row[10]), *row[11:]), "producers")
    return Known(*row[:-1])


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
    sealed = (*values[:10], crc(record.checkpoint), *values[11:])
    catalog.execute(_SAVE, (*values, seal(ticking), seal(sealed)))


def ticking(catalog: Catalog) -> list[Ticking]:
    """Returns the attached producers, idle ones included. Reads only an index."""
    return _ticking(catalog, "TRUE")


def overdue(catalog: Catalog, now: int, idle_timeout: int | None) -> list[Event]:
    """Returns the events for producers whose time is up; see :func:`spark_rowtime.store.expiry.overdue`."""
    lease, idle = "seen + lease < ?", "sent < ?"
    found = (
        _ticking(catalog, lease, now)
        if idle_timeout is None
        else (_ticking(catalog, f"({lease} OR {idle})", now, now - idle_timeout))
    )
    return expiry.overdue(found, now, idle_timeout)


def _ticking(catalog: Catalog, which: str, *times: int) -> list[Ticking]:
    rows = catalog.execute(
        f"SELECT {_TICKING}, ticking FROM producers INDEXED BY ticking "  # noqa: S608
        f"WHERE status IN ('attached', 'idle') AND {which}",
        times,
    )
    return [(row[0], Status(row[1]), *row[2:]) for row in (intact(row, "producers") for row in rows)]
