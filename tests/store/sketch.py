"""A fourth store, sketched from the laws of a page alone: one dict and a lock. It removes nothing that was written."""

import threading
from dataclasses import replace
from operator import add
from typing import Any, NamedTuple

from spark_rowtime.bounds.clock import COUNTING, Sent, Status
from spark_rowtime.bounds.members import place
from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.bounds.train import span
from spark_rowtime.store.commits import Rejection, Slice, Staged
from spark_rowtime.store.difference import between
from spark_rowtime.store.ledger_store import LedgerStore
from spark_rowtime.store.page import Page
from spark_rowtime.store.position import Head
from spark_rowtime.store.retention import never_registered
from spark_rowtime.store.snapshot import READS_STREAM, WRITER, ReaderInfo, ReportedStatus, Snapshot
from spark_rowtime.store.steady_clock import machine_reading, reading
from spark_rowtime.store.views import bounds_table
from spark_rowtime.types.timestamps import wall_clock

Entry = NamedTuple("Entry", [(name, Any) for name in ("head", "event", "kind", "train", "time")])
PARTS = {"producers": dict, "rejected": list, "keys": dict, "cuts": list, "statuses": dict, "readers": dict}
EMPTY = Entry(Head(0, None, None, 0), None, "", None, 0)
"""Stands before the log."""


class DictPage(Page):
    def __init__(self, state: dict[str, Any], now: int, wall: int) -> None:
        self.state, self.now, self.wall = state, now, wall
        self.head = state["log"][-1].head

    def forgotten_epoch(self) -> int:
        return 0

    def find(self, name: str) -> Any:
        return replace(self.state["producers"][name]) if name in self.state["producers"] else None

    def names(self) -> Any:
        return list(self.state["producers"])

    def others(self, name: str) -> Any:
        return [(p.name, p.clock) for p in self.state["producers"].values() if p.name != name and p.clock]

    def weakest_but(self, name: str) -> Any:
        counting = [one for one in self.others(name) if one[1].status in COUNTING]
        return min(counting, key=lambda one: place(*one), default=None)

    def strongest_floor_but(self, name: str) -> Any:
        return max((c.floor for _, c in self.others(name) if c.status == "attached" and c.floor), default=None)

    def has_idle_but(self, name: str) -> bool:
        return any(clock.status is Status.IDLE for _, clock in self.others(name))

    def overdue(self) -> Any:
        return [replace(p) for p in self.state["producers"].values() if p.attached]

    def raised(self, bound: int) -> Any:
        return raised(self.state, bound)

    def late_rows(self, record: Any) -> Any:
        found = [(r.rejected, at) for r, at, late in self.state["rejected"] if late and r.producer == record.name]
        return tuple(rejected for rejected, at in found if at == record.number)

    def append(self, event: Any, head: Head, train: Any) -> None:
        self.head = head
        self.state["log"].append(Entry(head, event, type(event).__name__.lower(), train, self.now))

    def save(self, record: Any) -> None:
        self.state["producers"][record.name] = replace(record)

    def add_cut(self, logged: Any) -> None:
        self.state["cuts"].append(logged)

    def reject(self, producer: str, number: int, known: Any, late: Any) -> None:
        for one in [*known, *late]:
            kept = Rejection(len(self.state["rejected"]) + 1, producer, self.wall, one)
            self.state["rejected"].append((kept, number, any(one is other for other in late)))

    def add_keys(self, producer: str, number: int, keys: Any) -> None:
        before = [] if keys.whole else self.state["keys"].get(producer, [])
        self.state["keys"][producer] = [*before, keys.content]

    def set_query_status(self, producer: str, content: str) -> None:
        self.state["statuses"][WRITER, producer] = (content, self.now)


def raised(state: dict[str, Any], bound: int) -> BoundOrigin | None:
    found = [e for e in state["log"] if e.head.floor is not None and e.head.floor >= bound][:1]
    return BoundOrigin(STREAM, found[0].event.producer, found[0].kind) if found else None


class DictStore(LedgerStore):
    stream, ancestors = "sketch", {}
    alter = change = gc = None  # what is set, and what is removed, are no matters of a page

    def __init__(self, path: str, schema: Any, settings: Any) -> None:
        self.path, self.schema, self.settings = path, schema, settings
        self.now, self.steady, self.changed = wall_clock, machine_reading, threading.Condition(threading.RLock())
        self.state: dict[str, Any] = {name: part() for name, part in PARTS.items()} | {"log": [EMPTY]}

    def uptime(self) -> int:
        return reading(self.now, self.steady).micros

    def _decide(self, decision: Any, *about: str) -> Any:
        with self.changed:
            draft = {name: part.copy() for name, part in self.state.items()}
            result = decision(self._ledger(DictPage(draft, self.uptime(), self.now())))
            self.state = draft
            self.changed.notify_all()
            return result

    def stage(self, rows: Any, ends: Any = None) -> Staged:
        return Staged(rows.num_rows, *(ends or span(rows)), rows)

    def read(self, piece: Any) -> Any:
        return piece.location

    def head(self) -> Head:
        return self.state["log"][-1].head

    def at(self, seq: int) -> Head:
        return self.state["log"][seq].head

    def made(self, *seqs: int) -> dict[int, int]:
        return {seq: self.state["log"][seq].time for seq in seqs if 0 < seq < len(self.state["log"])}

    def slices(self, after: Any, upto: Any) -> Any:
        found = [(e.head.seq, e.event.producer, e.train) for e in self.state["log"] if e.train]
        pieces = [Slice(seq, p, t.rows, t.least, t.largest, t.location.nbytes, t.location) for seq, p, t in found]
        return [piece for piece in pieces if between(after, upto, piece.seq, piece.least, piece.largest)]

    def keep(self, reader: str, position: Any, reads: str = READS_STREAM) -> None:
        self.state["readers"][reader] = (position._replace(floor=None), self.uptime(), reads)

    def forget(self, reader: str) -> None:
        if not self.state["readers"].pop(reader, None):
            raise never_registered(reader, self.state["readers"])

    def put_status(self, role: str, name: str, content: str) -> None:
        self.state["statuses"][role, name] = (content, self.uptime())

    def snapshot(self, *, full: bool = False) -> Snapshot:
        with self.changed:
            now, head, state = self.uptime(), self.head(), self.state
            floors = [e.time for e in state["log"] if e.head.floor == head.floor is not None]
            return Snapshot(
                *(
                    self.path,
                    self.stream,
                    self.ancestors,
                    self.schema,
                    self.settings,
                    self.now(),
                    now,
                    head,
                    EMPTY.head,
                ),
                {name: replace(record) for name, record in sorted(state["producers"].items())},
                *(0, sum(p.rejected for p in state["producers"].values()), 0, self.rejections_end()),
                tuple(ReaderInfo(name, r[0], now - r[1], r[2]) for name, r in sorted(state["readers"].items())),
                tuple(
                    ReportedStatus(*key, text, now - seen) for key, (text, seen) in sorted(state["statuses"].items())
                ),
                now - floors[0] if floors else None,
                dict(state["keys"]),
                {name: cuts for name in state["producers"] if (cuts := self.last_cuts(name))},
            )

    def cuts(self, after: int = 0, upto: Any = None) -> Any:
        return iter([c for c in self.state["cuts"] if c.seq > after and (upto is None or c.seq <= upto)])

    def raised(self, bound: int) -> Any:
        return raised(self.state, bound)

    def rejections(self, after: int = 0, upto: Any = None) -> Any:
        return iter([r for r, *_ in self.state["rejected"] if r.number > after and (upto is None or r.number <= upto)])

    def rejections_end(self) -> int:
        return len(self.state["rejected"])

    def bounds(self) -> Any:
        log = self.state["log"][1:]
        rows = [(e.head.seq, e.event.producer, e.kind, e.train.rows if e.train else 0) for e in log]
        floors = [(e.event.floor if isinstance(e.event, Sent) else None, e.head.floor) for e in log]
        return bounds_table(list(zip(*map(add, rows, floors), strict=True)) or [[]] * 6)

    def horizon(self) -> Head:
        return EMPTY.head

    def wait(self, seq: int, timeout: Any) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.head().seq > seq, timeout)

    def close(self) -> None:
        pass
