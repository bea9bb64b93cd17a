"""The event that raised the stream's bound to a given one, found in the log."""

from bisect import bisect_left
from typing import Any

from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.log import ends
from spark_rowtime.store.local.seal import Damaged, intact
from spark_rowtime.types.timestamps import LEAST


def raised(catalog: Catalog, bound: int) -> BoundOrigin | None:
    """Returns the origin of the stream's ``bound``; None if the stream's bound is weaker. Call it in a transaction."""
    event, removed = _first_at(catalog, bound)
    if event is None or removed:
        return BoundOrigin(STREAM) if removed else None
    return BoundOrigin(STREAM, event[2], event[1])


def moved(catalog: Catalog, bound: int) -> int | None:
    """Returns the uptime at which the stream's bound became ``bound``; None if ``gc`` may have removed that event."""
    event, removed = _first_at(catalog, bound)
    return None if event is None or removed else int(event[3])


def _first_at(catalog: Catalog, bound: int) -> tuple[tuple[Any, ...] | None, bool]:
    """Returns the first event after which the stream's bound was ``bound`` or beyond, and whether gc removed it.

    The stream's bound never falls, so the event is found by bisection.
    """
    first, last = ends(catalog)
    seqs = range(first, last + 1)
    at = bisect_left(seqs, bound, key=lambda seq: _floor(_event(catalog, seq)))
    if at == len(seqs):
        return None, False
    return _event(catalog, seqs[at]), at == 0 and first > 1  # gc keeps the last of the events that it removes


def _event(catalog: Catalog, seq: int) -> tuple[Any, ...]:
    row = catalog.execute("SELECT * FROM events WHERE seq = ?", (seq,)).fetchone()
    if row is None:
        raise Damaged(f"event {seq} is missing from the log")
    return intact(row, "events")


def _floor(event: tuple[Any, ...]) -> int:
    return LEAST - 1 if event[5] is None else int(event[5])
