"""Removes the segments whose trains are gone.

A file that is removed before its trains would count as damage. So the log is cut first, and synced, and the next
``gc`` removes the files that a process left when it died.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.folders import FREE, SEGMENTS, folder, names, remove, there
from spark_rowtime.store.local.log import ends
from spark_rowtime.store.local.segment import open_locked
from spark_rowtime.store.messages import header_bytes
from spark_rowtime.store.retention import STAGED_RETENTION_MICROS

PORTION_FILES = 50
"""How many files one transaction removes at most."""
_PORTION_EVENTS = 50_000
_NAMED = "SELECT segment, MAX(seq) FROM events WHERE seq > ? AND seq <= ? AND width IS NOT NULL GROUP BY segment"


class NamedSegments:
    """The segments that the log names. Each part of the log is read only once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._last: dict[str, int] = {}
        self.upto = 0
        """The seq up to which the log has been read."""

    def read(self) -> bool:
        """Reads the next portion of the log. Returns whether there may be more."""
        first, last = ends(self._catalog)
        start = max(self.upto, first - 1)
        end = min(start + _PORTION_EVENTS, last)
        self._last.update(self._catalog.execute(_NAMED, (start, end)).fetchall())
        self._last = {name: seq for name, seq in self._last.items() if seq > first}
        self.upto = max(self.upto, end)
        return end < last

    def others(self, stream: Path) -> list[str]:
        """Returns the segments that the log up to ``upto`` does not name."""
        with folder(stream, SEGMENTS) as segments:
            return [name for name in names(segments) if name not in self._last]

    def since(self, segment: str) -> bool:
        """Returns whether the log after ``upto`` names ``segment``."""
        found = self._catalog.execute("SELECT 1 FROM events WHERE seq > ? AND segment = ?", (self.upto, segment))
        return found.fetchone() is not None


def remove_files(catalog: Catalog, stream: Path, portion: Iterable[str], named: NamedSegments, now: int) -> list[int]:
    """Removes those segments of ``portion`` that are no longer needed, and returns their sizes.

    Call it in a transaction, so that no commit can name a file meanwhile. A file that a writer has open stays.
    A file with uncommitted bytes stays for a day after its last write.
    """
    sizes = []
    with folder(stream, FREE) as free, folder(stream, SEGMENTS) as segments:
        for name in portion:
            committed = catalog.execute("SELECT bytes FROM removed WHERE segment = ?", (name,)).fetchone() or (0,)
            size = None if named.since(name) else _remove(name, free, segments, committed[0], now)
            if size is not None:
                sizes.append(size)
            if not there(name, segments):
                catalog.execute("DELETE FROM removed WHERE segment = ?", (name,))
                catalog.execute("DELETE FROM redo WHERE segment = ?", (name,))
    return sizes


def forgotten(catalog: Catalog, stream: Path) -> list[str]:
    """Returns removed files that the catalog still lists, because a process died before it could update the catalog."""
    listed = [name for (name,) in catalog.execute("SELECT segment FROM removed")]
    with folder(stream, SEGMENTS) as segments:
        return [name for name in listed if not there(name, segments)]


def _remove(name: str, free: int, segments: int, committed: int, now: int) -> int | None:
    """Removes one segment, with ``committed`` bytes of trains, and its marker. Returns its size; None if it stays."""
    fd = open_locked(name, segments)
    if fd is None:
        return None
    try:
        stat, header = os.fstat(fd), header_bytes(os.pread(fd, 8, 0))
        accounted = header is not None and stat.st_size == header + committed
        if not accounted and stat.st_mtime_ns // 1000 > now - STAGED_RETENTION_MICROS:
            return None
        remove(name, free)
        remove(name, segments)
        return stat.st_size
    finally:
        os.close(fd)
