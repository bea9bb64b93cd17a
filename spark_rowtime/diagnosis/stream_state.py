"""StreamState: what a snapshot of a stream tells about its bound and its producers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from spark_rowtime.bounds.clock import COUNTING, Status
from spark_rowtime.bounds.key_order import declares_keys, weakest_known
from spark_rowtime.diagnosis.causes import Finding
from spark_rowtime.store import open_store
from spark_rowtime.store.query_status import QueryStatus
from spark_rowtime.store.record import LastSeen, ProducerInfo
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import READER, WRITER, ReportedStatus, Snapshot


@dataclass(frozen=True)
class StreamState:
    """A stream at one moment. Floors are in microseconds, ages in microseconds of uptime."""

    path: str
    now: int
    floor: int | None
    rows: int
    largest: int | None
    settings: StreamSettings
    producers: Mapping[str, ProducerInfo]
    seen: Mapping[str, LastSeen]
    holders: list[str]
    moved: int | None
    """How long ago the bound became what it is; of a snapshot that is not full it is not known."""
    stream: str
    seq: int
    statuses: dict[tuple[str, str], ReportedStatus]
    """By role and name."""
    weakest_keys: dict[str, list[tuple[object, int]]]
    """The weakest values of each holder that has ``inOrderPer``, at most two; none of a snapshot that is not full."""
    restarted: bool = False
    """Whether nothing was committed since a restart, so that it is not known what still runs."""

    @classmethod
    def at(cls, path: str, *, full: bool = False) -> Self:
        """Returns what is known of the stream at ``path``."""
        with open_store(path) as store:
            return cls.of(store.snapshot(full=full), str(path))

    @classmethod
    def of(cls, snapshot: Snapshot, path: str | None = None) -> Self:
        """Returns what is known of a snapshot. ``path`` is how the caller names the stream."""
        infos, clock = snapshot.producers, snapshot.clock
        holders = clock.holders()
        return cls(
            path or snapshot.path,
            snapshot.wall,
            clock.floor,
            snapshot.head.rows,
            snapshot.head.largest,
            snapshot.settings,
            infos,
            snapshot.seen,
            holders,
            0 if clock.floor != snapshot.head.floor else snapshot.moved,
            snapshot.stream,
            snapshot.head.seq,
            {(status.role, status.name): status for status in snapshot.statuses},
            {name: _weakest(snapshot, infos[name]) for name in holders if declares_keys(infos[name].declaration)},
            snapshot.restarted,
        )

    def told(self, finding: Finding | None) -> Finding | None:
        """The finding, with what is not known after a restart."""
        if finding is None or not self.restarted:
            return finding
        note = (
            f"{finding.note} The machine or the database of {self.path} was restarted, and nothing was committed "
            "since: whether what ran before runs now is not known."
        )
        return replace(finding, note=note)

    def without_values(self) -> Self:
        """The same for who must not learn values of rows."""
        hidden: dict[str, list[tuple[object, int]]] = {}
        for name, weakest in self.weakest_keys.items():
            hidden[name] = [(_HIDDEN, at) for _, at in weakest]
        return replace(self, weakest_keys=hidden)

    @property
    def holder(self) -> ProducerInfo | None:
        """The producer that holds the bound; None if the stream waits for nobody."""
        return self.producers[self.holders[0]] if self.holders else None

    @property
    def strongest(self) -> int | None:
        """The floor of the strongest producer that counts."""
        floors = [p.floor for p in self.producers.values() if p.status in COUNTING and p.floor is not None]
        return max(floors, default=None)

    @property
    def queries(self) -> list[QueryStatus]:
        """The statuses of the queries that write the stream, without those that were closed."""
        left = {p.name for p in self.producers.values() if p.status is Status.LEFT}
        found = [self.writer(name) for role, name in self.statuses if role == WRITER and name not in left]
        return [status for status in found if status is not None]

    def writer(self, producer: str | None) -> QueryStatus | None:
        """The status of the query that writes under the name ``producer``; None if it is no query."""
        return QueryStatus.of(self.statuses.get((WRITER, producer or "")))

    def reader(self, query: str) -> QueryStatus | None:
        """The status of the query with this id that reads the stream."""
        return QueryStatus.of(self.statuses.get((READER, query)))

    @property
    def is_fed(self) -> bool:
        """Whether a producer that is no query has been attached."""
        return any((WRITER, name) not in self.statuses for name in self.producers)

    @property
    def latest_time(self) -> int | None:
        """The latest time that a producer has promised, or that a row has."""
        floors = [p.floor for p in self.producers.values() if p.floor is not None and p.status is not Status.COMPLETE]
        return max([*floors, *([] if self.largest is None else [self.largest])], default=None)


class _Hidden:
    """Stands for a value."""

    def __repr__(self) -> str:
        return "(not shown here)"


_HIDDEN = _Hidden()


def _weakest(snapshot: Snapshot, info: ProducerInfo) -> list[tuple[object, int]]:
    return weakest_known(info.declaration, snapshot.schema, snapshot.keys.get(info.name, ()), 2)[1]
