"""Connection: the connection to a database, which is made again if it is lost. One thread at a time uses it."""

import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg import errors
from psycopg.abc import PQGen

from spark_rowtime.errors import DataLostError, RowtimeError
from spark_rowtime.store.admission import closed, elsewhere, interrupted
from spark_rowtime.store.forks import close_in_children, no_fork
from spark_rowtime.store.postgres.address import Address
from spark_rowtime.store.postgres.database_error import database_error

WAIT_SECONDS = 10
"""How long a connection may take to be made, and a transaction to get a lock."""
STILL_SECONDS = 5
"""How long a client may stand still within a transaction. Who waits for its locks waits for longer."""
SERVER_GONE_SECONDS = 15
"""How long the machine of the server may be silent. With WAIT_SECONDS for another attempt it is less than a lease."""
ANSWER_SECONDS = 5
"""How long a call waits at least for the server to answer, if its caller waits for less."""
SILENT_SECONDS = 60
"""How long the server may be silent within a call. It waits WAIT_SECONDS for a lock, and a portion takes seconds."""
CLIENT: dict[str, Any] = {
    "connect_timeout": WAIT_SECONDS,
    "application_name": "rowtime",
    "tcp_user_timeout": SERVER_GONE_SECONDS * 1000,
    "keepalives_idle": SERVER_GONE_SECONDS // 3,
    "keepalives_interval": SERVER_GONE_SECONDS // 5,
    "keepalives_count": 3,
}
"""The options of the client library where the path has none: a server that vanished is noticed."""
REQUIRE_AUTH_SINCE = 160000
"""The version of the client library from which on it has the option ``require_auth``."""
SETTINGS = (
    "SET quote_all_identifiers = off; SET search_path = pg_catalog, pg_temp; "
    f"SET lock_timeout = '{WAIT_SECONDS}s'; SET idle_in_transaction_session_timeout = '{STILL_SECONDS}s'; "
    "SET tcp_keepalives_idle = 4; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 4; "
    "SET tcp_user_timeout = '8s'; "
    "SET default_transaction_isolation = 'read committed'; SET client_encoding = 'UTF8'; SET extra_float_digits = 0; "
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off"
)
"""A client that stands still within a transaction so loses its connection, as does one whose machine vanished, and
keeps nobody waiting for longer.

Law (*no stranger's function*): what a statement does not qualify is PostgreSQL's own. In ``public`` others may have a
function, or an operator, that fits its arguments better, and would run with the rights of whoever asks. The functions
of ``rowtime`` have the same search path. Its text is compared, and has no quotes: a role may have the setting by which
the server would put them there.

Every query reads a range of an index, in its order. A server that lacks statistics would read whole tables, and sort.
"""
_HARMLESS = (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction, errors.LockNotAvailable)
"""Errors after which the connection is as good as before."""
_CANCELLED = errors.SerializationFailure
"""A standby cancels a read that keeps it from replaying. Nothing here is serializable but reads."""
_ATTEMPTS = 2
_Result = TypeVar("_Result")
Statement = tuple[str, Sequence[Any]]


PREPARED: WeakKeyDictionary[psycopg.Connection[Any], dict[str, str]] = WeakKeyDictionary()
"""The statements that a connection has sent in messages, and the name of each that its session has prepared."""


class _Quiet(psycopg.Connection[Any]):
    """Does not warn if it is garbage collected: a sink that was not closed warns by itself, and a reader loses nothing.

    The client library closes the connection then, in the process that made it.
    """

    given_up_at = math.inf
    """When a call is given up that the server does not answer, by the monotonic clock."""
    silent_seconds: float = SILENT_SECONDS
    """How long the server may be silent within a call, also before that time."""

    def __del__(self, *_: Any) -> None:
        pass

    def wait(self, gen: PQGen[Any], *how: Any, **more: Any) -> Any:
        """See psycopg. It raises OperationalError if the call is given up."""
        return super().wait(_answered(gen, self.given_up_at, self.silent_seconds), *how, **more)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether psycopg logs something that no call raises. The end of a pipeline fails once the connection is lost."""
    about = record.args[0] if isinstance(record.args, tuple) and record.args else None
    return not (isinstance(about, psycopg.Pipeline) and isinstance(about._conn, _Quiet))  # noqa: SLF001


logging.getLogger("psycopg").addFilter(_is_news)


def _answered(gen: PQGen[Any], given_up_at: float, silent_seconds: float) -> PQGen[Any]:
    """Does what ``gen`` does. The time counts from the last answer, since a large one takes longer."""
    try:
        state, heard = next(gen), time.monotonic()
        while True:
            ready, now = (yield state), time.monotonic()
            heard = now if ready else heard
            if now > min(max(given_up_at, heard + ANSWER_SECONDS), heard + silent_seconds):
                raise psycopg.OperationalError("the server has not answered in time")
            state = gen.send(ready)
    except StopIteration as done:
        return done.value


class Connection:
    """``call`` runs a function on the connection, in the process that opened it, in one thread at a time.

    If the connection is lost, the function runs once more on a new one. So it must be one that may run twice.

    Law (*a silent server keeps nobody for ever*; tests/store/test_postgres_silent_server.py): a server can stand still
    with its connections open. A call raises StoreUnavailableError then, unless it has ``patience``.
    """

    def __init__(self, address: Address) -> None:
        self._address, self._process, self._closed, self._patient = address, os.getpid(), False, False
        self._lock, self._busy = threading.RLock(), False
        self._connection: _Quiet | None = None
        self._given_up_at = math.inf
        self._cursor: psycopg.Cursor[Any] | None = None
        """It is used again for each ``look``."""
        close_in_children(self)

    def call(self, function: Callable[[psycopg.Connection[Any]], _Result], *, repeats: bool = True) -> _Result:
        """Returns what ``function`` returns. Errors of the database are raised as RowtimeErrors.

        If ``repeats`` is false, the function is not run again when the connection is lost.
        """
        with self._admitted():
            for left in reversed(range(_ATTEMPTS if repeats else 1)):
                try:
                    return function(self._connected())
                except psycopg.Error as error:
                    lost = self._lost() or isinstance(error, _CANCELLED)
                    if isinstance(error, _HARMLESS):
                        self._end_transaction()
                    else:
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
    def answering(self, seconds: float) -> Iterator[None]:
        """Gives up the calls of the block that the server does not answer: after ``seconds``, but ANSWER_SECONDS."""
        self._given_up_at = time.monotonic() + max(seconds, ANSWER_SECONDS)
        try:
            yield
        finally:
            self._given_up_at = math.inf

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

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Lets the calls of the block take any time: what they do is not divided into portions."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False

    def another(self) -> "Connection":
        """Returns another connection to the same database."""
        return Connection(self._address)

    @property
    def open_here(self) -> bool:
        """Whether calls are admitted in this process."""
        return not self._closed and os.getpid() == self._process

    def close(self) -> None:
        """Refuses all further calls, and closes the connection; not in a forked child, which shares it."""
        here, self._closed = self.open_here, True
        if here:
            self._drop()

    def close_inherited(self) -> None:
        """Closes a forked child's descriptor, so that the server sees the end of the parent. It is told nothing."""
        if self._connection is not None and not self._connection.closed:
            with suppress(psycopg.Error):  # lost, so that it has no descriptor
                os.close(self._connection.pgconn.socket)

    @contextmanager
    def _admitted(self) -> Iterator[None]:
        path = self._address.path
        if os.getpid() != self._process:
            raise elsewhere(path, self._process)
        with self._lock:
            if self._closed:
                raise closed(path)
            if self._busy:
                raise interrupted(path)
            self._busy = True
            try:
                yield
            finally:
                self._busy = False

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            with no_fork():
                self._connection = self._new()
        self._connection.given_up_at = self._given_up_at
        self._connection.silent_seconds = math.inf if self._patient else SILENT_SECONDS
        return self._connection

    def _new(self) -> _Quiet:
        given = psycopg.conninfo.conninfo_to_dict(self._address.conninfo)
        left = {} if self._given_up_at == math.inf else {"connect_timeout": ANSWER_SECONDS}
        string = psycopg.conninfo.make_conninfo("", **{**CLIENT, **_scram(), **given, **left})
        connection = _Quiet.connect(string, autocommit=True)
        # A pooler without a free session accepts the login, and keeps the first statement waiting.
        connection.given_up_at = min(self._given_up_at, time.monotonic() + WAIT_SECONDS)
        connection._prepared._prepared_idx = secrets.randbits(63)  # noqa: SLF001  (see ``message._prepared``)
        try:
            connection.execute(SETTINGS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _lost(self) -> bool:
        """Returns whether the connection was there and broke, so that a new one may help."""
        return self._connection is not None and (self._connection.broken or self._connection.closed)

    def _end_transaction(self) -> None:
        """Ends the transaction, if that has not happened. psycopg drops all statements of the session with it."""
        if self._connection is not None:
            PREPARED.pop(self._connection, None)
        if self._connection is not None and self._connection.info.transaction_status:
            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self._drop()

    def _drop(self) -> None:
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            connection.close()


def _scram() -> dict[str, str]:
    """The option by which a password is used with SCRAM alone: no server gets it, whatever it asks for.

    A server that asks for none is as welcome as ever. The path and the environment may say otherwise.
    """
    known = psycopg.pq.version() >= REQUIRE_AUTH_SINCE and "PGREQUIREAUTH" not in os.environ
    return {"require_auth": "!password,!md5"} if known else {}


def run(connection: psycopg.Connection[Any], statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
    """Runs statements in one round trip, each with a snapshot of its own, and returns the rows of each."""
    if len(statements) == 1:
        return [rows_of(connection.execute(*statements[0], binary=True))]
    with connection.pipeline():
        cursors = [connection.execute(*statement, binary=True) for statement in statements]
    return [rows_of(cursor) for cursor in cursors]


def rows_of(cursor: psycopg.Cursor[Any]) -> list[tuple[Any, ...]]:
    """Returns the rows of a statement, none of one that has no rows."""
    return cursor.fetchall() if cursor.description else []


def gone(path: str) -> DataLostError:
    """Returns the error for a stream that was deleted or renamed while it was open."""
    return DataLostError(
        f"The stream at {path} was deleted or renamed while it was open. What is sent or read through what was opened "
        "before would be lost; open it again.",
        path=path,
    )
