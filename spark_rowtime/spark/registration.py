"""A query among the readers of a stream: what retention keeps for it."""

import time

from spark_rowtime.store.base import Position, Store
from spark_rowtime.store.retention import SEEN_SECONDS, of_joins


class Registration:
    """A reader's entry in a stream's retention, which keeps what is unread at its position.

    It is written again each ``SEEN_SECONDS``, so that the stream knows that the reader is still there.
    """

    def __init__(self, store: Store, name: str, at: Position) -> None:
        self._store, self._name = store, name
        self.keep(at)

    def keep(self, at: Position) -> None:
        """Moves the entry."""
        self._store.keep(self._name, at)
        self.at, self._written_at = at, time.monotonic()

    def refresh(self, at: Position | None = None) -> None:
        """Writes the entry again if that is due, with ``at`` if it is given."""
        if time.monotonic() - self._written_at > SEEN_SECONDS:
            self.keep(at or self.at)


class NeedOfJoins:
    """The rows for which the joins of a query may ask: those at or above the least time of a batch's questions.

    A join's promise depends on the least rowtime that was sent from some time on. Without that row, the next promise
    would be weaker than the last one.

    Law: that time does not fall from batch to batch, since it is a time up to which the joins have evicted. So what is
    kept for one batch is enough for the next.
    """

    def __init__(self, store: Store, reader: str) -> None:
        self._store, self._name = store, of_joins(reader)
        self._entry: Registration | None = None
        self._asked: Position | None = None

    def asked(self, upto: Position, rowtime: int) -> None:
        """Before the answer for the rows up to ``upto`` with this rowtime or a later one."""
        if self._asked is None or self._asked.cut is None or rowtime < self._asked.cut:
            self._asked = Position(upto.seq, rowtime, None)
        if self._entry is None:
            self._entry = Registration(self._store, self._name, self._asked)
        elif self._entry.at.cut is not None and rowtime < self._entry.at.cut:
            self._entry.keep(self._asked)

    def batch_done(self, end: Position) -> None:
        """After a batch. Where it brought nothing new, it asked only what the answers of the last one did not tell."""
        if self._entry is not None and self._asked is not None and end.seq > self._entry.at.seq:
            self._entry.refresh(self._asked)
        self._asked = None

    def refresh(self) -> None:
        """The query still runs."""
        if self._entry is not None:
            self._entry.refresh()
