"""Removes the oldest trains: finds which part of the log may go, and removes it in portions.

The log is examined outside of a write transaction, because a write transaction blocks every other
producer. The write transaction repeats only the check that may have changed meanwhile: who needs what.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from spark_rowtime.store import retention
from spark_rowtime.store.difference import between
from spark_rowtime.store.local import meta
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, intact, seal
from spark_rowtime.store.position import AFTER_ALL, Position

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
_PLAIN = "SELECT seq, time, width FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
_BEFORE = "SELECT seq FROM events WHERE seq <= ? AND time <= ? ORDER BY seq DESC LIMIT 1"
_EVER = 1 << 60

Needs = Sequence[tuple[str, Position]]
"""The positions after which nothing may be removed, each with the reason why."""


class Limits(NamedTuple):
    """Which trains are old enough: those of the uptime ``before`` or earlier, and those up to the seq ``beyond``."""

    now: int
    before: int | None
    beyond: int


class Look(NamedTuple):
    """How far the log has been examined: the events up to ``scanned``, with rowtimes up to ``reaches``.

    Trains up to ``last``, with rowtimes up to ``largest``, may go. ``last`` is 0 if the portion examined
    last has none. ``end`` is true if no train after them may go; ``kept_for`` says who needs the next one.
    """

    scanned: int
    reaches: int = -_EVER
    last: int = 0
    largest: int = -_EVER
    end: bool = False
    kept_for: str | None = None


def newest(catalog: Catalog, before: int) -> list[tuple[int, int]]:
    """Returns the seq and the length of the newest trains below the seq ``before``, as many as are read at a time."""
    return catalog.execute(_NEWEST, (before, _SIZES_EVENTS)).fetchall()


def look(catalog: Catalog, so_far: Look, limits: Limits, needs: Needs) -> Look:
    """Examines the next portion of the log, and verifies the checksum of each row."""
    rows = catalog.execute(_EVENTS, (so_far.scanned, retention.PORTION_EVENTS)).fetchall()
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
            return found._replace(end=True, kept_for=_who(needs, seq, event[9], event[10]))
        found = found._replace(scanned=seq, reaches=reaches)
        if seq <= limits.beyond or time <= limits.now:  # a time in the future is a clock error: the next train decides
            found = found._replace(last=seq, largest=reaches)
    return found._replace(end=len(rows) < retention.PORTION_EVENTS)


def least_needed(needs: Needs) -> tuple[int, int]:
    """Returns the seq after which, and the rowtime from which on, trains are needed."""
    cuts = [at.cut for _, at in needs if at.cut is not None]
    return min(at.seq for _, at in needs), min(cuts, default=_EVER)


def needed(least: tuple[int, int], last: int, largest: int) -> bool:
    """Returns whether one of the trains up to ``last``, whose rowtimes end at ``largest``, may be needed."""
    return last > least[0] or largest >= least[1]


def _who(needs: Needs, seq: int, least: int, largest: int) -> str:
    """Returns who needs the train; the first of ``needs`` if only an earlier train made it needed."""
    return next((who for who, at in needs if between(at, AFTER_ALL, seq, least, largest)), needs[0][0])


def remove_events(catalog: Catalog, last: int) -> None:
    """Removes the log up to the event ``last``, whose own row stays as the log's beginning.

    Call it in a transaction.
    """
    catalog.execute(_COUNT_OUT, (last,))
    row = intact(catalog.execute("SELECT * FROM events WHERE seq = ?", (last,)).fetchone(), "events")
    gone = (None,) * 7
    catalog.execute(f"{_BEGINNING} WHERE seq = ?", (*gone, seal(row[: -len(gone)] + gone), last))
    catalog.execute("DELETE FROM events WHERE seq < ?", (last,))


def last_before(catalog: Catalog, upto: int, before: int) -> int:
    """Returns the last event up to ``upto`` and to the uptime ``before``; 0 if there is none."""
    row = catalog.execute(_BEFORE, (upto, before)).fetchone()
    return 0 if row is None else int(row[0])


def last_bound(catalog: Catalog, after: int, upto: int, before: int) -> int:
    """Returns the last event of the next portion that are bounds, up to ``upto`` and to the uptime ``before``; or 0."""
    rows = catalog.execute(_PLAIN, (after, upto, retention.PORTION_EVENTS)).fetchall()
    gone = takewhile(lambda row: row[2] is None and row[1] <= before, rows)
    return max((seq for seq, _, _ in gone), default=0)


def cleaned(catalog: Catalog) -> int | None:
    """Returns the uptime at which a committing process has last removed old trains; None if none did."""
    found: int | None = meta.get(catalog.execute, "cleaned")
    return found


def set_cleaned(catalog: Catalog, now: int) -> None:
    """Notes that a process has removed old trains at the uptime ``now``. Call it in a transaction."""
    meta.put(catalog.execute, cleaned=now)
