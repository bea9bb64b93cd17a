"""Counts the rows that are committed, but that the stream's bound has not released."""

import pyarrow.compute as pc

from spark_rowtime.errors import DataLostError, StoreCorruptError
from spark_rowtime.store.base import Position, Slice, Store
from spark_rowtime.types.schema import rowtime_micros


def rows_held_back(store: Store) -> int:
    """Returns how many rows wait for the bound, and so are not handed out in the order of rowtimes.

    Only trains that the bound divides are read; one that is damaged counts as a whole, so that a damaged stream can
    still be described. The cost grows with the number of trains that wait.
    """
    try:
        return _held_back(store)
    except DataLostError:  # retention has removed released rows since the head was read
        return _held_back(store)


def _held_back(store: Store) -> int:
    head = store.head()
    cut = 0 if head.floor is None else head.floor + 1
    waiting = store.slices(Position(head.seq, cut, head.floor), Position(head.seq, None, None))
    return sum(piece.rows if piece.least >= cut else _rows_from(store, piece, cut) for piece in waiting)


def _rows_from(store: Store, piece: Slice, cut: int) -> int:
    try:
        return int(pc.sum(pc.greater_equal(rowtime_micros(store.read(piece)), cut)).as_py() or 0)
    except StoreCorruptError:
        return piece.rows
