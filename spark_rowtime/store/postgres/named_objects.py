"""The queries for the objects that commits name, and for those that none names or that are to be removed."""

from collections.abc import Sequence
from typing import Any

from spark_rowtime.store.commits import Slice, Staged
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.objects import InObject
from spark_rowtime.store.postgres.stream_locks import unread
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.retention import STAGED_RETENTION_MICROS, staged_gone

UNNAMED, ABANDONED, OUTDATED = "unnamed", "abandoned", "outdated"
"""The states of a row of ``rowtime.unnamed_objects``: no commit named the object at the uptime ``since``; none may name
it any more, and ``gc`` removes it; ``gc`` has removed its rows from the log, and removes it."""
_INSERT = "INSERT INTO rowtime.objects VALUES (%s, %s, %s, %s)"
_FOUND = 'SELECT seq, object, "offset" FROM rowtime.objects WHERE stream = %s AND seq = ANY(%s)'
_CUT = (
    "WITH gone AS (DELETE FROM rowtime.objects WHERE stream = %s AND seq <= %s RETURNING object) "
    "INSERT INTO rowtime.unnamed_objects SELECT DISTINCT %s::bigint, object, %s, 0 FROM gone WHERE NOT EXISTS "
    "(SELECT FROM rowtime.objects o WHERE o.stream = %s AND o.object = gone.object AND o.seq > %s) "
    "ON CONFLICT (stream, object) DO UPDATE SET state = excluded.state"
)
_REFUSED = "SELECT object FROM rowtime.unnamed_objects WHERE stream = %s AND object = ANY(%s) AND state = 'abandoned'"
_NAMED = "SELECT DISTINCT object FROM rowtime.objects WHERE stream = %s AND object = ANY(%s)"
_NOTED = "SELECT object, state, since FROM rowtime.unnamed_objects WHERE stream = %s AND object = ANY(%s)"
_NOTE = (
    "INSERT INTO rowtime.unnamed_objects SELECT %s::bigint, object, 'unnamed', %s::bigint "
    "FROM unnest(%s::text[]) object"
)
_ABANDON = (
    "UPDATE rowtime.unnamed_objects SET state = 'abandoned' WHERE stream = %s AND object = ANY(%s) "
    "AND state = 'unnamed'"
)
_OUTDATED = "SELECT object FROM rowtime.unnamed_objects WHERE stream = %s AND state = 'outdated' LIMIT %s"
_FORGET = "DELETE FROM rowtime.unnamed_objects WHERE stream = %s AND object = ANY(%s) AND state <> 'abandoned'"
_FORGET_ABSENT = "DELETE FROM rowtime.unnamed_objects WHERE stream = %s AND state = 'unnamed' AND since <= %s"


def name(transaction: Transaction, seq: int, place: InObject) -> None:
    """Makes the event ``seq`` name an object."""
    transaction.write(_INSERT, transaction.stream, seq, place.object, place.offset)


def found(stream: int, pieces: Sequence[Slice]) -> Statement:
    """Returns the query for the objects of trains. Its rows are for :func:`located`."""
    return _FOUND, (stream, [piece.seq for piece in pieces])


def places(pieces: Sequence[Slice], rows: Sequence[tuple[int, str, int]]) -> dict[int, InObject]:
    """Returns, by seq, where those of the trains are that are in objects."""
    known = {piece.seq: piece.location for piece in pieces}
    return {seq: InObject(name, offset, known[seq].length, known[seq].checksum) for seq, name, offset in rows}


def require_kept(transaction: Transaction, trains: Sequence[Staged], path: str) -> None:
    """Raises StoreUnavailableError if ``gc`` has given up an object of the trains, since nothing had named it for long.

    Such an object may be gone. Whoever commits sends its rows again.
    """
    names = [train.location.object for train in trains if isinstance(train.location, InObject)]
    if names and transaction.query(_REFUSED, transaction.stream, names):
        raise staged_gone(path)


def cut(transaction: Transaction, seq: int) -> None:
    """Makes the events up to ``seq`` name no object any more. Objects that no other event names are outdated."""
    stream = transaction.stream
    transaction.write(_CUT, stream, seq, stream, OUTDATED, stream, seq)


def outdated(transaction: Transaction, limit: int) -> list[str]:
    """Returns objects that are to be removed, since their rows were; none while a copy or a check may read them."""
    if not transaction.ask(unread(transaction.stream))[0][0]:
        return []
    return [name for (name,) in transaction.query(_OUTDATED, transaction.stream, limit)]


def forget(transaction: Transaction, names: Sequence[str]) -> None:
    """Forgets outdated objects, which were removed."""
    transaction.write(_FORGET, transaction.stream, list(names))


def abandon(transaction: Transaction, names: Sequence[str]) -> list[str]:
    """Returns those of the objects that are to be removed, since no commit has named them for a day.

    From now on no commit may name them. An object that no commit names yet is noted, with the uptime.
    """
    stream, now, wanted = transaction.stream, transaction.at.uptime, list(names)
    named = {name for (name,) in transaction.query(_NAMED, stream, wanted)}
    noted: dict[str, tuple[Any, ...]] = {row[0]: row[1:] for row in transaction.query(_NOTED, stream, wanted)}
    transaction.write(_FORGET, stream, [name for name in noted if name in named])
    transaction.write(_NOTE, stream, now, [name for name in wanted if name not in named and name not in noted])
    old = [
        name
        for name, (state, since) in noted.items()
        if name not in named and (state == ABANDONED or (state == UNNAMED and since <= now - STAGED_RETENTION_MICROS))
    ]
    transaction.write(_ABANDON, stream, old)
    return old


def forget_absent(transaction: Transaction) -> None:
    """Forgets objects that were noted a day ago or earlier, and are no longer there."""
    transaction.write(_FORGET_ABSENT, transaction.stream, transaction.at.uptime - STAGED_RETENTION_MICROS)
