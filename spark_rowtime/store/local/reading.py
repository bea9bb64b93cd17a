"""The catalog of a stream for a user who may read the directory, and not write into it.

SQLite reads a catalog with the help of two files beside it, the log and its index. They are there while anybody who may
write has the stream open; a connection that only reads then sees each commit. While nobody has it open they are gone,
and this user could not make them. Then the catalog is whole without them, and this module reads it into memory.

Law (*no trace*): such a user changes nothing that others see. While the catalog is read, a lock of SQLite's readers is
held on it: who comes meanwhile leaves a log behind, so a copy that ends without one is of one moment.
"""

import fcntl
import os
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from spark_rowtime.store.forks import ForkLock, no_fork
from spark_rowtime.store.local.connection import connect, guarded
from spark_rowtime.store.local.folders import not_of_stream, require_catalog
from spark_rowtime.store.local.sparse import is_there

_SHARED_FIRST, _SHARED_BYTES = 0x4000_0002, 510
"""Where SQLite's readers lock a file: they hold all of these bytes."""
_VERSIONS = slice(18, 20)
"""The bytes of a file that say whether it has a log. A copy in memory has none."""
_WITHOUT_LOG = b"\1\1"
_WAITING = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_BUSY}
"""What SQLite says where the log comes or goes just now."""
_PAUSE_SECONDS = 0.01
_SETTLED_NANOS = 100_000_000
"""A file system may give two changes within a few milliseconds the same time."""
_OPENING = ForkLock()
"""The system takes away the locks of all of a process's connections to a file when any descriptor of it is closed. So
one thread at a time connects, or makes a copy, which it does only where nobody is connected."""


class Copied(NamedTuple):
    """The file from which a copy was made."""

    inode: int
    size: int
    changed: int
    settled: bool
    """Whether each later change shows in ``changed``."""


def may_write(catalog: Path) -> bool:
    """Returns whether this user may write the catalog, and make files beside it."""
    effective = os.access in os.supports_effective_ids
    return all(os.access(place, os.W_OK, effective_ids=effective) for place in (catalog, catalog.parent))


def connect_to_read(catalog: Path, patience: float) -> tuple[sqlite3.Connection, Copied | None]:
    """Opens a connection that only reads. With a copy in memory, also returns of which file it is."""
    until = time.monotonic() + patience
    while True:
        with no_fork(), _OPENING:
            try:
                found = (_live(catalog, patience), None) if _has_log(catalog) else _copy(catalog)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _WAITING or time.monotonic() >= until:
                    raise
                found = None
        if found is not None:
            return found
        if time.monotonic() >= until:
            raise TimeoutError(f"{catalog} is locked, or opened and closed all the time")
        time.sleep(_PAUSE_SECONDS)


def is_stale(catalog: Path, copied: Copied) -> bool:
    """Returns whether somebody may have written since the copy was made."""
    return _has_log(catalog) or not copied.settled or _described(catalog.lstat()) != copied


def _live(catalog: Path, patience: float) -> sqlite3.Connection:
    db = connect(catalog, "ro", patience)
    try:
        db.execute("PRAGMA user_version").fetchone()  # opens the log
    except BaseException:
        db.close()
        raise
    return db


def _copy(catalog: Path) -> tuple[sqlite3.Connection, Copied] | None:
    """Reads the catalog into memory. Returns None if somebody has opened it meanwhile."""
    require_catalog(catalog)
    fd = os.open(catalog, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as file:
        try:
            fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_BYTES, _SHARED_FIRST)
        except (BlockingIOError, PermissionError):  # somebody renames or deletes the stream, or has just closed it
            return None
        if _has_log(catalog):
            return None
        copied = _described(os.fstat(fd))
        if not is_there(fd, 0, copied.size):
            raise not_of_stream(catalog, f"has {copied.size} bytes, which are nearly all holes")
        content = bytearray(file.read(copied.size))
        if _has_log(catalog):
            return None
    content[_VERSIONS] = _WITHOUT_LOG
    return _in_memory(content), copied


def _in_memory(content: bytearray) -> sqlite3.Connection:
    db = guarded(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
    try:
        db.deserialize(content)
        db.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return db


def _described(stat: os.stat_result) -> Copied:
    now = time.time_ns()  # noqa: TID251  (the clock of file systems)
    settled = abs(now - stat.st_mtime_ns) > _SETTLED_NANOS
    return Copied(stat.st_ino, stat.st_size, stat.st_mtime_ns, settled)


def _has_log(catalog: Path) -> bool:
    return os.path.lexists(f"{catalog}-wal")
