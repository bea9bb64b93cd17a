"""Removing the oldest trains: what of the log may go, and taking it away in portions.

What is looked at is looked at outside of a transaction: a transaction that writes holds every other
producer up. It repeats only what may have changed meanwhile, which is who needs what.
"""

from collections.abc import Sequence
from typing import NamedTuple

from spark_rowtime.store.base import Position
from spark_rowtime.store.difference import between
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, intact, seal

PORTION_EVENTS = 1000
"""A transaction removes so many events at the most: a few milliseconds."""
_SIZES_EVENTS = 10_000
_EVENTS = "SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
_NEWEST = "SELECT seq, length FROM events WHERE seq < ? AND width IS NOT NULL ORDER BY seq DESC LIMIT ?"
_COUNT_OUT = (
    "INSERT INTO removed SELECT segment, SUM(length) FROM events WHERE seq <= ? AND width IS NOT NULL "
    "GROUP BY segment ON CONFLICT (segment) DO UPDATE SET bytes = bytes + excluded.bytes"
)
_BEGINNING = (
    "UPDATE events SET (least, largest, width, segment, offset, length, checksum, seal) = (?, ?, ?, ?, ?, ?, ?, ?)"
)
_EVER = 1 << 60
_AFTER_ALL = Position(_EVER, None, None)

Needs = Sequence[tuple[str, Position]]
"""The positions behind which nothing is removed, and whose they are."""


class Limits(NamedTuple):
    """What is old enough: trains of up to the uptime ``before``, and those up to the seq ``beyond``."""

    now: int
    before: int | None
    beyond: int


class Look(NamedTuple):
    """How far the log has been looked at: the events up to ``scanned``, with rowtimes up to ``reaches``.

    Trains up to ``last`` may go, with rowtimes up to ``largest``; 0: none in the portion looked at last.
    ``end``: nothing behind them may go; ``held``: who needs the next one.
    """

    scanned: int
    reaches: int = -_EVER
    last: int = 0
    largest: int = -_EVER
    end: bool = False
    held: str | None = None


def newest(catalog: Catalog, before: int) -> list[tuple[int, int]]:
    """The seq and the length of the newest trains below the seq ``before``, as many as are read at once."""
    return catalog.execute(_NEWEST, (before, _SIZES_EVENTS)).fetchall()


def look(catalog: Catalog, so_far: Look, limits: Limits, needs: Needs) -> Look:
    """Reads the next portion of the log, with the checksum of each row."""
    rows = catalog.execute(_EVENTS, (so_far.scanned, PORTION_EVENTS)).fetchall()
    found, least = Look(so_far.scanned, so_far.reaches), least_needed(needs)
    for row in rows:
        seq, _, _, time, *_ = event = intact(row, "events")
        if seq != found.scanned + 1:
            raise Damaged(f"events {found.scanned + 1} to {seq - 1} are missing from the log")
        if event[11] is None:
            found = found._replace(scanned=seq)
            continue
        if seq > limits.beyond and (limits.before is None or limits.before < time <= limits.now):
            return found._replace(end=True)
        reaches = max(found.reaches, event[10])
        if needed(least, seq, reaches):
            return found._replace(end=True, held=_who(needs, seq, event[9], event[10]))
        found = found._replace(scanned=seq, reaches=reaches)
        if seq <= limits.beyond or time <= limits.now:  # a later time comes of a wrong clock: the next train tells
            found = found._replace(last=seq, largest=reaches)
    return found._replace(end=len(rows) < PORTION_EVENTS)


def least_needed(needs: Needs) -> tuple[int, int]:
    """The seq behind which, and the rowtime from which on, somebody needs each train."""
    cuts = [at.cut for _, at in needs if at.cut is not None]
    return min(at.seq for _, at in needs), min(cuts, default=_EVER)


def needed(least: tuple[int, int], last: int, largest: int) -> bool:
    """Whether somebody may need one of the trains up to ``last``, whose rowtimes end at ``largest``."""
    return last > least[0] or largest >= least[1]


def _who(needs: Needs, seq: int, least: int, largest: int) -> str:
    return next(who for who, at in needs if between(at, _AFTER_ALL, seq, least, largest))


def remove_events(catalog: Catalog, last: int) -> None:
    """Takes the log up to the event ``last`` away; its own row stays as the log's beginning. In a transaction."""
    catalog.execute(_COUNT_OUT, (last,))
    row = intact(catalog.execute("SELECT * FROM events WHERE seq = ?", (last,)).fetchone(), "events")
    gone = (None,) * 7
    catalog.execute(f"{_BEGINNING} WHERE seq = ?", (*gone, seal(row[: -len(gone)] + gone), last))
    catalog.execute("DELETE FROM events WHERE seq < ?", (last,))
