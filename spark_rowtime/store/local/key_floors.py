"""The bounds of the values of producers' key columns in the catalog: the last whole state, and the changes since."""

from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import crc, intact, seal

_COLUMNS = "SELECT producer, number, content, seal FROM key_floors"


def add(catalog: Catalog, producer: str, number: int, changes: KeyChanges) -> None:
    """Stores the changes of the producer's commit ``number``. Call it in a transaction."""
    if changes.whole:
        catalog.execute("DELETE FROM key_floors WHERE producer = ?", (producer,))
    restore(catalog, producer, number, changes.content)


def restore(catalog: Catalog, producer: str, number: int, content: bytes) -> None:
    """Stores what a commit of the producer has stored elsewhere. Call it in a transaction."""
    check = seal((producer, number, crc(content)))
    catalog.execute("INSERT INTO key_floors VALUES (?, ?, ?, ?)", (producer, number, content, check))


def parts(catalog: Catalog, producer: str) -> list[bytes]:
    """Returns what the producer has stored, in the order of its commits."""
    rows = catalog.execute(f"{_COLUMNS} WHERE producer = ? ORDER BY number", (producer,))
    return [_content(row) for row in rows]


def all_parts(catalog: Catalog) -> dict[str, list[bytes]]:
    """Returns what each producer has stored, in the order of its commits."""
    found: dict[str, list[bytes]] = {}
    for row in catalog.execute(f"{_COLUMNS} ORDER BY producer, number"):
        found.setdefault(row[0], []).append(_content(row))
    return found


def verify(catalog: Catalog) -> None:
    """Raises Damaged if a row is not the one that was stored."""
    for row in catalog.execute(_COLUMNS):
        _content(row)


def _content(row: tuple[str, int, bytes, int]) -> bytes:
    producer, number, content, check = row
    intact((producer, number, crc(content), check), "key_floors")
    return content
