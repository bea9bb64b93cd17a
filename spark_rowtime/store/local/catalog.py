"""The catalog of a stream: one SQLite file that holds everything but the rows."""

import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from spark_rowtime.errors import DataLostError, RowtimeError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.store.forks import close_before_forks, no_fork
from spark_rowtime.store.local import meta
from spark_rowtime.store.local.connection import CATALOGS, connect, inode_of
from spark_rowtime.store.local.format import APPLICATION_ID, FORMAT, STATEMENTS, TABLES, UPGRADES, tables
from spark_rowtime.store.local.reading import Copied, connect_to_read, is_stale, may_write
from spark_rowtime.store.local.seal import Damaged, crc, intact
from spark_rowtime.store.local.storage_errors import STORAGE_ERRORS, damaged, read_only
from spark_rowtime.store.settings import StreamSettings, settings_of, settings_text

CATALOG, LOG = f"{CATALOGS}db", f"{CATALOGS}db-wal"
BUSY_TIMEOUT = 10.0
"""How many seconds a call waits for another process's transaction. A transaction normally takes microseconds."""
_SYNCHRONOUS = {"process": "NORMAL", "power": "FULL"}


class Catalog:
    """A connection to ``catalog.db``. Its callers translate SQLite's errors with :func:`storage_error`.

    ``lock``: what its users hold whenever they use it. The connection is closed while the process forks, if the lock is
    free; that ends no transaction. It is made again after the fork, or when it is next used, if others do not let it be
    made just then. Without a lock it stays open.

    ``writable``: whether this user may write. If not, see the module ``reading``.
    """

    def __init__(self, file: Path, durability: str, busy_timeout: float, lock: "threading.RLock | None" = None) -> None:
        self.file, self.durability, self.busy_timeout = file, durability, busy_timeout
        self._log_file = file.with_name(LOG)
        self._lock: Any = lock
        self._db: sqlite3.Connection | None = None
        self._opened, self._suspended = 0, False
        self._inode = inode_of(file)
        self.writable, self._copied = may_write(file), cast("Copied | None", None)
        self._wal: tuple[object, tuple[int, int] | None] = None, None
        """The connection, and the file of the write-ahead log that it was first seen with."""
        self._open(busy_timeout)
        try:
            with self.transaction("DEFERRED"):  # another process may upgrade it meanwhile
                version = self._check()
            if version < FORMAT:
                self._require_writable()
                self._upgrade()
        except BaseException:
            self.close()
            raise
        if lock is not None:
            close_before_forks(self)

    def _open(self, patience: float) -> None:
        if self.writable:
            db, self._copied = connect(self.file, "rw", patience), None
        else:
            db, self._copied = connect_to_read(self.file, patience)
        try:
            db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self.durability]}")  # reads: it has the log from here on
            db.execute(f"PRAGMA busy_timeout = {round(1000 * self.busy_timeout)}")
        except BaseException:
            db.close()
            raise
        self._db, self.execute = db, db.execute
        self._opened, self._suspended = self._opened + 1, False

    def close_for_fork(self, deadline: float) -> None:
        """Closes the connection; not if a thread uses it, or the one that forks."""
        if self._db is None or self._lock._is_owned():  # noqa: SLF001  (Condition uses it, too)
            return
        if self._lock.acquire(timeout=max(deadline - time.monotonic(), 0)):
            try:
                self._suspend()
            finally:
                self._lock.release()

    def open_after_fork(self, deadline: float) -> None:
        """Makes the connection again, so that others see that the stream is in use; not if a thread is about to."""
        if self._suspended and self._lock.acquire(blocking=False):
            try:
                with suppress(RowtimeError, *STORAGE_ERRORS):  # the next use says so
                    self._open_anew(max(deadline - time.monotonic(), 0))
            finally:
                self._lock.release()

    def _suspend(self) -> None:
        self.execute, self._suspended = self._execute_anew, True
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _execute_anew(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        self._open_anew(self.busy_timeout)
        return self.execute(sql, values)

    def _open_anew(self, patience: float) -> None:
        self.require()
        self._open(patience)
        try:
            self.require()
        except DataLostError:
            self._suspend()
            raise

    @contextmanager
    def transaction(self, kind: str, patience: float | None = None) -> Iterator[None]:
        """Runs a transaction, which commits as a whole or not at all.

        ``kind`` is IMMEDIATE to write, or DEFERRED to read one consistent state. ``patience``: for how many seconds it
        waits for another process's transaction; None: for as long as any call.
        """
        if kind != "DEFERRED":
            self._require_writable()
        try:
            self._begin(kind, patience)
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._db is not None and self._db.in_transaction:
                self._db.rollback()
            raise

    def sync(self) -> None:
        """Makes what was committed so far survive a loss of power, whatever the durability is.

        SQLite syncs the write-ahead log itself before it takes anything over from there.
        """
        with suppress(FileNotFoundError), self._log_file.open("rb") as log:
            os.fsync(log.fileno())

    def _begin(self, kind: str, patience: float | None) -> None:
        if patience is None:
            self.execute(f"BEGIN {kind}")
            return
        (usual,) = self.execute("PRAGMA busy_timeout").fetchone()
        self.execute(f"PRAGMA busy_timeout = {round(1000 * patience)}")
        try:
            self.execute(f"BEGIN {kind}")
        finally:
            self.execute(f"PRAGMA busy_timeout = {usual}")

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction of this connection is open."""
        return self._db is not None and self._db.in_transaction

    def meta(self) -> tuple[str, pa.Schema, StreamSettings]:
        """Returns the stream's id, schema and settings."""
        try:
            rows = self.execute("SELECT name, value, seal FROM meta").fetchall()
            about = {row[0]: row[1] for row in rows if intact((row[0], crc(row[1]), row[2]), "meta")}
            schema = pa.ipc.read_schema(pa.py_buffer(about["schema"]))
            return about["stream"], schema, settings_of(about["settings"])
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            raise damaged(self.file, repr(error)) from error

    def set_schema(self, schema: pa.Schema) -> None:
        """Replaces the stream's schema. Call it in a transaction."""
        meta.put(self.execute, schema=schema.serialize().to_pybytes())

    def set_settings(self, settings: StreamSettings) -> None:
        """Replaces the stream's settings. Call it in a transaction."""
        meta.put(self.execute, settings=settings_text(settings))

    def backup(self, to: sqlite3.Connection) -> None:
        """Copies the catalog as of one moment. Others may write meanwhile."""
        assert self._db is not None, "only a catalog without a lock is copied"
        self._db.backup(to)

    def verify(self, table: str) -> None:
        """Raises Damaged if a row of ``table`` or of its indexes is missing, which no seal shows.

        Reads the whole table.
        """
        for (problem,) in self.execute(f"PRAGMA integrity_check({table})"):
            if problem != "ok":
                raise Damaged(problem)

    def version(self) -> tuple[int, int]:
        """Returns a value that changes each time another connection has written, and if this one was made again."""
        self._renew()
        (version,) = self.execute("PRAGMA data_version").fetchone()
        return self._opened, int(version)

    def is_current(self) -> bool:
        """Returns whether the file at the path is still the one that was opened."""
        return inode_of(self.file) == self._inode and self._has_its_log()

    def require(self) -> None:
        """Checks that the files at the path are still those that were opened. SQLite does not notice a change.

        Raises DataLostError if the stream was deleted, deleted and created again, or restored from a copy.
        """
        self._require_files()
        self._renew()

    def _renew(self) -> None:
        """Reads the file again if this is a copy of it, and somebody may have written since."""
        if self._db is not None and self._copied is not None and is_stale(self.file, self._copied):
            before = self._db
            self._open(self.busy_timeout)
            before.close()

    def _require_writable(self) -> None:
        if not self.writable:
            raise read_only(str(self.file.parent))

    def _require_files(self) -> None:
        now = inode_of(self.file)
        if now != self._inode or not self._has_its_log():
            what = "is gone" if now is None else "was deleted and created again, or replaced by a copy,"
            raise DataLostError(
                f"The stream at {self.file.parent} {what} while it was open. What is sent through sinks, or read "
                "through readers, that were opened before would be lost. Open it again; start queries with a new "
                "checkpoint.",
                path=str(self.file.parent),
            )

    def _has_its_log(self) -> bool:
        """Returns whether the connection's write-ahead log is still at its path. It stays as long as anybody has it."""
        if self._db is None:  # others may remove it
            return True
        log, (connection, known) = inode_of(self._log_file), self._wal
        if connection is not self._db or known is None:
            self._wal = self._db, log
            return True
        return log == known

    def close(self) -> None:
        """Closes the connection. The last connection to close merges the WAL into the file."""
        with no_fork():
            self._suspended = False
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def _check(self) -> int:
        """Returns the catalog's format, after checking that this code can read it and that its tables match it."""
        (application,) = self.execute("PRAGMA application_id").fetchone()
        (version,) = self.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID or version < 1:
            raise StoreCorruptError(
                f"{self.file} is not the catalog of a stream: application id {application:#x} instead of "
                f"{APPLICATION_ID:#x}, format {version}. Restore the directory from a copy.",
                file=str(self.file),
            )
        if version > FORMAT:
            raise StoreUnavailableError(
                f"{self.file} has format {version}, written by a newer spark-rowtime; this version reads formats up to "
                f"{FORMAT}. Upgrade spark-rowtime.",
                file=str(self.file),
                format=version,
            )
        self._check_tables(version)
        return int(version)

    def _check_tables(self, version: int) -> None:
        """Refuses triggers, views and tables that do not belong to the format: SQLite would execute them."""
        found, expected = set(self.execute(STATEMENTS).fetchall()), tables(version)
        if found != expected:
            odd = sorted(str(sql)[:80] for (sql,) in found ^ expected)
            raise damaged(self.file.parent, f"its tables are not those of format {version}: {odd[0]}")

    def _upgrade(self) -> None:
        """Upgrades a catalog of an older format, unless another process has just done so."""
        with self.transaction("IMMEDIATE"):
            for version in range(self._check() + 1, FORMAT + 1):
                for statement in filter(str.strip, UPGRADES[version].split(";")):
                    self.execute(statement)
            self.execute(f"PRAGMA user_version = {FORMAT}")


def create_catalog(file: Path, schema: pa.Schema, settings: StreamSettings) -> None:
    """Writes the catalog of an empty stream, with a new id, to the disk."""
    db = connect(file, "rwc", 0)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        db.executescript(f"BEGIN; {TABLES}")  # one transaction, which costs one sync of the disk
        about = {"stream": str(uuid.uuid4()), "schema": schema.serialize().to_pybytes()}
        meta.put(db.execute, **about, settings=settings_text(replace(settings, location=None)))  # a directory has none
        db.execute("COMMIT")
    finally:
        db.close()
