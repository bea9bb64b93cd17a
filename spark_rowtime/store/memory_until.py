"""Shortens a copy of a stream in memory to what was there up to a limit."""

from collections.abc import Iterator

from spark_rowtime.bounds.clock import Sent
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.history import About, History, KeptRejection, KnownAccount, KnownReader, LoggedEvent
from spark_rowtime.store.memory import MemoryStore, Stream, kind_of
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.store.until import Limit, Until


def shorten(copy: MemoryStore, limit: Limit) -> list[str]:
    """Leaves out what came after ``limit``. Nobody else has the copy yet. Returns what ``Until.unknown`` has then."""
    state, part = copy.state, Until(_Exported(copy), limit)
    end = max((event.seq for event in part.events()), default=0)
    state.log = state.log[:end]
    state.producers = {record.name: record for record in part.producers()}
    marks = zip(state.rejections, part.rejections(), strict=True)
    state.rejections = [kept._replace(late=one.at_commit) for kept, one in marks]
    state.readers = {reader.name: (reader.position, reader.seen) for reader in part.readers()}
    state.keys = {name: [content for one, _, content in part.key_floors() if one == name] for name in state.keys}
    state.cuts = list(part.cuts())
    state.accounts = {(one.role, one.name): (one.content, one.seen) for one in part.accounts()}
    copy.ancestors = {name: min(seq, end) for name, seq in copy.ancestors.items()}
    return part.unknown


class _Exported(History):
    def __init__(self, copy: MemoryStore) -> None:
        self._state: Stream = copy.state
        now = copy.snapshot()
        self.about = About("", {}, now.schema, now.settings, now.uptime, 0, 0, 0, 0, 0)

    def events(self) -> Iterator[LoggedEvent]:
        for head, event, train, time in self._state.log[max(self._state.horizon - 1, 0) :]:
            own = event.floor if isinstance(event, Sent) else None
            rows = None if train is None else train.rows
            kept = None if train is None else (train, train.location)
            yield LoggedEvent(head.seq, kind_of(event), event.producer, time, own, *head[1:], rows, kept)

    def producers(self) -> Iterator[ProducerRecord]:
        return (record.copy() for _, record in sorted(self._state.producers.items()))

    def rejections(self) -> Iterator[KeptRejection]:
        for kept, commit, late in self._state.rejections:
            one = kept.rejected
            whose, what = (kept.number, kept.producer, commit, kept.time), (one.reason, one.bound)
            yield KeptRejection(*whose, *what, late, one.origin, one.rows)

    def readers(self) -> Iterator[KnownReader]:
        return (KnownReader(name, *known) for name, known in self._state.readers.items())

    def key_floors(self) -> Iterator[tuple[str, int, bytes]]:
        return ((name, at, part) for name, parts in self._state.keys.items() for at, part in enumerate(parts))

    def cuts(self) -> Iterator[LoggedCut]:
        return iter(self._state.cuts)

    def accounts(self) -> Iterator[KnownAccount]:
        return (KnownAccount(*key, seen, content) for key, (content, seen) in self._state.accounts.items())
