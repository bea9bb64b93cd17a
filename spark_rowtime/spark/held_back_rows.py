"""How many rows wait for the bound, for a query's progress."""

from spark_rowtime.reader.release import Release
from spark_rowtime.spark.partition import low_high
from spark_rowtime.store.base import Position, Store
from spark_rowtime.store.retention import lost


class HeldBackRows:
    """Rows that are committed, but wait for the bound (order=rowtime) or for ``hold``.

    A count is kept and brought up to date: a look costs what was sent and released since the one before,
    not what waits; only the first counts all.
    """

    def __init__(self, how: Release) -> None:
        self._how, self._rows = how, 0
        self._at: Position | None = None

    def rows(self, store: Store, at: Position) -> int:
        """How many at ``at``, the position after all that this order would hand out now."""
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
        for piece in self._how.slices(store, after, upto):
            whole = low_high(piece, self._how, after, upto) == (None, None)
            count += piece.rows if whole else self._how.rows(store, piece, after, upto).num_rows
        return count


def _all(at: Position) -> Position:
    return Position(at.seq, None, None)
