"""A store in the memory of one process: the reference model that other stores are compared with.

It uses plain lists and full scans, so that its correctness is easy to see. Its paths have the form ``memory://name``.
"""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile

import pyarrow as pa

from spark_rowtime.bounds.clock import Sent, Status
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.bounds.train import span
from spark_rowtime.errors import DataLostError
from spark_rowtime.store import cut_folding
from spark_rowtime.store.admission import interrupted
from spark_rowtime.store.commits import Commit, Receipt, Rejected, Rejection, Slice, Staged
from spark_rowtime.store.cut_folding import fold_due, folded, passed, reached_by_all
from spark_rowtime.store.difference import between
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.ledger_store import LedgerStore, Result
from spark_rowtime.store.limits import Cuts, Limits
from spark_rowtime.store.memory_page import Lock, MemoryPage, Stream, kind_of
from spark_rowtime.store.position import AFTER_ALL, EMPTY, Head, Position
from spark_rowtime.store.retention import lost_error, needs, never_registered, require_kept
from spark_rowtime.store.settings import Change, StreamSettings
from spark_rowtime.store.snapshot import (
    FORGET_MICROS,
    FORGET_STATUS_MICROS,
    READS_STREAM,
    WRITER,
    Collected,
    ReaderInfo,
    ReportedStatus,
    Snapshot,
)
from spark_rowtime.store.steady_clock import Reading, machine_reading, reading
from spark_rowtime.store.views import bounds_table
from spark_rowtime.types.added_columns import with_columns
from spark_rowtime.types.alteration import altered
from spark_rowtime.types.timestamps import wall_clock


class MemoryStore(LedgerStore):
    """See :class:`Store`. The objects of one stream share a :class:`Stream`, each with the ``schema`` it opened."""

    def __init__(
        self,
        path: str,
        schema: pa.Schema,
        settings: StreamSettings,
        ancestors: Mapping[str, int] | None = None,
        state: Stream | None = None,
        now: Callable[[], int] = wall_clock,
    ) -> None:
        self.path, self.schema, self.settings = path, schema, settings
        self.stream, self.ancestors = str(uuid.uuid4()), ancestors or {}
        self.now = now
        self.steady: Callable[[], Reading] = machine_reading
        self.state = state or Stream(path, Lock(path))

    def _uptime(self) -> int:
        return reading(self.now, self.steady).micros

    @contextmanager
    def _page(self) -> Iterator[MemoryPage]:
        with self.state.changed:
            self._require()
            if self.state.deciding:
                raise interrupted(self.path)
            try:
                self.state.deciding = True
                page = MemoryPage(self.state, self._uptime(), self.now())
                yield page
                page.land(self.settings.retainRejected)
            finally:
                self.state.deciding = False

    def _decide(self, decision: Callable[[Ledger], Result], *about: str) -> Result:  # noqa: ARG002
        with self._page() as page:
            return decision(self._ledger(page))

    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        ends = ends or span(rows)
        assert ends is not None, "an empty batch is not staged"
        return Staged(rows.num_rows, *ends, location=rows)

    def _commit(self, commit: Commit, cuts: Cuts) -> Receipt | Limits:
        with self.state.changed:
            made = super()._commit(commit, cuts)
            if isinstance(made, Receipt) and fold_due(made.seq, len(commit.bounds)):
                self._fold(cut_folding.FOLD_AGE_MICROS)
                self._forget_bounds()
            if self.settings.retainAge is not None or self.settings.retainBytes is not None:
                self._remove(None, None, False)
            return made

    def alter(self, add: pa.Schema | None = None, change: Change | None = None, expected: Sequence[str] = ()) -> None:
        with self.state.changed:
            self._require()
            newest = self._newest()
            schema = newest.schema if add is None else altered(newest.schema, add, self.path)
            settings = newest.settings if change is None else change(newest.settings)
            self.expect(expected)
            STREAMS[self.path] = self._twin(self.path, schema, settings)

    def _newest(self) -> "MemoryStore":
        """Returns the object of this stream with what it was altered to."""
        return STREAMS.get(self.path, self)

    def _twin(self, path: str, schema: pa.Schema, settings: StreamSettings) -> "MemoryStore":
        """Returns another object of this stream."""
        twin = MemoryStore(path, schema, settings, self.ancestors, self.state)
        twin.stream, twin.now, twin.steady = self.stream, self.now, self.steady
        return twin

    def copied(self, path: str) -> "MemoryStore":
        """Returns a copy of the stream as it is now."""
        with self.state.changed:
            ancestors, newest = {**self.ancestors, self.stream: self.head().seq}, self._newest()
            copy = MemoryStore(path, newest.schema, newest.settings, ancestors, self.state.copied(path))
            copy.now, copy.steady = self.now, self.steady
            return copy

    def move(self, path: str | None) -> "MemoryStore":
        """Gives the stream another path, or none if it is deleted. Objects that are open raise DataLostError then."""
        with self.state.changed:
            newest = self._newest()
            self.state.place = path
            self.state.changed.notify_all()
            return self._twin(path or "", newest.schema, newest.settings)

    def _require(self) -> None:
        if self.state.place != self.path:
            what = "was deleted" if self.state.place is None else f"was renamed to {self.state.place}"
            raise DataLostError(
                f"The stream at {self.path} {what} while it was open. What is sent or read through what was opened "
                "before would be lost; open it again.",
                path=self.path,
            )

    def head(self) -> Head:
        self._require()
        return self.state.head

    def at(self, seq: int) -> Head:
        if seq == 0:
            return EMPTY
        if seq < self.state.horizon:
            raise lost_error(f"the log at seq {seq}", self.horizon(), self.path)
        return self.state.log[seq - 1].head

    def made(self, *seqs: int) -> dict[int, int]:
        kept = range(max(self.state.horizon, 1), self.state.head.seq + 1)
        return {seq: self.state.log[seq - 1].time for seq in seqs if seq in kept}

    def slices(self, after: Position, upto: Position) -> list[Slice]:
        found = [one for one in self._kept() if between(after, upto, one.seq, one.least, one.largest)]
        require_kept(after, self.horizon(), self.path)  # last: if nothing is lost now, what was found is complete
        return found

    def _kept(self) -> list[Slice]:
        with self.state.changed:
            entries = self.state.log[self.state.horizon : self.state.head.seq]
            found = [(e.head.seq, e.event.producer, e.train) for e in entries]
        return [
            Slice(seq, producer, t.rows, t.least, t.largest, t.location.nbytes, t.location)
            for seq, producer, t in found
            if t is not None
        ]

    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        return with_columns(piece.location, self.schema)

    def keep(self, reader: str, position: Position, reads: str = READS_STREAM) -> None:
        with self.state.changed:
            at = position._replace(seq=min(position.seq, self.head().seq), floor=None)
            self.state.readers[reader] = at, self._uptime(), reads

    def _readers(self) -> list[ReaderInfo]:
        now, known = self._uptime(), sorted(self.state.readers.items())
        return [ReaderInfo(name, at, max(now - seen, 0), reads) for name, (at, seen, reads) in known]

    def forget(self, reader: str) -> None:
        with self.state.changed:
            if reader not in self.state.readers:
                raise never_registered(reader, self.state.readers)
            del self.state.readers[reader]

    def put_status(self, role: str, name: str, content: str) -> None:
        with self.state.changed:
            self._require()
            statuses, now = self.state.statuses, self._uptime()
            old = [k for k, (_, seen) in statuses.items() if k[0] != WRITER and seen < now - FORGET_STATUS_MICROS]
            for key in old:
                del statuses[key]
            statuses[role, name] = content, now

    def horizon(self) -> Head:
        return self.at(self.state.horizon)

    def gc(self, age: int | None = None, size: int | None = None, force: bool = False) -> Collected:
        with self.state.changed:
            found = self._remove(age, size, force)
            self._fold()
            return replace(found, forgotten=self._forget())

    def _fold(self, age: int | None = None) -> None:
        upto, cuts, now = passed(self._readers()), self.state.cuts, self._uptime()
        if age is not None:
            upto = max((e.head.seq for e in self.state.log[:upto] if e.time <= now - age), default=0)
        self.state.cuts = [*folded(c for c in cuts if c.seq <= upto), *(c for c in cuts if c.seq > upto)]

    def _forget_bounds(self) -> None:
        before, readers = self._uptime() - cut_folding.KEPT_MICROS, self._readers()
        upto = reached_by_all(readers, passed(readers))
        later = self.state.log[self.state.horizon : upto]
        gone = list(takewhile(lambda entry: entry.train is None and entry.time <= before, later))
        if gone:
            self.state.horizon = gone[-1].head.seq

    def _remove(self, age: int | None, size: int | None, force: bool) -> Collected:
        before, held, trains = self.horizon(), None, self._kept()
        log, horizon = self.state.log, before.seq
        old = self._old(trains, age, size)
        positions = needs([(one.name, one.position) for one in self._readers()], self.head(), force)
        for piece in trains[:old]:
            held = next(
                (who for who, at in positions if between(at, AFTER_ALL, piece.seq, piece.least, piece.largest)), None
            )
            if held:
                break
            horizon = piece.seq
        gone = [piece.size for piece in trains if piece.seq <= horizon]
        if not gone:
            return Collected(0, 0, 0, held)
        freed = [e._replace(train=e.train and replace(e.train, location=None)) for e in log[before.seq : horizon]]
        self.state.become(horizon=horizon, log=[*log[: before.seq], *freed, *log[horizon:]])
        return Collected(self.horizon().rows - before.rows, 0, sum(gone), held)

    def _forget(self) -> int:
        producers, before = self.state.producers, self._uptime() - FORGET_MICROS
        needed = {kept.rejection.producer for kept in self.state.rejections}
        names = {
            name
            for name, p in producers.items()
            if p.status is Status.LEFT and p.seen < before and p.checkpoint is None and name not in needed
        }
        self.state.become(
            producers={name: p for name, p in producers.items() if name not in names},
            forgotten=[*self.state.forgotten, *(producers[name] for name in names)],
            keys={name: parts for name, parts in self.state.keys.items() if name not in names},
        )
        return len(names)

    def _old(self, trains: list[Slice], age: int | None, size: int | None) -> int:
        """Returns how many of the first ``trains`` are old enough, or lie beyond the newest ``size`` bytes."""
        age = self.settings.retainAge if age is None else age
        size = self.settings.retainBytes if size is None else size
        times, now = [self.state.log[piece.seq - 1].time for piece in trains], self._uptime()
        young = [n for n, time in enumerate(times) if age is None or time > now - age]
        kept = [n for n in range(len(trains)) if size is None or sum(t.size for t in trains[n:]) <= size]
        return max(min(young, default=len(trains)), min(kept, default=len(trains)))

    def snapshot(self, *, full: bool = False) -> Snapshot:
        with self.state.changed:
            self._require()
            state, now, newest = self.state, self._uptime(), self._newest()
            records = sorted(state.producers.items())
            statuses = sorted(state.statuses.items())
            brief = Snapshot(
                self.path,
                self.stream,
                self.ancestors,
                newest.schema,
                newest.settings,
                self.now(),
                now,
                state.head,
                self.horizon(),
                {name: record.copy() for name, record in records},
                len(state.forgotten),
                sum(record.rejected for record in [*state.producers.values(), *state.forgotten]),
                state.rejected_removed,
                self.rejections_end(),
                tuple(self._readers()),
                tuple(ReportedStatus(*key, content, max(now - seen, 0)) for key, (content, seen) in statuses),
                forgotten_epoch=max((record.epoch for record in state.forgotten), default=0),
            )
            return self._filled(brief) if full else brief

    def _filled(self, brief: Snapshot) -> Snapshot:
        moved_at, cuts = self.state.moved_at(), {name: self.last_cuts(name) for name in brief.records}
        return replace(
            brief,
            moved=None if moved_at is None else max(brief.uptime - moved_at, 0),
            keys={name: list(parts) for name, parts in self.state.keys.items()},
            cuts={name: found for name, found in cuts.items() if found},
        )

    def cuts(self, after: int = 0, upto: int | None = None) -> Iterator[LoggedCut]:
        with self.state.changed:
            return iter([c for c in self.state.cuts if c.seq > after and (upto is None or c.seq <= upto)])

    def raised(self, bound: int) -> BoundOrigin | None:
        with self.state.changed:
            return self.state.raised(bound)

    def rejections(self, after: int = 0, upto: int | None = None) -> Iterator[Rejection]:
        with self.state.changed:
            found = [kept.rejection for kept in self.state.rejections]
        wanted = (r for r in found if r.number > after and (upto is None or r.number <= upto))
        return (replace(r, rejected=self._with_columns(r.rejected)) for r in wanted)

    def rejections_end(self) -> int:
        with self.state.changed:
            return self.state.rejections[-1].rejection.number if self.state.rejections else 0

    def _with_columns(self, rejected: Rejected) -> Rejected:
        return replace(rejected, rows=with_columns(rejected.rows, self.schema))

    def bounds(self) -> pa.Table:
        with self.state.changed:
            entries = self.state.log[max(self.state.horizon - 1, 0) : self.state.head.seq]
        columns: list[list[object]] = [
            [e.head.seq for e in entries],
            [e.event.producer for e in entries],
            [kind_of(e.event) for e in entries],
            [e.train.rows if e.train else 0 for e in entries],
            [e.event.floor if isinstance(e.event, Sent) else None for e in entries],
            [e.head.floor for e in entries],
        ]
        return bounds_table(columns)

    def wait(self, seq: int, timeout: float | None) -> bool:
        with self.state.changed:
            return self.state.changed.wait_for(lambda: self.head().seq > seq, timeout)

    def close(self) -> None:
        """Does nothing: a memory store holds no open resources."""


STREAMS: dict[str, MemoryStore] = {}
"""All memory streams of this process, by path."""
os.register_at_fork(after_in_child=STREAMS.clear)
