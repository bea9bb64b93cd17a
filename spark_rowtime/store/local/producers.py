"""The producers' rows of the catalog."""

from dataclasses import dataclass

from spark_rowtime.clock import Event, ProducerClock, Status
from spark_rowtime.store import expiry
from spark_rowtime.store.base import ProducerInfo
from spark_rowtime.store.expiry import Ticking
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact, seal

_TICKING = "name, status, floor, lease, seen, sent"
_REST = "epoch, accepted, rejected, number, checkpoint, declaration, disorder, holder, receipt_seq, receipt_floor"
_ALL = f"SELECT {_TICKING}, {_REST}, seal FROM producers"  # noqa: S608  (constants)
_SAVE = (
    f"INSERT OR REPLACE INTO producers ({_TICKING}, {_REST}, ticking, seal) "  # noqa: S608
    f"VALUES ({', '.join('?' * 18)})"
)


@dataclass(slots=True)
class Known:
    """One producer: what everybody sees of it, who holds it, and the receipt of its last commit."""

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
    checkpoint: str | None
    declaration: str
    disorder: str
    holder: str
    receipt_seq: int
    receipt_floor: int | None

    def info(self) -> ProducerInfo:
        """What everybody sees."""
        return ProducerInfo(
            self.name, Status(self.status), self.epoch, self.floor, self.accepted, self.rejected, self.number,
            self.checkpoint, self.declaration, self.disorder,
        )  # fmt: skip

    def tick(self, clock: ProducerClock | None, gone: Status) -> None:
        """Takes over what the clock says of it; ``gone``: what it is where the clock has it no more."""
        self.status = clock.status.value if clock else gone.value
        self.floor = clock.floor if clock else self.floor


def newcomer(name: str, declaration: str) -> Known:
    """One that is about to attach for the first time."""
    status = Status.ATTACHED.value
    return Known(name, status, None, None, 0, 0, 0, 0, 0, 0, None, declaration, "", "", 0, None)


def find(catalog: Catalog, name: str) -> Known | None:
    """The producer, if it ever attached."""
    row = catalog.execute(f"{_ALL} WHERE name = ?", (name,)).fetchone()
    return Known(*intact(row, "producers")) if row else None


def everyone(catalog: Catalog) -> list[Known]:
    """All that ever attached, by name."""
    return [Known(*intact(row, "producers")) for row in catalog.execute(f"{_ALL} ORDER BY name")]


def save(catalog: Catalog, known: Known) -> None:
    """Writes the producer's row; in a transaction."""
    ticking = (known.name, known.status, known.floor, known.lease, known.seen, known.sent)
    values = (
        *ticking, known.epoch, known.accepted, known.rejected, known.number, known.checkpoint, known.declaration,
        known.disorder, known.holder, known.receipt_seq, known.receipt_floor,
    )  # fmt: skip
    catalog.execute(_SAVE, (*values, seal(ticking), seal(values)))


def ticking(catalog: Catalog) -> list[Ticking]:
    """Those that are attached, idle or not; from an index alone."""
    return _ticking(catalog, "TRUE")


def overdue(catalog: Catalog, now: int, idle_timeout: int | None) -> list[Event]:
    """What has become of those whose time is up; see :func:`spark_rowtime.store.expiry.overdue`."""
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
