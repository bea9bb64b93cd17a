"""Renames and deletes the directory of a stream, unless somebody has the stream open."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from spark_rowtime.errors import InvalidOptionError, StreamBusyError
from spark_rowtime.store.admission import Use, require_unused
from spark_rowtime.store.disk import sync
from spark_rowtime.store.forks import no_fork
from spark_rowtime.store.local.catalog import CATALOG, LOG
from spark_rowtime.store.local.connection import connect
from spark_rowtime.store.local.directory import rename, require_free, require_stream, stray
from spark_rowtime.store.local.folders import absolute
from spark_rowtime.store.local.storage_errors import read_only, storage_errors

_STATE = "SELECT (SELECT value FROM meta WHERE name = 'stream'), COALESCE((SELECT MAX(seq) FROM events), 0)"
PATIENCE_SECONDS = 1.0
"""How long others may have the stream open, such as a command that describes it, before it counts as in use."""


def rename_local(path: str, to: str) -> None:
    """Renames a stream. Raises StreamBusyError while somebody has it open, StreamExistsError if ``to`` exists."""
    source, target = absolute(path), absolute(to)
    require_stream(source)
    _require_no_link(source, "renamed", "Rename that one, and link to it again.")
    with storage_errors(source), only_user(source):
        require_free(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        rename(source, target)
        _remove_empty_log(target)
        for folder in {source.parent, target.parent}:
            sync(folder)


def _remove_empty_log(moved: Path) -> None:
    """Removes what SQLite leaves of a log beside a catalog that was moved: users who may only read cannot open that."""
    log = moved / LOG
    if log.exists() and not log.stat().st_size:
        log.unlink()


def delete_local(path: str, before: Use | None) -> None:
    """Deletes a stream. Unless ``before`` is None, raises StreamBusyError while somebody has it open.

    ``before``: see ``delete_store``.
    """
    source = absolute(path)
    require_stream(source)
    _require_no_link(source, "deleted", "Delete that one, then the link.")
    with storage_errors(source):
        gone = stray(source, "deleting")
        if before is None:
            source.rename(gone)
        else:
            with only_user(source) as now:
                require_unused(path, before, now)
                source.rename(gone)
        sync(source.parent)
        shutil.rmtree(gone)


def _require_no_link(source: Path, done: str, instead: str) -> None:
    """Raises InvalidOptionError for a link. The stream would stay where it is, and be told of as ``done``."""
    if source.is_symlink():
        raise InvalidOptionError(
            f"{source} is a link to the stream at {source.resolve()}. Nothing was {done}. {instead}",
            option="path",
            value=str(source),
        )


@contextmanager
def only_user(source: Path) -> Iterator[Use]:
    """Keeps everybody else from opening the stream, and yields who has used it.

    Raises StreamBusyError if somebody has it open, StoreUnavailableError if this user may not write.

    Each connection to a catalog in WAL mode holds a shared lock on the file, which an exclusive one excludes. SQLite
    does not touch the files at the old path once the catalog has been moved.
    """
    if not os.access(source / CATALOG, os.W_OK):
        raise read_only(str(source))
    with no_fork(), closing(connect(source / CATALOG, "rw", PATIENCE_SECONDS)) as db:
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise StreamBusyError(
                    f"The stream at {source} is open in some process: a sink, a reader, a query or a command. Close "
                    "it, or end that process, and try again.",
                    path=str(source),
                ) from None
            raise
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        stream, seq = db.execute(_STATE).fetchone()
        yield Use(stream, seq, frozenset(name for (name,) in db.execute("SELECT name FROM readers")))
