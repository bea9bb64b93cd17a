"""Counts the rows that wait for the bound, for a query's progress report."""

from spark_rowtime.reader.release import Release
from spark_rowtime.spark.partition import low_high
from spark_rowtime.store.base import Store
from spark_rowtime.store.position import Position
from spark_rowtime.store.retention import lost


class HeldBackRows:
    """Counts the rows that are committed, but wait for the bound (order=rowtime) or for ``hold``.

    The count is updated incrementally. A call costs as much as was sent and released since the previous
    call, however many rows wait; only the first call counts all of them.
    """

    def __init__(self, release: Release) -> None:
        self._release, self._rows = release, 0
        self._at: Position | None = None

    def rows(self, store: Store, at: Position) -> int:
        """Returns the count at ``at``, the position after all rows that this order would release now."""
        if at.cut is None:
            return 0
        if self._at is None or lost(self._at, store.horizon()):
            self._rows = self._between(store, at, _all(at))
        else:
            sent = self._between(store, _all(self._at), _all(at))
            self._rows += sent - self._between(store, self._at, at)
        self._at = at
        return self._rows

    def _between(self, store: Store, after: Position, upto: Position) -> int:
        count = 0
        for piece in self._release.slices(store, after, upto):
            whole = low_high(piece, self._release, after, upto) == (None, None)
            count += piece.rows if whole else self._release.rows(store, piece, after, upto).num_rows
        return count


def _all(at: Position) -> Position:
    return Position(at.seq, None, None)
