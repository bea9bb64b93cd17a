"""Copies a stream while others write to it and remove old rows from it.

Law: a copy is the stream as of one moment. Committed bytes never change, so the segments can be copied while writers
append to them. What counts of them is decided by a snapshot of the catalog. A segment that such a snapshot names may
have been removed before it was copied; then a newer snapshot, which does not name it any more, takes its place.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from spark_rowtime.errors import StoreCorruptError, StoreUnavailableError
from spark_rowtime.store.disk import sync
from spark_rowtime.store.local import uptime
from spark_rowtime.store.local.ancestors import become_copy
from spark_rowtime.store.local.catalog import BUSY_TIMEOUT, CATALOG, Catalog
from spark_rowtime.store.local.collector import full_segment
from spark_rowtime.store.local.connection import connect
from spark_rowtime.store.local.directory import building, require_stream
from spark_rowtime.store.local.folders import FREE, SEGMENTS, absolute, folder, is_segment, open_file
from spark_rowtime.store.local.redo import settle
from spark_rowtime.store.local.seal import Damaged
from spark_rowtime.store.local.sparse import is_there
from spark_rowtime.store.local.storage_errors import storage_errors
from spark_rowtime.store.snapshot import WRITER
from spark_rowtime.store.steady_clock import machine_reading
from spark_rowtime.types.short_repr import short_repr

SNAPSHOT = "catalog.copying"
"""The name of the copy's catalog until everything else is there. Without a catalog a directory is no stream."""
MOST_SNAPSHOTS = 1000
_CHUNK_BYTES = 1 << 20
_ENDS = "SELECT segment, MAX(offset + length) FROM events WHERE width IS NOT NULL GROUP BY segment"


def copy_local(path: str, to: str, advance: Callable[[int, int | None], object] | None = None) -> None:
    """Copies the stream at ``path`` to ``to``. Raises StreamExistsError if anything exists at ``to``."""
    source = absolute(path)
    require_stream(source)
    with building(absolute(to), "copying") as folder:
        copy = _Copy(source, folder, advance)
        copy.run()
        (folder / SNAPSHOT).rename(folder / CATALOG)


class _Copy:
    """One copy of the stream in ``source`` into ``folder``."""

    def __init__(self, source: Path, folder: Path, advance: Callable[[int, int | None], object] | None) -> None:
        self._source, self._folder, self._advance = source, folder, advance
        self._done = self._all = 0
        self._missing: set[str] = set()

    def run(self) -> None:
        """Copies the segments, and then whatever each newer snapshot of the catalog names beyond them."""
        with closing(self._opened()) as catalog:
            settings = catalog.meta()[2]
            for _ in range(MOST_SNAPSHOTS):
                self._snapshot(catalog)
                ends = self._ends()
                if self._copied(ends):
                    self._finish(ends, full_segment(settings))
                    return
        raise StoreUnavailableError(
            f"Rows of {self._source} are removed faster than they are copied. Nothing was copied; try again.",
            path=str(self._source),
        )

    def _opened(self) -> Catalog:
        with storage_errors(self._source):
            catalog = Catalog(self._source / CATALOG, "process", BUSY_TIMEOUT)
            try:
                settle(self._source, catalog)
            except BaseException:
                catalog.close()
                raise
            return catalog

    def _snapshot(self, catalog: Catalog) -> None:
        """Takes the catalog as of one moment. It does not keep others from writing."""
        catalog.require()
        with storage_errors(self._source), self._own_catalog("rwc") as own:
            own.execute("PRAGMA synchronous = OFF")
            catalog.backup(own)

    def _ends(self) -> dict[str, int]:
        """Returns how many bytes of each segment the snapshot names."""
        with storage_errors(self._source), self._own_catalog("rw") as own:
            ends: dict[str, int] = dict(own.execute(_ENDS).fetchall())
            for name in ends:
                if not is_segment(name):  # a file elsewhere is never written
                    raise Damaged(f"{short_repr(name)} is no name of a segment")
            return ends

    def _copied(self, ends: dict[str, int]) -> bool:
        """Copies what is not yet there. Returns whether everything is."""
        self._done, self._all = 0, sum(ends.values())
        gone = {name for name, end in ends.items() if not self._extended(name, end)}
        if lost := gone & self._missing:
            raise self._damaged(min(lost), "the file is gone")
        self._missing = gone
        return not gone

    def _extended(self, name: str, end: int) -> bool:
        """Copies a segment up to ``end``. Returns False if the segment is gone."""
        copy = self._folder / SEGMENTS / name
        with storage_errors(self._folder):
            have = copy.stat().st_size if copy.exists() else 0
            self._advanced(min(have, end))
            if have >= end:
                return True
            try:
                with folder(self._source, SEGMENTS) as segments:
                    fd = open_file(name, segments, os.O_RDONLY)
            except FileNotFoundError:
                return False
            with os.fdopen(fd, "rb", buffering=0) as source, copy.open("ab") as target:
                if not is_there(fd, have, end):
                    raise self._damaged(name, f"its {end} bytes are nearly all holes")
                for chunk in _chunks(source.fileno(), have, end):
                    have += target.write(chunk)
                    self._advanced(len(chunk))
        if have < end:
            raise self._damaged(name, f"the file ends after {have} bytes, and not after {end} or more")
        return True

    def _advanced(self, count: int) -> None:
        self._done += count
        if self._advance is not None:
            self._advance(self._done, self._all)

    def _finish(self, ends: dict[str, int], full: int) -> None:
        """Removes segments that the last snapshot does not name, and makes everything survive a power failure."""
        with storage_errors(self._folder):
            for file in list((self._folder / SEGMENTS).iterdir()):
                if file.name not in ends:
                    file.unlink()
                    continue
                with file.open("rb+") as segment:
                    segment.truncate(ends[file.name])
                    os.fsync(segment.fileno())
                if ends[file.name] < full:
                    (self._folder / FREE / file.name).touch()
            with self._own_catalog("rw") as own:
                own.execute("PRAGMA journal_mode = WAL")
                own.execute("BEGIN IMMEDIATE")
                uptime.stop(own, machine_reading())
                become_copy(own.execute)
                own.execute("DELETE FROM accounts WHERE role <> ?", (WRITER,))
                own.execute("COMMIT")
            for folder in (SEGMENTS, FREE, "."):
                sync(self._folder / folder)

    @contextmanager
    def _own_catalog(self, mode: str) -> Iterator[sqlite3.Connection]:
        with closing(connect(self._folder / SNAPSHOT, mode, BUSY_TIMEOUT)) as own:
            yield own

    def _damaged(self, name: str, what: str) -> StoreCorruptError:
        file = self._source / SEGMENTS / name
        return StoreCorruptError(
            f"{file}: {what}, although the catalog names rows in it. Nothing was copied. `rowtime check` says what is "
            "still readable.",
            file=str(file),
        )


def _chunks(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (chunk := os.pread(fd, min(_CHUNK_BYTES, end - start), start)):
        yield chunk
        start += len(chunk)
