"""The registered readers in the catalog."""

from spark_rowtime.store.base import Position, ReaderInfo
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact, seal


def keep(catalog: Catalog, reader: str, position: Position, now: int) -> None:
    """Writes the position of ``reader`` at the uptime ``now``. Call it in a transaction."""
    values = (reader, position.seq, position.cut, now)
    catalog.execute("INSERT OR REPLACE INTO readers VALUES (?, ?, ?, ?, ?)", (*values, seal(values)))


def forget(catalog: Catalog, reader: str) -> bool:
    """Removes ``reader``. Returns whether it was registered."""
    return catalog.execute("DELETE FROM readers WHERE name = ?", (reader,)).rowcount > 0


def known(catalog: Catalog, now: int = 0) -> list[ReaderInfo]:
    """Returns all registered readers by name, at the uptime ``now``."""
    rows = catalog.execute("SELECT name, seq, cut, seen, seal FROM readers ORDER BY name")
    found = [intact(row, "readers") for row in rows]
    return [ReaderInfo(name, Position(seq, cut, None), max(now - seen, 0)) for name, seq, cut, seen in found]


def positions(catalog: Catalog) -> dict[str, Position]:
    """Returns the positions of all registered readers, by name."""
    return {one.name: one.position for one in known(catalog)}
