"""Creates, opens, lists, renames and deletes the streams of a database."""

import json
import logging
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
import pyarrow as pa

from spark_rowtime.errors import (
    InvalidOptionError,
    RowtimeError,
    StoreUnavailableError,
    StreamBusyError,
    StreamExistsError,
    StreamNotFoundError,
)
from spark_rowtime.store.admission import Use, exists, replaced, require_unused, use_of
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.postgres import copies, log_state, tables
from spark_rowtime.store.postgres.address import Address, address, database_address
from spark_rowtime.store.postgres.connection import WAIT_SECONDS, Connection
from spark_rowtime.store.postgres.objects import STREAM_ID, Objects, strange
from spark_rowtime.store.postgres.owner import first_mark
from spark_rowtime.store.postgres.page import PostgresPage
from spark_rowtime.store.postgres.store import PostgresStore, StreamRow
from spark_rowtime.store.postgres.stream_locks import lock_stream
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.postgres.uptime import moment
from spark_rowtime.store.settings import StreamSettings, settings_of, settings_text
from spark_rowtime.types.arguments import did_you_mean, nearest
from spark_rowtime.types.json_values import load
from spark_rowtime.types.short_repr import short_error, short_repr

_STREAM = "SELECT id, name, uuid, schema, settings, ancestors FROM rowtime.streams WHERE name = %s"
_CREATE = (
    "INSERT INTO rowtime.streams (name, uuid, schema, settings, ancestors, id) OVERRIDING SYSTEM VALUE "
    "VALUES (%s, %s, %s, %s, %s, %s)"
)
NUMBERED = "SELECT 1 FROM rowtime.streams WHERE id = %s"
_MOST_NUMBER = (1 << 32) - 1
"""The largest number of a stream: advisory locks have 32 bits for it."""
_DATABASE = "SELECT current_database(), extract(epoch FROM pg_postmaster_start_time())::text"
"""What tells databases apart, however a path names their server."""
_Result = TypeVar("_Result")
LOG = logging.getLogger(__name__)


def create_postgres(path: str, schema: pa.Schema, settings: StreamSettings, producers: Sequence[str] = ()) -> None:
    """Creates an empty stream at ``path`` that expects ``producers``, and the tables, if there are none.

    If two clients create the same stream, one succeeds. Raises StreamExistsError if there is one already.
    """
    where, name = address(path), str(uuid.uuid4())

    def run(cursor: psycopg.Cursor[Any]) -> None:
        if is_there(cursor, where, name):
            return
        stream = free_number(cursor)
        insert_stream(cursor, where, name, schema, settings, {}, stream)
        if producers:
            _expect(cursor.connection, stream, where, schema, settings, producers)
        if settings.location is not None:
            objects = Objects(path, settings.location, name)
            objects.create(schema)
            first_mark(cursor, stream, objects)

    under_lock(where, run, creates=True)


def is_there(cursor: psycopg.Cursor[Any], where: Address, name: str) -> bool:
    """Returns whether the stream was created with the id ``name``, by a call whose connection was lost at its end.

    Raises StreamExistsError if there is another stream.
    """
    row = cursor.execute(_STREAM, (where.stream,)).fetchone()
    if row is not None and row[2] != name:
        raise exists(where.path)
    return row is not None


def insert_stream(
    cursor: psycopg.Cursor[Any],
    where: Address,
    name: str,
    schema: pa.Schema,
    settings: StreamSettings,
    ancestors: Mapping[str, int],
    number: int,
) -> None:
    """Adds a stream with the id ``name`` and the number, without events.

    Raises StreamExistsError if there is a stream at that path.
    """
    require_encoding(cursor, where)
    values = (schema.serialize().to_pybytes(), settings_text(settings), json.dumps(dict(ancestors)))
    try:
        cursor.execute(_CREATE, (where.stream, name, *values, number))
    except psycopg.errors.UniqueViolation:
        raise exists(where.path) from None
    cursor.execute("INSERT INTO rowtime.heads (stream, name) VALUES (%s, %s)", (number, where.stream))
    cursor.execute("INSERT INTO rowtime.gates VALUES (%s)", (number,))


def free_number(cursor: psycopg.Cursor[Any]) -> int:
    """Returns a number that no stream has, at random.

    So a stream that is made where one of the same name was, maybe in a database that was made anew, has another number:
    who has the old one open finds that it is gone.
    """
    number = 1 + secrets.randbelow(_MOST_NUMBER)
    return free_number(cursor) if cursor.execute(NUMBERED, (number,)).fetchone() else number


def require_encoding(cursor: psycopg.Cursor[Any], where: Address) -> None:
    """Raises InvalidOptionError if the database has bytes for characters: some names would have controls in them."""
    found = cursor.execute("SELECT getdatabaseencoding()").fetchone()
    if found == ("SQL_ASCII",):
        raise InvalidOptionError(
            f"The database of {where.path} has the encoding SQL_ASCII, which knows no characters but those of ASCII. "
            "Create one with ENCODING 'UTF8' for its streams.",
            path=where.path,
        )


def _expect(
    connection: psycopg.Connection[Any],
    stream: int,
    where: Address,
    schema: pa.Schema,
    settings: StreamSettings,
    names: Sequence[str],
) -> None:
    transaction = Transaction(connection, stream)
    row = connection.execute(log_state.LOCK, (stream, where.stream), binary=True).fetchone()
    assert row is not None
    transaction.head, at = log_state.loaded(row)
    transaction.at = moment(transaction.head, at, at.micros)
    Ledger(PostgresPage(transaction, where.path, schema, settings, names), where.path, settings).expect(names)
    transaction.flush()


def open_postgres(path: str) -> PostgresStore:
    """Opens the stream at ``path``. Raises StreamNotFoundError if there is none."""
    where = address(path)
    connection = Connection(where)
    try:
        return PostgresStore(path, connection, connection.call(lambda made: _stream(made, where)))
    except BaseException:
        connection.close()
        raise


def _upgraded(connection: psycopg.Connection[Any], where: Address) -> bool:
    """Returns whether there are tables; adds those that an older version of this project did not have."""
    with connection.cursor() as cursor:
        if not tables.require_version(cursor, where.path):
            return False
        if tables.version(cursor) == tables.VERSION:
            return True
        tables.require_owner(cursor, where.path)
    with connection.transaction(), connection.cursor() as cursor:
        tables.lock_tables(cursor)
        tables.create_tables(cursor, where.path)
    return True


def _stream(connection: psycopg.Connection[Any], where: Address) -> StreamRow:
    there = _upgraded(connection, where)
    with connection.cursor(binary=True) as cursor:
        row = cursor.execute(_STREAM, (where.stream,)).fetchone() if there else None
        if row is None:
            raise _not_found(cursor, where)
    return _opened(row, where)


def _opened(row: tuple[Any, ...], where: Address) -> StreamRow:
    number, name, stream, schema, settings, ancestors = row
    if not STREAM_ID.fullmatch(stream):
        raise strange(where.path, f"the id {short_repr(stream)}, which no stream has")
    try:
        read = pa.ipc.read_schema(pa.py_buffer(schema))
        return StreamRow(number, name, stream, read, settings_of(settings), dict(load(ancestors)))
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise strange(where.path, f"a schema or settings that cannot be read ({short_error(error)})") from None


def _not_found(cursor: psycopg.Cursor[Any], where: Address) -> StreamNotFoundError:
    names = _names(cursor)
    return StreamNotFoundError(
        f"There is no stream {where.stream!r} in the database of {where.path}."
        f"{did_you_mean(nearest(where.stream, names))} Check the path; createStream, or `rowtime create`, "
        "creates a stream.",
        path=where.path,
    )


def _names(cursor: psycopg.Cursor[Any]) -> list[str]:
    if tables.version(cursor) is None:
        return []
    return [name for (name,) in cursor.execute("SELECT name FROM rowtime.streams ORDER BY name")]


def list_postgres(path: str) -> list[str]:
    """Returns the paths of the streams of a database, by name. If the path goes on, their names begin with that."""
    where = database_address(path)
    with_names = once(where, lambda made: _names(made.cursor()))
    return [where.other(name) for name in with_names if name.startswith(where.stream)]


def rename_postgres(path: str, to: str) -> None:
    """Renames a stream within its database.

    Raises StreamBusyError if a producer is attached, StreamExistsError if ``to`` exists.
    """
    where, target = address(path), address(to)
    with open_postgres(path) as store:
        store.expire()
    _require_same_database(where, target)

    def run(cursor: psycopg.Cursor[Any]) -> None:
        stream = _locked(cursor, where)
        if cursor.execute(_STREAM, (target.stream,)).fetchone() is not None:
            raise StreamExistsError(f"There is a stream at {to} already. Choose another path.", path=to)
        _require_unattached(cursor, stream, path)
        for table, column in (("streams", "id"), ("heads", "stream")):
            cursor.execute(f"UPDATE rowtime.{table} SET name = %s WHERE {column} = %s", (target.stream, stream))  # noqa: S608

    under_lock(where, run, repeats=False)


def _require_same_database(where: Address, target: Address) -> None:
    if where.conninfo == target.conninfo:
        return
    here, there = (once(one, lambda made: made.execute(_DATABASE).fetchone()) for one in (where, target))
    if here != there:
        raise InvalidOptionError(
            f"{where.path} cannot be renamed to {target.path}, which is in another database. Copy the stream there "
            "with `rowtime copy`, and delete the original.",
            path=where.path,
        )


def delete_postgres(path: str, before: Use | None) -> None:
    """Deletes a stream with all its rows, but leaves objects that belong to another database.

    ``before``: see ``delete_store``.
    """
    where = address(path)
    with open_postgres(path) as store:
        objects, number = store.objects, store.number
        removed = objects if store.owns_objects() else None

    def run(cursor: psycopg.Cursor[Any]) -> None:
        stream = _locked(cursor, where)
        if stream != number:
            raise replaced(path)
        if before is not None:
            with open_postgres(path) as store:
                require_unused(path, before, use_of(store))
        others = [name for name in tables.HISTORY if name != "unnamed_objects"]
        for table, column in (("streams", "id"), *((name, "stream") for name in others)):
            cursor.execute(f"DELETE FROM rowtime.{table} WHERE {column} = %s", (stream,))  # noqa: S608
        copies.begin_deletion(cursor, stream, where.stream, removed)

    under_lock(where, run, repeats=False)
    if removed is not None:
        _remove_all(removed)
        with suppress(RowtimeError):  # otherwise the next ``gc`` notes that the folder is gone
            once(where, lambda made: copies.end_deletion(made, number))
    elif objects is not None:
        LOG.warning("%s was deleted, but not the objects in %s, which belong to another database", path, objects.url())


def _remove_all(objects: Objects) -> None:
    try:
        objects.remove_all()
    except StoreUnavailableError as error:
        raise StoreUnavailableError(
            f"The stream at {objects.path} was deleted, but not its objects: {error}", **error.values
        ) from None


def _locked(cursor: psycopg.Cursor[Any], where: Address) -> int:
    """Locks the stream's rows in ``gates`` and ``heads``, and returns its number."""
    row = cursor.execute(_STREAM, (where.stream,)).fetchone()
    if row is None:
        raise _not_found(cursor, where)
    cursor.execute(*lock_stream(row[0]))
    cursor.execute("SELECT 1 FROM rowtime.heads WHERE stream = %s FOR UPDATE", (row[0],))
    return int(row[0])


def _require_unattached(cursor: psycopg.Cursor[Any], stream: int, path: str) -> None:
    attached = cursor.execute(
        "SELECT name FROM rowtime.producers WHERE stream = %s AND status IN ('attached', 'idle') ORDER BY name",
        (stream,),
    ).fetchall()
    if attached:
        raise StreamBusyError(
            f"{path} cannot be renamed: producer {attached[0][0]!r} is attached. Close its sink first.",
            path=path,
            users=[name for (name,) in attached],
        )


def under_lock(
    where: Address,
    function: Callable[[psycopg.Cursor[Any]], _Result],
    *,
    creates: bool = False,
    repeats: bool = True,
) -> _Result:
    """Runs ``function`` in a transaction in which nobody else creates, renames or deletes a stream.

    ``creates``: creates the tables first, if there are none. ``repeats``: ``function`` may run again, after the
    connection was lost.
    """

    def run(connection: psycopg.Connection[Any]) -> _Result:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{WAIT_SECONDS}s'")
            tables.lock_tables(cursor)
            if creates:
                tables.create_tables(cursor, where.path)
            elif not tables.require_version(cursor, where.path):
                raise _not_found(cursor, where)
            return function(cursor)

    return once(where, run, repeats=repeats)


def once(where: Address, function: Callable[[psycopg.Connection[Any]], _Result], *, repeats: bool = True) -> _Result:
    """Runs ``function`` on a connection of its own, for as long as it takes."""
    connection = Connection(where)
    try:
        with connection.patience():
            return connection.call(function, repeats=repeats)
    finally:
        connection.close()
