"""The history of a stream in a database: read for another store, or written from it."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa

from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.errors import RowtimeError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.store.base import WRITER, Position, Slice, Staged
from spark_rowtime.store.history import (
    About,
    History,
    KeptRejection,
    KnownAccount,
    KnownReader,
    LoggedEvent,
)
from spark_rowtime.store.page import ProducerRecord
from spark_rowtime.store.postgres import accounts, cuts, heads, records, rejections, trains
from spark_rowtime.store.postgres.address import Address, address
from spark_rowtime.store.postgres.connection import gone, run
from spark_rowtime.store.postgres.database import insert_stream, is_there, once, open_postgres, under_lock
from spark_rowtime.store.postgres.gate import enter
from spark_rowtime.store.postgres.inline import CarriedTrains
from spark_rowtime.store.postgres.objects import InObject, Objects
from spark_rowtime.store.postgres.owner import first_mark
from spark_rowtime.store.postgres.store import PostgresStore, at_once
from spark_rowtime.store.postgres.uptime import moment
from spark_rowtime.store.widths import width_class

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
_HEAD_COLUMNS = (
    "seq, floor, largest, rows, boot, stamp, due, attached, rejected, forgotten, forgotten_accepted, "
    "forgotten_rejected, forgotten_epoch, rejections, rejected_bytes, rejected_removed, train_bytes, horizon, "
    "horizon_floor, horizon_largest, horizon_rows"
)
_HEAD = f"UPDATE rowtime.heads SET ({_HEAD_COLUMNS}) = ({', '.join(['%s'] * 21)}) WHERE stream = %s"  # noqa: S608
_THERE = "SELECT 1 FROM rowtime.streams WHERE id = %s"
COPIED = "copied"
"""Stands for the run of the clock in the head of a copy: the uptime goes on when the copy is first written to."""


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


def import_postgres(history: History, to: str, location: str | None) -> None:
    """Writes the history as a new stream at ``to``, in one transaction. Raises StreamExistsError if there is one.

    ``location`` is that of the new stream; None: that of the old one. The transaction does not hold the lock of the
    tables, and may stand still while objects are read or written: it keeps nobody waiting but those who want the name.
    """
    where, name, settings = address(to), str(uuid.uuid4()), history.about.settings
    settings = replace(settings, location=location or settings.location)
    objects = None if settings.location is None else Objects(to, settings.location, name)
    streams: list[int] = []

    def write(connection: psycopg.Connection[Any]) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            streams.append(insert_stream(cursor, where, name, history.about.schema, settings, {}))
            cursor.execute(*enter(streams[-1]))
            if objects is not None:
                objects.create(history.about.schema)
                first_mark(cursor, streams[-1], objects)
            _Import(cursor, streams[-1], history, objects).run()

    under_lock(where, lambda cursor: is_there(cursor, where, name), creates=True)
    try:
        once(where, write, repeats=False)
    except BaseException as error:
        landed = _landed(where, streams)
        if landed is False and objects is not None:
            with suppress(RowtimeError):
                objects.remove_all()
        if not (landed and isinstance(error, StoreUnavailableError)):
            raise


def _landed(where: Address, streams: Sequence[int]) -> bool | None:
    """Returns whether the copy is there although its connection was lost; None: the database cannot be asked.

    The gate is free once the server has ended the transaction of the copy.
    """
    statements = [statement for stream in streams for statement in (enter(stream), (_THERE, (stream,)))]
    try:
        return any(once(where, lambda connection: run(connection, statements))[1:]) if streams else False
    except RowtimeError:
        return None


class _Import:
    def __init__(self, cursor: psycopg.Cursor[Any], stream: int, history: History, objects: Objects | None) -> None:
        self._cursor, self._stream, self._history, self._objects = cursor, stream, history, objects
        self._train_bytes = self._rejected_bytes = self._rejections = 0
        self._first: LoggedEvent | None = None
        self._last: LoggedEvent | None = None

    def run(self) -> None:
        history, about = self._history, self._history.about
        self._events(history.events())
        known = list(history.producers())
        self._copy(f"producers (stream, {records.PRODUCER_COLUMNS})", map(records.values, known))
        self._copy("rejected", (self._rejected(one) for one in history.rejections()))
        self._copy("readers", ((r.name, r.position.seq, r.position.cut, r.seen) for r in history.readers()))
        self._copy("key_floors", history.key_floors())
        self._copy("topic_cuts", map(cuts.columns, history.cuts()))
        self._copy("accounts", history.accounts())
        end = self._end(self._last)
        attached = sum(one.attached for one in known)
        rejected = sum(one.rejected for one in known) + about.forgotten_rejected
        forgotten = (about.forgotten, about.forgotten_accepted, about.forgotten_rejected, about.forgotten_epoch)
        kept = (self._rejections, self._rejected_bytes, about.rejected_removed, self._train_bytes)
        first = self._first
        horizon = self._end(first if first is not None and first.seq > 1 else None)
        values = (*end, COPIED, about.uptime, 0, attached, rejected, *forgotten, *kept, *horizon)
        self._cursor.execute(_HEAD, (*values, self._stream))
        ancestors = json.dumps({**about.ancestors, about.stream: end[0]})
        self._cursor.execute("UPDATE rowtime.streams SET ancestors = %s WHERE id = %s", (ancestors, self._stream))

    @staticmethod
    def _end(event: LoggedEvent | None) -> tuple[int, int | None, int | None, int]:
        if event is None:
            return 0, None, None, 0
        return event.seq, event.stream_floor, event.stream_largest, event.stream_rows

    def _events(self, events: Iterable[LoggedEvent]) -> None:
        """Writes the log in portions, each followed by the bytes of its trains."""
        portion: list[tuple[Any, ...]] = []
        contents: list[tuple[Any, ...]] = []
        named: list[tuple[Any, ...]] = []
        encoder = CarriedTrains("", self._history.about.schema, self._objects)
        size = 0
        for event in events:
            self._first, self._last = self._first or event, event
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
        self._copy("events", portion)
        self._copy("trains", contents)
        self._copy("objects", named)

    def _rejected(self, one: KeptRejection) -> tuple[Any, ...]:
        rows, origin = one.rows.serialize().to_pybytes(), one.origin
        whose = (None, None, None) if origin is None else (origin.owner, origin.producer, origin.event)
        self._rejections, self._rejected_bytes = one.number, self._rejected_bytes + len(rows)
        counted = (*whose, one.rows.num_rows, rows)
        return (one.number, one.producer, one.commit, one.time, one.reason, one.bound, one.at_commit, *counted)

    def _copy(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._cursor.copy(f"COPY rowtime.{table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row((self._stream, *row))
