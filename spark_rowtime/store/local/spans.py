"""The train index: finds the trains with a row between two positions without a scan.

The classes of widths make it one short range of the index each; see ``spark_rowtime.store.widths``.
"""

from spark_rowtime.store.base import Position, Slice
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact
from spark_rowtime.store.local.segment import Location
from spark_rowtime.store.widths import NEVER_MICROS, REACHES

_NEW = "SELECT e.* FROM events e WHERE e.seq > ? AND e.seq <= ? AND e.least < ? ORDER BY e.seq"
_OLD = (
    f"WITH classes (width, reach) AS (VALUES {REACHES}) "  # noqa: S608
    "SELECT e.* FROM classes c CROSS JOIN events e INDEXED BY spans "
    "WHERE e.width = c.width AND e.largest >= ?1 AND e.largest <= ?2 + c.reach AND e.least < ?2 AND e.seq <= ?3 "
    "ORDER BY e.seq"
)
_COUNT = (
    "SELECT COUNT(*), COALESCE(SUM(seq), 0), (SELECT COALESCE(MAX(seq), 0) FROM events) FROM events NOT INDEXED "
    "WHERE seq > ? AND seq <= ?"
)


def slices_between(catalog: Catalog, after: Position, upto: Position) -> list[Slice]:
    """See :meth:`Store.slices`."""
    cut = NEVER_MICROS if upto.cut is None else upto.cut
    rows = catalog.execute(_NEW, (after.seq, upto.seq, cut)).fetchall()
    if after.cut is not None and after.cut < cut:
        rows = catalog.execute(_OLD, (after.cut, cut, min(after.seq, upto.seq))).fetchall() + rows
    return [_slice(*intact(row, "events")) for row in rows]


def all_there(catalog: Catalog, after: int, upto: int) -> bool:
    """Returns whether each event after ``after`` up to ``upto``, or to the end of the log, exists exactly once."""
    count, total, end = catalog.execute(_COUNT, (after, upto)).fetchone()
    last = min(upto, end)
    expected = max(last - after, 0)
    return bool(count == expected and total == expected * (after + 1 + last) // 2)


def _slice(
    seq: int, _kind: str, producer: str, _time: int, _floor: int, _stream_floor: int, _stream_largest: int,
    _stream_rows: int, rows: int, least: int, largest: int, _width: int,
    segment: str, offset: int, length: int, checksum: int,
) -> Slice:  # fmt: skip
    return Slice(seq, producer, rows, least, largest, length, Location(segment, offset, length, checksum))
