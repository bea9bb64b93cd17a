"""Trains as bytes that travel with what names them, or in objects: for processes that cannot reach the database."""

from typing import NamedTuple

import pyarrow as pa
from isal.isal_zlib import crc32

from spark_rowtime.bounds.train import span
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.commits import Slice, Staged
from spark_rowtime.store.messages import read_batch
from spark_rowtime.store.postgres.objects import OBJECT_BYTES, InObject, Objects


class Inline(NamedTuple):
    """A train in the database. ``content`` are its bytes; None if they have not been read."""

    length: int
    checksum: int
    """CRC-32 of the bytes."""
    content: bytes | None = None


def may_be_object(rows: pa.RecordBatch) -> bool:
    """Returns whether a train of the rows may be large enough for an object."""
    return bool(rows.get_total_buffer_size() > OBJECT_BYTES)  # ``nbytes`` takes 30 times as long


class CarriedTrains:
    """Makes rows into trains and back, without the database. A process that cannot reach the database uses it.

    ``objects`` is where large trains are; None: all trains are in the database.
    """

    def __init__(self, path: str, schema: pa.Schema, objects: Objects | None = None) -> None:
        self.path, self.schema, self._objects = path, schema, objects

    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        """See ``Store.stage``. The bytes of a train that is not in an object travel with what is returned."""
        ends = ends or span(rows)
        assert ends is not None, "an empty batch is not staged"
        return Staged(rows.num_rows, *ends, location=self._placed(rows.serialize()))

    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        """See ``Store.read``. A train that is not in an object must have its content."""
        train = f"train {piece.seq} of {piece.producer!r}" if isinstance(piece, Slice) else "a train of this commit"
        try:
            rows = read_batch(self._message(piece.location, train), self.schema)
        except pa.ArrowException as error:
            raise self._corrupt(piece.location, train, str(error)) from error
        if rows.num_rows != piece.rows:
            raise self._corrupt(piece.location, train, f"it has {rows.num_rows} rows instead of {piece.rows}")
        return rows

    def _placed(self, message: pa.Buffer) -> Inline | InObject:
        if self._objects is not None and message.size > OBJECT_BYTES:
            return self._objects.write(self.schema, message)
        content = message.to_pybytes()
        return Inline(len(content), crc32(content), content)

    def _message(self, place: Inline | InObject, train: str) -> pa.Buffer:
        if isinstance(place, InObject):
            assert self._objects is not None, "only a stream with a location has trains in objects"
            return self._objects.read(place, train)
        if place.content is None or crc32(place.content) != place.checksum:
            what = "the bytes are missing" if place.content is None else "the checksum does not match"
            raise self._corrupt(place, train, what)
        return pa.py_buffer(place.content)

    def _corrupt(self, place: Inline | InObject, train: str, what: str) -> StoreCorruptError:
        if isinstance(place, InObject) and self._objects is not None:
            return self._objects.corrupt(place, train, what)
        return StoreCorruptError(
            f"{self.path}: {what}; so {train} cannot be read. Restore the database from a backup.",
            path=self.path,
            train=train,
        )
