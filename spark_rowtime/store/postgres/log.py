"""The log of a stream in the database: the events in commit order, and the clock that results from them."""

from typing import Any

from spark_rowtime.bounds.clock import GONE, Event, Sent, Status
from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.store.base import Head, Staged, StreamSettings
from spark_rowtime.store.postgres import records, trains
from spark_rowtime.store.postgres.members import StoredMembers
from spark_rowtime.store.postgres.records import Record
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.postgres.writes import INSERT_EVENT
from spark_rowtime.store.views import BOUNDS_COLUMNS
from spark_rowtime.store.widths import width_class

AT = "SELECT seq, stream_floor, stream_largest, stream_rows FROM rowtime.events WHERE stream = %s AND seq = %s"
COLUMNS = (
    "SELECT seq, producer, kind, COALESCE(rows, 0), floor, stream_floor FROM rowtime.events WHERE stream = %s "
    "ORDER BY seq"
)
_RAISED = (
    "WITH RECURSIVE search (low, high) AS (SELECT %s::bigint, %s::bigint + 1 UNION ALL "
    "SELECT CASE WHEN reached THEN low ELSE middle + 1 END, CASE WHEN reached THEN middle ELSE high END FROM search "
    "CROSS JOIN LATERAL (SELECT (low + high) / 2 AS middle) halves CROSS JOIN LATERAL (SELECT COALESCE((SELECT "
    "stream_floor >= %s FROM rowtime.events WHERE stream = %s AND seq = middle), false) AS reached) looked "
    "WHERE low < high) SELECT e.seq, e.producer, e.kind, e.time FROM search JOIN rowtime.events e "
    "ON e.stream = %s AND e.seq = low WHERE low = high"
)
"""Finds an event by bisection, since the stream's bound never falls."""


class Log:
    """The log within one transaction, and the clock after its last event."""

    def __init__(self, transaction: Transaction, settings: StreamSettings) -> None:
        self._transaction, self._settings = transaction, settings
        self.members = StoredMembers(transaction)
        self.clock = settings.clock(self.members)
        self.clock.floor, self.clock.largest = transaction.head.floor, transaction.head.largest

    def append(self, event: Event, train: Staged | None = None) -> Head:
        """Adds one event of the producer that the members were turned to last."""
        head, at = self._transaction.head, self._transaction.at
        head.floor = self.clock.apply(event)
        head.seq, head.largest = head.seq + 1, self.clock.largest
        head.rows += train.rows if train else 0
        kind, own = type(event).__name__.lower(), event.floor if isinstance(event, Sent) else None
        values = (head.seq, kind, event.producer, at.uptime, own, head.floor, head.largest, head.rows)
        self._transaction.write(INSERT_EVENT, self._transaction.stream, *values, *_train_columns(train))
        if train is not None:
            trains.write(self._transaction, head.seq, train)
        return head.head

    def tick(self, event: Event, record: Record) -> None:
        """Adds an event of the producer that the members were turned to last, and saves its row."""
        self.append(event)
        record.tick(self.clock.producers.get(record.name), GONE.get(type(event), Status.ATTACHED))
        records.save(self._transaction, record, self._settings)

    def raised(self, bound: int) -> BoundOrigin | None:
        """Returns the origin of the stream's ``bound``; None if the stream's bound is weaker."""
        head, stream = self._transaction.head, self._transaction.stream
        return origin(self._transaction.query(*raised(stream, bound, head.horizon, head.seq)), head.horizon)


def raised(stream: int, bound: int, horizon: int, last: int) -> tuple[Any, ...]:
    """Returns the query, and its values, for the event that raised the stream's bound to ``bound`` or beyond."""
    return _RAISED, max(horizon, 1), last, bound, stream, stream


def origin(rows: list[tuple[Any, ...]], horizon: int) -> BoundOrigin | None:
    """Returns the origin in the answer to ``raised``. Of the removed events only the last is in the log."""
    if not rows:
        return None
    seq, producer, kind, _ = rows[0]
    return BoundOrigin(STREAM) if seq == horizon > 1 else BoundOrigin(STREAM, producer, kind)


def columns(rows: list[tuple[Any, ...]]) -> list[list[object]]:
    """Returns the rows of COLUMNS as the values of BOUNDS_COLUMNS."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in BOUNDS_COLUMNS]


def _train_columns(train: Staged | None) -> tuple[object, ...]:
    if train is None:
        return (None,) * 6
    width = width_class(train.least, train.largest)
    return train.rows, train.least, train.largest, width, train.location.length, train.location.checksum
