"""Copies into the database that are under way: rows under the number of a stream that is not there yet.

A copy writes in many transactions, so that none keeps the server from freeing what commits replace. The last one makes
the stream. Until then nobody looks for the rows. ``rowtime.unnamed_objects`` notes the copy, and its session has a
lock. If nobody has the lock, the copy was interrupted: ``gc``, and the next copy, remove what it has left. They remove
the folder of a deleted stream, too, which is noted in the same way until it is gone.

Law (*never a stream*): nothing of a stream that is there is removed, whatever notes there are: a writer may write some.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from spark_rowtime.errors import RowtimeError, StoreCorruptError
from spark_rowtime.store.postgres.connection import Statement, run
from spark_rowtime.store.postgres.objects import Objects
from spark_rowtime.store.postgres.owner import Ownership
from spark_rowtime.store.postgres.stream_locks import copied
from spark_rowtime.types.json_values import load
from spark_rowtime.types.short_repr import short_repr

LOG = logging.getLogger(__name__)
_NOTE = "INSERT INTO rowtime.unnamed_objects VALUES (%s, %s, 'copying', 0)"
_FOUND = (
    "SELECT stream, object FROM rowtime.unnamed_objects u WHERE state = 'copying' "
    "AND has_table_privilege('rowtime.readers', 'DELETE') "
    "AND NOT EXISTS (SELECT 1 FROM rowtime.streams s WHERE s.id = u.stream)"
)
"""The copies whose rows the user may remove. The transaction that makes a copy's stream removes its note."""
_REMOVE = "DELETE FROM rowtime.{} WHERE stream = %s AND NOT EXISTS (SELECT 1 FROM rowtime.streams WHERE id = %s)"
"""A stream that is made meanwhile keeps its rows: the statement sees them only if it sees the stream."""
_END = "DELETE FROM rowtime.unnamed_objects WHERE stream = %s AND state = 'copying'"
_DELETE = "DELETE FROM rowtime.unnamed_objects WHERE stream = %s"
_TABLES = (
    *("events", "trains", "objects", "producers", "rejected", "readers", "key_floors", "accounts", "topic_cuts"),
    "unnamed_objects",
)
"""The tables that a copy writes to before its stream is there. The note of the copy goes last."""


def begin(cursor: psycopg.Cursor[Any], stream: int, name: str, objects: Objects | None) -> None:
    """Notes a copy, of which the session of the cursor has the lock from here on."""
    cursor.execute("SELECT pg_advisory_lock(%s)", (copied(stream),))
    _note(cursor, stream, name, objects)


def _note(cursor: psycopg.Cursor[Any], stream: int, name: str, objects: Objects | None) -> None:
    place = {} if objects is None else {"location": objects.location, "uuid": objects.stream}
    cursor.execute(_NOTE, (stream, json.dumps({"name": name, **place})))


def begin_deletion(cursor: psycopg.Cursor[Any], stream: int, name: str, objects: Objects | None) -> None:
    """Deletes the notes of a stream, but leaves those by which the folder of ``objects`` is found again."""
    cursor.execute(_DELETE if objects is None else f"{_DELETE} AND state <> 'owner'", (stream,))
    if objects is not None:
        _note(cursor, stream, name, objects)


def end_deletion(connection: psycopg.Connection[Any], stream: int) -> None:
    """Notes that the folder of a deleted stream was removed."""
    connection.execute(_DELETE, (stream,))


def end(cursor: psycopg.Cursor[Any], stream: int) -> None:
    """Ends a copy with the transaction that makes its stream."""
    cursor.execute(_END, (stream,))


def ended(stream: int) -> Statement:
    """Returns the statement that waits until the server has ended the session of a copy."""
    return "SELECT pg_advisory_xact_lock(%s)", (copied(stream),)


def remove_interrupted(connection: psycopg.Connection[Any], path: str) -> None:
    """Removes what interrupted copies and deletions have left. ``path`` is one in the database."""
    for stream, about in connection.execute(_FOUND).fetchall():
        with _alone(connection, stream) as alone:
            if alone and (stream, about) in connection.execute(_FOUND).fetchall():  # it has not ended meanwhile
                _remove(connection, stream, about, path)


@contextmanager
def _alone(connection: psycopg.Connection[Any], stream: int) -> Iterator[bool]:
    """Yields whether the lock of a copy was free, and keeps it meanwhile."""
    [alone] = connection.execute("SELECT pg_try_advisory_lock(%s)", (copied(stream),)).fetchone() or (False,)
    try:
        yield alone
    finally:
        if alone:
            with suppress(psycopg.Error):  # of a connection that is lost, which holds no lock
                connection.execute("SELECT pg_advisory_unlock(%s)", (copied(stream),))


def _remove(connection: psycopg.Connection[Any], stream: int, about: str, path: str) -> None:
    try:
        if (objects := _objects(about, path)) is not None:
            _remove_objects(connection, stream, objects)
    except RowtimeError as error:
        LOG.warning(
            "What a copy or a deletion has left under the number %d could not be removed (%s); the next `rowtime gc` "
            "tries again. %s",
            stream,
            short_repr(about),
            error,
        )
        return
    for table in _TABLES:
        connection.execute(_REMOVE.format(table), (stream, stream))


def _objects(about: str, path: str) -> Objects | None:
    """The objects that a copy or a deletion has left, by its note; None if it has no location."""
    try:
        noted = load(about)
        return Objects(path, noted["location"], noted["uuid"]) if "location" in noted else None
    except (ValueError, TypeError, LookupError) as error:
        raise StoreCorruptError(
            f"A note in rowtime.unnamed_objects is none that a copy has written: {short_repr(about)}. Somebody has "
            "changed it; delete it (state = 'copying') if no copy goes on.",
            path=path,
        ) from error


def _remove_objects(connection: psycopg.Connection[Any], stream: int, objects: Objects) -> None:
    """Removes the folder that has the mark of the copy, or of the deleted stream, unless it is that of a stream."""
    owner = Ownership(objects, stream, lambda *statements: run(connection, statements), lambda _: None)
    used = connection.execute("SELECT 1 FROM rowtime.streams WHERE uuid = %s", (objects.stream,)).fetchone()
    if owner.has_marked() and not used:
        objects.remove_all()
    else:
        LOG.warning(
            "%s, which a copy or a deletion has left, was not removed: it is gone, or has another mark", objects.url()
        )
