"""The log of a stream in the database: the events in commit order."""

from collections.abc import Sequence
from typing import Any

from spark_rowtime.bounds.clock import KINDS, Event, Sent
from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.store.cells import COUNT, COUNT_OR_NONE, TIME, TIME_OR_NONE, Cells
from spark_rowtime.store.commits import Staged
from spark_rowtime.store.history import LoggedEvent
from spark_rowtime.store.position import Head
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.strange_rows import require, strange_row
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.views import BOUNDS_COLUMNS
from spark_rowtime.store.widths import width_class
from spark_rowtime.types.short_repr import short_repr

_CELLS = Cells(
    LoggedEvent._fields,
    **dict.fromkeys(("floor", "stream_floor", "stream_largest"), TIME_OR_NONE),
    time=TIME,
    stream_rows=COUNT,
    rows=COUNT_OR_NONE,
)
_RAISED_CELLS = Cells(["seq", "producer", "kind", "time"], time=TIME)
_MADE_CELLS = Cells(["seq", "time"], time=TIME)
_INSERT = f"INSERT INTO rowtime.events VALUES ({', '.join(['%s'] * 15)})"  # noqa: S608  (constants)
AT = "SELECT seq, stream_floor, stream_largest, stream_rows FROM rowtime.events WHERE stream = %s AND seq = %s"
MADE = "SELECT seq, time FROM rowtime.events WHERE stream = %s AND seq = ANY (%s::bigint[])"
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


def append(transaction: Transaction, event: Event, head: Head, train: Staged | None) -> None:
    """Adds one event, with which the log ends at ``head``; the bytes of its train are not written here."""
    kind, own = type(event).__name__.lower(), event.floor if isinstance(event, Sent) else None
    values = (head.seq, kind, event.producer, transaction.at.uptime, own, *head[1:], *_train_columns(train))
    transaction.write(_INSERT, transaction.stream, *values)


def raised(stream: int, bound: int, horizon: int, last: int) -> Statement:
    """Returns the query for the event that raised the stream's bound to ``bound`` or beyond."""
    return _RAISED, (max(horizon, 1), last, bound, stream, stream)


def origin(rows: list[tuple[Any, ...]], horizon: int) -> BoundOrigin | None:
    """Returns the origin in the answer to ``raised``. Of the removed events only the last is in the log."""
    if not rows:
        return None
    seq, producer, kind, _ = rows[0]
    return BoundOrigin(STREAM) if seq == horizon > 1 else BoundOrigin(STREAM, producer, kind)


def raised_at(rows: list[tuple[Any, ...]]) -> int:
    """Returns the uptime of the event in the answer to ``raised``."""
    require(_RAISED_CELLS, rows[0], "events")
    time: int = rows[0][3]
    return time


def columns(rows: list[tuple[Any, ...]]) -> list[list[object]]:
    """Returns the rows of COLUMNS as the values of BOUNDS_COLUMNS."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in BOUNDS_COLUMNS]


def made_at(rows: list[tuple[Any, ...]]) -> dict[int, int]:
    """Returns the answer to MADE by event."""
    for row in rows:
        require(_MADE_CELLS, row, "events")
    return dict(rows)


def require_event(row: Sequence[Any]) -> None:
    """Raises StoreCorruptError if the first nine columns of an event are none that a store writes."""
    require(_CELLS, row, "events")
    if row[1] not in KINDS:
        raise strange_row("events", row[0], f"kind is {short_repr(row[1])}")


def _train_columns(train: Staged | None) -> tuple[object, ...]:
    if train is None:
        return (None,) * 6
    width = width_class(train.least, train.largest)
    return train.rows, train.least, train.largest, width, train.location.length, train.location.checksum
