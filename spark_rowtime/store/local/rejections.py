"""The rejected rows in the catalog."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from spark_rowtime.store.base import Rejected
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.messages import read_batch
from spark_rowtime.store.local.seal import crc, intact, seal

LARGEST_REJECTION_BYTES = 100_000_000
"""A larger rejection is stored in several rows. The limit is a tenth of the largest BLOB that SQLite accepts."""
_PORTION = 100
_COLUMNS = "producer, number, time, reason, bound, at_commit, rows, seal"
_SOME = f"SELECT id, {_COLUMNS} FROM rejected WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"  # noqa: S608
_ADD = f"INSERT INTO rejected ({_COLUMNS}) VALUES ({', '.join('?' * 8)})"  # noqa: S608  (constants)


_OLDEST = (
    "SELECT id, producer, number, time, reason, bound, at_commit, rows, seal FROM rejected r WHERE id > ? AND NOT "
    "(at_commit AND EXISTS (SELECT 1 FROM producers p WHERE p.name = r.producer AND p.number = r.number)) "
    "ORDER BY id LIMIT 1"
)
"""Selects the next rejection that may be removed. What a receipt contains stays, for a retry of the commit."""
KEPT_PARTS = 8
"""Once the limit is exceeded, this fraction of it is freed, so that not every commit removes something."""
MOST_REMOVED = 1000
"""A commit removes at most so many rejections, beside as many as it adds, so that no other producer waits for long."""
_ADDED = "SELECT COUNT(*), COALESCE(SUM(LENGTH(rows)), 0) FROM rejected WHERE id > ?"


class Totals(NamedTuple):
    """``size`` is the number of bytes of rejections that are kept, ``removed`` the number of rows removed."""

    size: int
    removed: int


def totals(catalog: Catalog) -> Totals:
    """Returns the totals in the catalog. A catalog of format 1 has removed no rejections."""
    row = catalog.execute("SELECT bytes, removed, seal FROM rejected_totals").fetchone()
    if row is not None:
        return Totals(*intact(row, "rejected_totals"))
    return Totals(*catalog.execute("SELECT COALESCE(SUM(LENGTH(rows)), 0), 0 FROM rejected").fetchone())


def newest(catalog: Catalog) -> int:
    """Returns the id of the newest rejection; 0 if there is none."""
    (last,) = catalog.execute("SELECT COALESCE(MAX(id), 0) FROM rejected").fetchone()
    return int(last)


def limit(catalog: Catalog, schema: pa.Schema, before: Totals, first: int, most: int) -> None:
    """Counts the new rejections, which follow the id ``first``, and removes the oldest beyond ``most`` bytes.

    Call it in a transaction. The new rejections stay, however large they are.
    """
    count, added = catalog.execute(_ADDED, (first,)).fetchone()
    size, removed = before.size + added, before.removed
    wanted, last = most - most // KEPT_PARTS if size > most else size, 0
    for _ in range(MOST_REMOVED + count):
        row = catalog.execute(_OLDEST, (last,)).fetchone() if size > wanted else None
        if row is None or row[0] > first:
            break
        last, _, rejected = row[0], *_opened(row[1:], schema)
        size, removed = size - len(row[7]), removed + rejected.rows.num_rows
        catalog.execute("DELETE FROM rejected WHERE id = ?", (last,))
    catalog.execute("DELETE FROM rejected_totals")
    catalog.execute("INSERT INTO rejected_totals VALUES (?, ?, ?)", (size, removed, seal((size, removed))))


def add(catalog: Catalog, producer: str, number: int, now: int, rejected: Rejected, at_commit: bool) -> None:
    """Stores what the producer's commit ``number`` rejected. ``at_commit``: only the store could reject these rows."""
    values = (producer, number, now, rejected.reason, rejected.bound, int(at_commit))
    for part in _parts(rejected.rows):
        rows = part.serialize().to_pybytes()
        catalog.execute(_ADD, (*values, rows, seal((*values, crc(rows)))))


def _parts(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    if rows.nbytes <= LARGEST_REJECTION_BYTES or rows.num_rows < 2:
        return [rows]
    half = rows.num_rows // 2
    return _parts(rows.slice(0, half)) + _parts(rows.slice(half))


def of_receipt(catalog: Catalog, schema: pa.Schema, producer: str, number: int) -> tuple[Rejected, ...]:
    """Returns what the store rejected of the producer's commit ``number``."""
    found = _select(catalog, schema, "WHERE producer = ? AND number = ? AND at_commit", producer, number)
    return tuple(rejected for _, rejected in found)


def everything(catalog: Catalog, schema: pa.Schema) -> Iterator[tuple[str, Rejected]]:
    """Yields each rejection with its producer, in the order of commits."""
    return _select(catalog, schema, "")


def portion(catalog: Catalog, schema: pa.Schema, after: int, upto: int) -> tuple[int, int]:
    """Reads the next rejections after the id ``after``. Returns the last id (``upto`` at the end) and the row count."""
    found = catalog.execute(_SOME, (after, upto, _PORTION)).fetchall()
    rows = sum(_opened(row[1:], schema)[1].rows.num_rows for row in found)
    return (found[-1][0] if len(found) == _PORTION else upto), rows


def _select(catalog: Catalog, schema: pa.Schema, where: str, *values: object) -> Iterator[tuple[str, Rejected]]:
    for row in catalog.execute(f"SELECT {_COLUMNS} FROM rejected {where} ORDER BY id", values):  # noqa: S608
        yield _opened(row, schema)


def _opened(row: tuple[Any, ...], schema: pa.Schema) -> tuple[str, Rejected]:
    *values, rows, check = row
    producer, _, _, reason, bound, *_ = intact((*values, crc(rows), check), "rejected")
    return producer, Rejected(reason, bound, read_batch(pa.py_buffer(rows), schema))
