"""The writes of nearly every commit, which one statement makes together with that of the stream's head."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg

from spark_rowtime.store.postgres import heads

Write = tuple[str, Sequence[Any]]
PRODUCER_COLUMNS = (
    "name, status, floor, lease, seen, sent, let_go, epoch, accepted, rejected, number, checkpoint, declaration, "
    "disorder, holder, receipt_seq, receipt_floor"
)
PRODUCER_NAMES = PRODUCER_COLUMNS.split(", ")
_EVENT_TYPES = ("bigint", "bigint", "text", "text", *["bigint"] * 8, "smallint", "bigint", "bigint")
_TRAIN_TYPES = ("bigint", "bigint", "integer", "bytea")
INSERT_EVENT = f"INSERT INTO rowtime.events VALUES ({', '.join(['%s'] * len(_EVENT_TYPES))})"  # noqa: S608  (constants)
INSERT_TRAIN = f"INSERT INTO rowtime.trains VALUES ({', '.join(['%s'] * len(_TRAIN_TYPES))})"  # noqa: S608
UPDATE_PRODUCER = (
    f"UPDATE rowtime.producers SET ({', '.join(PRODUCER_NAMES[1:])}) = "  # noqa: S608
    f"({', '.join(['%s'] * (len(PRODUCER_NAMES) - 1))}) WHERE stream = %s AND name = %s"
)


def _inserts(table: str, types: Sequence[str]) -> str:
    values = ", ".join(f"%s::{kind}" for kind in types)
    return f"INSERT INTO rowtime.{table} SELECT v.* FROM head, (VALUES ({values})) v"  # noqa: S608


FORMS = {
    INSERT_EVENT: _inserts("events", _EVENT_TYPES),
    INSERT_TRAIN: _inserts("trains", _TRAIN_TYPES),
    UPDATE_PRODUCER: f"{UPDATE_PRODUCER} AND EXISTS (SELECT FROM head)",
}
"""The writes that can be combined, and their forms that do nothing unless the head was updated."""


MOST_WRITES = 16
"""How many writes one statement makes at most. More of them are sent one by one, in one round trip under the lock."""


def combinable(writes: Sequence[Write]) -> bool:
    """Returns whether one statement may make the writes."""
    return len(writes) <= MOST_WRITES and all(sql in FORMS for sql, _ in writes)


def combine(head: Write, writes: Sequence[Write]) -> Write:
    """Returns one statement that updates the head and then makes all ``writes``, which are ``combinable``.

    If ``head`` updates nothing, it does nothing. It returns what ``head`` returns. Its placeholders are ``$1``, ``$2``.
    """
    sql = _combined(head[0], tuple(sql for sql, _ in writes))
    return sql, [*head[1], *(value for _, values in writes for value in values)]


@lru_cache(maxsize=100)
def _combined(head: str, writes: tuple[str, ...]) -> str:
    parts = [f"head AS ({head})", *(f"write{n} AS ({FORMS[sql]})" for n, sql in enumerate(writes))]
    first, *rest = f"WITH {', '.join(parts)} SELECT * FROM head".split("%s")  # noqa: S608
    return first + "".join(f"${number}{text}" for number, text in zip(count(1), rest, strict=False))


def update_head(row: heads.HeadRow, stream: int) -> Write:
    """Returns the update of the head, to be combined with other writes."""
    return _UPDATE_HEAD, (*heads.values(row), stream)


_UPDATE_HEAD = f"{heads.UPDATE} RETURNING stream"


def make(connection: psycopg.Connection[Any], write: Write) -> list[tuple[Any, ...]]:
    """Makes a write that ``combine`` returned. It returns the rows, unless the connection is in a pipeline."""
    cursor = psycopg.RawCursor(connection)
    cursor.execute(*write, binary=True)
    return [] if connection.info.pipeline_status else cursor.fetchall()
