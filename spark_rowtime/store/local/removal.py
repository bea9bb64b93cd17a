"""Removing the oldest trains: from the log in one transaction, then the files that hold nothing else.

A file that is gone before its trains would be damage; so the log goes first, and what a process that
died left of the files is removed by the next ``gc``.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from spark_rowtime.store.base import Position
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact, seal
from spark_rowtime.store.local.segment import FREE, SEGMENTS, open_locked
from spark_rowtime.store.local.spans import first_unread
from spark_rowtime.store.retention import STAGED_FOR

_LAST_BEFORE = "SELECT seq FROM events WHERE seq < ? AND width IS NOT NULL ORDER BY seq DESC LIMIT 1"
_FIRST_YOUNG = "SELECT seq FROM events WHERE width IS NOT NULL AND time > ? ORDER BY seq LIMIT 1"
_LAST_BEYOND = (
    "SELECT MAX(seq) FROM (SELECT seq, SUM(length) OVER (ORDER BY seq DESC) AS newest FROM events "
    "WHERE width IS NOT NULL) WHERE newest > ?"
)
_COUNT_OUT = (
    "INSERT INTO removed SELECT segment, SUM(length) FROM events WHERE seq <= ? AND width IS NOT NULL "
    "GROUP BY segment ON CONFLICT (segment) DO UPDATE SET bytes = bytes + excluded.bytes"
)
_BEGINNING = (
    "UPDATE events SET (least, largest, width, segment, offset, length, checksum, seal) = (?, ?, ?, ?, ?, ?, ?, ?)"
)


def last_old(catalog: Catalog, end: int, before: int | None, size: int | None) -> int:
    """The seq up to which trains were committed up to the time ``before``, or lie beyond the newest ``size`` bytes."""
    last = 0
    if before is not None:
        young = catalog.execute(_FIRST_YOUNG, (before,)).fetchone()
        last = _last_before(catalog, young[0] if young else end + 1)
    if size is not None:
        (beyond,) = catalog.execute(_LAST_BEYOND, (size,)).fetchone()
        last = max(last, beyond or 0)
    return last


def held_back(catalog: Catalog, last: int, needs: Sequence[tuple[str, Position]]) -> tuple[int, str | None]:
    """``last``, or the train before the first one up to it that is needed, and by whom."""
    firsts = ((first_unread(catalog, position), who) for who, position in needs)
    needed = [(seq, who) for seq, who in firsts if seq is not None]
    first, who = min(needed, key=lambda pair: pair[0], default=(last + 1, None))
    return (last, None) if first > last else (_last_before(catalog, first), who)


def _last_before(catalog: Catalog, seq: int) -> int:
    found = catalog.execute(_LAST_BEFORE, (seq,)).fetchone()
    return found[0] if found else 0


def remove_trains(catalog: Catalog, last: int) -> None:
    """Takes the log up to the train ``last`` away; its own row stays as the log's beginning. In a transaction."""
    catalog.execute(_COUNT_OUT, (last,))
    row = intact(catalog.execute("SELECT * FROM events WHERE seq = ?", (last,)).fetchone(), "events")
    gone = (None,) * 7
    catalog.execute(f"{_BEGINNING} WHERE seq = ?", (*gone, seal(row[: -len(gone)] + gone), last))
    catalog.execute("DELETE FROM events WHERE seq < ?", (last,))


def remove_files(catalog: Catalog, stream: Path, header: int, now: int) -> tuple[int, int]:
    """Removes the segments that nobody needs; how many files and bytes. In a transaction, so that none is committed.

    One that a writer has open stays, and for a day after its last write one with bytes beside the
    ``header`` that were never committed.
    """
    named = {name for (name,) in catalog.execute("SELECT DISTINCT segment FROM events WHERE width IS NOT NULL")}
    committed = dict(catalog.execute("SELECT segment, bytes FROM removed").fetchall())
    found = {file.name: file for file in (stream / SEGMENTS).iterdir()}
    sizes = [_remove(found[name], stream, header + committed.get(name, 0), now) for name in found.keys() - named]
    for name in committed:
        if not (stream / SEGMENTS / name).exists():
            catalog.execute("DELETE FROM removed WHERE segment = ?", (name,))
    gone = [size for size in sizes if size is not None]
    return len(gone), sum(gone)


def _remove(file: Path, stream: Path, accounted: int, now: int) -> int | None:
    """Removes one segment and its mark; its size, None where it must stay."""
    fd = open_locked(file)
    if fd is None:
        return None
    try:
        stat = os.fstat(fd)
        if stat.st_size != accounted and stat.st_mtime_ns // 1000 > now - STAGED_FOR:
            return None
        (stream / FREE / file.name).unlink(missing_ok=True)
        file.unlink()
        return stat.st_size
    finally:
        os.close(fd)
