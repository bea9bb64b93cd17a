"""What a stream in memory consists of, and the page through which the ledger changes it."""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from spark_rowtime.bounds.clock import Event, ProducerClock, Status
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.members import COUNTING, place
from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.errors import SinkClosedError
from spark_rowtime.store.commits import Rejected, Rejection, Staged
from spark_rowtime.store.history import KeptRejection
from spark_rowtime.store.page import Page
from spark_rowtime.store.position import EMPTY, Head, Position
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.store.rejection_rules import Old, going, marked
from spark_rowtime.store.snapshot import WRITER


class Entry(NamedTuple):
    head: Head
    event: Event
    train: Staged | None
    time: int


class Lock(threading.Condition):
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


@dataclass
class Stream:
    """What all objects of one stream share. One lock protects everything.

    Of ``log``, what follows ``head`` is what an interrupted landing left; the next one replaces it.
    """

    place: str | None
    """The path; None: the stream was deleted."""
    changed: Lock
    head: Head = EMPTY
    log: list[Entry] = field(default_factory=list)
    producers: dict[str, ProducerRecord] = field(default_factory=dict)
    forgotten: list[ProducerRecord] = field(default_factory=list)
    rejections: list[KeptRejection] = field(default_factory=list)
    rejected_bytes: int = 0
    rejected_removed: int = 0
    keys: dict[str, list[bytes]] = field(default_factory=dict)
    cuts: list[LoggedCut] = field(default_factory=list)
    readers: dict[str, tuple[Position, int, str]] = field(default_factory=dict)
    statuses: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    horizon: int = 0
    deciding: bool = False
    """Whether a page is open."""

    def become(self, **parts: Any) -> None:
        """Changes parts in one step of the interpreter: an interrupt comes before it, or after it."""
        vars(self).update(parts)

    def raised(self, bound: int, later: Sequence[Entry] = ()) -> BoundOrigin | None:
        """See ``Store.raised``; ``later``: entries that follow the log."""
        found = self._first_at(bound, later)
        if found is None:
            return None
        removed = 1 < found.head.seq == self.horizon
        return BoundOrigin(STREAM) if removed else BoundOrigin(STREAM, found.event.producer, kind_of(found.event))

    def moved_at(self) -> int | None:
        """Returns the uptime at which the bound became what it is; None if there is none, or it is not known."""
        found = None if self.head.floor is None else self._first_at(self.head.floor)
        return None if found is None or found.head.seq == self.horizon else found.time

    def _first_at(self, bound: int, later: Sequence[Entry] = ()) -> Entry | None:
        kept = [*self.log[max(self.horizon - 1, 0) : self.head.seq], *later]
        return next((e for e in kept if e.head.floor is not None and e.head.floor >= bound), None)

    def copied(self, path: str) -> "Stream":
        """Returns what a copy at ``path`` begins with."""
        copy = replace(self, place=path, changed=Lock(path), deciding=False)
        copy.log, copy.readers = self.log[: self.head.seq], self.readers.copy()
        copy.statuses = {key: value for key, value in self.statuses.items() if key[0] == WRITER}
        return copy


class MemoryPage(Page):
    """What is written stays here until ``land``. Nobody changes a record of the stream: it is replaced."""

    def __init__(self, stream: Stream, now: int, wall: int) -> None:
        self._stream, self.now, self.wall = stream, now, wall
        self.head = stream.head
        self._entries: list[Entry] = []
        self._saved: dict[str, ProducerRecord] = {}
        self._rejections: list[KeptRejection] = []
        self._keys: dict[str, list[bytes]] = {}
        self._cuts: list[LoggedCut] = []
        self._statuses: dict[tuple[str, str], tuple[str, int]] = {}

    def forgotten_epoch(self) -> int:
        return max((record.epoch for record in self._stream.forgotten), default=0)

    def find(self, name: str) -> ProducerRecord | None:
        found = self._saved.get(name) or self._stream.producers.get(name)
        return found.copy() if found else None

    def names(self) -> Sequence[str]:
        return [*{**self._stream.producers, **self._saved}]

    def _others(self, name: str) -> dict[str, ProducerClock]:
        records = {**self._stream.producers, **self._saved}
        return {one: record.clock for one, record in records.items() if one != name and record.clock is not None}

    def weakest_but(self, name: str) -> tuple[str, ProducerClock] | None:
        counting = [one for one in self._others(name).items() if one[1].status in COUNTING]
        return min(counting, key=lambda one: place(*one), default=None)

    def strongest_floor_but(self, name: str) -> int | None:
        floors = [one.floor for one in self._others(name).values() if one.status in COUNTING]
        return max((floor for floor in floors if floor is not None), default=None)

    def has_idle_but(self, name: str) -> bool:
        return any(one.status is Status.IDLE for one in self._others(name).values())

    def overdue(self) -> Sequence[ProducerRecord]:
        records = {**self._stream.producers, **self._saved}
        return [record.copy() for record in records.values() if record.attached]

    def raised(self, bound: int) -> BoundOrigin | None:
        return self._stream.raised(bound, self._entries)

    def late_rows(self, record: ProducerRecord) -> tuple[Rejected, ...]:
        found = {record.name: record}
        return tuple(kept.rejection.rejected for kept in self._stream.rejections if _of_receipt(kept, found))

    def require_staged(self, trains: Sequence[Staged]) -> None:
        """Does nothing: the rows are in memory."""

    def append(self, event: Event, head: Head, train: Staged | None) -> None:
        self.head = head
        self._entries.append(Entry(head, event, train, self.now))

    def save(self, record: ProducerRecord) -> None:
        self._saved[record.name] = record.copy()

    def add_cut(self, logged: LoggedCut) -> None:
        self._cuts.append(logged)

    def reject(self, producer: str, number: int, known: Sequence[Rejected], late: Sequence[Rejected]) -> None:
        kept, new = self._stream.rejections, marked(known, late)
        first = (kept[-1].rejection.number if kept else 0) + 1
        for at, (one, is_late) in enumerate(new, first):
            self._rejections.append(KeptRejection(Rejection(at, producer, self.wall, one), number, is_late))

    def add_keys(self, producer: str, number: int, keys: KeyChanges) -> None:  # noqa: ARG002
        before = [] if keys.whole else self._stream.keys.get(producer, [])
        self._keys[producer] = [*before, keys.content]

    def set_query_status(self, producer: str, content: str) -> None:
        self._statuses[WRITER, producer] = content, self.now

    def land(self, most: int) -> None:
        """Makes everything part of the stream, which keeps at most ``most`` bytes of old rejections beside the new.

        It is part of it whole or not at all, wherever an interrupt comes.
        """
        stream, producers = self._stream, {**self._stream.producers, **self._saved}
        rejections = _with_rejections(stream, producers, self._rejections, most) if self._rejections else {}
        stream.log[stream.head.seq :] = self._entries
        if self._entries:
            stream.changed.notify_all()  # before: nobody may sleep on; who wakes up waits for the lock
        stream.become(
            head=self.head,
            producers=producers,
            keys={**stream.keys, **self._keys},
            cuts=[*stream.cuts, *self._cuts],
            statuses={**stream.statuses, **self._statuses},
            **rejections,
        )


def _with_rejections(
    stream: Stream, producers: Mapping[str, ProducerRecord], new: list[KeptRejection], most: int
) -> dict[str, Any]:
    """Returns the parts of the stream that ``new`` ones change."""
    total = stream.rejected_bytes + sum(kept.rejection.rejected.rows.nbytes for kept in new)
    old = {kept.rejection.number: kept for kept in stream.rejections if not _of_receipt(kept, producers)}
    oldest = [Old(n, k.rejection.rejected.rows.num_rows, k.rejection.rejected.rows.nbytes) for n, k in old.items()]
    gone = going(oldest, total, most, len(new))
    numbers = {one.number for one in gone}
    return {
        "rejected_bytes": total - sum(one.size for one in gone),
        "rejected_removed": stream.rejected_removed + sum(one.rows for one in gone),
        "rejections": [*(kept for kept in stream.rejections if kept.rejection.number not in numbers), *new],
    }


def _of_receipt(kept: KeptRejection, producers: Mapping[str, ProducerRecord]) -> bool:
    """Returns whether a producer's last receipt has the rejection, which a retry returns again."""
    record = producers.get(kept.rejection.producer)
    return record is not None and kept.at_commit and kept.commit == record.number


def kind_of(event: Event) -> str:
    """Returns the name of the event in the log."""
    return type(event).__name__.lower()
