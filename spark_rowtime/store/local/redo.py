"""Redo rows: small trains that the catalog has, too, until their segment is synced."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from isal.isal_zlib import crc32

from spark_rowtime.errors import StoreCorruptError, StoreUnavailableError
from spark_rowtime.store.commits import Slice, Staged
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.folders import FREE, SEGMENTS, folder, mark, remove, there
from spark_rowtime.store.local.guard import Guard
from spark_rowtime.store.local.seal import intact, seal
from spark_rowtime.store.local.segment import CLOSED, Location, SegmentWriter, open_locked, write_at
from spark_rowtime.store.local.segment_reader import SegmentReader
from spark_rowtime.store.retention import unsynced

_ADD = "INSERT INTO redo (segment, offset, seal, content) VALUES (?, ?, ?, ?)"
_REMOVE = "DELETE FROM redo WHERE segment = ? AND offset >= ? AND offset < ?"
"""What another writer has left in the segment before lies at lesser offsets."""
_PAUSE_SECONDS = 0.01
_ROWS = "SELECT segment, offset, content, seal FROM redo WHERE segment = ? ORDER BY id"


class Redo:
    """The redo rows of one writer.

    Law (*power*; tests/crash/test_power.py): with durability power a commit of small trains survives a failure of the
    machine by one sync, that of the catalog. Its transaction has their bytes, and before anybody reads the stream after
    a failure, :func:`settle` writes these into the segment again. They are removed by a commit after the segment was
    synced. It is the doublewrite of InnoDB, and the full page image of PostgreSQL's log.

    The methods are called one at a time, between two of which others may write and sync the segment, with ``guard``.
    """

    def __init__(self, catalog: Catalog, writer: SegmentWriter, guard: Guard) -> None:
        self._catalog, self._writer, self._guard = catalog, writer, guard
        self._from: dict[str, int] = {}
        """By segment: the offset from which on there may be rows of this writer."""

    def prepare(self, trains: Sequence[Staged]) -> None:
        """Syncs the segments of trains that are too large to be rows. Call it before the transaction.

        Those of a commit that is repeated may be in another kind of store.
        """
        if not self._writer.durable:
            return
        segments = {train.location.segment for train in trains if isinstance(train.location, Location)}
        if self._writer.needs_sync or not all(map(self._writer.holds, segments)):
            self._writer.sync(segments)

    def write(self, trains: Sequence[Staged], path: str) -> dict[str, int]:
        """Adds rows for ``trains``, and removes those of synced bytes. Call it in the transaction of the commit.

        Returns up to which offset of which segment rows were removed. Raises StoreUnavailableError if a sync by another
        thread has failed meanwhile, so that a train is in doubt.
        """
        if not self._writer.durable:
            return {}
        with self._guard:
            if any(self._writer.is_in_doubt(train.location) for train in trains):
                raise unsynced(path)
            messages = [(train.location, self._writer.unsynced(train.location)) for train in trains]
            ends = {segment: self._writer.synced_upto(segment) for segment in self._from}
        removed = {segment: end for segment, end in ends.items() if end > self._from[segment]}
        for segment, end in removed.items():
            self._catalog.execute(_REMOVE, (segment, self._from[segment], end))
        for at, message in messages:
            if message is not None:
                sealed = seal((at.segment, at.offset, at.checksum))
                self._catalog.execute(_ADD, (at.segment, at.offset, sealed, message))
                self._from[at.segment] = min(self._from.get(at.segment, at.offset), at.offset)
        return removed

    def landed(self, removed: dict[str, int]) -> None:
        """Notes that the transaction has landed, which has ``removed`` these rows."""
        self._from = {segment: end for segment, end in {**self._from, **removed}.items() if end < CLOSED}


def settle(stream: Path, catalog: Catalog) -> None:
    """Writes what other writers have left in redo rows into the segments once more, syncs these, and removes the rows.

    Law (*first*; tests/store/test_redo.py): whoever may write does so before anything else, and waits for another one
    who does so. So nobody reads a segment that ends too early, or appends to it.

    A segment that a writer has open is left alone: what is written there is not lost while its process lives. Nothing
    happens for a user who may only read: see :func:`require_settled`. Where the disk is full, the rows stay.
    """
    if not catalog.writable or not _segments(catalog):
        return
    with folder(stream, SEGMENTS) as segments, folder(stream, FREE) as free:
        _wait_for_others(segments, catalog)
        if not any(_is_left(name, segments) for name in _segments(catalog)):
            return
        done = list[str]()
        try:
            with catalog.transaction("IMMEDIATE"):
                done += [name for name in _segments(catalog) if _settled(catalog, name, segments, free)]
                for name in done:
                    catalog.execute("DELETE FROM redo WHERE segment = ?", (name,))
        except sqlite3.OperationalError:
            if not done:
                raise


def require_settled(catalog: Catalog, reader: SegmentReader, trains: Sequence[Slice]) -> None:
    """Raises StoreUnavailableError if the catalog alone has one of the trains, and this user may not settle it."""
    if catalog.writable:
        return
    rows = set(catalog.execute("SELECT segment, offset FROM redo"))
    for train in trains:
        if train.location[:2] in rows:
            try:
                reader.read(train.location, train.rows, f"train {train.seq} of {train.producer!r}")
            except StoreCorruptError as error:
                raise _not_settled(error, catalog.file.parent) from None


def _not_settled(error: StoreCorruptError, stream: Path) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"A loss of power has taken {error.values['train']} from its file in {stream}, and its rows are in the catalog "
        "alone. Nothing is lost: open the stream once as a user who may write into it, for example with "
        "`rowtime describe`; then read again.",
        path=str(stream),
        file=error.values["file"],
        lacks="write permission",
    )


def _wait_for_others(segments: int, catalog: Catalog) -> None:
    """Locks the folder. Raises StoreUnavailableError if another process does not end what it does here."""
    deadline = time.monotonic() + catalog.busy_timeout
    while True:
        try:
            fcntl.flock(segments, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreUnavailableError(
                    f"Another process writes into {catalog.file.parent} what a loss of power may have taken, and has "
                    f"not ended within {catalog.busy_timeout:g} s. Nothing of this call was done. Try again, and look "
                    "for a process that hangs.",
                    path=str(catalog.file.parent),
                ) from None
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _segments(catalog: Catalog) -> list[str]:
    return [name for (name,) in catalog.execute("SELECT DISTINCT segment FROM redo")]


def _is_left(name: str, segments: int) -> bool:
    """Returns whether no writer has the segment open."""
    fd = open_locked(name, segments)
    if fd is None:
        return not there(name, segments)
    os.close(fd)
    return True


def _settled(catalog: Catalog, name: str, segments: int, free: int) -> bool:
    """Returns whether the rows of a segment are no longer needed.

    Nobody claims it meanwhile, as it has no mark. It is not kept locked: who finds it locked takes it for one that a
    writer has, also where the process that had the lock is just about to end.
    """
    marked = remove(name, free)
    fd = open_locked(name, segments)
    if fd is None:
        return not there(name, segments)
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
        if os.fstat(fd).st_nlink != 1:  # a file elsewhere is never written; nor may anybody append to what is missing
            return False
        for segment, offset, content, sealed in catalog.execute(_ROWS, (name,)):
            intact((segment, offset, crc32(content), sealed), "redo")
            if not _rewritten(fd, content, offset):
                return False
        os.fdatasync(fd)
        os.fsync(segments)
        if marked:
            mark(name, free)
        return True
    finally:
        os.close(fd)


def _rewritten(fd: int, content: bytes, offset: int) -> bool:
    """Writes the bytes, also where they are there: a sync may have failed to bring them on the disk.

    Returns False if they cannot be written, but are there.
    """
    try:
        write_at(fd, content, offset)
    except OSError:
        if os.pread(fd, len(content), offset) != content:
            raise
        return False
    return True
