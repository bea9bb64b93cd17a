"""The history of a stream in a database, read for another store."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa

from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.base import WRITER, Position, Slice, Staged
from spark_rowtime.store.history import (
    About,
    History,
    KeptRejection,
    KnownAccount,
    KnownReader,
    LoggedEvent,
)
from spark_rowtime.store.postgres import accounts, cuts, heads, records, rejections, trains
from spark_rowtime.store.postgres.connection import gone, run
from spark_rowtime.store.postgres.database import open_postgres
from spark_rowtime.store.postgres.store import PostgresStore, at_once
from spark_rowtime.store.postgres.uptime import moment
from spark_rowtime.store.record import ProducerRecord

PORTION_EVENTS = 256
"""How many events are read, with the bytes of their trains, at a time."""
_EVENTS = (
    "SELECT seq, kind, producer, time, floor, stream_floor, stream_largest, stream_rows, rows, least, largest, width, "
    "length, checksum FROM rowtime.events WHERE stream = %s AND seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
)
_REJECTED = (
    "SELECT id, producer, number, time, reason, bound, at_commit, owner, origin_producer, event, rows "
    "FROM rowtime.rejected WHERE stream = %s AND id > %s AND id <= %s ORDER BY id LIMIT 100"
)
_READERS = "SELECT name, seq, cut, seen FROM rowtime.readers WHERE stream = %s ORDER BY name"
_KEYS = "SELECT producer, number, content FROM rowtime.key_floors WHERE stream = %s ORDER BY producer, number"


@contextmanager
def exported(path: str) -> Iterator[History]:
    """Yields the history of the stream at ``path`` as of one moment. Others may write to it meanwhile."""
    with open_postgres(path) as store, store.kept() as connection:
        yield _Exported(store, connection, store.number)


class _Exported(History):
    """What commits replace is read at once; the log, which only grows, in portions up to that moment."""

    def __init__(self, store: PostgresStore, connection: psycopg.Connection[Any], stream: int) -> None:
        self._store, self._connection, self._stream = store, connection, stream
        with at_once(connection):
            found = self._query(heads.SELECT, stream, store.name)
            self._known = self._query(records.ALL, stream)
            self._known_readers, self._floors = self._query(_READERS, stream), self._query(_KEYS, stream)
            self._writers = self._query(accounts.OF_ROLE, stream, WRITER)
        if not found:
            raise gone(store.path)
        head, at = heads.loaded(found[0])
        self._last, self._last_rejection = head.seq, head.rejections
        self.about = About(
            store.stream, store.ancestors, store.schema, store.settings, moment(head, at, at.micros).uptime,
            head.rejected_removed, head.forgotten, head.forgotten_accepted, head.forgotten_rejected,
            head.forgotten_epoch,
        )  # fmt: skip

    def events(self) -> Iterator[LoggedEvent]:
        last = 0
        while rows := self._query(_EVENTS, self._stream, last, self._last, PORTION_EVENTS):
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

    def producers(self) -> Iterator[ProducerRecord]:
        for row in self._known:
            yield records.opened(row)

    def rejections(self) -> Iterator[KeptRejection]:
        last = 0
        while rows := self._query(_REJECTED, self._stream, last, self._last_rejection):
            for number, producer, commit, time, reason, bound, at_commit, *whose, content in rows:
                last = number
                opened = rejections.opened((number, producer, time, reason, bound, *whose, content), self.about.schema)
                kept = opened.rejected
                yield KeptRejection(number, producer, commit, time, reason, bound, at_commit, kept.origin, kept.rows)

    def readers(self) -> Iterator[KnownReader]:
        for name, seq, cut, seen in self._known_readers:
            yield KnownReader(name, Position(seq, cut, None), seen)

    def key_floors(self) -> Iterator[tuple[str, int, bytes]]:
        yield from self._floors

    def cuts(self) -> Iterator[LoggedCut]:
        last = 0
        while rows := run(self._connection, [cuts.between(self._stream, last, self._last)])[0]:
            yield from cuts.opened(rows)
            last = rows[-1][0]

    def accounts(self) -> Iterator[KnownAccount]:
        yield from (KnownAccount(*row) for row in self._writers)

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return run(self._connection, [(sql, values)])[0]
