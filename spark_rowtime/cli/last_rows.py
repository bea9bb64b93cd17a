"""Where a reader starts that is to hand out the last rows of a stream, without reading all of it."""

import json
from bisect import bisect_right
from typing import Any

from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.errors import DataLostError
from spark_rowtime.reader.release import dump_position
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Position, Store

_SECOND_MICROS = 1_000_000


def start_of_last(stream: str, order: str, count: int) -> Any:
    """Returns a start for ``openReader`` from which it hands out the last ``count`` rows, and few before them.

    The cost depends on ``count``, and not on the length of the stream.
    """
    try:
        with open_store(stream) as store:
            return _by_arrival(store, count) if order == "arrival" else _by_rowtime(store, count)
    except DataLostError:  # retention has removed rows meanwhile
        return "earliest"


def _by_arrival(store: Store, count: int) -> str:
    head, first = store.head(), store.horizon().seq
    later = bisect_right(range(first, head.seq + 1), head.rows - count, key=lambda seq: store.at(seq).rows)
    if later == 0:
        return "earliest"
    at = store.at(first + later - 1)
    return json.dumps(dump_position(Position(at.seq, None, at.floor), store.stream, "arrival"))


def _by_rowtime(store: Store, count: int) -> Any:
    """Looks back from the bound over ever longer spans of rowtime, until so many rows are certain to be there."""
    head, removed = store.head(), store.horizon().largest
    cut = 0 if head.floor is None else head.floor + 1
    reach = _SECOND_MICROS
    while (since := cut - reach) > 0 and (removed is None or removed < since):
        pieces = store.slices(Position(head.seq, since, None), Position(head.seq, cut, None))
        if sum(piece.rows for piece in pieces if piece.least >= since and piece.largest < cut) >= count:
            return as_bound(since)
        reach *= 16
    return "earliest"
