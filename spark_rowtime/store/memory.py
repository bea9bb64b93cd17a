"""A store in the memory of one process: the reference model that other stores are compared with.

It uses plain lists and full scans, so that its correctness is easy to see. Its paths have the form ``memory://name``.
"""

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.clock import (
    GONE,
    Detached,
    Event,
    Expected,
    Joined,
    Left,
    Sent,
    Status,
    StreamClock,
    completes,
)
from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.bounds.train import span
from spark_rowtime.errors import DataLostError, SinkClosedError
from spark_rowtime.store.admission import (
    admit,
    fenced,
    is_next,
    landing,
    never_attached,
    redeclared,
    require_open,
    require_whole,
)
from spark_rowtime.store.base import (
    FORGET_ACCOUNT_MICROS,
    FORGET_MICROS,
    REJECTS_ONLY,
    WRITER,
    Account,
    Collected,
    Commit,
    Head,
    LastSeen,
    Position,
    ProducerInfo,
    ReaderInfo,
    Receipt,
    Rejected,
    Rejection,
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
from spark_rowtime.store.views import bounds_table, rejected_table
from spark_rowtime.types.added_columns import with_columns
from spark_rowtime.types.alteration import altered
from spark_rowtime.types.timestamps import END, wall_clock


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


class _Lock(threading.Condition):
    """Refuses a forked child, whose copy of the stream nobody else would see."""

    def __init__(self, path: str) -> None:
        super().__init__(threading.RLock())
        self._path, self._process = path, os.getpid()

    def __enter__(self) -> bool:
        if os.getpid() != self._process:
            raise SinkClosedError(
                f"The stream at {self._path} is in the memory of process {self._process}, from which process "
                f"{os.getpid()} was forked. Use a directory, such as 'orders.rowtime', which processes share.",
                path=self._path,
            )
        return super().__enter__()


@dataclass(slots=True, eq=False)
class MemoryStore(Store):
    """See :class:`Store`. One lock protects everything.

    The objects of one stream share all of their state. Each has a ``schema`` of its own, as of when it was opened.
    """

    path: str
    schema: pa.Schema
    settings: StreamSettings
    stream: str = field(default_factory=lambda: str(uuid.uuid4()))
    now: Callable[[], int] = wall_clock
    steady: Callable[[], Reading] = machine_reading
    ancestors: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._changed = _Lock(self.path)
        self._clock = self.settings.clock()
        self._log: list[_Entry] = []
        self._producers: dict[str, _Producer] = {}
        self._rejections: list[Rejection] = []
        self._cuts: list[LoggedCut] = []
        self._readers: dict[str, tuple[Position, int]] = {}
        self._accounts: dict[tuple[str, str], tuple[str, int]] = {}
        self._horizon = 0
        self._rejected_removed = self._rejected_bytes = 0
        self._place: str | None = self.path
        self._forgotten: list[ProducerInfo] = []

    def _uptime(self) -> int:
        return reading(self.now, self.steady).micros

    def attach(self, producer: str, holder: str, declaration: str, lease: int | None = None) -> ProducerInfo:
        with self._changed:
            self._require()
            self._expire()
            epoch = max((info.epoch for info in self._forgotten), default=0)
            record = self._producers.get(producer) or _newcomer(producer, Status.ATTACHED, epoch)
            if record.info.declaration not in ("", declaration):
                raise redeclared(producer, record.info.declaration, declaration)
            if self._clock.producers.get(producer) is None and record.info.status is not Status.COMPLETE:
                require_open(self.path, producer, self._clock.floor)
            self._producers[producer] = record
            record.info = replace(record.info, declaration=declaration)
            if record.holder != holder or record.info.status in (Status.LEFT, Status.DETACHED):
                self._take_over(record, holder)
            record.lease, record.seen = lease, self._uptime()
            return record.info

    def _take_over(self, record: _Producer, holder: str) -> None:
        record.holder = holder
        record.info = replace(record.info, epoch=record.info.epoch + 1)
        if record.info.status is not Status.COMPLETE:
            self._append(Joined(record.info.name), None)
            record.sent = self._uptime()

    def expect(self, names: Sequence[str]) -> None:
        with self._changed:
            for name in names:
                self._producers[name] = _newcomer(name, Status.EXPECTED)
                self._append(Expected(name), None)

    def renew(self, producer: str, epoch: int, *, sends: bool = False) -> bool:
        with self._changed:
            record = self._current(producer, epoch)
            record.seen = self._uptime()
            if record.info.status is not Status.DETACHED or (record.let_go and not sends):
                return False
            require_open(self.path, producer, self._clock.floor)
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
            new = is_next(commit, record.info.number, self.path)
            record.seen = self._uptime()
            self._expire(but=commit.producer)
            if not new:
                return record.receipt
            trains, late = admit(self, commit.trains, self._clock.floor, self.raised)
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
            if commit.account is not None:
                self._accounts[WRITER, commit.producer] = commit.account, self._uptime()
            record.receipt = Receipt(len(self._log), self._clock.floor, late)
            if self.settings.retainAge is not None or self.settings.retainBytes is not None:
                self._remove(None, None, False)
            return record.receipt

    def reject(self, producer: str, number: int, rejected: tuple[Rejected, ...]) -> None:
        with self._changed:
            epoch = max((info.epoch for info in self._forgotten), default=0)
            record = self._producers.get(producer) or _newcomer(producer, Status.LEFT, epoch)
            if number <= record.info.number:
                return
            self._producers[producer] = record
            self._reject(producer, rejected)
            rows = record.info.rejected + sum(r.rows.num_rows for r in rejected)
            record.info = replace(record.info, rejected=rows, number=number, checkpoint=REJECTS_ONLY)
            record.seen = self._uptime()

    def _land(self, commit: Commit, trains: tuple[Staged, ...]) -> None:
        record = self._producers[commit.producer]
        in_force = self._clock.in_force(commit.producer)
        landed = landing(commit, trains, record.info.floor, record.info.status, in_force)
        for event, train, bound in landed.events:
            hold = self._clock.in_force(commit.producer)
            self._append(event, train)
            if bound is not None:
                self._cuts.append(bound.logged(len(self._log), commit.producer, hold))
        if landed.sends:
            record.sent = self._uptime()

    def _reject(self, producer: str, rejected: tuple[Rejected, ...]) -> None:
        """Keeps the new rejections, and the newest of the old ones that fit into the limit.

        A rejection that a producer's last receipt contains is kept in any case, since a retry returns it again.
        """
        first, time, old = self.rejections_end() + 1, self.now(), len(self._rejections)
        self._rejections += [Rejection(first + n, producer, time, r) for n, r in enumerate(rejected)]
        self._rejected_bytes += sum(r.rows.nbytes for r in rejected)
        if rejected and self._rejected_bytes > self.settings.retainRejected:
            self._remove_rejections(old)

    def _remove_rejections(self, old: int) -> None:
        """Removes those of the first ``old`` rejections that the limit has no room for."""
        receipts = [r for p in self._producers.values() for r in p.receipt.rejected]
        needed, newer, at = [], self._rejected_bytes, 0
        while newer > self.settings.retainRejected and at < old:
            rows, kept = self._rejections[at].rejected.rows, self._rejections[at]
            if any(kept.rejected is found for found in receipts):
                needed.append(kept)
            else:
                self._rejected_bytes -= rows.nbytes
                self._rejected_removed += rows.num_rows
            newer, at = newer - rows.nbytes, at + 1
        self._rejections[:at] = needed

    def _append(self, event: Event, train: Staged | None) -> None:
        floor = self._clock.apply(event)
        rows = (self._log[-1].rows if self._log else 0) + (train.rows if train else 0)
        self._log.append(_Entry(len(self._log) + 1, event, train, floor, self._clock.largest, rows, self._uptime()))
        record = self._producers[event.producer]
        record.let_go = False
        ticking = self._clock.producers.get(event.producer)
        gone_at = END if completes(event) else record.info.floor
        record.info = replace(
            record.info,
            status=ticking.status if ticking else GONE[type(event)],
            floor=ticking.floor if ticking else gone_at,
        )
        self._changed.notify_all()

    def leave(self, producer: str, epoch: int, cut: TopicCut | None = None) -> None:
        with self._changed:
            record = self._current(producer, epoch)
            if record.info.status not in (Status.LEFT, Status.COMPLETE):
                record.seen = self._uptime()
                hold = self._clock.in_force(producer)
                self._append(Left(producer), None)
                if cut is not None:
                    self._cuts.append(LoggedCut(len(self._log), producer, hold, cut))
                self._producers[producer].seen = self._uptime()

    def detach(self, producer: str) -> None:
        with self._changed:
            if self._record(producer).info.status in (Status.EXPECTED, Status.ATTACHED, Status.IDLE):
                self._append(Detached(producer), None)
                self._producers[producer].let_go = True

    def close_producer(self, producer: str, *, complete: bool = False) -> None:
        with self._changed:
            record = self._record(producer)
            if record.info.status is Status.COMPLETE or (record.info.status is Status.LEFT and not complete):
                return
            record.holder, record.info = "", replace(record.info, epoch=record.info.epoch + 1)
            record.seen = self._uptime()
            self._append(Sent(producer, END) if complete else Left(producer), None)

    def _current(self, producer: str, epoch: int) -> _Producer:
        self._require()
        record = self._record(producer)
        if record.info.epoch != epoch:
            raise fenced(producer, epoch, record.info.epoch, record.info.status)
        return record

    def _record(self, producer: str) -> _Producer:
        if producer not in self._producers:
            raise never_attached(producer, self._producers, self.path)
        return self._producers[producer]

    def alter(self, add: pa.Schema) -> None:
        with self._changed:
            STREAMS[self.path] = self._twin(self.path, altered(STREAMS.get(self.path, self).schema, add, self.path))

    def _twin(self, path: str, schema: pa.Schema) -> "MemoryStore":
        """Returns another object of this stream, which shares its state."""
        twin = MemoryStore(path, schema, self.settings, self.stream, self.now, self.steady, self.ancestors)
        vars(self)["_place"] = path
        twin.__dict__ = vars(self)
        return twin

    def copied(self, path: str) -> "MemoryStore":
        """Returns a copy of the stream as it is now."""
        with self._changed:
            ancestors = {**self.ancestors, self.stream: self.head().seq}
            copy = MemoryStore(path, self.schema, self.settings, now=self.now, steady=self.steady, ancestors=ancestors)
            state = {name: value for name, value in vars(self).items() if name not in ("_changed", "_place")}
            vars(copy).update({name: _copied(value) for name, value in state.items()})
            vars(copy)["_producers"] = {name: replace(record) for name, record in self._producers.items()}
            vars(copy)["_clock"] = self.clock()
            vars(copy)["_accounts"] = {key: value for key, value in self._accounts.items() if key[0] == WRITER}
            return copy

    def move(self, path: str | None) -> "MemoryStore":
        """Gives the stream another path, or none if it is deleted. Objects that are open raise DataLostError then."""
        with self._changed:
            self._place = path
            self._changed.notify_all()
            return self._twin(path or "", self.schema)

    def _require(self) -> None:
        if self._place != self.path:
            what = "was deleted" if self._place is None else f"was renamed to {self._place}"
            raise DataLostError(
                f"The stream at {self.path} {what} while it was open. What is sent or read through what was opened "
                "before would be lost; open it again.",
                path=self.path,
            )

    def head(self) -> Head:
        self._require()
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
        return with_columns(piece.location, self.schema)

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

    def report(self, role: str, name: str, content: str) -> None:
        with self._changed:
            self._require()
            now = self._uptime()
            kept = {
                key: value
                for key, value in self._accounts.items()
                if key[0] == WRITER or value[1] >= now - FORGET_ACCOUNT_MICROS
            }
            vars(self)["_accounts"] = kept | {(role, name): (content, now)}

    def accounts(self) -> list[Account]:
        with self._changed:
            found, now = sorted(self._accounts.items()), self._uptime()
            return [Account(*key, content, max(now - seen, 0)) for key, (content, seen) in found]

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
        needed, before = {rejection.producer for rejection in self._rejections}, self._uptime() - FORGET_MICROS
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
            holder = self._clock.holder()
            expected = holder is not None and self._producers[holder].info.status is Status.EXPECTED
            return Summary(self._clock.floor, holder, expected, attached, rejected, len(self._forgotten))

    def producer(self, name: str) -> ProducerInfo | None:
        with self._changed:
            return self._producers[name].info if name in self._producers else None

    def last_seen(self) -> dict[str, LastSeen]:
        with self._changed:
            now = self._uptime()
            return {
                name: LastSeen(max(now - p.seen, 0), max(now - p.sent, 0), p.lease)
                for name, p in sorted(self._producers.items())
            }

    def keys(self, producer: str) -> list[bytes]:
        with self._changed:
            return list(self._producers[producer].keys) if producer in self._producers else []

    def cuts(self, after: int = 0, upto: int | None = None) -> Iterator[LoggedCut]:
        with self._changed:
            return iter([c for c in self._cuts if c.seq > after and (upto is None or c.seq <= upto)])

    def has_cuts(self) -> bool:
        with self._changed:
            return bool(self._cuts)

    def last_cuts(self, producer: str) -> list[LoggedCut]:
        with self._changed:
            found = [c for c in self._cuts if c.producer == producer]
        wholes = [n for n, c in enumerate(found) if c.cut is not None and c.cut.whole]
        return found[wholes[-1] :] if wholes else []

    def clock(self) -> StreamClock:
        with self._changed:
            return self._clock.copy()

    def raised(self, bound: int) -> BoundOrigin | None:
        with self._changed:
            first = max(self._horizon - 1, 0)
            found = next((e for e in self._log[first:] if e.floor is not None and e.floor >= bound), None)
            if found is None:
                return None
            removed = first > 0 and found.seq == self._horizon
            return BoundOrigin(STREAM) if removed else BoundOrigin(STREAM, *_who(found.event))

    def moved(self) -> int | None:
        with self._changed:
            kept = self._log[max(self._horizon - 1, 0) :]
            floor = kept[-1].floor if kept else None
            found = next((e for e in kept if floor is not None and e.floor == floor), None)
            if found is None or (self._horizon > 0 and found.seq == self._horizon):
                return None
            return max(self._uptime() - found.time, 0)

    def rejections(self, after: int = 0, upto: int | None = None) -> Iterator[Rejection]:
        with self._changed:
            found = list(self._rejections)
        wanted = (r for r in found if r.number > after and (upto is None or r.number <= upto))
        return (replace(r, rejected=self._with_columns(r.rejected)) for r in wanted)

    def rejections_end(self) -> int:
        with self._changed:
            return self._rejections[-1].number if self._rejections else 0

    def rejected(self) -> pa.Table:
        return rejected_table(self.rejections(), self.schema)

    def _with_columns(self, rejected: Rejected) -> Rejected:
        return replace(rejected, rows=with_columns(rejected.rows, self.schema))

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
            return self._changed.wait_for(lambda: self.head().seq > seq, timeout)

    def close(self) -> None:
        """Does nothing: a memory store holds no open resources."""


def _newcomer(name: str, status: Status, epoch: int = 0) -> _Producer:
    """Returns a producer that has never attached, or was forgotten. ``epoch``: the largest of a forgotten producer."""
    return _Producer(ProducerInfo(name, status, epoch, None, 0, 0, 0, None, "", ""), "", Receipt(0, None))


def _who(event: Event) -> tuple[str, str]:
    return event.producer, type(event).__name__.lower()


def _copied(value: Any) -> Any:
    """A copy of a list or dict, whose elements nobody changes. Any other value is returned unchanged."""
    return value.copy() if isinstance(value, list | dict) else value


WHOLE = Position(1 << 60, None, None)
"""A position after every row."""
STREAMS: dict[str, MemoryStore] = {}
"""All memory streams of this process, by path."""
os.register_at_fork(after_in_child=STREAMS.clear)
