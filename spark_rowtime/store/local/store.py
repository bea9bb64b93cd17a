"""LocalStore: a stream in a directory, shared by all processes of one machine."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa

from spark_rowtime.bounds.clock import Event, Status
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.bounds.train import span
from spark_rowtime.errors import RowtimeError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.store import cut_folding, rejection_rules
from spark_rowtime.store.admission import interrupted
from spark_rowtime.store.base import Renewal
from spark_rowtime.store.commits import Commit, Receipt, Rejection, Slice, Staged
from spark_rowtime.store.forks import no_fork
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.ledger_store import LedgerStore, Result, Sharers
from spark_rowtime.store.limits import Cuts, Limits
from spark_rowtime.store.local import cuts, key_floors, producers, readers, rejections, snapshot, statuses
from spark_rowtime.store.local.ancestors import ancestors
from spark_rowtime.store.local.catalog import CATALOG, Catalog
from spark_rowtime.store.local.collector import Collector, full_segment
from spark_rowtime.store.local.group import Group, Member
from spark_rowtime.store.local.guard import Guard
from spark_rowtime.store.local.index_check import IndexedTrains, all_there, slices_between
from spark_rowtime.store.local.log import Log
from spark_rowtime.store.local.page import LocalPage
from spark_rowtime.store.local.raised import raised
from spark_rowtime.store.local.redo import Redo, require_settled, settle
from spark_rowtime.store.local.seal import Damaged
from spark_rowtime.store.local.segment import SegmentWriter
from spark_rowtime.store.local.segment_reader import SegmentReader, segment_exists
from spark_rowtime.store.local.storage_errors import STORAGE_ERRORS
from spark_rowtime.store.local.uptime import Uptime
from spark_rowtime.store.local.watch import Watch
from spark_rowtime.store.position import Head, Position
from spark_rowtime.store.record import Held, ProducerInfo, ProducerRecord, overdue
from spark_rowtime.store.retention import lost_error, never_registered, require_kept, staged_gone, unsynced
from spark_rowtime.store.settings import Change
from spark_rowtime.store.snapshot import READER, READS_STREAM, Collected, Snapshot, Summary
from spark_rowtime.store.steady_clock import Reading, machine_reading, reading
from spark_rowtime.store.views import bounds_table
from spark_rowtime.types.alteration import altered

READER_PATIENCE = 0.1
"""How many seconds a call that readers make on their way waits for another process's transaction."""
BESIDE_SECONDS = 2.0
"""How long a renewal beside another call waits for the catalog's lock."""
REMOVED_SECONDS = 1.0
"""The interval between two checks whether open segments were removed."""


class LocalStore(LedgerStore):
    """See :class:`Store`, and FORMAT.md beside this file.

    ``catalog.db`` decides: what none of its transactions names has not happened. ``now`` gives the wall
    clock in microseconds, for what is recorded. ``steady`` is the clock for leases and ages, see
    :class:`Uptime`. ``pause`` waits for a number of seconds.
    """

    def __init__(
        self,
        path: str,
        catalog: Catalog,
        guard: Guard,
        durability: str,
        now: Callable[[], int],
        steady: Callable[[], Reading] = machine_reading,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """``guard``: its lock is that of the catalog."""
        self.path, self._catalog, self.now, self.steady = path, catalog, now, steady
        self.stream, self.schema, self.settings = catalog.meta()
        self.ancestors = ancestors(catalog.execute)
        guard.inner = threading.RLock()
        self._guard, self._writer_guard = guard, Guard(path, guard.inner)
        """The second is for the segment that is open. Who needs both takes it last."""
        # The lambdas read ``now`` and ``steady`` at each call, since these may be replaced.
        self._uptime = Uptime(catalog, lambda: reading(self.now, self.steady), lambda: self.now())  # noqa: PLW0108
        self._log = Log(catalog)
        full = full_segment(self.settings)
        self._writer = SegmentWriter(Path(path), self.schema, full, durable=durability == "power")
        self._redo = Redo(catalog, self._writer, self._writer_guard)
        self._reader = SegmentReader(Path(path), self.schema)
        self._group = Group(guard, self._land)
        self._watch = Watch(Path(path), pause)
        self._collector = Collector(self, catalog, self._log, self._guard, self._transaction, self._look_at_uptime)
        self._indexed = IndexedTrains(catalog)
        self._looked_at = 0.0
        self._is_writing = False
        self.sharers = Sharers(lambda: guard.open_here, self._is_current)
        for table in ("meta", "producers", "readers", "key_floors", "accounts", "cut_ends"):
            catalog.verify(table)
        self._log.verify()

    @classmethod
    def opened(
        cls,
        path: str,
        durability: str,
        busy_timeout: float,
        now: Callable[[], int],
        steady: Callable[[], Reading],
        pause: Callable[[float], object] = time.sleep,
    ) -> "LocalStore":
        """Opens the catalog of the stream in the directory ``path``, and the stream."""
        lock = threading.RLock()
        with no_fork(), lock:  # a fork that waits no longer must not close the connection
            catalog = Catalog(Path(path) / CATALOG, durability, busy_timeout, lock)
            try:
                settle(Path(path), catalog)
                return cls(path, catalog, Guard(path, lock), durability, now, steady, pause)
            except BaseException:
                catalog.close()
                raise

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE", patience: float | None = None) -> Iterator[None]:
        """Runs a transaction with the current log. A DEFERRED transaction only reads."""
        with self._guard:
            self._require_none_open()
            self._catalog.require()
            writes = kind == "IMMEDIATE"
            if writes:
                self._uptime.ask()
            try:
                with self._catalog.transaction(kind, patience):
                    if writes:
                        self._uptime.begin()
                    self._log.catch_up()
                    yield
                    if writes:
                        self._uptime.end()
                if writes:
                    self._uptime.committed()
            except BaseException as error:
                self._log.forget()
                if writes:
                    self._uptime.failed(unwritable=isinstance(error, STORAGE_ERRORS))
                raise

    def _require_none_open(self) -> None:
        """Refuses a transaction within another one, as of a signal's handler that interrupted a call."""
        if self._catalog.in_transaction:
            raise interrupted(self.path)

    def _close_removed(self) -> None:
        """Closes open segments that other processes have removed, at most once per REMOVED_SECONDS."""
        with self._guard:
            at = time.monotonic()
            if at - self._looked_at >= REMOVED_SECONDS:
                self._looked_at = at
                self._reader.close_removed()

    def _look_at_uptime(self) -> int:
        with self._guard:
            return self._uptime.look()

    def _decide(self, decision: Callable[[Ledger], Result], *about: str) -> Result:  # noqa: ARG002
        with self._transaction():
            self._close_removed()
            return decision(self._ledger(self._page()))

    def _page(self) -> LocalPage:
        """Returns the page of the transaction."""
        now, settings = self._uptime.now(), self.settings
        return LocalPage(self._catalog, self._log, self.schema, settings, now, self.now(), self._require_staged)

    def _info(self, record: ProducerRecord) -> ProducerInfo:
        return producers.info(self._catalog, record)

    def _due(self) -> list[Event]:
        with self._guard:
            now, idle = self._uptime.look(), self.settings.idleTimeout
            return [event for event, _ in overdue(producers.overdue(self._catalog, now, idle), now, idle)]

    def renew_beside(self, producers: Sequence[Held]) -> list[Renewal]:
        """A call that writes its rows keeps the store's lock. So this opens the stream once more."""
        with closing(
            LocalStore.opened(self.path, self._catalog.durability, BESIDE_SECONDS, self.now, self.steady)
        ) as other:
            return other.renew_all(producers)

    def expire(self) -> bool:
        self._close_removed()
        if not self._catalog.writable or (not self._due() and not self._rebooted()):
            return False
        try:
            with self._transaction(patience=0):
                return self._ledger(self._page()).expire()
        except StoreUnavailableError as error:
            if not isinstance(error.__cause__, STORAGE_ERRORS):
                raise
            return False  # who keeps the lock, or a full disk, keeps all from renewing their leases, too

    def _rebooted(self) -> bool:
        with self._guard:
            return self._uptime.rebooted()

    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        ends = ends or span(rows)
        assert ends is not None, "an empty batch is not staged"
        with self._writing():
            lost = self._writer.lost()
            if lost is None:
                return Staged(rows.num_rows, *ends, location=self._writer.append(rows))
        with self._guard:
            self._catalog.require()  # says so if the whole stream was deleted
        raise lost

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Writes the segment, also while another thread commits. Refused within itself, as in a signal's handler."""
        try:
            with self._writer_guard:
                if self._is_writing:
                    raise interrupted(self.path)
                self._is_writing = True
                try:
                    yield
                finally:
                    self._is_writing = False
        except StoreUnavailableError as error:
            if isinstance(error.__cause__, OSError):
                self._look_what_is_wrong()
            raise

    def _look_what_is_wrong(self) -> None:
        with self._guard:
            self._uptime.ask()  # on a full disk nobody can write
            self._catalog.require()  # the stream was renamed or deleted

    def _commit(self, commit: Commit, cuts: Cuts) -> Receipt | Limits:
        member = Member(commit, cuts)
        made = self._group.commit(member)
        self._collector.after_commit(member.trains)
        if isinstance(made, Receipt):
            self._collector.after_bounds(made.seq, len(commit.bounds))
        return made

    def _land(self, members: Sequence[Member]) -> None:
        """Runs one transaction for the members of a group."""
        if staged := [train for member in members for train in member.commit.trains]:
            with self._writing():
                self._redo.prepare(staged)
        decide = self._decided_alone if len(members) == 1 else self._decided
        with self._transaction():
            found = [decide(member) for member in members]
            trains = [train for page, _ in found for train in page.trains]
            removed = self._redo.write(trains, self.path)
        self._redo.landed(removed)
        for member, (page, made) in zip(members, found, strict=True):
            member.trains, member.made = page.trains, made

    def _decided_alone(self, member: Member) -> tuple[LocalPage, Receipt | Limits]:
        page = self._page()
        return page, self._ledger(page).commit(member.commit, member.cuts)

    def _decided(self, member: Member) -> tuple[LocalPage, Receipt | Limits | RowtimeError]:
        """Returns the error if the commit is refused. Then the transaction goes on without it."""
        self._catalog.execute("SAVEPOINT member")
        found: tuple[LocalPage, Receipt | Limits | RowtimeError]
        try:
            found = self._decided_alone(member)
        except RowtimeError as error:
            self._catalog.execute("ROLLBACK TO member")
            self._log.catch_up()
            found = self._page(), error
        self._catalog.execute("RELEASE member")
        return found

    def _require_staged(self, trains: Sequence[Staged]) -> None:
        if not trains:
            return
        with self._writer_guard:
            lost = self._writer.lost()
            if lost is not None:
                self._catalog.require()
                raise lost
            if any(self._writer.is_in_doubt(train.location) for train in trains):
                raise unsynced(self.path)
            for segment in {train.location.segment for train in trains}:
                if not self._writer.holds(segment) and not segment_exists(Path(self.path), segment):
                    raise staged_gone(self.path)

    def alter(self, add: pa.Schema | None = None, change: Change | None = None, expected: Sequence[str] = ()) -> None:
        with self._transaction():
            _, schema, settings = self._catalog.meta()
            if add is not None:
                self._catalog.set_schema(altered(schema, add, self.path))
            if change is not None:
                self._catalog.set_settings(change(settings))
            self._ledger(self._page()).expect(expected)

    def head(self) -> Head:
        with self._guard:
            self._catalog.require()
            return self._log.head()

    def at(self, seq: int) -> Head:
        with self._guard:
            head = self._log.at(seq)
            if head is None:
                raise lost_error(f"the log at seq {seq}", self._log.horizon(), self.path)
            return head

    def made(self, *seqs: int) -> dict[int, int]:
        with self._guard:
            return self._log.made(seqs)

    def slices(self, after: Position, upto: Position) -> list[Slice]:
        with self._guard:
            self._indexed.require(after)
            found, whole = slices_between(self._catalog, after, upto), all_there(self._catalog, after.seq, upto.seq)
            # Checked last: if nothing is lost now, the slices found are complete.
            require_kept(after, self._log.horizon(), self.path)
            if not whole:
                raise Damaged(f"events between seq {after.seq} and {upto.seq} are missing from the log")
            require_settled(self._catalog, self._reader, found)
            return found

    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        train = f"train {piece.seq} of {piece.producer!r}" if isinstance(piece, Slice) else "a train of this commit"
        with self._guard:
            try:
                return self._reader.read(piece.location, piece.rows, train)
            except StoreCorruptError:
                if isinstance(piece, Slice) and piece.seq <= (horizon := self._log.horizon()).seq:
                    raise lost_error(train, horizon, self.path) from None
                raise

    def keep(self, reader: str, position: Position, reads: str = READS_STREAM) -> None:
        with self._transaction(patience=READER_PATIENCE):
            at = position._replace(seq=min(position.seq, self._log.head().seq))
            readers.keep(self._catalog, reader, at, self._uptime.now(), reads)

    def forget(self, reader: str) -> None:
        with self._transaction():
            if not readers.forget(self._catalog, reader):
                raise never_registered(reader, [one.name for one in readers.known(self._catalog)])

    def put_status(self, role: str, name: str, content: str) -> None:
        with self._transaction(patience=READER_PATIENCE if role == READER else None):
            statuses.save(self._catalog, role, name, content, self._uptime.now())

    def horizon(self) -> Head:
        with self._guard:
            return self._log.horizon()

    def gc(self, age: int | None = None, size: int | None = None, force: bool = False) -> Collected:
        return self._collector.collect(age, size, force)

    def snapshot(self, *, full: bool = False) -> Snapshot:
        wall = self.now()
        with self._transaction("DEFERRED"):
            return snapshot.read(self.path, self._catalog, self._log, self._uptime, wall, full=full)

    def summary(self) -> Summary:
        with self._transaction("DEFERRED"):
            totals, weakest = producers.totals(self._catalog), producers.extreme(self._catalog, None)
            holder, clock = weakest or (None, None)
            expected = clock is not None and clock.status is Status.EXPECTED
            return Summary(self._log.last.floor, holder, expected, totals.attached, totals.rejected, totals.forgotten)

    def producer(self, name: str) -> ProducerInfo | None:
        with self._guard:
            record = producers.find(self._catalog, name)
            return producers.info(self._catalog, record) if record else None

    def keys(self, producer: str) -> list[bytes]:
        with self._guard:
            return key_floors.parts(self._catalog, producer)

    def cuts(self, after: int = 0, upto: int | None = None) -> Iterator[LoggedCut]:
        end = self.head().seq if upto is None else upto
        while after < end:
            with self._transaction("DEFERRED"):
                found = cuts.between(self._catalog, after, end)
            yield from found
            after = found[-1].seq if len(found) == cut_folding.PORTION_CUTS else end

    def has_cuts(self) -> bool:
        with self._guard:
            return cuts.there(self._catalog)

    def last_cuts(self, producer: str) -> list[LoggedCut]:
        with self._transaction("DEFERRED"):
            return cuts.last(self._catalog, producer)

    def raised(self, bound: int) -> BoundOrigin | None:
        with self._transaction("DEFERRED"):
            return raised(self._catalog, bound)

    def rejections(self, after: int = 0, upto: int | None = None) -> Iterator[Rejection]:
        end = self.rejections_end() if upto is None else upto
        while after < end:
            with self._guard:
                found = rejections.portion(self._catalog, self.schema, after, end)
            yield from found
            after = found[-1].number if len(found) == rejection_rules.PORTION_REJECTIONS else end

    def rejections_end(self) -> int:
        with self._guard:
            self._catalog.require()
            return rejections.newest(self._catalog)

    def rejected(self) -> pa.Table:
        with self._guard:
            self._catalog.verify("rejected")
            self._catalog.verify("rejected_origins")
        return super().rejected()

    def bounds(self) -> pa.Table:
        with self._guard:
            return bounds_table(self._log.columns())

    def wait(self, seq: int, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        record = self._version()
        self._watch.begin()
        while self.head().seq <= seq:
            while (version := self._version()) == record:
                left = math.inf if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    return False
                self._watch.pause(left)
            self._watch.found()
            record = version
        return True

    def _version(self) -> tuple[tuple[int, int], int]:
        """Returns a value that changes with each commit of any process. Much cheaper than reading the log's end."""
        with self._guard:
            return self._catalog.version(), self._log.last.seq

    def _is_current(self) -> bool:
        with self._guard:
            with self._writer_guard:
                lost = self._writer.lost()
            if lost is not None or not self._catalog.is_current():
                return False
            _, schema, settings = self._catalog.meta()
            return bool(schema.equals(self.schema, check_metadata=True)) and settings == self.settings

    def close(self) -> None:
        if not (self.sharers.remove() and self._guard.shut()):
            return
        with no_fork(), self._guard.after_calls():  # SQLite crashes if a connection is closed that a thread uses
            self._writer_guard.shut()
            with self._writer_guard.after_calls():
                self._writer.close()
            self._reader.close()
            self._watch.close()
            self._catalog.close()
