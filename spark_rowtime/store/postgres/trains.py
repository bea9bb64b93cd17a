"""Trains whose rows are in the database: their bytes, and the queries that find them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
from isal.isal_zlib import crc32

from spark_rowtime.bounds.train import span
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.base import Position, Slice, Staged
from spark_rowtime.store.messages import read_batch
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.widths import NEVER_MICROS, REACHES

PART_BYTES = 16 << 20
"""A longer train is stored in several rows. PostgreSQL takes a billion bytes in one value."""
_COLUMNS = "seq, producer, rows, least, largest, length, checksum"
_NEW = (
    f"SELECT {_COLUMNS} FROM rowtime.events WHERE stream = %s AND seq > %s AND seq <= %s AND width IS NOT NULL "  # noqa: S608
    "AND least < %s ORDER BY seq"
)
_OLD = (
    f"SELECT found.* FROM (VALUES {REACHES}) classes (width, reach) CROSS JOIN LATERAL (SELECT {_COLUMNS} "  # noqa: S608
    "FROM rowtime.events WHERE stream = %s AND width = classes.width AND largest >= %s "
    "AND largest <= %s::bigint + classes.reach AND least < %s AND seq <= %s) found ORDER BY seq"
)
_INSERT = "INSERT INTO rowtime.trains VALUES (%s, %s, %s, %s)"
_BYTES = "SELECT seq, bytes FROM rowtime.trains WHERE stream = %s AND seq = ANY(%s) ORDER BY seq, part"


class Inline(NamedTuple):
    """A train in the database. ``content`` are its bytes; None if they have not been read."""

    length: int
    checksum: int
    """CRC-32 of the bytes."""
    content: bytes | None = None


class InlineTrains:
    """Makes rows into bytes and back, without the database. A process that cannot reach the database uses it."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.path, self.schema = path, schema

    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        """See ``Store.stage``. The bytes travel with what is returned."""
        ends = ends or span(rows)
        assert ends is not None, "an empty batch is not staged"
        content = rows.serialize().to_pybytes()
        return Staged(rows.num_rows, *ends, location=Inline(len(content), crc32(content), content))

    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        """See ``Store.read``. The train must have its content."""
        train = f"train {piece.seq} of {piece.producer!r}" if isinstance(piece, Slice) else "a train of this commit"
        place: Inline = piece.location
        if place.content is None or crc32(place.content) != place.checksum:
            raise self._corrupt(train, "the bytes are missing or their checksum does not match")
        try:
            rows = read_batch(pa.py_buffer(place.content), self.schema)
        except pa.ArrowException as error:
            raise self._corrupt(train, str(error)) from error
        if rows.num_rows != piece.rows:
            raise self._corrupt(train, f"it has {rows.num_rows} rows instead of {piece.rows}")
        return rows

    def _corrupt(self, train: str, what: str) -> StoreCorruptError:
        return StoreCorruptError(
            f"{self.path}: {what}; so {train} cannot be read. Restore the database from a backup.",
            path=self.path,
            train=train,
        )


def write(transaction: Transaction, seq: int, train: Staged) -> None:
    """Writes the bytes of a train."""
    transaction.write_all(_INSERT, [(transaction.stream, *part) for part in parts(seq, train)])
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
    """Returns the train of a row of ``slices_between``."""
    seq, producer, rows, least, largest, length, checksum = row
    return Slice(seq, producer, rows, least, largest, length, Inline(length, checksum))


def contents(stream: int, pieces: Sequence[Slice]) -> Statement:
    """Returns the query for the bytes of trains."""
    return _BYTES, (stream, [piece.seq for piece in pieces])


def with_contents(pieces: Sequence[Slice], rows: Sequence[tuple[int, bytes]]) -> list[Slice]:
    """Returns those of the trains whose bytes are in the rows of ``contents``, with them."""
    found: dict[int, list[bytes]] = {}
    for seq, content in rows:
        found.setdefault(seq, []).append(content)
    whole = {seq: parts[0] if len(parts) == 1 else b"".join(parts) for seq, parts in found.items()}
    return [
        replace(piece, location=piece.location._replace(content=whole[piece.seq]))
        for piece in pieces
        if piece.seq in whole
    ]
