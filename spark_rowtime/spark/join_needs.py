"""The rows that a query has read, and that its joins may still ask about."""

from spark_rowtime.store.base import Store
from spark_rowtime.store.position import Position
from spark_rowtime.store.registration import Registration
from spark_rowtime.store.retention import of_joins


class JoinNeeds:
    """The rows at or above the least time of a batch's questions. Retention keeps them under a name of their own.

    A join's promise depends on the least rowtime that was sent from some time on. Without that row, the next promise
    would be weaker than the last one.

    Law: that time does not fall from batch to batch, since it is a time up to which the joins have evicted. So what is
    kept for one batch is enough for the next.
    """

    def __init__(self, store: Store, reader: str) -> None:
        self._registration = Registration(store, of_joins(reader))
        self._kept: Position | None = None
        self._asked: Position | None = None

    def asked(self, upto: Position, rowtime: int) -> None:
        """Before the answer for the rows up to ``upto`` with this rowtime or a later one."""
        if _is_below(rowtime, self._asked):
            self._asked = Position(upto.seq, rowtime, None)
        if _is_below(rowtime, self._kept):
            self._kept = self._asked
        self.refresh()

    def batch_done(self, end: Position) -> None:
        """After a batch. Where it brought nothing new, it asked only what the answers of the last one did not tell."""
        if self._kept is not None and self._asked is not None and end.seq > self._kept.seq and self._registration.due:
            self._kept = self._asked
        self._asked = None
        self.refresh()

    def refresh(self) -> None:
        """The query still runs."""
        if self._kept is not None:
            self._registration.keep(self._kept)


def _is_below(rowtime: int, at: Position | None) -> bool:
    return at is None or at.cut is None or rowtime < at.cut
