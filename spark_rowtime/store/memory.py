"""A store in the memory of one process: the reference model that other stores are compared with.

It uses plain lists and full scans, so that its correctness is easy to see. Its paths have the form ``memory://name``.
"""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.clock import GONE, Detached, Event, Joined, Left, Sent, Status, StreamClock
from spark_rowtime.bounds.train import floors_between, span
from spark_rowtime.store.admission import admit, fenced, never_attached, redeclared, require_whole
from spark_rowtime.store.base import (
    FORGET_MICROS,
    Collected,
    Commit,
    Head,
    Position,
    ProducerInfo,
    ReaderInfo,
    Receipt,
    Rejected,
    Slice,
    Staged,
    Store,
    StreamSettings,
    Summary,
)
from spark_rowtime.store.difference import between
from spark_rowtime.store.expiry import overdue
from spark_rowtime.store.retention import lost_error, needs, never_registered, require_kept
from spark_rowtime.store.steady_clock import Reading, machine_reading, reading
from spark_rowtime.store.views import bounds_table, rejected_schema, rejected_table
from spark_rowtime.types.timestamps import wall_clock


@dataclass(slots=True)
class _Producer:
    info: ProducerInfo
    holder: str
    receipt: Receipt
    lease: int | None = None
    seen: int = 0
    sent: int = 0
    let_go: bool = False
    keys: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Entry:
    seq: int
    event: Event
    train: Staged | None
    floor: int | None
    largest: int | None
    rows: int
    time: int


@dataclass(slots=True, eq=False)
class MemoryStore(Store):
    """See :class:`Store`. One lock protects everything."""

    path: str
    schema: pa.Schema
    settings: StreamSettings
    stream: str = field(default_factory=lambda: str(uuid.uuid4()))
    now: Callable[[], int] = wall_clock
    steady: Callable[[], Reading] = machine_reading

    def __post_init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._clock = self.settings.clock()
        self._log: list[_Entry] = []
        self._producers: dict[str, _Producer] = {}
        self._rejected: list[tuple[str, Rejected]] = []
        self._readers: dict[str, tuple[Position, int]] = {}
        self._horizon = 0
        self._rejected_removed = 0
        self._forgotten: list[ProducerInfo] = []

    def _uptime(self) -> int:
        return reading(self.now, self.steady).micros

    def attach(self, producer: str, holder: str, declaration: str, lease: int | None = None) -> ProducerInfo:
        with self._changed:
            self._expire()
            record = self._producers.get(producer)
            if record is None:
                epoch = max((info.epoch for info in self._forgotten), default=0)
                info = ProducerInfo(producer, Status.ATTACHED, epoch, None, 0, 0, 0, None, declaration, "")
                record = self._producers[producer] = _Producer(info, "", Receipt(0, None))
            if record.info.declaration != declaration:
                raise redeclared(producer, record.info.declaration, declaration)
            if record.holder != holder or record.info.status in (Status.LEFT, Status.DETACHED):
                record.holder = holder
                record.info = replace(record.info, epoch=record.info.epoch + 1)
                self._append(Joined(producer), None)
                record.sent = self._uptime()
            record.lease, record.seen = lease, self._uptime()
            return record.info

    def renew(self, producer: str, epoch: int) -> bool:
        with self._changed:
            record = self._current(producer, epoch)
            record.seen = self._uptime()
            if record.info.status is not Status.DETACHED or record.let_go:
                return False
            promised, record.sent = record.info.floor, record.seen
            self._append(Joined(producer), None)
            if stronger(promised, record.info.floor) != record.info.floor:
                self._append(Sent(producer, promised), None)
            return True

    def due(self) -> list[Event]:
        with self._changed:
            return self._due()

    def expire(self) -> bool:
        with self._changed:
            return self._expire()

    def _expire(self, but: str = "") -> bool:
        due = self._due(but)
        for event in due:
            self._append(event, None)
        return bool(due)

    def _due(self, but: str = "") -> list[Event]:
        alive = (Status.ATTACHED, Status.IDLE)
        ticking = [p for name, p in self._producers.items() if name != but and p.info.status in alive]
        found = [(p.info.name, p.info.status, p.info.floor, p.lease, p.seen, p.sent) for p in ticking]
        return overdue(found, self._uptime(), self.settings.idleTimeout)

    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        ends = ends or span(rows)
        assert ends is not None, "an empty batch is not staged"
        return Staged(rows.num_rows, *ends, location=rows)

    def commit(self, commit: Commit) -> Receipt:
        with self._changed:
            record = self._current(commit.producer, commit.epoch)
            record.seen = self._uptime()
            self._expire(but=commit.producer)
            if commit.number <= record.info.number:
                return record.receipt
            trains, late = admit(self, commit.trains, self._clock.floor)
            require_whole(commit, late)
            self._land(commit, trains)
            rejected = commit.rejected + late
            self._reject(commit.producer, rejected)
            record.info = replace(
                record.info,
                accepted=record.info.accepted + sum(t.rows for t in trains),
                rejected=record.info.rejected + sum(r.rows.num_rows for r in rejected),
                number=commit.number,
                checkpoint=record.info.checkpoint if commit.checkpoint is None else commit.checkpoint,
                disorder=commit.disorder,
            )
            if commit.keys is not None:
                record.keys = [*([] if commit.keys.whole else record.keys), commit.keys.content]
            record.receipt = Receipt(len(self._log), self._clock.floor, late)
            if self.settings.retainAge is not None or self.settings.retainBytes is not None:
                self._remove(None, None, False)
            return record.receipt

    def _land(self, commit: Commit, trains: tuple[Staged, ...]) -> None:
        record = self._producers[commit.producer]
        before = self._clock.in_force(commit.producer)
        own = record.info.floor
        floors = floors_between([(t.least, t.largest) for t in trains], commit.floor, own)[1:]
        for train, floor in zip(trains, floors, strict=True):
            self._append(Sent(commit.producer, floor, train.largest), train)
        news = stronger(own, commit.floor) != own
        if not trains and (news or record.info.status is not Status.ATTACHED):
            self._append(Sent(commit.producer, stronger(before, commit.floor)), None)
        if trains or news:
            record.sent = self._uptime()

    def _reject(self, producer: str, rejected: tuple[Rejected, ...]) -> None:
        """Keeps the new rejections, and the newest of the old ones that fit into the limit.

        A rejection that a producer's last receipt contains is kept in any case, since a retry returns it again.
        """
        receipts = [r for p in self._producers.values() for r in p.receipt.rejected]
        old, self._rejected = self._rejected, []
        room = self.settings.retainRejected - sum(r.rows.nbytes for r in rejected)
        for name, r in reversed(old if rejected else []):
            room -= r.rows.nbytes
            if room >= 0 or any(r is needed for needed in receipts):
                self._rejected.insert(0, (name, r))
            else:
                room, self._rejected_removed = min(room, 0), self._rejected_removed + r.rows.num_rows
        self._rejected = (self._rejected if rejected else old) + [(producer, r) for r in rejected]

    def _append(self, event: Event, train: Staged | None) -> None:
        floor = self._clock.apply(event)
        rows = (self._log[-1].rows if self._log else 0) + (train.rows if train else 0)
        self._log.append(_Entry(len(self._log) + 1, event, train, floor, self._clock.largest, rows, self._uptime()))
        record = self._producers[event.producer]
        record.let_go = False
        ticking = self._clock.producers.get(event.producer)
        record.info = replace(
            record.info,
            status=ticking.status if ticking else GONE[type(event)],
            floor=ticking.floor if ticking else record.info.floor,
        )
        self._changed.notify_all()

    def leave(self, producer: str, epoch: int) -> None:
        with self._changed:
            if self._current(producer, epoch).info.status is not Status.LEFT:
                self._append(Left(producer), None)
                self._producers[producer].seen = self._uptime()

    def detach(self, producer: str) -> None:
        with self._changed:
            if self._record(producer).info.status in (Status.ATTACHED, Status.IDLE):
                self._append(Detached(producer), None)
                self._producers[producer].let_go = True

    def _current(self, producer: str, epoch: int) -> _Producer:
        record = self._record(producer)
        if record.info.epoch != epoch:
            raise fenced(producer, epoch, record.info.epoch)
        return record

    def _record(self, producer: str) -> _Producer:
        if producer not in self._producers:
            raise never_attached(producer)
        return self._producers[producer]

    def head(self) -> Head:
        return self.at(len(self._log))

    def at(self, seq: int) -> Head:
        if seq == 0:
            return Head(0, None, None, 0)
        if seq < self._horizon:
            raise lost_error(f"the log at seq {seq}", self.horizon(), self.path)
        entry = self._log[seq - 1]
        return Head(seq, entry.floor, entry.largest, entry.rows)

    def slices(self, after: Position, upto: Position) -> list[Slice]:
        require_kept(after, self.horizon(), self.path)
        return [piece for piece in self._kept() if between(after, upto, piece.seq, piece.least, piece.largest)]

    def _kept(self) -> list[Slice]:
        with self._changed:
            found = [(e, e.train) for e in self._log[self._horizon :] if e.train is not None]
        return [
            Slice(e.seq, e.event.producer, t.rows, t.least, t.largest, t.location.nbytes, t.location) for e, t in found
        ]

    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        rows: pa.RecordBatch = piece.location
        return rows

    def keep(self, reader: str, position: Position) -> None:
        with self._changed:
            self._readers[reader] = position._replace(floor=None), self._uptime()

    def forget(self, reader: str) -> None:
        with self._changed:
            if reader not in self._readers:
                raise never_registered(reader, self.readers())
            del self._readers[reader]

    def readers(self) -> list[ReaderInfo]:
        with self._changed:
            found, now = sorted(self._readers.items()), self._uptime()
            return [ReaderInfo(name, position, max(now - seen, 0)) for name, (position, seen) in found]

    def horizon(self) -> Head:
        return self.at(self._horizon)

    def gc(self, age: int | None = None, size: int | None = None, force: bool = False) -> Collected:
        with self._changed:
            return replace(self._remove(age, size, force), forgotten=self._forget())

    def _remove(self, age: int | None, size: int | None, force: bool) -> Collected:
        before, held, trains = self.horizon(), None, self._kept()
        old = self._old(trains, age, size)
        positions = needs(self.readers(), self.head(), force)
        for piece in trains[:old]:
            held = next(
                (who for who, at in positions if between(at, WHOLE, piece.seq, piece.least, piece.largest)), None
            )
            if held:
                break
            self._horizon = piece.seq
        gone = [piece.size for piece in trains if piece.seq <= self._horizon]
        return Collected(self.horizon().rows - before.rows, 0, sum(gone), held)

    def _forget(self) -> int:
        needed, before = {name for name, _ in self._rejected}, self._uptime() - FORGET_MICROS
        names = [
            name
            for name, p in self._producers.items()
            if p.info.status is Status.LEFT and p.seen < before and p.info.checkpoint is None and name not in needed
        ]
        self._forgotten += [self._producers.pop(name).info for name in names]
        return len(names)

    def _old(self, trains: list[Slice], age: int | None, size: int | None) -> int:
        """Returns how many of the first ``trains`` are old enough, or lie beyond the newest ``size`` bytes."""
        age = self.settings.retainAge if age is None else age
        size = self.settings.retainBytes if size is None else size
        times, now = [self._log[piece.seq - 1].time for piece in trains], self._uptime()
        young = [n for n, time in enumerate(times) if age is None or time > now - age]
        kept = [n for n in range(len(trains)) if size is None or sum(t.size for t in trains[n:]) <= size]
        return max(min(young, default=len(trains)), min(kept, default=len(trains)))

    def producers(self) -> list[ProducerInfo]:
        with self._changed:
            return [self._producers[name].info for name in sorted(self._producers)]

    def summary(self) -> Summary:
        with self._changed:
            infos = [p.info for p in self._producers.values()]
            attached = sum(i.status in (Status.ATTACHED, Status.IDLE) for i in infos)
            rejected = sum(i.rejected for i in [*infos, *self._forgotten])
            return Summary(self._clock.floor, self._clock.holder(), attached, rejected, len(self._forgotten))

    def producer(self, name: str) -> ProducerInfo | None:
        with self._changed:
            return self._producers[name].info if name in self._producers else None

    def keys(self, producer: str) -> list[bytes]:
        with self._changed:
            return list(self._producers[producer].keys) if producer in self._producers else []

    def clock(self) -> StreamClock:
        with self._changed:
            return self._clock.copy()

    def rejected(self) -> pa.Table:
        schema = rejected_schema(self.schema)
        with self._changed:
            return pa.concat_tables(
                [schema.empty_table(), *(rejected_table(name, r, schema) for name, r in self._rejected)]
            )

    def rejected_removed(self) -> int:
        return self._rejected_removed

    def bounds(self) -> pa.Table:
        with self._changed:
            entries = self._log[max(self._horizon - 1, 0) :]
        columns: list[list[object]] = [
            [e.seq for e in entries],
            [e.event.producer for e in entries],
            [type(e.event).__name__.lower() for e in entries],
            [e.train.rows if e.train else 0 for e in entries],
            [e.event.floor if isinstance(e.event, Sent) else None for e in entries],
            [e.floor for e in entries],
        ]
        return bounds_table(columns)

    def wait(self, seq: int, timeout: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self._log) > seq, timeout)

    def close(self) -> None:
        """Does nothing: a memory store holds no open resources."""


WHOLE = Position(1 << 60, None, None)
"""A position after every row."""
STREAMS: dict[str, MemoryStore] = {}
"""All memory streams of this process, by path."""
