"""The queries for trains, and for the bytes of those that are in the database."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spark_rowtime.store.cells import COUNT, TIME, Cells
from spark_rowtime.store.commits import Slice, Staged
from spark_rowtime.store.position import Position
from spark_rowtime.store.postgres import named_objects
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.inline import Inline
from spark_rowtime.store.postgres.objects import InObject
from spark_rowtime.store.postgres.strange_rows import require
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.widths import NEVER_MICROS, REACHES

PART_BYTES = 16 << 20
"""A longer train is stored in several rows. PostgreSQL takes a billion bytes in one value."""
_INSERT = "INSERT INTO rowtime.trains VALUES (%s, %s, %s, %s)"
_COLUMNS = "seq, producer, rows, least, largest, length, checksum"
_CELLS = Cells(_COLUMNS.split(", "), rows=COUNT, least=TIME, largest=TIME, length=COUNT, checksum=COUNT)
_NEW = (
    f"SELECT {_COLUMNS} FROM rowtime.events WHERE stream = %s AND seq > %s AND seq <= %s AND width IS NOT NULL "  # noqa: S608
    "AND least < %s ORDER BY seq"
)
_OLD = (
    f"SELECT found.* FROM (VALUES {REACHES}) classes (width, reach) CROSS JOIN LATERAL (SELECT {_COLUMNS} "  # noqa: S608
    "FROM rowtime.events WHERE stream = %s AND width = classes.width AND largest >= %s "
    "AND largest <= %s::bigint + classes.reach AND least < %s AND seq <= %s OFFSET 0) found ORDER BY seq"
)
"""Without OFFSET 0 the server would join the classes with all trains. So it reads one range of the index for each."""
_BYTES = "SELECT seq, bytes FROM rowtime.trains WHERE stream = %s AND seq = ANY(%s) ORDER BY seq, part"


def write(transaction: Transaction, seq: int, train: Staged) -> None:
    """Writes the bytes of a train, or the name of the object that has them."""
    if isinstance(train.location, InObject):
        named_objects.name(transaction, seq, train.location)
    elif moved := transaction.ahead.moved(train, transaction.stream, seq):
        transaction.write(moved[0], *moved[1])
    else:
        for part in parts(seq, train):
            transaction.write(_INSERT, transaction.stream, *part)
    transaction.head.train_bytes += train.location.length


def parts(seq: int, train: Staged) -> list[tuple[int, int, bytes]]:
    """Returns the bytes of a train as rows of the table, apart from the stream."""
    content: bytes = train.location.content
    if len(content) <= PART_BYTES:
        return [(seq, 0, content)]
    starts = range(0, len(content), PART_BYTES)
    return [(seq, number, content[at : at + PART_BYTES]) for number, at in enumerate(starts)]


def slices_between(stream: int, after: Position, upto: Position) -> list[Statement]:
    """Returns the queries for the trains between two positions; see :meth:`Store.slices`."""
    cut = NEVER_MICROS if upto.cut is None else upto.cut
    new: Statement = (_NEW, (stream, after.seq, upto.seq, cut))
    if after.cut is None or after.cut >= cut:
        return [new]
    return [(_OLD, (stream, after.cut, cut, cut, min(after.seq, upto.seq))), new]


def as_slice(row: tuple[Any, ...]) -> Slice:
    """Returns the train of a row of ``slices_between``. Raises StoreCorruptError if it is none that a store writes."""
    require(_CELLS, row, "events")
    seq, producer, rows, least, largest, length, checksum = row
    return Slice(seq, producer, rows, least, largest, length, Inline(length, checksum))


def contents(stream: int, pieces: Sequence[Slice], *, in_objects: bool) -> list[Statement]:
    """Returns the queries for the bytes of trains; ``in_objects``: and for the objects that have them."""
    inline: Statement = (_BYTES, (stream, [piece.seq for piece in pieces]))
    return [inline, named_objects.found(stream, pieces)] if in_objects else [inline]


def with_contents(pieces: Sequence[Slice], answers: Sequence[Sequence[tuple[Any, ...]]]) -> list[Slice]:
    """Returns those of the trains that are in the answers to ``contents``, with their bytes or objects."""
    found: dict[int, list[bytes]] = {}
    for seq, content in answers[0]:
        found.setdefault(seq, []).append(content)
    known = {piece.seq: piece.location for piece in pieces}
    whole = {seq: b"".join(parts) if len(parts) > 1 else parts[0] for seq, parts in found.items()}
    places: dict[int, Any] = {seq: known[seq]._replace(content=content) for seq, content in whole.items()}
    for rows in answers[1:]:
        places.update(named_objects.places(pieces, rows))
    return [replace(piece, location=places[piece.seq]) for piece in pieces if piece.seq in places]
