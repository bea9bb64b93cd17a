"""Trains whose rows are in the database, as bytes that travel with what names them."""

from typing import NamedTuple

import pyarrow as pa
from isal.isal_zlib import crc32

from spark_rowtime.bounds.train import span
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.base import Slice, Staged
from spark_rowtime.store.messages import read_batch


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
            raise self._corrupt(
                train, "the bytes are missing" if place.content is None else "the checksum does not match"
            )
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
