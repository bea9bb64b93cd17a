"""Writes segments: append-only Arrow IPC stream files that hold the rows of a stream."""

import fcntl
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from isal.isal_zlib import crc32

from spark_rowtime.errors import DataLostError
from spark_rowtime.store.forks import close_in_children, no_fork
from spark_rowtime.store.local.folders import (
    FREE,
    SEGMENTS,
    folder,
    make_file,
    mark,
    names,
    new_name,
    open_file,
    remove,
)
from spark_rowtime.store.local.message_parts import Messages, Part

FULL_SEGMENT_BYTES = 256 << 20
"""A segment of at least this many bytes is full: nothing more is appended to it."""
LARGE, AHEAD, PLENTY = 1 << 20, 32 << 20, 1 << 30
"""Before a train of at least LARGE bytes, AHEAD bytes are reserved on the disk if PLENTY bytes are free. To allocate
them in small pieces takes the system longer."""
CLOSED = sys.maxsize
"""Beyond each offset."""
MOST_PARTS, CACHED_BYTES = 1024, 512 << 10
"""A call of the system writes at most so many parts of a message, and not much more than so many bytes."""
UNSYNCED_BYTES = 64 << 10
"""Up to this many bytes of a segment may be in the catalog's redo rows in place of a sync of the segment."""


class Location(NamedTuple):
    """Where the bytes of a train are. With the directory and the schema, this is enough to read the train."""

    segment: str
    offset: int
    length: int
    checksum: int
    """CRC-32 of the bytes."""


class SegmentWriter:
    """Appends record batches to segments that no other writer uses meanwhile.

    A new file begins with the schema, so that any Arrow tool can read it. All rows in a file are of that
    schema, so rows of another schema of the stream go to other files. No file is created before
    the first batch. A segment that is closed before it is full is marked as free, and the next writer
    claims it; so many short-lived writers do not leave many small files. A segment whose writer
    died is not marked. One that has another name elsewhere, too, is not claimed. An open segment is locked, so that it
    is not removed.

    Law (*power*; tests/crash/test_power.py): with ``durable``, what was appended, and the names of the files, are on
    the disk, not only in the page cache, when ``sync`` returns. Where it raises, the system may have dropped what was
    appended since the last one: that is in doubt, and the store of this writer commits none of it. Few bytes need no
    sync if the catalog has them, too: see :class:`Redo`.
    """

    def __init__(self, stream: Path, schema: pa.Schema, full: int = FULL_SEGMENT_BYTES, durable: bool = False) -> None:
        self._stream = stream
        self._header, self._full, self.durable = schema.serialize(), full, durable
        self._message = Messages(schema).of
        self._name, self._fd, self._end, self._reserved = "", -1, 0, 0
        self._file, self._inode = "", (0, 0)
        self._synced, self._most_unsynced = 0, UNSYNCED_BYTES
        """Up to where the open segment is synced."""
        self._unsynced = dict[Location, bytes | None]()
        """The messages that a sync is to bring on the disk; None of those that are too many for the catalog."""
        self._doubtful = set[Location | str]()
        """Those that are in doubt, and the names of the segments that are, whoever has written them."""
        self._failed = set[str]()
        """The segments of which a sync of this writer has failed. The system tells of an error once."""
        close_in_children(self)

    def append(self, rows: pa.RecordBatch) -> Location:
        """Writes ``rows``. After an error nothing of them counts, and the next call overwrites them."""
        if self._fd < 0 or self._end >= self._full:
            with no_fork():  # a child would keep the lock of a file that is not yet noted
                self._roll()
        message, offset = self._message(rows), self._end
        length = sum(map(len, message))
        self._reserve(offset + length)
        self._end, checksum = write_parts(self._fd, message, offset)
        location = Location(self._name, offset, length, checksum)
        if self.durable:
            self._unsynced[location] = None if self.needs_sync else b"".join(message)
        return location

    @property
    def needs_sync(self) -> bool:
        """Whether the bytes that are not synced are too many for the catalog."""
        return self._end - self._synced > self._most_unsynced

    def unsynced(self, location: Location) -> bytes | None:
        """Returns the message that was appended there, if no sync was asked for since; None of a large one, too."""
        return self._unsynced.get(location)

    def synced_upto(self, segment: str) -> int:
        """Returns up to which offset the disk has what this writer has appended; CLOSED: all of a full segment."""
        if segment in self._failed:
            return 0
        return self._synced if segment == self._name else CLOSED

    def sync(self, segments: Collection[str] = ()) -> None:
        """Waits until the disk has what was appended ``durable``, and ``segments``, whoever has written them."""
        for other in segments:
            if not self.holds(other):
                self._sync_closed(other)
        if self._fd < 0 or self._synced == self._end or not self.durable:
            return
        self._doubtful.update(self._unsynced)  # first: what follows may be interrupted anywhere
        asked, self._unsynced, end = self._unsynced, {}, self._end
        try:
            os.fdatasync(self._fd)
        except BaseException:
            self._failed.add(self._name)
            raise
        self._doubtful.difference_update(asked)
        self._synced = end

    def is_in_doubt(self, location: Location) -> bool:
        """Returns whether the disk may not have what was appended there, although a sync was asked for."""
        return location in self._doubtful or location.segment in self._doubtful

    def _sync_closed(self, name: str) -> None:
        with no_fork(), folder(self._stream, SEGMENTS) as segments, suppress(FileNotFoundError):  # who reads it says so
            fd = open_file(name, segments, os.O_RDONLY)
            try:
                self._sync_whole(fd, name)
            finally:
                os.close(fd)
            os.fsync(segments)

    def _sync_whole(self, fd: int, name: str) -> None:
        """Syncs a segment that others may have written. The system tells of an error once, so it is noted."""
        try:
            os.fdatasync(fd)
        except OSError:
            self._doubtful.add(name)
            raise

    def holds(self, segment: str) -> bool:
        """Returns whether ``segment`` is the one that is open."""
        return self._fd >= 0 and self._name == segment

    def lost(self) -> DataLostError | None:
        """Returns the error if the open file is no longer the one at its path, or no longer as long as it was.

        The system goes on to write into a file that somebody has removed, or replaced by another one.
        """
        if self._fd < 0:
            return None
        there = _stat(self._file)
        if there is None or (there.st_dev, there.st_ino) != self._inode:
            return self._changed("is gone" if there is None else "was replaced")
        if there.st_size < self._end:
            return self._changed(f"has {there.st_size} of the {self._end} bytes that were written")
        return None

    def _changed(self, what: str) -> DataLostError:
        stream = self._stream
        return DataLostError(
            f"{self._file}, into which the sinks of this process write, {what}: somebody has changed the files of "
            f"{stream} while it was open, for example by copying a backup over it. Rows that were acknowledged are "
            "gone. Nothing of this call was stored, and nothing that these sinks send will be. End all that has the "
            "stream open, restore it to a path where nothing is, and open it again.",
            path=str(stream),
        )

    def close(self) -> None:
        """Closes the open file, if any, and marks it as free if it is not full."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        try:
            if os.fstat(fd).st_size > self._end:  # somebody may have cut it
                os.ftruncate(fd, self._end)
        finally:
            os.close(fd)
        if self._end < self._full:
            with suppress(FileNotFoundError), folder(self._stream, FREE) as free:  # the stream may be deleted
                mark(self._name, free)

    def close_inherited(self) -> None:
        """Closes a forked child's descriptor, so that the lock of the segment is the parent's alone."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _reserve(self, end: int) -> None:
        """Reserves disk space for a large train and those after it, if enough is free. The catalog needs space, too."""
        if sys.platform != "linux" or end - self._end < LARGE or end <= self._reserved:
            return
        self._reserved = max(end, min(self._end + AHEAD, self._full))
        disk = os.fstatvfs(self._fd)
        if disk.f_bavail * disk.f_frsize < PLENTY:
            return
        try:
            os.posix_fallocate(self._fd, self._end, self._reserved - self._end)
        except OSError:  # frees what was allocated; the write will report the error
            os.ftruncate(self._fd, self._end)

    def _roll(self) -> None:
        self.sync()
        self.close()
        self._reserved = 0
        if not self._claim():
            self._create(new_name())

    def _claim(self) -> bool:
        """Opens a free segment of this schema, if there is one. The process that removes its marker owns it."""
        with folder(self._stream, FREE) as free, folder(self._stream, SEGMENTS) as segments:
            return any(self._claimed(name, free, segments) for name in names(free))

    def _claimed(self, name: str, free: int, segments: int) -> bool:
        if not remove(name, free):
            return False
        if self.durable:  # its creator may not have synced the folder
            os.fsync(segments)
        fd = open_locked(name, segments)
        if fd is None:
            return False
        try:
            found = os.fstat(fd)
            if found.st_nlink == 1 and os.pread(fd, self._header.size, 0) == self._header:
                if self.durable:
                    self._sync_whole(fd, name)
                self._begin(fd, name, found)
                return True
            mark(name, free)
            return False
        finally:
            if self._fd != fd:
                os.close(fd)

    def _create(self, name: str) -> None:
        with folder(self._stream, SEGMENTS) as segments:
            fd = make_file(name, segments)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                write_at(fd, self._header, 0)
                if self.durable:
                    os.fdatasync(fd)
                    os.fsync(segments)
                self._begin(fd, name, os.fstat(fd))
            except BaseException:
                self._fd = -1
                os.close(fd)
                remove(name, segments)
                raise

    def _begin(self, fd: int, name: str, found: os.stat_result) -> None:
        self._file, self._inode = str(self._stream / SEGMENTS / name), (found.st_dev, found.st_ino)
        self._synced = found.st_size
        self._fd, self._name, self._end = fd, name, found.st_size  # last: what came before may be interrupted


def write_parts(fd: int, parts: Sequence[Part], at: int) -> tuple[int, int]:
    """Returns the offset behind the parts, and their CRC-32. Bytes are written while they are in the cache for it."""
    some, size, checksum = list[Part](), 0, 0
    for part in parts:
        some.append(part)
        size, checksum = size + len(part), crc32(part, checksum)
        if size >= CACHED_BYTES or len(some) == MOST_PARTS:
            at, some, size = _write_some(fd, some, at), [], 0
    return _write_some(fd, some, at), checksum


def _write_some(fd: int, parts: Sequence[Part], at: int) -> int:
    if len(parts) == 1:
        return write_at(fd, parts[0], at)
    end, at = at + sum(map(len, parts)), at + os.pwritev(fd, parts, at)
    return at if at == end else write_at(fd, b"".join(parts)[at - end :], at)


def write_at(fd: int, message: Part, at: int) -> int:
    """Returns the offset behind the message."""
    rest = memoryview(message)
    while rest:
        written = os.pwrite(fd, rest, at)
        rest, at = rest[written:], at + written
    return at


def _stat(file: str) -> os.stat_result | None:
    try:
        return os.stat(file, follow_symlinks=False)  # noqa: PTH116  (called in each commit)
    except FileNotFoundError:
        return None


def open_locked(name: str, segments: int) -> int | None:
    """Opens and locks a segment. Returns None if another process writes or removes it, or if it is gone."""
    try:
        fd = open_file(name, segments, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    if os.fstat(fd).st_nlink == 0:
        os.close(fd)
        return None
    return fd
