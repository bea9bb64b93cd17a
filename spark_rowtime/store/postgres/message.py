"""A message: statements that reach the server in one piece, with their values in it, and are run from there."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from secrets import token_hex
from typing import Any

import psycopg

from spark_rowtime.store.postgres.connection import PREPARED, Statement, rows_of

_PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
"""How statements begin that the server plans, and so can prepare."""


def run_at_once(connection: psycopg.Connection[Any], statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
    """Runs statements in one round trip, as one message with their values in it, and returns the rows of each.

    Law: the server begins with a message once it has all of it, and a client within a transaction that sends none, or
    not the rest of one, loses its connection after STILL_SECONDS. In a pipeline the server waits for each message of it
    without a limit, and has run those before.

    What comes for the second time is prepared, in a message before, so that the session parses and plans it once. That
    message has no values: the server keeps all of its text with each statement.
    """
    cursor, names = psycopg.ClientCursor(connection), PREPARED.setdefault(connection, {})
    planned = dict.fromkeys(sql for sql, _ in statements if sql.startswith(_PLANNED))
    names.update(_prepared(cursor, [sql for sql in planned if names.get(sql) == ""]))
    texts = [
        cursor.mogrify(_execute(names[sql], len(values)) if names.get(sql) else sql, values)
        for sql, values in statements
    ]
    for sql in planned:
        names.setdefault(sql, "")
    cursor.execute("; ".join(texts))
    return list(_results(cursor))


def _prepared(cursor: psycopg.Cursor[Any], statements: Iterable[str]) -> dict[str, str]:
    """Prepares the statements, and returns their names. Those of a message that fails are not used again.

    No other client has a statement of such a name, with which a pooler that mixes sessions would answer.
    """
    names = {sql: f"rowtime_{token_hex(8)}" for sql in statements}
    if names:
        cursor.execute("; ".join(f"PREPARE {name} AS {_numbered(sql)}" for sql, name in names.items()))
    return names


def _numbered(sql: str) -> str:
    numbers = count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", sql)


def _execute(name: str, values: int) -> str:
    return f"EXECUTE {name}({', '.join(['%s'] * values)})" if values else f"EXECUTE {name}"


def _results(cursor: psycopg.Cursor[Any]) -> Iterator[list[tuple[Any, ...]]]:
    yield rows_of(cursor)
    while cursor.nextset():
        yield rows_of(cursor)
