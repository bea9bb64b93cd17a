"""Translates the errors of SQLite and of the file system about a stream."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_rowtime.errors import RowtimeError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.store.local.seal import Damaged

_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_ODD = re.compile("no such|decode|malformed|unsupported file format")
"""Parts of SQLite's error messages for a catalog whose tables or texts are damaged."""
STORAGE_ERRORS = (sqlite3.Error, OSError, UnicodeDecodeError)
"""The errors that :func:`storage_error` translates. The last occurs if SQLite's own texts are damaged."""
_WAITING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@contextmanager
def storage_errors(path: object) -> Iterator[None]:
    """Translates STORAGE_ERRORS with :func:`storage_error`. ``path`` is that of the stream."""
    try:
        yield
    except STORAGE_ERRORS as error:
        raise storage_error(error, str(path)) from error


def is_locked(error: BaseException | None) -> bool:
    """Returns whether it is SQLite's error for another connection's lock, after it has waited for that."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _WAITING


def storage_error(error: Exception, path: str) -> RowtimeError:
    """Translates an error of SQLite or the file system about the stream at ``path`` into a RowtimeError."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if (
        code in _CORRUPT
        or isinstance(error, Damaged | UnicodeDecodeError)
        or (isinstance(error, sqlite3.Error) and _ODD.search(str(error)))
    ):
        return damaged(path, str(error))
    if code == sqlite3.SQLITE_READONLY:
        return read_only(path)
    if is_locked(error):
        return StoreUnavailableError(
            f"Another process keeps the catalog of {path} locked ({error}). Nothing of this call was committed. "
            "Try again, and look for a process that hangs.",
            path=path,
        )
    return StoreUnavailableError(
        f"The stream at {path} cannot be reached or written ({error}). Nothing of this call was committed. "
        "Check the free space and the permissions.",
        path=path,
    )


def read_only(path: str) -> StoreUnavailableError:
    """The error for a call that writes, of a user who may only read."""
    return StoreUnavailableError(
        f"This user may not write into the stream at {path}: the directory or its catalog.db is read-only for it. "
        "Nothing of this call was committed. Check the permissions; to read needs no more than the right to read.",
        path=path,
        lacks="write permission",
    )


def damaged(path: Path | str, why: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"The catalog of {path}, catalog.db, is damaged ({why}). `rowtime check` shows what is still readable. "
        "Restore the directory from a copy.",
        path=str(path),
    )
