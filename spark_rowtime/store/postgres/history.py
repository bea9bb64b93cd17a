"""The history of a stream in a database: read for another store, or written from it."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa

from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.errors import RowtimeError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.store.commits import Slice, Staged
from spark_rowtime.store.history import (
    History,
    KeptRejection,
    LoggedEvent,
    copied_readers,
    forgotten,
    key_parts,
    writers,
)
from spark_rowtime.store.postgres import copies, cuts, log, records, rejections, trains
from spark_rowtime.store.postgres.address import Address, address
from spark_rowtime.store.postgres.ahead import portions
from spark_rowtime.store.postgres.connection import Connection, Statement, run
from spark_rowtime.store.postgres.database import (
    NUMBERED,
    free_number,
    insert_stream,
    is_there,
    once,
    open_postgres,
    under_lock,
)
from spark_rowtime.store.postgres.inline import CarriedTrains
from spark_rowtime.store.postgres.objects import InObject, Objects
from spark_rowtime.store.postgres.owner import first_mark
from spark_rowtime.store.postgres.snapshot import Reader
from spark_rowtime.store.postgres.store import PostgresStore
from spark_rowtime.store.postgres.tables import lock_tables
from spark_rowtime.store.postgres.uptime import moment
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import Snapshot
from spark_rowtime.store.steady_clock import COPIED
from spark_rowtime.store.widths import width_class

PORTION_EVENTS = 256
"""How many events, with the bytes of their trains, are read at a time, and how many rows of a table are written at most
in one transaction; fewer if they have many bytes."""
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
                log.require_event(row[:9])
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
            yield from (rejections.kept(row, self.snapshot.schema, self._store.path) for row in rows)
            last = rows[-1][0]

    def cuts(self) -> Iterator[LoggedCut]:
        last, end = 0, self.snapshot.head.seq
        while rows := self._query(cuts.between(self._stream, last, end)):
            yield from cuts.opened(rows)
            last = rows[-1][0]

    def _query(self, query: Statement) -> list[tuple[Any, ...]]:
        return run(self._connection, [query])[0]


_HEAD_COLUMNS = (
    "seq, floor, largest, rows, boot, stamp, due, attached, rejected, forgotten, forgotten_accepted, "
    "forgotten_rejected, forgotten_epoch, rejections, rejected_bytes, rejected_removed, train_bytes, horizon, "
    "horizon_floor, horizon_largest, horizon_rows"
)
_HEAD = f"UPDATE rowtime.heads SET ({_HEAD_COLUMNS}) = ({', '.join(['%s'] * 21)}) WHERE stream = %s"  # noqa: S608


def import_postgres(history: History, to: str, location: str | None) -> None:
    """Writes the history as a new stream at ``to``. Raises StreamExistsError if there is one, at the end or before.

    ``location`` is that of the new stream; None: that of the old one. Rows are written in short transactions, between
    which objects may be read and written for as long as it takes. The last one makes the stream.
    """
    where, name, settings = address(to), str(uuid.uuid4()), history.snapshot.settings
    settings = replace(settings, location=location or settings.location)
    objects = None if settings.location is None else Objects(to, settings.location, name)
    under_lock(where, lambda cursor: is_there(cursor, where, name), creates=True)
    connection, streams = Connection(where), list[int]()
    try:
        with connection.patience(), connection.lent() as made:
            copies.remove_interrupted(made, to)
            with made.transaction(), made.cursor() as cursor:
                streams.append(free_number(cursor))
                copies.begin(cursor, streams[-1], where.stream, objects)
            _Import(made, where, streams[-1], history, settings, name, objects).run()
    except BaseException as error:
        landed = _landed(where, streams)
        if landed is False:
            with suppress(RowtimeError):
                once(where, lambda made: copies.remove_interrupted(made, to))
        if not (landed and isinstance(error, StoreUnavailableError)):
            raise
    finally:
        connection.close()


def _landed(where: Address, streams: Sequence[int]) -> bool | None:
    """Returns whether the copy is there although its connection was lost; None: the database cannot be asked."""
    statements = [statement for stream in streams for statement in (copies.ended(stream), (NUMBERED, (stream,)))]
    try:
        return any(once(where, lambda connection: run(connection, statements))[1:]) if streams else False
    except RowtimeError:
        return None


class _Import:
    def __init__(
        self,
        connection: psycopg.Connection[Any],
        where: Address,
        stream: int,
        history: History,
        settings: StreamSettings,
        name: str,
        objects: Objects | None,
    ) -> None:
        self._connection, self._where, self._stream, self._history = connection, where, stream, history
        self._settings, self._name, self._objects = settings, name, objects
        self._train_bytes = self._rejected_bytes = 0

    def run(self) -> None:
        history = self._history
        if self._objects is not None:
            self._objects.create(history.snapshot.schema)
            with self._connection.cursor() as cursor:
                first_mark(cursor, self._stream, self._objects)
        self._events(history.events())
        now = history.snapshot
        self._copy(f"producers (stream, {records.PRODUCER_COLUMNS})", map(records.values, now.records.values()))
        self._copy("rejected", map(self._rejected, history.rejections()))
        readers = (
            (r.name, r.position.seq, r.position.cut, now.uptime - r.unseen, r.reads) for r in copied_readers(now)
        )
        self._copy("readers (stream, name, seq, cut, seen, reads)", readers)
        self._copy("key_floors", key_parts(now))
        self._copy("topic_cuts", map(cuts.columns, history.cuts()))
        statuses = ((a.role, a.name, now.uptime - a.unseen, a.content) for a in writers(now))
        self._copy("accounts (stream, role, name, seen, content)", statuses)
        self._make(now)

    def _make(self, now: Snapshot) -> None:
        """Makes the stream, with what was written."""
        counted = (sum(record.attached for record in now.records.values()), now.rejected, *forgotten(now))
        kept = (now.rejections, self._rejected_bytes, now.rejected_removed, self._train_bytes)
        values = (*now.head, COPIED, now.uptime, 0, *counted, *kept, *now.horizon)
        ancestors = {**now.ancestors, now.stream: now.head.seq}
        with self._connection.transaction(), self._connection.cursor() as cursor:
            lock_tables(cursor)
            insert_stream(cursor, self._where, self._name, now.schema, self._settings, ancestors, self._stream)
            cursor.execute(_HEAD, (*values, self._stream))
            copies.end(cursor, self._stream)

    def _events(self, events: Iterable[LoggedEvent]) -> None:
        """Writes the log in portions, each followed by the bytes of its trains."""
        portion: list[tuple[Any, ...]] = []
        contents: list[tuple[Any, ...]] = []
        named: list[tuple[Any, ...]] = []
        encoder = CarriedTrains("", self._history.snapshot.schema, self._objects)
        size = 0
        for event in events:
            place: tuple[Any, ...] = (None,) * 5
            if event.train is not None:
                staged = encoder.stage(event.train[1], (event.train[0].least, event.train[0].largest))
                width = width_class(staged.least, staged.largest)
                place = (staged.least, staged.largest, width, staged.location.length, staged.location.checksum)
                self._train_bytes += staged.location.length
                if isinstance(staged.location, InObject):
                    named.append((event.seq, staged.location.object, staged.location.offset))
                else:
                    contents += trains.parts(event.seq, staged)
                    size += staged.location.length
            portion.append((*event[:9], *place))
            if size > trains.PART_BYTES or len(portion) >= PORTION_EVENTS:
                self._flush(portion, contents, named)
                portion, contents, named, size = [], [], [], 0
        self._flush(portion, contents, named)

    def _flush(
        self, portion: list[tuple[Any, ...]], contents: list[tuple[Any, ...]], named: list[tuple[Any, ...]]
    ) -> None:
        with self._connection.transaction():
            self._write("events", portion)
            self._write("trains", contents)
            self._write("objects", named)

    def _rejected(self, kept: KeptRejection) -> tuple[Any, ...]:
        one, what = kept.rejection, kept.rejection.rejected
        rows, origin = what.rows.serialize().to_pybytes(), what.origin
        whose = (None, None, None) if origin is None else (origin.owner, origin.producer, origin.event)
        self._rejected_bytes += len(rows)
        counted = (*whose, what.rows.num_rows, rows)
        return (one.number, one.producer, kept.commit, one.time, what.reason, what.bound, kept.at_commit, *counted)

    def _copy(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        for portion in portions(rows, PORTION_EVENTS, trains.PART_BYTES):
            self._write(table, portion)

    def _write(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._connection.cursor() as cursor, cursor.copy(f"COPY rowtime.{table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row((self._stream, *row))
