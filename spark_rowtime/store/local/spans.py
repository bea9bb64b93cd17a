"""The train index: which trains have a row between two positions, found without a scan.

Trains that are new since a position are a range of seq. Older trains with unread rows are those
whose span of rowtimes [least, largest] overlaps [after.cut, upto.cut). No sort order of spans
answers that, as trains of producers without order may span anything. So spans are put into classes
by width: class k holds widths below 4 ** k. Within a class, the largest rowtime of a span that has
a row before the cut lies less than 4 ** k after it, which is one short range of the index (width
class, largest, least) per class, whatever the number of trains on either side of it.
"""

from spark_rowtime.store.base import Position, Slice
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.segment import Location

FOREVER = 1 << 60
"""Later than every rowtime: the cut of a position without one."""
_CLASSES = 31
_COLUMNS = "e.seq, e.producer, e.rows, e.least, e.largest, e.segment, e.offset, e.length, e.checksum"
_NEW = f"SELECT {_COLUMNS} FROM events e WHERE e.seq > ? AND e.seq <= ? AND e.least < ? ORDER BY e.seq"  # noqa: S608
_REACHES = ", ".join(f"({k}, {4**k - 2})" for k in range(_CLASSES))
_OLD = (
    f"WITH classes (width, reach) AS (VALUES {_REACHES}) "  # noqa: S608
    f"SELECT {_COLUMNS} FROM classes c CROSS JOIN events e INDEXED BY spans "
    "WHERE e.width = c.width AND e.largest >= ?1 AND e.largest <= ?2 + c.reach AND e.least < ?2 AND e.seq <= ?3 "
    "ORDER BY e.seq"
)


def width_class(least: int, largest: int) -> int:
    """The class of a span: the least k with largest - least < 4 ** k."""
    return ((largest - least).bit_length() + 1) // 2


def slices_between(catalog: Catalog, after: Position, upto: Position) -> list[Slice]:
    """See :meth:`Store.slices`."""
    cut = FOREVER if upto.cut is None else upto.cut
    rows = catalog.execute(_NEW, (after.seq, upto.seq, cut)).fetchall()
    if after.cut is not None and after.cut < cut:
        rows = catalog.execute(_OLD, (after.cut, cut, min(after.seq, upto.seq))).fetchall() + rows
    return [
        Slice(seq, producer, count, least, largest, length, Location(segment, offset, length, checksum))
        for seq, producer, count, least, largest, segment, offset, length, checksum in rows
    ]
