"""The registered readers in the catalog."""

from typing import Any

from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact, sealed
from spark_rowtime.store.position import Position
from spark_rowtime.store.retention import HELD_MICROS
from spark_rowtime.store.snapshot import READS_COPIED, READS_UNKNOWN, ReaderInfo

_ALL = "SELECT name, seq, cut, seen, reads, seal FROM readers ORDER BY name"
_KEEP = "INSERT OR REPLACE INTO readers (name, seq, cut, seen, reads, seal) VALUES (?, ?, ?, ?, ?, ?)"


def keep(catalog: Catalog, reader: str, position: Position, now: int, reads: str) -> None:
    """Writes the position of ``reader``, and what it reads, at the uptime ``now``. Call it in a transaction."""
    values = (reader, position.seq, position.cut, now, reads)
    catalog.execute(_KEEP, sealed(values))


def forget(catalog: Catalog, reader: str) -> bool:
    """Removes ``reader``. Returns whether it was registered."""
    return catalog.execute("DELETE FROM readers WHERE name = ?", (reader,)).rowcount > 0


def known(catalog: Catalog, now: int = 0) -> list[ReaderInfo]:
    """Returns all registered readers by name, at the uptime ``now``."""
    return [_opened(row, now) for row in catalog.execute(_ALL)]


def _opened(row: tuple[Any, ...], now: int) -> ReaderInfo:
    """Rows of formats before 5 have nothing in the column ``reads``, which their seal does not know."""
    name, seq, cut, seen, *reads = intact(row if row[4] is not None else (*row[:4], row[5]), "readers")
    [what] = reads or [READS_UNKNOWN]
    return ReaderInfo(name, Position(seq, cut, None), max(now - seen, 0), what, what != READS_COPIED)


def waited_for(catalog: Catalog, now: int) -> list[ReaderInfo]:
    """Returns the readers that retention waits for at the uptime ``now``.

    Whoever registers in a directory may write there, and is waited for as long as it takes. A copy of a database may
    have readers of users who could only read: those are waited for until they have not been seen for HELD_MICROS.
    """
    return [one for one in known(catalog, now) if one.trusted or one.unseen < HELD_MICROS]
