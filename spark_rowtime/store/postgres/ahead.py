"""Large values of a commit, which are in the database before its transaction locks the stream.

Their bytes take long to come and to be stored, and everybody else would wait meanwhile. So they are inserted first, as
trains under keys that nobody looks for. Under the lock a train gets its seq; what is no train is copied from there.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg

from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.message import run_at_once

SMALL_BYTES = 8 << 10
"""If a commit has no more bytes in all, they travel with its other writes. They would be in the log of a server that
refuses these."""
PORTION_ROWS, PORTION_BYTES = 1000, 64 << 20
"""How many parts one statement inserts at most, and after how many bytes it has no more."""
SENDING_SECONDS = 60
"""How long each portion may take, where the server (17 or later) can limit it. The transaction blocks nobody yet."""
_FIRST_KEY = 1 << 62
_LIMITED = 170_000
"""The first server with transaction_timeout. The time begins again only if there was no limit before."""
_MOVE = "UPDATE rowtime.trains SET seq = %s WHERE stream = %s AND seq = %s"
_REMOVE = "DELETE FROM rowtime.trains WHERE stream = %s AND seq = ANY(%s)"
SENT_AHEAD = "(SELECT bytes FROM rowtime.trains WHERE stream = %s AND seq = %s AND part = %s)"
"""Stands for a value that was sent ahead, in a statement under the lock."""


class Ahead:
    """What is sent ahead: things, each with the bytes of its parts. They have to exist as long as this object."""

    def __init__(self, things: Iterable[tuple[object, Sequence[bytes]]] = ()) -> None:
        self._parts = {id(thing): parts for thing, parts in things}
        size = sum(len(part) for parts in self._parts.values() for part in parts)
        self._large, self._keys = size > SMALL_BYTES, dict[int, int]()

    def send(self, connection: psycopg.Connection[Any], stream: int) -> bool:
        """Begins a transaction and inserts the parts, if they are large. Returns whether it did."""
        self._keys = {thing: _FIRST_KEY + secrets.randbits(61) for thing in self._parts} if self._large else {}
        if self._large:
            limit: list[Statement] = [(f"SET LOCAL transaction_timeout = '{s}s'", ()) for s in (0, SENDING_SECONDS)]
            limit = limit if connection.info.server_version >= _LIMITED else []
            first: list[Statement] = [("BEGIN", ()), *limit]
            for portion in portions(self._rows(stream), PORTION_ROWS, PORTION_BYTES):
                if first:
                    run_at_once(connection, first)
                first = limit
                places = ", ".join(["(%s, %s, %s, %s)"] * len(portion))
                values = [value for row in portion for value in row]
                connection.execute(f"INSERT INTO rowtime.trains VALUES {places}", values, prepare=False)  # noqa: S608
        return self._large

    def _rows(self, stream: int) -> Iterator[tuple[int, int, int, bytes]]:
        for thing, key in self._keys.items():
            for number, part in enumerate(self._parts[thing]):
                yield stream, key, number, part

    def moved(self, thing: object, stream: int, seq: int) -> Statement | None:
        """Returns the statement by which the parts become a train; None: they were not sent ahead."""
        key = self._keys.pop(id(thing), None)
        return None if key is None else (_MOVE, (seq, stream, key))

    def copied(self, thing: object, stream: int, part: int = 0) -> tuple[int, int, int] | None:
        """Returns the values for SENT_AHEAD; None: the thing was not sent ahead."""
        key = self._keys.get(id(thing))
        return None if key is None else (stream, key, part)

    def removed(self, stream: int) -> list[Statement]:
        """Returns the statement that removes what did not become a train, if there is anything."""
        return [(_REMOVE, (stream, list(self._keys.values())))] if self._keys else []


def portions(rows: Iterable[tuple[Any, ...]], most_rows: int, most_bytes: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yields the rows in portions. A portion ends at so many rows, or with the row that makes it larger than that."""
    portion, size = list[tuple[Any, ...]](), 0
    for row in rows:
        portion.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > most_bytes or len(portion) >= most_rows:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
