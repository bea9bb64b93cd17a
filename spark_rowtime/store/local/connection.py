"""Connections to SQLite files, and which of these files a forked child must not open.

SQLite keeps a table of the files that its process has open, with the locks on them. A forked child inherits the table,
but the system gives it none of the locks. A connection of the child to such a file would take no lock in the system,
another process would believe that nobody has the file open, and would remove the log that the child writes to. So
connections are closed before a fork; and a file of which one was open all the same is refused in the child.
"""

import gc
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from spark_rowtime.errors import ProcessForkedError
from spark_rowtime.store.forks import keep_for_ever, no_fork
from spark_rowtime.store.local.folders import require_catalog

Inode = tuple[int, int]
CATALOGS = "catalog."
"""What the names of the files begin with."""
_DESCRIPTORS = "/dev/fd"


class _Process:
    """What this process knows about files of SQLite: ``connected`` are all that it ever had open."""

    def __init__(self) -> None:
        self.id, self.parent = os.getpid(), 0
        self.connected: set[Inode] = set()
        self.inherited: set[Inode] = set()
        """The files that a process had open when this one was forked from it."""

    def begin_child(self) -> None:
        """Finds out what was open at the fork. Called in the child before it opens anything."""
        self.id, self.parent = os.getpid(), self.id
        if self.connected:
            self.inherited |= {inode for fd, inode in _open_files() if inode in self.connected and _is_catalog(fd)}
        self.connected = set(self.inherited)
        if self.inherited:
            _keep_connections()

    def require_own(self, file: Path) -> None:
        """Refuses a file that was open at the fork, also where the fork was not one of Python's."""
        if self.id != os.getpid():
            self.begin_child()
        if self.inherited and inode_of(file) in self.inherited:
            raise ProcessForkedError(
                f"The stream at {file.parent} cannot be opened in process {self.id}: it was forked from process "
                f"{self.parent} while that one was within a call on this stream that took long. Rows would be lost. "
                "Start such processes with multiprocessing.get_context('spawn') or 'forkserver', or fork while no "
                "thread uses the stream.",
                path=str(file.parent),
            )


_PROCESS = _Process()
os.register_at_fork(after_in_child=_PROCESS.begin_child)


def connect(file: Path, mode: str, busy_timeout: float) -> sqlite3.Connection:
    """Opens a connection that does not trust the file: its schema may call no function, and broken pages are errors.

    SQLite follows the path again, so who may write into the directory can change what is there just before it does.
    """
    with no_fork():
        _PROCESS.require_own(file)
        require_catalog(file)
        db = sqlite3.connect(
            f"{file.as_uri()}?mode={mode}",
            uri=True,
            timeout=busy_timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        inode = inode_of(file)
        if inode is not None:
            _PROCESS.connected.add(inode)
    return guarded(db)


def guarded(db: sqlite3.Connection) -> sqlite3.Connection:
    """Returns the connection, which does not trust what it opens."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    return db


def inode_of(file: Path) -> Inode | None:
    """Returns which file is at the path; None if there is none."""
    try:
        stat = os.stat(file, follow_symlinks=False)  # noqa: PTH116  (called on each poll)
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def _open_files() -> Iterator[tuple[int, Inode]]:
    try:
        numbers = [int(name) for name in os.listdir(_DESCRIPTORS)]  # noqa: PTH208  (a Path for each takes longer)
    except OSError:
        numbers = list(range(os.sysconf("SC_OPEN_MAX")))
    for fd in numbers:
        try:
            stat = os.fstat(fd)
        except OSError:
            continue
        yield fd, (stat.st_dev, stat.st_ino)


def _is_catalog(fd: int) -> bool:
    """Whether a descriptor is of a catalog, and not of a file that has the inode of one that is gone."""
    try:
        return os.path.basename(os.readlink(f"{_DESCRIPTORS}/{fd}")).startswith(CATALOGS)  # noqa: PTH115, PTH119
    except OSError:  # the system does not tell names
        return True


def _keep_connections() -> None:
    """Keeps inherited connections from being closed in this process, which would change what the parent uses."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    for found in gc.get_objects():
        if issubclass(type(found), sqlite3.Connection | sqlite3.Cursor):
            keep_for_ever(found)
    if frozen:
        gc.freeze()
