"""The event that raised the stream's bound to a given one, found in the log."""

from bisect import bisect_left
from typing import Any

from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, intact
from spark_rowtime.types.timestamps import LEAST

_ENDS = "SELECT COALESCE(MIN(seq), 1), COALESCE(MAX(seq), 0) FROM events"


def raised(catalog: Catalog, bound: int) -> BoundOrigin | None:
    """Returns the origin of the stream's ``bound``; None if the stream's bound is weaker. Call it in a transaction.

    The stream's bound never falls, so the event is found by bisection.
    """
    first, last = catalog.execute(_ENDS).fetchone()
    seqs = range(first, last + 1)
    at = bisect_left(seqs, bound, key=lambda seq: _floor(_event(catalog, seq)))
    if at == len(seqs):
        return None
    if at == 0 and first > 1:  # gc keeps the last of the events that it removes
        return BoundOrigin(STREAM)
    _, kind, producer, *_ = _event(catalog, seqs[at])
    return BoundOrigin(STREAM, producer, kind)


def _event(catalog: Catalog, seq: int) -> tuple[Any, ...]:
    row = catalog.execute("SELECT * FROM events WHERE seq = ?", (seq,)).fetchone()
    if row is None:
        raise Damaged(f"event {seq} is missing from the log")
    return intact(row, "events")


def _floor(event: tuple[Any, ...]) -> int:
    return LEAST - 1 if event[5] is None else int(event[5])
