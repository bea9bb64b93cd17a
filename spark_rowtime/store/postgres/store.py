"""PostgresStore: a stream in a PostgreSQL database, shared by the processes of any machines."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
import pyarrow as pa

from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.errors import (
    DataLostError,
    RowtimeError,
    StoreUnavailableError,
)
from spark_rowtime.store import cut_folding, rejection_rules
from spark_rowtime.store.base import Renewal
from spark_rowtime.store.commits import Commit, Receipt, Rejected, Rejection, Slice, Staged
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.ledger_store import LedgerStore, Sharers
from spark_rowtime.store.limits import Cuts, Limits
from spark_rowtime.store.position import EMPTY, Head, Position
from spark_rowtime.store.postgres import (
    contents,
    copies,
    key_floors,
    log,
    log_state,
    records,
    registrations,
    rejections,
    snapshot,
    trains,
)
from spark_rowtime.store.postgres import cuts as topic_cuts
from spark_rowtime.store.postgres.ahead import Ahead
from spark_rowtime.store.postgres.connection import Connection, Statement, gone
from spark_rowtime.store.postgres.database_error import of_commit
from spark_rowtime.store.postgres.inline import CarriedTrains, Inline, may_be_object
from spark_rowtime.store.postgres.log_state import LogState
from spark_rowtime.store.postgres.object_removal import ObjectRemoval
from spark_rowtime.store.postgres.objects import InObject, Objects
from spark_rowtime.store.postgres.one_trip_commit import call, landed, one_trip_suffices
from spark_rowtime.store.postgres.owner import Ownership
from spark_rowtime.store.postgres.page import PostgresPage, questions
from spark_rowtime.store.postgres.prefetch import Prefetch
from spark_rowtime.store.postgres.removal import Access, Collector
from spark_rowtime.store.postgres.stream_locks import reading_all
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.postgres.uptime import Moment, Stall, moment, restarted
from spark_rowtime.store.record import Held, ProducerInfo
from spark_rowtime.store.retention import (
    STAGED_ROWS,
    Replayed,
    lost_error,
    never_registered,
    require_kept,
    require_replayed,
    require_there,
)
from spark_rowtime.store.settings import Change, StreamSettings, settings_of, settings_text
from spark_rowtime.store.snapshot import READS_STREAM, Collected, Snapshot, Summary
from spark_rowtime.store.steady_clock import Reading, machine_reading, reading
from spark_rowtime.store.views import bounds_table
from spark_rowtime.types.alteration import altered
from spark_rowtime.types.timestamps import SECOND_MICROS, wall_clock

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, PAUSE_GROWTH = 0.001, 0.014, 1.5
"""The pauses between two looks at the stream's head, while a reader waits. A look costs about 0.15 ms."""
_MAY_WRITE = (
    "SELECT has_table_privilege('rowtime.heads', 'UPDATE') AND current_setting('transaction_read_only') = 'off'"
)
_POSITION = f"SELECT *, pg_is_in_recovery() FROM ({log_state.POSITION}) newest"  # noqa: S608  (constants)
EXPIRY_PATIENCE = "100ms"
"""How long a reader waits for the stream's lock to note what is due. It needs none to go on."""
BESIDE_PATIENCE = "2s"
"""How long a renewal beside a call waits for the stream's lock, which the call may have. Others wait for its thread."""
RECOVERY_MICROS = 15 * SECOND_MICROS
"""How long a reader leaves what is due to writers where it could not write. They know since when nobody could."""
_Result = TypeVar("_Result")
_InTransaction = Callable[[Transaction, list[list[tuple[Any, ...]]]], _Result]


@dataclass(frozen=True, slots=True)
class StreamRow:
    """What ``rowtime.streams`` has of a stream."""

    id: int
    name: str
    uuid: str
    schema: pa.Schema
    settings: StreamSettings
    ancestors: Mapping[str, int]


class PostgresStore(LedgerStore):
    """See :class:`Store`, and :mod:`spark_rowtime.store.postgres.tables` for the tables.

    Law (*in turn*): every transaction first locks the stream's row in ``heads``, whose ``seq`` numbers the events. So
    their numbers are in the order of the commits, without gaps, and readers see each event after all earlier ones. The
    isolation is READ COMMITTED, in which a query after the lock sees everything that was committed before.

    A call whose connection is lost is repeated on a new connection. A commit that had landed is recognised then by its
    producer, epoch and number. The clock for leases, idleness and ages is that of the database; see
    :mod:`spark_rowtime.store.postgres.uptime`. Nearly every commit takes one round trip; see
    :mod:`spark_rowtime.store.postgres.one_trip_commit`. If a caller replaces ``now`` or ``steady``, these are used
    instead.
    """

    keeps_staged, contact_micros = True, SECOND_MICROS

    def __init__(self, path: str, connection: Connection, stream: StreamRow) -> None:
        self.path, self._connection, self.number, self.name = path, connection, stream.id, stream.name
        self.stream, self.schema, self.settings = stream.uuid, stream.schema, stream.settings
        self.ancestors = stream.ancestors
        self.now: Callable[[], int] = wall_clock
        self.steady: Callable[[], Reading] = machine_reading
        self.sleep: Callable[[float], object] = time.sleep
        self._stall, self._expires_from = Stall(lambda: self.steady().micros), 0
        location = stream.settings.location
        self.objects = None if location is None else Objects(path, location, stream.uuid)
        self.carried = CarriedTrains(path, stream.schema, self.objects)
        self._prefetch = Prefetch()
        objects = None if self.objects is None else self._object_removal
        self._collector = Collector(self, stream.id, self._access(connection), self._apart, objects)
        self.sharers = Sharers(lambda: connection.open_here, self._is_current)
        self._owns = self.objects is None
        self._seen = 0
        """The largest seq at which a server has said that the log ends."""
        self._unsettled: dict[str, Commit] = {}
        """The last commit of each producer, if its outcome is not known."""

    def _transact(
        self,
        function: _InTransaction[_Result],
        *first: Statement,
        ahead: Ahead | None = None,
        patience: str = "",
        by: Connection | None = None,
    ) -> _Result:
        """Runs ``function`` in a transaction, with the answers to ``first``, which take no round trip of their own.

        ``ahead``: what is sent before the stream is locked. ``patience``: see ``Transaction.begin``. ``by``: another
        connection than the store's.
        """

        def once(connection: psycopg.Connection[Any]) -> _Result:
            transaction = Transaction(connection, self.number, ahead)
            at, found = transaction.begin(self.path, self.name, first, patience)
            transaction.at = self._moment(transaction.head, at)
            result = function(transaction, found)
            transaction.finish()
            if transaction.changed:
                self._stall.ended()
            return result

        with self._stall.watched():
            return (by or self._connection).call(once)

    def _decide(
        self,
        decision: Callable[[Ledger], _Result],
        *about: str,
        ahead: Ahead | None = None,
    ) -> _Result:
        return self._on_page(lambda page: decision(self._ledger(page)), *about, ahead=ahead)

    def _on_page(
        self,
        act: Callable[[PostgresPage], _Result],
        *about: str,
        ahead: Ahead | None = None,
        patience: str = "",
        by: Connection | None = None,
    ) -> _Result:
        def run(transaction: Transaction, answers: list[list[tuple[Any, ...]]]) -> _Result:
            page = PostgresPage(transaction, self.path, self.schema, self.settings, about, answers)
            result = act(page)
            page.end()
            return result

        return self._transact(run, *questions(self.number, about), ahead=ahead, patience=patience, by=by)

    def _access(self, connection: Connection) -> Access:
        """Returns what removes old rows by that connection."""

        def transact(function: Callable[[Transaction], Any]) -> Any:
            return self._transact(lambda transaction, _: function(transaction), by=connection)

        def look() -> tuple[LogState, int]:
            head, at = self._head_row(connection)
            return head, self._moment(head, at).uptime

        return Access(transact, connection.rows, look)

    @contextmanager
    def _apart(self) -> Iterator[Access]:
        """Yields an access by a connection of its own, so that no call on the store waits for it."""
        connection = self._connection.another()
        try:
            yield self._access(connection)
        finally:
            connection.close()

    def _object_removal(self, access: Access) -> ObjectRemoval:
        assert self.objects is not None
        return ObjectRemoval(self.objects, self._ownership(self.objects, access), access.transact)

    def _ownership(self, objects: Objects, access: Access) -> Ownership:
        return Ownership(objects, self.number, access.rows, access.transact)

    def _moment(self, head: LogState, database: Reading) -> Moment:
        return moment(head, self._reading(database), self._wall(database), self._stall)

    @property
    def _replaced(self) -> bool:
        """Whether a caller has replaced the clock."""
        return self.now is not wall_clock or self.steady is not machine_reading

    def _reading(self, database: Reading) -> Reading:
        return reading(self.now, self.steady) if self._replaced else database

    def _wall(self, database: Reading) -> int:
        return database.micros if self.now is wall_clock else self.now()

    def expire(self) -> bool:
        head, at = self._head_row(self._connection)
        was_restarted = restarted(head, self._reading(at))
        if not was_restarted and (head.due is None or self._moment(head, at).uptime <= head.due):
            return False

        def act(page: PostgresPage) -> bool:
            page.transaction.changed = True
            return self._ledger(page).expire()

        now = self.steady().micros
        if now < self._expires_from:
            return False
        self._expires_from = now + RECOVERY_MICROS
        if not self._may_write():  # a writer does it
            return False
        try:
            expired = self._on_page(act, patience=EXPIRY_PATIENCE)
        except StoreUnavailableError as error:
            lacks = error.values.get("lacks")
            self._expires_from = 0 if lacks == "lock" else self._expires_from
            if lacks in ("lock", "privilege"):  # whoever has the lock keeps others from renewing
                return False
            raise
        self._expires_from = 0
        return expired

    def renew_beside(self, producers: Sequence[Held]) -> list[Renewal]:
        """A commit keeps the store's connection while it sends its rows."""
        names = [held.producer for held in producers]
        with closing(self._connection.another()) as other:
            return self._on_page(
                lambda page: self._ledger(page).renew_all(producers), *names, patience=BESIDE_PATIENCE, by=other
            )

    def _require_own_objects(self) -> None:
        """Raises StoreUnavailableError if what this stream adds to its location would be removed by another database.

        It is asked once: a location changes its owner when a database has moved, and nobody uses the stream then.
        """
        if self._owns or self.objects is None:
            return
        self._ownership(self.objects, self._access(self._connection)).require()
        self._owns = True

    def _may_write(self) -> bool:
        """Whether the user and the server let this process change the stream's head."""
        return bool(self._rows(_MAY_WRITE, ())[0][0])

    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        if may_be_object(rows):
            self._require_own_objects()
        try:
            return self.carried.stage(rows, ends)
        except StoreUnavailableError:
            self.head()  # a stream that was deleted has no folder: this raises DataLostError
            raise

    def commit(self, commit: Commit) -> Receipt:
        self._settle(commit.producer, commit)
        self._unsettled[commit.producer] = commit
        try:
            receipt = self._commit_in_one_trip(commit) or self._commit_in_turn(commit)
        except RowtimeError as error:
            if refused(error):
                self._unsettled.pop(commit.producer, None)
                raise
            raise of_commit(error) from None
        self._unsettled.pop(commit.producer, None)
        return receipt

    def _settle(self, producer: str, next_one: Commit | None = None) -> None:
        """Repeats the producer's last commit if its connection was lost, before anything follows from its outcome.

        The server may still be about to make such a commit: it does not notice at once that a client is gone. After the
        repetition it makes nothing of it any more.
        """
        commit = self._unsettled.get(producer)
        if commit is None or commit is next_one:
            return
        try:
            self.commit(commit)
        except RowtimeError as error:
            if not refused(error):
                raise

    def _commit_in_one_trip(self, commit: Commit) -> Receipt | None:
        """Commits in one round trip, if the server can decide the commit; see ``one_trip_commit``."""
        if self._stall.micros or not one_trip_suffices(commit, self.settings):
            return None
        clock = reading(self.now, self.steady) if self._replaced else None
        wall = None if self.now is wall_clock else self.now()
        sql, values = call(commit, self.number, self.name, self.settings, clock, wall)
        with self._stall.watched():
            made = landed(self._connection.look(sql, *values))
        if made is None:
            return None
        self._collector.after_commit(made.uptime, made.cleaned, made.train_bytes)
        return made.receipt

    def _commit_in_turn(self, commit: Commit) -> Receipt:
        if any(isinstance(train.location, InObject) for train in commit.trains):  # also by tasks of Spark
            self._require_own_objects()
        return super().commit(commit)

    def _commit(self, commit: Commit, cuts: Cuts) -> Receipt | Limits:
        def act(page: PostgresPage) -> tuple[Receipt | Limits, int, LogState]:
            return self._ledger(page).commit(commit, cuts), page.now, page.transaction.head

        made, now, head = self._on_page(act, commit.producer, ahead=Ahead(contents.of_commit(commit, cuts)))
        if isinstance(made, Receipt):
            self._collector.after_commit(now, head.cleaned, head.train_bytes)
            self._collector.after_bounds(made.seq, len(commit.bounds))
        return made

    def reject(self, producer: str, number: int, rejected: tuple[Rejected, ...], digest: str) -> None:
        ahead = Ahead(contents.of_rows(one.rows for one in rejected))
        self._decide(lambda ledger: ledger.reject(producer, number, rejected, digest), producer, ahead=ahead)

    def alter(self, add: pa.Schema | None = None, change: Change | None = None, expected: Sequence[str] = ()) -> None:
        made: list[bytes] = []

        def run(transaction: Transaction, found: list[list[tuple[Any, ...]]]) -> None:
            *answers, ((before, settings, *_),) = found
            if add is not None and before not in made:  # where an attempt that was cut off has not landed
                made.append(altered(pa.ipc.read_schema(pa.py_buffer(before)), add, self.path).serialize().to_pybytes())
                transaction.write("UPDATE rowtime.streams SET schema = %s WHERE id = %s", made[-1], self.number)
            if change is not None:
                text = settings_text(change(settings_of(settings)))
                transaction.write("UPDATE rowtime.streams SET settings = %s WHERE id = %s", text, self.number)
            page = PostgresPage(transaction, self.path, self.schema, self.settings, expected, answers)
            self._ledger(page).expect(expected)
            page.end()

        self._transact(run, *questions(self.number, expected), (snapshot.ABOUT, (self.number,)))

    def _rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._connection.rows((sql, values))[0]

    def _head_row(self, connection: Connection) -> tuple[LogState, Reading]:
        return self._loaded(*connection.rows(self._head))

    def _loaded(self, rows: list[tuple[Any, ...]]) -> tuple[LogState, Reading]:
        """Returns the answer to ``log_state.SELECT``."""
        if not rows:
            raise gone(self.path)
        return log_state.loaded(rows[0])

    def head(self) -> Head:
        row = self._connection.look(_POSITION, self.number, self.name)
        if row is None:
            raise gone(self.path)
        *end, replays = row
        head = log_state.position(end)
        self._seen = max(self._seen, head.seq)
        return Replayed(*head) if replays else head

    @property
    def _head(self) -> Statement:
        """Asks for the log's end, and all else that the head has; ``_loaded`` takes the answer."""
        return log_state.SELECT, (self.number, self.name)

    @property
    def _newest(self) -> Statement:
        """Asks for the log's end. It goes before other queries, each of which sees what was committed until it runs."""
        return log_state.POSITION, (self.number, self.name)

    def _has(self, newest: Sequence[Sequence[Any]], upto: int) -> bool:
        """Whether the server has all events up to ``upto`` that another one had; False: it has by now.

        ``newest`` is its answer to ``_newest``. Raises StoreUnavailableError if it is a standby that lags.
        """
        if newest and newest[0][0] >= (end := min(upto, self._seen)):
            return True
        require_there(Position(end if newest else 0, None, None), self.head(), self.path)
        return False

    def at(self, seq: int) -> Head:
        if seq == 0:
            return EMPTY
        rows, ends = self._connection.rows((log.AT, (self.number, seq)), self._head)
        head, _ = self._loaded(ends)
        if rows and seq >= head.horizon:
            return log_state.position(rows[0])
        if seq > head.seq:
            require_replayed(self.head(), seq, self.path)
            raise DataLostError(
                f"The log of {self.path} ends at seq {head.seq}, and seq {seq} was asked for: the stream is an older "
                "copy. Restore the newer one, or start again from the beginning.",
                path=self.path,
                last=head.seq,
            )
        raise lost_error(f"the log at seq {seq}", head.beginning, self.path)

    def made(self, *seqs: int) -> dict[int, int]:
        return log.made_at(self._rows(log.MADE, (self.number, list(seqs))))

    def slices(self, after: Position, upto: Position) -> list[Slice]:
        queries = trains.slices_between(self.number, after, upto)
        newest, *found, ends = self._connection.rows(self._newest, *queries, self._head)
        head, _ = self._loaded(ends)
        if not self._has(newest, upto.seq):
            return self.slices(after, upto)
        # Read last: if nothing is lost now, the slices found are complete.
        require_kept(after, head.beginning, self.path)
        pieces = [trains.as_slice(row) for rows in found for row in rows]
        self._prefetch.expect(pieces)
        return pieces

    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        if isinstance(piece, Slice) and isinstance(piece.location, Inline) and piece.location.content is None:
            piece = self._with_content(piece)
        try:
            return self.carried.read(piece)
        except DataLostError:
            if isinstance(piece, Slice) and piece.seq <= (horizon := self.horizon()).seq:
                raise lost_error(f"train {piece.seq} of {piece.producer!r}", horizon, self.path) from None
            raise

    def _with_content(self, piece: Slice) -> Slice:
        """Reads the bytes of a train, and of those that follow it in the last ``slices``, in one round trip."""
        if (ready := self._prefetch.take(piece.seq)) is not None:
            return ready
        found = self.carry(self._prefetch.next(piece))
        if not found or found[0].seq != piece.seq:
            require_there(Position(piece.seq, None, None), self.head(), self.path)
            raise lost_error(f"train {piece.seq} of {piece.producer!r}", self.horizon(), self.path)
        self._prefetch.keep(found[1:])
        return found[0]

    def carry(self, pieces: Sequence[Slice]) -> list[Slice]:
        queries = trains.contents(self.number, pieces, in_objects=self.objects is not None)
        return trains.with_contents(pieces, self._connection.rows(*queries))

    def keep(self, reader: str, position: Position, reads: str = READS_STREAM) -> None:
        values = (self.number, self.name, reader, position.seq, position.cut, self._uptime(), reads)
        self._require_there(self._connection.one(registrations.KEEP, *values))

    def forget(self, reader: str) -> None:
        attempts: list[bool] = []

        def run(connection: psycopg.Connection[Any]) -> bool:
            attempts.append(True)
            return connection.execute(registrations.FORGET, (self.number, reader)).fetchone() == (True,)

        if not self._connection.call(run) and len(attempts) == 1:  # an attempt that was cut off may have deleted it
            raise never_registered(reader, (row[0] for row in self._rows(registrations.ALL, (self.number,))))

    def put_status(self, role: str, name: str, content: str) -> None:
        values = (self.number, self.name, role, name, self._uptime(), content)
        self._require_there(self._connection.one(registrations.REPORT, *values))

    def _require_there(self, answer: tuple[Any, ...] | None) -> None:
        if answer != (True,):
            raise gone(self.path)

    def _uptime(self) -> int:
        return self._moment(*self._head_row(self._connection)).uptime

    def horizon(self) -> Head:
        return self._head_row(self._connection)[0].beginning

    def adopt(self) -> None:
        """Makes this database the owner of the stream's objects. A stream without a location has none."""
        if self.objects is not None:
            self._ownership(self.objects, self._access(self._connection)).take()

    def owns_objects(self) -> bool:
        """Returns whether this database may remove the stream's objects."""
        return self.objects is not None and self._ownership(self.objects, self._access(self._connection)).owns()

    def gc(self, age: int | None = None, size: int | None = None, force: bool = False) -> Collected:
        with self._connection.patience():
            self._connection.call(lambda connection: copies.remove_interrupted(connection, self.path))
        return self._collector.collect(age, size, force)

    def snapshot(self, *, full: bool = False) -> Snapshot:
        reader = snapshot.Reader(self, self.number, self.name, self._moment)
        return self._connection.call(lambda connection: reader.read(connection, full=full))

    def summary(self) -> Summary:
        weakest, ends = self._connection.rows(records.weakest_but(self.number, ""), self._head)
        head, _ = self._loaded(ends)
        holder, clock = records.member(weakest) or (None, None)
        expected = clock is not None and clock.status is Status.EXPECTED
        return Summary(head.floor, holder, expected, head.attached, head.rejected, head.forgotten)

    def producer(self, name: str) -> ProducerInfo | None:
        self._settle(name)
        row = self._connection.one(records.ONE, self.number, name)
        return None if row is None else records.opened(row).info

    def keys(self, producer: str) -> list[bytes]:
        return [content for (content,) in self._rows(key_floors.PARTS, (self.number, producer))]

    def cuts(self, after: int = 0, upto: int | None = None) -> Iterator[LoggedCut]:
        end = self.head().seq if upto is None else upto
        while after < end:
            newest, rows = self._connection.rows(self._newest, topic_cuts.between(self.number, after, end))
            if self._has(newest, end):
                found = topic_cuts.opened(rows)
                yield from found
                after = found[-1].seq if len(found) == cut_folding.PORTION_CUTS else end

    def has_cuts(self) -> bool:
        return self._connection.one(topic_cuts.THERE, self.number) is not None

    def last_cuts(self, producer: str) -> list[LoggedCut]:
        return topic_cuts.opened(self._rows(*topic_cuts.last(self.number, producer)))

    @contextmanager
    def kept(self) -> Iterator[psycopg.Connection[Any]]:
        """Yields the connection, for long. Nothing is removed meanwhile. For what commits replace see ``at_once``."""
        with self._connection.lent() as connection, _kept(connection, self.number):
            yield connection

    def kept_call(self, function: Callable[[psycopg.Connection[Any]], _Result]) -> _Result:
        """Runs ``function`` as in ``kept``; once more if the connection is lost."""

        def run(connection: psycopg.Connection[Any]) -> _Result:
            with _kept(connection, self.number):
                return function(connection)

        return self._connection.call(run)

    def raised(self, bound: int) -> BoundOrigin | None:
        head = self._head_row(self._connection)[0]
        return log.origin(self._rows(*log.raised(self.number, bound, head.horizon, head.seq)), head.horizon)

    def rejections(self, after: int = 0, upto: int | None = None) -> Iterator[Rejection]:
        end = self.rejections_end() if upto is None else upto
        while after < end:
            ends, rows = self._connection.rows(self._head, rejections.portion(self.number, after, end))
            if self._loaded(ends)[0].rejections < end:
                require_replayed(self.head(), self._seen, self.path)
            yield from (rejections.opened(row, self.schema, self.path) for row in rows)
            after = rows[-1][0] if len(rows) == rejection_rules.PORTION_REJECTIONS else end

    def rejections_end(self) -> int:
        return self._head_row(self._connection)[0].rejections

    def bounds(self) -> pa.Table:
        return bounds_table(log.columns(self._rows(log.COLUMNS, (self.number,))))

    def answering(self, seconds: float) -> AbstractContextManager[None]:
        return self._connection.answering(seconds)

    def wait(self, seq: int, timeout: float | None) -> bool:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        pause = FIRST_PAUSE_SECONDS
        while self.head().seq <= seq:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.sleep(min(pause, left))
            pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE_SECONDS)
        return True

    def _is_current(self) -> bool:
        found, head = self._connection.rows((snapshot.ABOUT, (self.number,)), self._newest)
        about = [(pa.ipc.read_schema(pa.py_buffer(schema)), settings_of(settings)) for schema, settings in found]
        return bool(head) and any(
            schema.equals(self.schema, check_metadata=True) and settings == self.settings for schema, settings in about
        )

    def close(self) -> None:
        if self.sharers.remove():
            self._collector.end()
            self._connection.close()


def refused(error: RowtimeError) -> bool:
    """Returns whether a commit that raised the error is refused, and so would be each time it is repeated."""
    return not isinstance(error, StoreUnavailableError) or error.values.get("lacks") == STAGED_ROWS


@contextmanager
def at_once(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """All queries of the block see one state. Let it be short: the server keeps that state meanwhile."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _kept(connection: psycopg.Connection[Any], stream: int) -> Iterator[None]:
    """Keeps everything of the stream from being removed; see ``stream_locks.reading_all``."""
    connection.execute("SELECT pg_advisory_lock_shared(%s)", (reading_all(stream),))
    held: tuple[Any, ...] | None = (True,)
    try:
        yield
    finally:
        with suppress(psycopg.Error):  # of a connection that is lost, which holds no lock
            held = connection.execute("SELECT pg_advisory_unlock_shared(%s)", (reading_all(stream),)).fetchone()
    if held != (True,):
        raise psycopg.errors.InvalidSqlStatementName("the lock that keeps rows from being removed is another session's")
