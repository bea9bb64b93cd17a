"""The registered readers of the catalog."""

from spark_rowtime.store.base import Position, ReaderInfo
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact, seal


def keep(catalog: Catalog, reader: str, position: Position, now: int) -> None:
    """Writes where ``reader`` is."""
    values = (reader, position.seq, position.cut, now)
    catalog.execute("INSERT OR REPLACE INTO readers VALUES (?, ?, ?, ?, ?)", (*values, seal(values)))


def forget(catalog: Catalog, reader: str) -> bool:
    """Removes ``reader``; whether it was there."""
    return catalog.execute("DELETE FROM readers WHERE name = ?", (reader,)).rowcount > 0


def everyone(catalog: Catalog) -> list[ReaderInfo]:
    """All that are registered, by name."""
    rows = catalog.execute("SELECT name, seq, cut, seen, seal FROM readers ORDER BY name")
    found = [intact(row, "readers") for row in rows]
    return [ReaderInfo(name, Position(seq, cut, None), seen) for name, seq, cut, seen in found]
