"""LocalStore: a stream in a directory, for all processes of one machine."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from spark_rowtime.bound import stronger
from spark_rowtime.clock import GONE, Detached, Event, Joined, Left, Sent, Status, StreamClock
from spark_rowtime.store.base import (
    Commit,
    Head,
    Position,
    ProducerInfo,
    Receipt,
    Rejected,
    Slice,
    Staged,
    Store,
    admit,
    bounds_table,
    fenced,
    never_attached,
    overdue,
    redeclared,
    rejected_schema,
    rejected_table,
    strongest_first,
)
from spark_rowtime.store.local import producers, rejections
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.guard import Guard
from spark_rowtime.store.local.log import Log
from spark_rowtime.store.local.producers import Known
from spark_rowtime.store.local.segment import SegmentReader, SegmentWriter
from spark_rowtime.store.local.spans import slices_between
from spark_rowtime.train import floors_between, span

POLL = 0.001
"""Seconds between two looks for news from other processes."""


class LocalStore(Store):
    """See :class:`Store` and FORMAT.md beside this file.

    ``catalog.db`` decides: what no transaction of it names has not happened. ``now`` gives the wall
    clock in microseconds, for what is recorded and for leases; ``pause`` waits for so many seconds.
    """

    def __init__(
        self,
        path: str,
        catalog: Catalog,
        durability: str,
        now: Callable[[], int],
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.path, self._catalog, self.now, self._pause = path, catalog, now, pause
        self.stream, self.schema, self.settings = catalog.meta()
        self._guard = Guard(path)
        self._log = Log(catalog, self.settings, lambda: self.now())  # noqa: PLW0108  (``now`` may be replaced)
        self._writer = SegmentWriter(Path(path), self.schema, durable=durability == "power")
        self._reader = SegmentReader(Path(path), self.schema)

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        with self._guard:
            self._catalog.require()
            try:
                with self._catalog.transaction(kind):
                    self._log.catch_up()
                    yield
            except BaseException:
                self._log.forget()
                raise

    def attach(self, producer: str, holder: str, declaration: str, lease: int | None = None) -> ProducerInfo:
        with self._transaction():
            self._expire()
            known = producers.find(self._catalog, producer)
            if known is None:
                known = Known(producer, Status.ATTACHED.value, 0, None, 0, 0, 0, None, declaration, "", "", 0, None)
            if known.declaration != declaration:
                raise redeclared(producer, known.declaration, declaration)
            known.lease, known.seen = lease, self.now()
            if known.holder != holder or known.status in (Status.LEFT, Status.DETACHED):
                known.holder, known.epoch, known.sent = holder, known.epoch + 1, self.now()
                self._tick(Joined(producer), known)
            else:
                producers.save(self._catalog, known)
            return known.info()

    def renew(self, producer: str, epoch: int) -> None:
        with self._transaction():
            known = self._current(producer, epoch)
            known.seen = self.now()
            producers.save(self._catalog, known)

    def expire(self) -> bool:
        with self._guard:
            if not self._overdue():
                return False
        with self._transaction():
            return self._expire()

    def _overdue(self) -> list[Event]:
        now, timeout = self.now(), self.settings.idleTimeout
        found: list[tuple[int, Event]] = []
        for name, status, floor, lease, seen, sent in producers.ticking(self._catalog):
            what = overdue(now, timeout, Status(status), lease, seen, sent)
            found += [(floor or 0, what(name))] if what else []
        return strongest_first(found)

    def _expire(self, but: str = "") -> bool:
        due = [event for event in self._overdue() if event.producer != but]
        for event in due:
            self._tick(event, self._find(event.producer))
        return bool(due)

    def stage(self, rows: pa.RecordBatch) -> Staged:
        ends = span(rows)
        assert ends is not None, "an empty batch is not staged"
        with self._guard:
            return Staged(rows.num_rows, *ends, location=self._writer.append(rows))

    def commit(self, commit: Commit) -> Receipt:
        with self._transaction():
            known = self._current(commit.producer, commit.epoch)
            self._expire(but=commit.producer)
            if commit.number <= known.number:
                return self._receipt(known)
            trains, late = admit(self, commit.trains, self._log.clock.floor)
            known.seen = self.now()
            if self._land(commit, trains, known):
                known.sent = known.seen
            self._reject(commit, late)
            known.accepted += sum(t.rows for t in trains)
            known.rejected += sum(r.rows.num_rows for r in commit.rejected + late)
            known.number, known.disorder = commit.number, commit.disorder
            known.checkpoint = known.checkpoint if commit.checkpoint is None else commit.checkpoint
            known.receipt_seq, known.receipt_floor = self._log.last.seq, self._log.last.floor
            producers.save(self._catalog, known)
        return Receipt(known.receipt_seq, known.receipt_floor, late)

    def _current(self, producer: str, epoch: int) -> Known:
        known = self._find(producer)
        if known.epoch != epoch:
            raise fenced(producer, epoch, known.epoch)
        return known

    def _find(self, producer: str) -> Known:
        known = producers.find(self._catalog, producer)
        if known is None:
            raise never_attached(producer)
        return known

    def _receipt(self, known: Known) -> Receipt:
        late = rejections.of_receipt(self._catalog, self.schema, known.name, known.number)
        return Receipt(known.receipt_seq, known.receipt_floor, late)

    def _land(self, commit: Commit, trains: tuple[Staged, ...], known: Known) -> bool:
        """Logs rows and bound; whether there were any."""
        before, own = self._log.clock.in_force(commit.producer), known.floor
        floors = floors_between([(t.least, t.largest) for t in trains], commit.floor, own)[1:]
        for train, floor in zip(trains, floors, strict=True):
            self._log.append(Sent(commit.producer, floor, train.largest), train)
        news = stronger(own, commit.floor) != own
        if not trains and (news or known.status != Status.ATTACHED):
            self._log.append(Sent(commit.producer, stronger(before, commit.floor)))
        known.tick(self._log.clock.producers.get(commit.producer), Status(known.status))
        return bool(trains) or news

    def _reject(self, commit: Commit, late: tuple[Rejected, ...]) -> None:
        for rejected, at_commit in [(r, False) for r in commit.rejected] + [(r, True) for r in late]:
            rejections.add(self._catalog, commit.producer, commit.number, self.now(), rejected, at_commit)

    def _tick(self, event: Event, known: Known) -> None:
        self._log.append(event)
        known.tick(self._log.clock.producers.get(known.name), GONE.get(type(event), Status.ATTACHED))
        producers.save(self._catalog, known)

    def leave(self, producer: str, epoch: int) -> None:
        with self._transaction():
            known = self._current(producer, epoch)
            if known.status != Status.LEFT:
                self._tick(Left(producer), known)

    def detach(self, producer: str) -> None:
        with self._transaction():
            known = self._find(producer)
            if known.status in (Status.ATTACHED, Status.IDLE):
                self._tick(Detached(producer), known)

    def head(self) -> Head:
        with self._guard:
            self._catalog.require()
            return self._log.head()

    def at(self, seq: int) -> Head:
        with self._guard:
            return self._log.at(seq)

    def slices(self, after: Position, upto: Position) -> list[Slice]:
        with self._guard:
            return slices_between(self._catalog, after, upto)

    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        train = f"train {piece.seq} of {piece.producer!r}" if isinstance(piece, Slice) else "a train of this commit"
        with self._guard:
            return self._reader.read(piece.location, piece.rows, train)

    def producers(self) -> list[ProducerInfo]:
        with self._guard:
            return [known.info() for known in producers.everyone(self._catalog)]

    def clock(self) -> StreamClock:
        with self._transaction("DEFERRED"):
            return self._log.copy_clock()

    def rejected(self) -> pa.Table:
        schema = rejected_schema(self.schema)
        with self._guard:
            found = [rejected_table(n, r, schema) for n, r in rejections.everything(self._catalog, self.schema)]
        return pa.concat_tables([schema.empty_table(), *found])

    def bounds(self) -> pa.Table:
        with self._guard:
            return bounds_table(self._log.columns())

    def wait(self, seq: int, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.head().seq <= seq:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self._pause(POLL)
        return True

    def close(self) -> None:
        if self._guard.shut():
            self._writer.close()
            self._reader.close()
            self._catalog.close()
