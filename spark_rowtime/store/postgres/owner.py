"""The owner's mark in a location: which database decides about the objects of a stream, so that a clone of it does not.

A clone of a database, such as a restored backup, names the objects of the original, and misses those that the original
has written since. If it removed objects, the original would lose rows.
"""

import json
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from psycopg import Cursor

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store.postgres.objects import Objects
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.types.json_values import load
from spark_rowtime.types.timestamps import DAY_MICROS

LACKS = "location"
"""What a stream lacks whose location belongs to another database, in the values of the error."""
KEPT_MICROS = 7 * DAY_MICROS
"""How long a database remembers a mark: a client that stood still may write one that is not the newest."""
_HERE = (
    "SELECT system_identifier::text, GREATEST(min_recovery_end_timeline, timeline_id), oid::bigint, datname::text "
    "FROM pg_control_system(), pg_control_recovery(), pg_control_checkpoint(), pg_database "
    "WHERE datname = current_database()"
)
"""A server that was promoted has its last checkpoint on the old timeline for some minutes, and ends its recovery on the
new one. After the next checkpoint it has no end of a recovery."""
_MARKS = (
    "(SELECT object FROM rowtime.unnamed_objects WHERE stream = %s AND object = %s AND state = 'owner') UNION ALL "
    "(SELECT object FROM rowtime.unnamed_objects WHERE stream = %s AND state = 'owner' LIMIT 1)"
)
"""A mark if this database has written it, and any that it has: there may be thousands of them."""
_NOTE = "INSERT INTO rowtime.unnamed_objects VALUES (%s, %s, 'owner', %s)"
_FIRST = (
    "INSERT INTO rowtime.unnamed_objects "
    "SELECT %s::bigint, %s, 'owner', (extract(epoch FROM clock_timestamp()) * 1e6)::bigint"
)
"""The uptime of a stream starts at that clock's time."""
_FORGET = "DELETE FROM rowtime.unnamed_objects WHERE stream = %s AND state = 'owner' AND since < %s AND object <> %s"
_MARK = re.compile(r"[0-9a-f]{32}")


class Database(NamedTuple):
    """What tells a database from others. A copy of the server's files has the same, until it has a timeline of its own.

    A server begins a new timeline when it is promoted, and when it was restored from a backup to a point in time.
    """

    system: str
    timeline: int
    number: int
    name: str

    def shown(self) -> str:
        return f"database {self.name!r} (oid {self.number}) of system {self.system}, timeline {self.timeline}"


class Mark(NamedTuple):
    """The content of the object ``owner.json``."""

    database: Database
    stream: str
    mark: str
    """It is written again before objects are removed, so that of a database and its copy only one goes on."""

    def content(self) -> bytes:
        return json.dumps({**self.database._asdict(), "stream": self.stream, "mark": self.mark}).encode()

    @classmethod
    def of(cls, content: bytes) -> "Mark | None":
        """Returns the mark of that content; None if it is none."""
        try:
            found = load(content)
            database = Database(*(found[name] for name in Database._fields))
            mark = str(found["mark"])
            return cls(database, str(found["stream"]), mark) if _MARK.fullmatch(mark) else None
        except (ValueError, TypeError, KeyError):
            return None


class Ownership:
    """Whether this database owns the objects of a stream.

    ``ask`` runs statements and returns the rows of each, ``transact`` runs a function in a transaction of the stream.
    Law: before an object is removed, the location has a mark that this database has written, on this timeline. Law
    (*marks are known*): a database knows the marks that it has noted in the last ``KEPT_MICROS``, however many there
    are, and that which the location had at the last renewal, however old it is.
    """

    def __init__(
        self,
        objects: Objects,
        stream: int,
        ask: Callable[..., list[list[tuple[Any, ...]]]],
        transact: Callable[[Callable[[Transaction], Any]], Any],
    ) -> None:
        self._objects, self._stream, self._ask, self._transact = objects, stream, ask, transact

    def require(self) -> None:
        """Raises StoreUnavailableError if the objects belong to another database, which would remove what is added."""
        here, known, found = self._look()
        if found is not None and not self._is_own(found, here._replace(timeline=found.database.timeline), known):
            raise self._foreign(found, here, "written")

    def renew(self) -> None:
        """Raises StoreUnavailableError unless this database may remove objects. Writes a new mark."""
        here, known, found = self._look()
        if (found is None and known) or (found is not None and not self._is_own(found, here, known)):
            raise self._foreign(found, here, "removed")
        self._write(here, found)

    def owns(self) -> bool:
        """Returns whether this database may remove objects."""
        here, known, found = self._look()
        return not known if found is None else self._is_own(found, here, known)

    def has_marked(self) -> bool:
        """Returns whether the mark in the location is one that this database has written for the stream."""
        here, known, found = self._look()
        return found is not None and self._is_own(found, here, known)

    def take(self) -> None:
        """Makes this database the owner, whoever was it."""
        here, _, found = self._look()
        self._write(here, found)

    def _look(self) -> tuple[Database, set[str], Mark | None]:
        content = self._objects.read_mark()  # first: a mark that is there was noted before
        found = None if content is None else Mark.of(content) or Mark(Database("?", 0, 0, "?"), "?", "")
        rows, marks = self._ask((_HERE, ()), (_MARKS, (self._stream, _text(found), self._stream)))
        return Database(*rows[0]), {mark for (mark,) in marks}, found

    def _is_own(self, found: Mark, here: Database, known: set[str]) -> bool:
        same = found.database._replace(name=here.name) == here and found.stream == self._objects.stream
        return same and found.mark in known

    def _write(self, here: Database, found: Mark | None) -> None:
        mark = Mark(here, self._objects.stream, os.urandom(16).hex())

        def note(transaction: Transaction) -> None:
            transaction.write(_NOTE, self._stream, mark.mark, transaction.at.uptime)
            transaction.write(_FORGET, self._stream, transaction.at.uptime - KEPT_MICROS, _text(found))

        self._transact(note)  # before the object: a mark that no database knows would belong to nobody
        self._objects.write_mark(mark.content())

    def _foreign(self, found: Mark | None, here: Database, what: str) -> StoreUnavailableError:
        path, url = self._objects.path, self._objects.url()
        there = "is gone" if found is None else f"is of {found.database.shown()}"
        if found is not None and found.database == here:
            there += ", which has written it since this copy of the database was made"
        return StoreUnavailableError(
            f"The objects in {url} do not belong to the database of {path}: the mark there {there}, and this is "
            f"{here.shown()}. No object was {what}. If this database is a copy, such as a restored backup, give "
            f"its stream a location of its own; if the stream has moved here for good, run `rowtime adopt {path}`. The "
            "guide on PostgreSQL has the steps.",
            path=path,
            object=url,
            lacks=LACKS,
        )


def _text(found: Mark | None) -> str:
    """Returns the random word of a mark; "", which no mark has, if there is none."""
    return "" if found is None else found.mark


def first_mark(cursor: Cursor[Any], stream: int, objects: Objects) -> None:
    """Marks the location of a new stream as that of this database."""
    row = cursor.execute(_HERE).fetchone()
    assert row is not None
    mark = Mark(Database(*row), objects.stream, os.urandom(16).hex())
    cursor.execute(_FIRST, (stream, mark.mark))
    objects.write_mark(mark.content())
