"""The cuts of Kafka topics in the database, each with the event of its bound."""

from collections.abc import Iterable
from typing import Any

from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.store import cut_folding
from spark_rowtime.store.cells import COUNT, TIME_OR_NONE, Cells
from spark_rowtime.store.cut_folding import folded, portion
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.strange_rows import require
from spark_rowtime.store.postgres.transaction import Transaction

_CELLS = Cells(("seq", "producer", "hold", "cut"), seq=COUNT, hold=TIME_OR_NONE)
_INSERT = "INSERT INTO rowtime.topic_cuts VALUES (%s, %s, %s, %s, %s, %s)"
_BETWEEN = (
    "SELECT seq, producer, hold, cut FROM rowtime.topic_cuts WHERE stream = %s AND seq > %s AND seq <= %s ORDER BY seq "
    "LIMIT %s"
)
_PRODUCERS = "SELECT COUNT(DISTINCT producer) FROM rowtime.topic_cuts WHERE stream = %s"
_DELETE = "DELETE FROM rowtime.topic_cuts WHERE stream = %s AND seq <= %s"
THERE = "SELECT 1 FROM rowtime.topic_cuts WHERE stream = %s LIMIT 1"
_LAST = (
    "SELECT seq, producer, hold, cut FROM rowtime.topic_cuts WHERE stream = %s AND producer = %s AND seq >= "
    "(SELECT MAX(seq) FROM rowtime.topic_cuts WHERE stream = %s AND producer = %s AND whole) ORDER BY seq"
)


def add(transaction: Transaction, logged: LoggedCut) -> None:
    """Stores a cut with its event."""
    transaction.write(_INSERT, transaction.stream, *columns(logged))


def fold(transaction: Transaction, upto: int) -> bool:
    """Folds the first cuts up to the event ``upto``, a portion of them. Returns whether there may be more."""
    [(many,)] = transaction.query(_PRODUCERS, transaction.stream)
    found = opened(transaction.query(_BETWEEN, transaction.stream, 0, upto, portion(many)))
    kept = folded(found)
    if len(kept) in (0, len(found)):
        return False
    transaction.write(_DELETE, transaction.stream, found[-1].seq)
    for logged in kept:
        add(transaction, logged)
    return True


def columns(logged: LoggedCut) -> tuple[Any, ...]:
    """Returns the columns of a cut behind its stream."""
    whole = logged.cut is not None and logged.cut.whole
    return logged.seq, logged.producer, logged.floor, logged.cut and logged.cut.text(), whole


def between(stream: int, after: int, upto: int) -> Statement:
    """Returns the query for the first cuts from the event ``after + 1`` to ``upto``, at most PORTION_CUTS."""
    return _BETWEEN, (stream, after, upto, cut_folding.PORTION_CUTS)


def last(stream: int, producer: str) -> Statement:
    """Returns the query for the producer's last whole cut, and all that it sent after it."""
    return _LAST, (stream, producer, stream, producer)


def opened(rows: Iterable[tuple[Any, ...]]) -> list[LoggedCut]:
    """Returns the rows of a query as cuts. Raises StoreCorruptError if one is none that a store writes."""
    rows = list(rows)
    for row in rows:
        require(_CELLS, row, "topic_cuts")
    return [
        LoggedCut(seq, producer, floor, None if text is None else TopicCut.of_text(text))
        for seq, producer, floor, text in rows
    ]
