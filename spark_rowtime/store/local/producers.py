"""The producers' rows of the catalog."""

from dataclasses import dataclass

from spark_rowtime.clock import ProducerClock, Status
from spark_rowtime.store.base import ProducerInfo
from spark_rowtime.store.local.catalog import Catalog

_COLUMNS = (
    "name, status, epoch, floor, accepted, rejected, number, checkpoint, declaration, disorder, "
    "holder, receipt_seq, receipt_floor, lease, seen, sent"
)
_ALL = f"SELECT {_COLUMNS} FROM producers"  # noqa: S608  (constants)
_SAVE = f"INSERT OR REPLACE INTO producers ({_COLUMNS}) VALUES ({', '.join('?' * 16)})"  # noqa: S608


@dataclass(slots=True)
class Known:
    """One producer: what everybody sees of it, who holds it, and the receipt of its last commit."""

    name: str
    status: str
    epoch: int
    floor: int | None
    accepted: int
    rejected: int
    number: int
    checkpoint: str | None
    declaration: str
    disorder: str
    holder: str
    receipt_seq: int
    receipt_floor: int | None
    lease: int | None = None
    seen: int = 0
    sent: int = 0

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


def find(catalog: Catalog, name: str) -> Known | None:
    """The producer, if it ever attached."""
    row = catalog.execute(f"{_ALL} WHERE name = ?", (name,)).fetchone()
    return Known(*row) if row else None


def everyone(catalog: Catalog) -> list[Known]:
    """All that ever attached, by name."""
    return [Known(*row) for row in catalog.execute(f"{_ALL} ORDER BY name")]


def save(catalog: Catalog, known: Known) -> None:
    """Writes the producer's row; in a transaction."""
    values = (
        known.name, known.status, known.epoch, known.floor, known.accepted, known.rejected, known.number,
        known.checkpoint, known.declaration, known.disorder, known.holder, known.receipt_seq, known.receipt_floor,
        known.lease, known.seen, known.sent,
    )  # fmt: skip
    catalog.execute(_SAVE, values)


def ticking(catalog: Catalog) -> list[tuple[str, str, int | None, int | None, int, int]]:
    """Name, status, floor, lease, seen and sent of those that are attached, idle or not; from an index alone."""
    columns = "name, status, floor, lease, seen, sent"
    return catalog.execute(
        f"SELECT {columns} FROM producers INDEXED BY ticking WHERE status IN ('attached', 'idle')"  # noqa: S608
    ).fetchall()
