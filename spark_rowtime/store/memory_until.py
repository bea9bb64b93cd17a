"""Shortens a copy of a stream in memory to what was there up to a limit."""

from collections.abc import Iterator

from spark_rowtime.bounds.clock import Sent
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.history import History, KeptRejection, LoggedEvent
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.memory_page import kind_of
from spark_rowtime.store.until import Limit, Until


def shorten(copy: MemoryStore, limit: Limit) -> list[str]:
    """Leaves out what came after ``limit``. Nobody else has the copy yet. Returns what ``Until.unknown`` has then."""
    state, part = copy.state, Until(_Exported(copy), limit)
    end = max((event.seq for event in part.events()), default=0)
    now = part.snapshot
    state.log, state.head = state.log[:end], copy.at(end)
    state.producers = dict(now.records)
    state.rejections = list(part.rejections())
    state.readers = {r.name: (r.position, now.uptime - r.unseen, r.reads) for r in now.readers}
    state.keys = {name: list(parts) for name, parts in now.keys.items()}
    state.cuts = list(part.cuts())
    state.statuses = {(one.role, one.name): (one.content, now.uptime - one.unseen) for one in now.statuses}
    copy.ancestors = {name: min(seq, end) for name, seq in copy.ancestors.items()}
    return part.unknown


class _Exported(History):
    def __init__(self, copy: MemoryStore) -> None:
        self._state, self.snapshot = copy.state, copy.snapshot(full=True)

    def events(self) -> Iterator[LoggedEvent]:
        for head, event, train, time in self._state.log[max(self._state.horizon - 1, 0) :]:
            own = event.floor if isinstance(event, Sent) else None
            rows = None if train is None else train.rows
            kept = None if train is None else (train, train.location)
            yield LoggedEvent(head.seq, kind_of(event), event.producer, time, own, *head[1:], rows, kept)

    def rejections(self) -> Iterator[KeptRejection]:
        return iter(self._state.rejections)

    def cuts(self) -> Iterator[LoggedCut]:
        return iter(self._state.cuts)
