"""The rejected rows in the database."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store import rejection_rules as rules
from spark_rowtime.store.cells import COUNT, TIME, TIME_OR_NONE, Cells
from spark_rowtime.store.commits import Rejected, Rejection
from spark_rowtime.store.history import KeptRejection
from spark_rowtime.store.messages import read_batch
from spark_rowtime.store.postgres.ahead import SENT_AHEAD
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.strange_rows import require
from spark_rowtime.store.postgres.stream_locks import unread
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.rejection_rules import Old

_INSERT = f"INSERT INTO rowtime.rejected VALUES ({', '.join(['%s'] * 13)})"  # noqa: S608  (constants)
_COPY = f"INSERT INTO rowtime.rejected VALUES ({', '.join(['%s'] * 12)}, {SENT_AHEAD})"  # noqa: S608
_COLUMNS = "id, producer, time, reason, bound, owner, origin_producer, event, rows"
_CELLS = Cells(_COLUMNS.split(", "), id=COUNT, time=TIME, bound=TIME_OR_NONE)
_PORTION = (
    f"SELECT {_COLUMNS}, number, at_commit FROM rowtime.rejected WHERE stream = %s AND id > %s AND id <= %s "  # noqa: S608
    "ORDER BY id LIMIT %s"
)
_RECEIPT = (
    f"SELECT {_COLUMNS} FROM rowtime.rejected WHERE stream = %s AND producer = %s AND number = %s AND at_commit "  # noqa: S608
    "ORDER BY id"
)
_OLDEST = (
    "SELECT r.id, r.count, octet_length(r.rows) FROM rowtime.rejected r WHERE r.stream = %s AND r.id <= %s AND NOT "
    "(r.at_commit AND EXISTS (SELECT FROM rowtime.producers p WHERE p.stream = r.stream AND p.name = r.producer "
    "AND p.number = r.number)) ORDER BY r.id LIMIT %s"
)
"""Selects the rejections that may be removed. What a receipt contains stays, for a retry of the commit."""
_TOTALS = (
    "SELECT COALESCE(sum(count), 0)::bigint, COALESCE(sum(octet_length(rows)), 0) FROM rowtime.rejected "
    "WHERE stream = %s"
)
_DELETE = "DELETE FROM rowtime.rejected WHERE stream = %s AND id = ANY(%s)"


def add(
    transaction: Transaction, producer: str, number: int, rejected: Sequence[tuple[Rejected, bool]], most: int
) -> None:
    """Stores what the producer's commit ``number`` rejected, and removes the oldest rejections beyond ``most`` bytes.

    Each rejection comes with whether only the store could reject these rows.
    """
    head = transaction.head
    before = head.rejections
    for one, at_commit in rejected:
        _add(transaction, producer, number, one, at_commit)
    if head.rejected_bytes > most and transaction.ask(unread(transaction.stream))[0][0]:
        _limit(transaction, before, most)


def _add(transaction: Transaction, producer: str, number: int, rejected: Rejected, at_commit: bool) -> None:
    head, origin = transaction.head, rejected.origin
    whose = (None, None, None) if origin is None else (origin.owner, origin.producer, origin.event)
    for part, (count, rows) in enumerate(contents(rejected.rows)):
        head.rejections, head.rejected_bytes = head.rejections + 1, head.rejected_bytes + len(rows)
        values = (transaction.at.wall, rejected.reason, rejected.bound, at_commit, *whose, count)
        place = transaction.ahead.copied(rejected.rows, transaction.stream, part)
        sql, given = (_INSERT, (rows,)) if place is None else (_COPY, place)
        transaction.write(sql, transaction.stream, head.rejections, producer, number, *values, *given)


def _limit(transaction: Transaction, before: int, most: int) -> None:
    """Removes the oldest rejections up to the number ``before``."""
    head = transaction.head
    added = head.rejections - before
    rows = transaction.query(_OLDEST, transaction.stream, before, rules.MOST_REMOVED + added)
    gone = rules.going((Old(*row) for row in rows), head.rejected_bytes, most, added)
    head.rejected_bytes -= sum(old.size for old in gone)
    head.rejected_removed += sum(old.rows for old in gone)
    if gone:
        transaction.write(_DELETE, transaction.stream, [old.number for old in gone])


def contents(rows: pa.RecordBatch) -> list[tuple[int, bytes]]:
    """Returns the rows as they are stored: one or several rejections, each with how many rows it has."""
    return [(part.num_rows, part.serialize().to_pybytes()) for part in rules.parts(rows)]


def of_receipt(stream: int, producer: str, number: int) -> Statement:
    """Returns the query for what the store rejected of the producer's commit ``number``."""
    return _RECEIPT, (stream, producer, number)


def totals(stream: int) -> Statement:
    """Returns the query for how many rejected rows are kept, and in how many bytes."""
    return _TOTALS, (stream,)


def portion(stream: int, after: int, upto: int) -> Statement:
    """Returns the query for the next rejections; fewer than PORTION_REJECTIONS: all."""
    return _PORTION, (stream, after, upto, rules.PORTION_REJECTIONS)


def opened(row: tuple[Any, ...], schema: pa.Schema, path: str) -> Rejection:
    """Returns the rejection of a row of ``portion`` or ``of_receipt``. Raises StoreCorruptError if it is damaged."""
    require(_CELLS, row, "rejected")
    number, producer, time, reason, bound, *whose, content = row[:9]
    origin = None if whose[0] is None else BoundOrigin(*whose)
    try:
        rows = read_batch(pa.py_buffer(content), schema)
    except pa.ArrowException as error:
        raise StoreCorruptError(
            f"{path}: {error}; so rejection {number} cannot be read. Restore the database from a backup.",
            path=path,
            number=number,
        ) from error
    return Rejection(number, producer, time, Rejected(reason, bound, rows, origin))


def kept(row: tuple[Any, ...], schema: pa.Schema, path: str) -> KeptRejection:
    """Returns the rejection of a row of ``portion``, and the commit that it belongs to."""
    return KeptRejection(opened(row, schema, path), *row[9:])
