"""The log of a stream in its catalog: events in commit order, and the clock folded over them."""

from collections.abc import Callable
from dataclasses import replace

from spark_rowtime.clock import Event, ProducerClock, Sent, Status, StreamClock
from spark_rowtime.store.base import BOUNDS_COLUMNS, Head, Staged, StreamSettings
from spark_rowtime.store.local import producers
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.spans import width_class

EMPTY = Head(0, None, None, 0)
_HEAD = "SELECT seq, stream_floor, stream_largest, stream_rows FROM events"
_INSERT = f"INSERT INTO events VALUES ({', '.join('?' * 16)})"  # noqa: S608  (constants)


class Log:
    """The table ``events``, and the clock as it stands after the last event that this handle knows.

    ``clock`` is kept between calls; :meth:`catch_up` brings it to the log's end at the start of each
    transaction. Where another process has written, it is read from the producers' rows, which hold
    what the fold of all events would give: so the log is never replayed.
    """

    def __init__(self, catalog: Catalog, settings: StreamSettings, now: Callable[[], int]) -> None:
        self._catalog, self._settings, self._now = catalog, settings, now
        self.clock, self._head = settings.clock(), EMPTY

    def head(self) -> Head:
        """The end of the log, as it is on disk now."""
        row = self._catalog.execute(f"{_HEAD} ORDER BY seq DESC LIMIT 1").fetchone()
        return Head(*row) if row else EMPTY

    def at(self, seq: int) -> Head:
        """The log as it was at ``seq``."""
        row = self._catalog.execute(f"{_HEAD} WHERE seq = ?", (seq,)).fetchone() if seq else EMPTY
        return Head(*row)

    def catch_up(self) -> None:
        """Takes in what others wrote. In a transaction; costs as much as there are attached producers, at most."""
        head = self.head()
        if head == self._head:
            return
        self.clock = self._settings.clock()
        self.clock.floor, self.clock.largest = head.floor, head.largest
        for name, status, floor, *_ in producers.ticking(self._catalog):
            self.clock.producers[name] = ProducerClock(Status(status), floor)
        self._head = head

    def forget(self) -> None:
        """After a transaction that did not land: what is known came from it."""
        self.clock, self._head = self._settings.clock(), EMPTY

    def append(self, event: Event, train: Staged | None = None) -> Head:
        """Adds one event, in a transaction after :meth:`catch_up`; the caller saves the producer's row."""
        floor, last = self.clock.apply(event), self._head
        rows = last.rows + (train.rows if train else 0)
        self._head = Head(last.seq + 1, floor, self.clock.largest, rows)
        kind, own = type(event).__name__.lower(), event.floor if isinstance(event, Sent) else None
        values = (self._head.seq, kind, event.producer, self._now(), own, *self._head[1:])
        self._catalog.execute(_INSERT, (*values, *(_train_columns(train) if train else _NO_TRAIN)))
        return self._head

    def columns(self) -> list[list[object]]:
        """The log in the columns of BOUNDS_COLUMNS."""
        rows = self._catalog.execute(
            "SELECT seq, producer, kind, COALESCE(rows, 0), floor, stream_floor FROM events ORDER BY seq"
        ).fetchall()
        return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in BOUNDS_COLUMNS]

    @property
    def last(self) -> Head:
        """The end of the log after :meth:`catch_up` and what was appended since."""
        return self._head

    def copy_clock(self) -> StreamClock:
        """The clock, for others to keep."""
        return replace(self.clock, producers=dict(self.clock.producers))


_NO_TRAIN = (None,) * 8


def _train_columns(train: Staged) -> tuple[object, ...]:
    return (train.rows, train.least, train.largest, width_class(train.least, train.largest), *train.location)
