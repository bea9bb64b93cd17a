"""The history of a stream in a database, read for another store."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa

from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.base import Slice, Staged
from spark_rowtime.store.history import History, KeptRejection, LoggedEvent
from spark_rowtime.store.postgres import cuts, rejections, trains
from spark_rowtime.store.postgres.connection import Statement, run
from spark_rowtime.store.postgres.database import open_postgres
from spark_rowtime.store.postgres.snapshot import Reader
from spark_rowtime.store.postgres.store import PostgresStore
from spark_rowtime.store.postgres.uptime import moment

PORTION_EVENTS = 256
"""How many events are read, with the bytes of their trains, at a time."""
_EVENTS = (
    "SELECT seq, kind, producer, time, floor, stream_floor, stream_largest, stream_rows, rows, least, largest, width, "
    "length, checksum FROM rowtime.events WHERE stream = %s AND seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
)


@contextmanager
def exported(path: str) -> Iterator[History]:
    """Yields the history of the stream at ``path`` as of one moment. Others may write to it meanwhile."""
    with open_postgres(path) as store, store.kept() as connection:
        yield _Exported(store, connection, store.number)


class _Exported(History):
    """The snapshot is read at once; the log, which only grows, in portions up to that moment."""

    def __init__(self, store: PostgresStore, connection: psycopg.Connection[Any], stream: int) -> None:
        self._store, self._connection, self._stream = store, connection, stream
        reader = Reader(store, stream, store.name, lambda head, at: moment(head, at, at.micros))
        self.snapshot = reader.read(connection, full=True)

    def events(self) -> Iterator[LoggedEvent]:
        last, end = 0, self.snapshot.head.seq
        while rows := self._query((_EVENTS, (self._stream, last, end, PORTION_EVENTS))):
            pieces = [trains.as_slice((r[0], r[2], *r[8:11], *r[12:])) for r in rows if r[11] is not None]
            queries = trains.contents(self._stream, pieces, in_objects=self._store.objects is not None)
            answers = run(self._connection, queries) if pieces else [[]]
            found = {piece.seq: piece for piece in trains.with_contents(pieces, answers)}
            for row in rows:
                last = row[0]
                yield LoggedEvent._make((*row[:9], self._train(found, row)))

    def _train(self, found: Mapping[int, Slice], row: tuple[Any, ...]) -> tuple[Staged, pa.RecordBatch] | None:
        seq, width = row[0], row[11]
        if width is None:
            return None
        if seq not in found:
            raise StoreCorruptError(
                f"{self._store.path}: the bytes of train {seq} are missing. Nothing was copied. `rowtime check` says "
                "what is still readable.",
                path=self._store.path,
                train=seq,
            )
        piece = found[seq]
        return Staged(piece.rows, piece.least, piece.largest, piece.location), self._store.carried.read(piece)

    def rejections(self) -> Iterator[KeptRejection]:
        last, end = 0, self.snapshot.rejections
        while rows := self._query(rejections.portion(self._stream, last, end)):
            yield from (rejections.kept(row, self.snapshot.schema) for row in rows)
            last = rows[-1][0]

    def cuts(self) -> Iterator[LoggedCut]:
        last, end = 0, self.snapshot.head.seq
        while rows := self._query(cuts.between(self._stream, last, end)):
            yield from cuts.opened(rows)
            last = rows[-1][0]

    def _query(self, query: Statement) -> list[tuple[Any, ...]]:
        return run(self._connection, [query])[0]
