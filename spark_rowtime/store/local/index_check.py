"""Finds trains by the index of their spans, and checks that it is whole: no checksum shows a missing entry."""

from typing import Any

from spark_rowtime.store.commits import Slice
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.log import ends
from spark_rowtime.store.local.seal import Damaged, intact
from spark_rowtime.store.local.segment import Location
from spark_rowtime.store.position import Position
from spark_rowtime.store.widths import NEVER_MICROS, REACHES

_NOT_INDEXED = (
    "SELECT e.seq FROM events e NOT INDEXED WHERE e.seq > ? AND e.seq <= ? AND e.width IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM events i INDEXED BY spans "
    "WHERE i.width = e.width AND i.largest = e.largest AND i.least = e.least AND i.seq = e.seq) LIMIT 1"
)


class IndexedTrains:
    """Compares the index ``spans`` with the log, as far as the positions of readers need it.

    A position with a cut asks the index for trains that reach the cut. The largest rowtime of the log
    never falls from one event to the next. So none of these trains lies before the first event at which
    the log's largest rowtime has reached the cut. From that event on, each train is looked up in the
    index. What was compared once is not compared again.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._cut: int | None = None
        self._first = self._last = 0

    def require(self, position: Position) -> None:
        """Raises Damaged if the index lacks a train, or the log an event, that ``position`` may need."""
        if position.cut is None or (self._covers(position.cut) and position.seq <= self._last):
            return
        begin, end = ends(self._catalog)
        if self._cut is None:
            self._first = self._last = min(position.seq, end)
        if not self._covers(position.cut):
            first = self._first_reaching(position.cut, begin, self._first + 1) - 1
            self._compare(first, self._first, begin)
            self._cut, self._first = position.cut, min(first, self._first)
        last = min(position.seq, end)
        self._compare(self._last, last, begin)
        self._last = max(last, self._last)

    def _covers(self, cut: int) -> bool:
        return self._cut is not None and self._cut <= cut

    def _first_reaching(self, cut: int, low: int, high: int) -> int:
        """Returns the first event in [low, high) at which the log's largest rowtime reaches ``cut``; else ``high``."""
        while low < high:
            middle = (low + high) // 2
            row = self._catalog.execute("SELECT * FROM events WHERE seq = ?", (middle,)).fetchone()
            largest = intact(row, "events")[6] if row else None  # no row: gc has removed it, or all_there reports it
            low, high = (low, middle) if largest is not None and largest >= cut else (middle + 1, high)
        return low

    def _compare(self, after: int, upto: int, begin: int) -> None:
        after = max(after, begin)  # a log that gc has cut keeps only the totals of its first event
        if after >= upto:
            return
        missing = self._catalog.execute(_NOT_INDEXED, (after, upto)).fetchone()
        if not all_there(self._catalog, after, upto) and ends(self._catalog)[0] <= after:
            raise Damaged(f"events between seq {after} and {upto} are missing from the log")
        if missing is not None:
            raise Damaged(f"train {missing[0]} is missing from the index of the log")


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
    return [_slice(intact(row, "events")) for row in rows]


def all_there(catalog: Catalog, after: int, upto: int) -> bool:
    """Returns whether each event after ``after`` up to ``upto``, or to the end of the log, exists exactly once."""
    count, total, end = catalog.execute(_COUNT, (after, upto)).fetchone()
    last = min(upto, end)
    expected = max(last - after, 0)
    return bool(count == expected and total == expected * (after + 1 + last) // 2)


def _slice(event: tuple[Any, ...]) -> Slice:
    seq, _, producer, *_, rows, least, largest, _ = event[:12]
    place = Location(*event[12:])
    return Slice(seq, producer, rows, least, largest, place.length, place)
