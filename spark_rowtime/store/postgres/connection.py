"""Connection: the connection to a database, which is made again if it is lost. One thread at a time uses it."""

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from spark_rowtime.errors import (
    DataLostError,
    InvalidOptionError,
    RowtimeError,
    SinkClosedError,
    StoreUnavailableError,
)
from spark_rowtime.store.postgres.address import Address

WAIT_SECONDS = 10
"""How long a connection may take to be made, a transaction to get a lock, and a transaction to stand still."""
SETTINGS = (
    f"SET lock_timeout = '{WAIT_SECONDS}s'; SET idle_in_transaction_session_timeout = '{WAIT_SECONDS}s'; "
    "SET default_transaction_isolation = 'read committed'; SET client_encoding = 'UTF8'; SET extra_float_digits = 0; "
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off"
)
"""A client that is suspended within a transaction so loses its connection, and keeps nobody waiting for longer.

Every query reads a range of an index, in its order. A server that lacks statistics would read whole tables, and sort.
"""
_NO_SUCH_TEXT = (errors.ProgramLimitExceeded, errors.UntranslatableCharacter)
"""Errors of a text that no repetition stores."""
_ATTEMPTS = 2
_Result = TypeVar("_Result")
Statement = tuple[str, Sequence[Any]]


class _Quiet(psycopg.Connection[Any]):
    """Does not warn if it is garbage collected: a sink that was not closed warns by itself, and a reader loses nothing.

    The client library closes the connection then, in the process that made it.
    """

    def __del__(self, *_: Any) -> None:
        pass


class Connection:
    """``call`` runs a function on the connection, in the process that opened it, in one thread at a time.

    If the connection is lost, the function runs once more on a new one. So it must be one that may run twice.
    """

    def __init__(self, address: Address) -> None:
        self._address, self._process, self._closed = address, os.getpid(), False
        self._lock, self._busy = threading.RLock(), False
        self._connection: psycopg.Connection[Any] | None = None
        self._cursor: psycopg.Cursor[Any] | None = None
        """It is used again for each ``look``."""

    def call(self, function: Callable[[psycopg.Connection[Any]], _Result], *, repeats: bool = True) -> _Result:
        """Returns what ``function`` returns. Errors of the database are raised as RowtimeErrors.

        If ``repeats`` is false, the function is not run again when the connection is lost.
        """
        with self._admitted():
            for left in reversed(range(_ATTEMPTS if repeats else 1)):
                try:
                    return function(self._connected())
                except psycopg.Error as error:
                    lost = self._lost()
                    self._drop()
                    if not (lost and left):
                        raise database_error(error, self._address.path) from None
                except RowtimeError:
                    self._end_transaction()
                    raise
                except BaseException:
                    self._drop()
                    raise
        raise AssertionError

    def rows(self, *statements: Statement) -> list[list[tuple[Any, ...]]]:
        """Runs statements in one round trip, each with a snapshot of its own, and returns the rows of each."""
        return self.call(lambda connection: run(connection, statements))

    def one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """Returns the first row of a statement."""
        found = self.rows((sql, values))[0]
        return found[0] if found else None

    def look(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """Does what ``one`` does, for a small answer that is asked for often. It takes a third of the time."""

        def ask(connection: psycopg.Connection[Any]) -> tuple[Any, ...] | None:
            if self._cursor is None or self._cursor.connection is not connection:
                self._cursor = connection.cursor(binary=True)
            return self._cursor.execute(sql, values).fetchone()

        return self.call(ask)

    @contextmanager
    def lent(self) -> Iterator[psycopg.Connection[Any]]:
        """Yields the connection for a longer time, in which no other call is admitted. Nothing is repeated."""
        with self._admitted():
            try:
                yield self._connected()
            except psycopg.Error as error:
                self._drop()
                raise database_error(error, self._address.path) from None
            except BaseException:
                self._drop()
                raise

    @property
    def open_here(self) -> bool:
        """Whether calls are admitted in this process."""
        return not self._closed and os.getpid() == self._process

    def close(self) -> None:
        """Refuses all further calls, and closes the connection; not in a forked child, which shares it."""
        here, self._closed = self.open_here, True
        if here:
            self._drop()

    @contextmanager
    def _admitted(self) -> Iterator[None]:
        path = self._address.path
        if os.getpid() != self._process:
            raise SinkClosedError(
                f"The stream at {path} was opened in process {self._process} and used in process {os.getpid()}, which "
                "was forked from it. Open it in each process.",
                path=path,
            )
        with self._lock:
            if self._closed:
                raise SinkClosedError(f"The stream at {path} was closed. Open it again.", path=path)
            if self._busy:
                raise StoreUnavailableError(
                    f"A call on the stream at {path} was made while another one was interrupted in the same thread, as "
                    "by a signal's handler. Nothing of this call has landed; call it again after the other has "
                    "returned.",
                    path=path,
                )
            self._busy = True
            try:
                yield
            finally:
                self._busy = False

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            given = psycopg.conninfo.conninfo_to_dict(self._address.conninfo)
            defaults: dict[str, Any] = {
                "connect_timeout": WAIT_SECONDS,
                "application_name": "rowtime",
                "keepalives_idle": 30,
            }
            string = psycopg.conninfo.make_conninfo("", **{**defaults, **given})
            connection = _Quiet.connect(string, autocommit=True)
            try:
                connection.execute(SETTINGS)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _lost(self) -> bool:
        """Returns whether the connection was there and broke, so that a new one may help."""
        return self._connection is not None and (self._connection.broken or self._connection.closed)

    def _end_transaction(self) -> None:
        if self._connection is not None and self._connection.info.transaction_status:
            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self._drop()

    def _drop(self) -> None:
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            connection.close()


def run(connection: psycopg.Connection[Any], statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
    """Runs statements in one round trip, each with a snapshot of its own, and returns the rows of each."""
    if len(statements) == 1:
        return [_rows(connection.execute(*statements[0], binary=True))]
    with connection.pipeline():
        cursors = [connection.execute(*statement, binary=True) for statement in statements]
    return [_rows(cursor) for cursor in cursors]


def _rows(cursor: psycopg.Cursor[Any]) -> list[tuple[Any, ...]]:
    return cursor.fetchall() if cursor.description else []


def database_error(error: psycopg.Error, path: str) -> RowtimeError:
    """Translates an error of psycopg about the stream at ``path`` into a RowtimeError."""
    what = _text(error)
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreUnavailableError(
            f"The user of {path} lacks a privilege: {what}. Nothing of this call has landed. Grant it: the guide on "
            "PostgreSQL lists what readers, writers and owners need.",
            path=path,
            lacks="privilege",
        )
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StoreUnavailableError(
            f"The connection of {path} may only read: {what}. Nothing of this call has landed. The server is a "
            "standby, or default_transaction_read_only is set. Name the server that writes, or unset it.",
            path=path,
            lacks="privilege",
        )
    if isinstance(error, _NO_SUCH_TEXT):
        return InvalidOptionError(
            f"The database of {path} cannot store this: {what}. Names of streams, producers and readers may have up to "
            "2,600 bytes, and only characters that the encoding of the database has. Create it with the encoding UTF8.",
            path=path,
        )
    if isinstance(error, errors.LockNotAvailable):
        return StoreUnavailableError(
            f"Another client keeps the stream at {path} locked ({what}). Nothing of this call was committed. Try "
            "again, and look in pg_stat_activity for a session that hangs.",
            path=path,
        )
    return StoreUnavailableError(f"The database of {path} cannot be used just now ({what}). {_advice(what)}", path=path)


def _advice(what: str) -> str:
    """What to do. A connection that fails may be one to another place than is meant."""
    form = "in the path, postgresql://USER@HOST:PORT/DATABASE/STREAM"
    if re.search('database "[^"]*" does not exist', what):
        return f"Look at the database {form}: psql -l lists those of a server, and createdb makes one."
    where = f"If the server runs, look at host and port {form}. " if "Connection refused" in what else ""
    return (
        f"{where}Call again: a commit that has landed in spite of this error is recognised by its number, and does not "
        "land twice."
    )


def gone(path: str) -> DataLostError:
    """Returns the error for a stream that was deleted or renamed while it was open."""
    return DataLostError(
        f"The stream at {path} was deleted or renamed while it was open. What is sent or read through what was opened "
        "before would be lost; open it again.",
        path=path,
    )


def _text(error: psycopg.Error) -> str:
    """The first line of the server's or the client library's message."""
    return (error.diag.message_primary or str(error).partition("\n")[0] or type(error).__name__).strip()
