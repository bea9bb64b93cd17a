"""Counts the rows that a stream has not handed out at one moment: to nobody yet, or to one of its readers."""

from collections.abc import Callable
from typing import TypeVar

import pyarrow.compute as pc

from spark_rowtime.errors import DataLostError, StoreCorruptError
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Slice
from spark_rowtime.store.position import Head, Position
from spark_rowtime.store.retention import lost
from spark_rowtime.store.snapshot import Snapshot
from spark_rowtime.types.schema import rowtime_micros

_Result = TypeVar("_Result")


def of_snapshot(store: Store, count: Callable[[Snapshot], _Result], *, full: bool = False) -> tuple[Snapshot, _Result]:
    """Returns a snapshot, and what ``count`` has counted in the log up to it, which stays the same.

    If retention removes rows of that log meanwhile, both are those of a newer snapshot.
    """
    try:
        return _counted(store, count, full)
    except DataLostError:
        return _counted(store, count, full)


def _counted(store: Store, count: Callable[[Snapshot], _Result], full: bool) -> tuple[Snapshot, _Result]:
    snapshot = store.snapshot(full=full)
    return snapshot, count(snapshot)


def rows_held_back(store: Store, head: Head) -> int:
    """Returns how many rows wait for the bound at ``head``, and so are not handed out in the order of rowtimes.

    Only trains that the bound divides are read; one that is damaged counts as a whole, so that a damaged stream can
    still be described. The cost grows with the number of trains that wait.
    """
    cut = 0 if head.floor is None else head.floor + 1
    waiting = store.slices(Position(head.seq, cut, head.floor), Position(head.seq, None, None))
    return sum(piece.rows if piece.least >= cut else _rows_from(store, piece, cut) for piece in waiting)


def _rows_from(store: Store, piece: Slice, cut: int) -> int:
    try:
        return int(pc.sum(pc.greater_equal(rowtime_micros(store.read(piece)), cut)).as_py() or 0)
    except StoreCorruptError:
        return piece.rows


def rows_unread(store: Store, snapshot: Snapshot, position: Position) -> int:
    """Returns how many rows follow ``position``; of trains that were read in part, all rows."""
    head, horizon = snapshot.head, snapshot.horizon
    later = head.rows - store.at(min(max(position.seq, horizon.seq), head.seq)).rows
    if position.cut is None or lost(position, horizon):
        return later
    return later + sum(piece.rows for piece in store.slices(position, Position(position.seq, None, None)))
