"""The rejected rows in the catalog."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.store import rejection_rules as rules
from spark_rowtime.store.commits import Rejected, Rejection
from spark_rowtime.store.history import KeptRejection
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, crc, intact, seal, sealed
from spark_rowtime.store.messages import read_batch
from spark_rowtime.store.rejection_rules import Old

_ADD = "INSERT INTO rejected VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_ORIGIN = "INSERT INTO rejected_origins VALUES (?, ?, ?, ?, ?)"
_SELECT = (
    "SELECT r.id, r.producer, r.number, r.time, r.reason, r.bound, r.at_commit, r.rows, r.seal, "
    "o.owner, o.producer, o.event, o.seal FROM rejected r LEFT JOIN rejected_origins o ON o.id = r.id"
)
_OLDEST = (
    _SELECT + " WHERE r.id > ? AND NOT "  # noqa: S608  (constants)
    "(r.at_commit AND EXISTS (SELECT 1 FROM producers p WHERE p.name = r.producer AND p.number = r.number)) "
    "ORDER BY r.id LIMIT 1"
)
"""Selects the next rejection that may be removed. What a receipt contains stays, for a retry of the commit."""
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
    for old in rules.going(_oldest(catalog, schema, first), size, most, count):
        size, removed = size - old.size, removed + old.rows
        catalog.execute("DELETE FROM rejected WHERE id = ?", (old.number,))
        catalog.execute("DELETE FROM rejected_origins WHERE id = ?", (old.number,))
    set_totals(catalog, Totals(size, removed))


def set_totals(catalog: Catalog, totals: Totals) -> None:
    """Replaces the totals. Call it in a transaction."""
    catalog.execute("DELETE FROM rejected_totals")
    catalog.execute("INSERT INTO rejected_totals VALUES (?, ?, ?)", sealed(totals))


def _oldest(catalog: Catalog, schema: pa.Schema, upto: int) -> Iterator[Old]:
    """Yields the rejections up to the id ``upto`` that may be removed, each read when it is asked for."""
    row = (0,)
    while (row := catalog.execute(_OLDEST, (row[0],)).fetchone()) is not None and row[0] <= upto:
        yield Old(row[0], _opened(row, schema).rejected.rows.num_rows, len(row[7]))


def add(catalog: Catalog, producer: str, number: int, now: int, rejected: Rejected, at_commit: bool) -> None:
    """Stores what the producer's commit ``number`` rejected. ``at_commit``: only the store could reject these rows."""
    for part in rules.parts(rejected.rows):
        _store(catalog, None, KeptRejection(Rejection(0, producer, now, rejected), number, at_commit), part)


def restore(catalog: Catalog, kept: KeptRejection) -> None:
    """Stores a rejection under the number that it had elsewhere. The totals are to be set behind the last one."""
    _store(catalog, kept.rejection.number, kept, kept.rejection.rejected.rows)


def _store(catalog: Catalog, number: int | None, kept: KeptRejection, part: pa.RecordBatch) -> None:
    one, rows = kept.rejection, part.serialize().to_pybytes()
    rejected = one.rejected
    values = (one.producer, kept.commit, one.time, rejected.reason, rejected.bound, int(kept.at_commit))
    added = catalog.execute(_ADD, (number, *values, rows, seal((*values, crc(rows)))))
    if (origin := rejected.origin) is not None:
        row = (added.lastrowid, origin.owner, origin.producer, origin.event)
        catalog.execute(_ADD_ORIGIN, sealed(row))


def of_receipt(catalog: Catalog, schema: pa.Schema, producer: str, number: int) -> tuple[Rejected, ...]:
    """Returns what the store rejected of the producer's commit ``number``."""
    found = catalog.execute(
        f"{_SELECT} WHERE r.producer = ? AND r.number = ? AND r.at_commit ORDER BY r.id", (producer, number)
    )
    return tuple(_opened(row, schema).rejected for row in found)


def portion(catalog: Catalog, schema: pa.Schema, after: int, upto: int) -> list[Rejection]:
    """Returns the next rejections after the id ``after``, up to the id ``upto``; fewer than PORTION_REJECTIONS: all."""
    found = catalog.execute(
        f"{_SELECT} WHERE r.id > ? AND r.id <= ? ORDER BY r.id LIMIT ?", (after, upto, rules.PORTION_REJECTIONS)
    )
    return [_opened(row, schema) for row in found]


def everyone(catalog: Catalog, schema: pa.Schema) -> Iterator[KeptRejection]:
    """Yields all rejections that are kept."""
    for row in catalog.execute(f"{_SELECT} ORDER BY r.id"):
        yield KeptRejection(_opened(row, schema), row[2], bool(row[6]))


def _opened(row: tuple[Any, ...], schema: pa.Schema) -> Rejection:
    number, *values, rows, check = row[:9]
    producer, _, time, reason, bound, *_ = intact((*values, crc(rows), check), "rejected")
    origin = None if row[12] is None else BoundOrigin(*intact((number, *row[9:]), "rejected_origins")[1:])
    try:
        batch = read_batch(pa.py_buffer(rows), schema)
    except pa.ArrowException as error:
        raise Damaged(f"rejection {number} cannot be read: {error}") from None
    return Rejection(number, producer, time, Rejected(reason, bound, batch, origin))
