"""Until: the history of a stream without what came after an event of its log.

It is the way back for a stream that a bound, or a row, far ahead has made useless: neither can be taken back.

Law (*never a wrong one*; tests/store/test_until.py): the log up to the event is the stream's own, and each producer is
as it was there. A stream keeps the last checkpoint, commit number and keys of a producer alone. So a producer that has
committed since is without them: its feed begins again, rather than at a place whose rows the copy does not have.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from spark_rowtime.bounds.clock import GONE, Status, logged_event
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.errors import DataLostError, InvalidOptionError
from spark_rowtime.store.history import History, KeptRejection, LoggedEvent
from spark_rowtime.store.position import Head, Position
from spark_rowtime.store.record import WAITED_FOR, ProducerRecord
from spark_rowtime.store.snapshot import ReaderInfo, Snapshot
from spark_rowtime.types.timestamps import END, show_micros


@dataclass(frozen=True, slots=True)
class Limit:
    """The last event, by its ``seq``, or the last ``time`` of a row or a bound, in microseconds: one of the two.

    A producer that is complete has promised the end of time, which counts once the stream is complete, too.
    """

    seq: int | None = None
    time: int | None = None

    def excludes(self, event: LoggedEvent) -> bool:
        """Returns whether the event lies beyond the limit."""
        if self.time is None:
            return event.seq > (self.seq or 0)
        own = None if event.floor is None or event.floor >= END else event.floor
        return any(time is not None and time > self.time for time in (own, event.stream_floor, event.stream_largest))

    def __str__(self) -> str:
        return f"event {self.seq}" if self.time is None else show_micros(self.time)


@dataclass(slots=True)
class _Later:
    """What a producer has done after the limit: its first event, and its rows."""

    first: str
    rows: int = 0


class Until(History):
    """A part of a history, up to a limit. Its parts are read in the order of :class:`History`."""

    def __init__(self, history: History, limit: Limit) -> None:
        self._history, self._limit = history, limit
        self._clock = history.snapshot.settings.clock()
        self._records: dict[str, ProducerRecord] = {}
        self._later: dict[str, _Later] = {}
        self._first = self._end = Head(0, None, None, 0)
        self.snapshot = history.snapshot
        self._known: set[str] = set()
        """The producers that have not committed since."""
        self.unknown: list[str] = []
        """The producers that are without their checkpoint, commit number and keys."""

    def events(self) -> Iterator[LoggedEvent]:
        for event in self._history.events():
            if self._later or self._limit.excludes(event):
                self._require_there(event)
                self._later.setdefault(event.producer, _Later(event.kind)).rows += event.rows or 0
                continue
            self._fold(event)
            yield event
        if self._limit.seq is not None and self._limit.seq > self._end.seq:
            raise InvalidOptionError(
                f"The log ends at event {self._end.seq}: there is no event {self._limit.seq} to copy it up to.",
                option="until",
                value=str(self._limit),
            )
        self.snapshot = self._former_snapshot(self._history.snapshot)

    def _require_there(self, event: LoggedEvent) -> None:
        """Raises DataLostError if the first event that is beyond the limit is the one with which the log begins."""
        if not self._later and not self._end.seq and event.seq > 1:
            raise DataLostError(
                f"The log begins after event {event.seq}: what came before was removed (retainAge, retainBytes, gc), "
                f"so it cannot be copied up to {self._limit}. Name a later event or time: of those that are "
                "there, spark.read.format('rowtime').option('view', 'bounds') has the bounds.",
                horizon=event.seq,
            )

    def _fold(self, event: LoggedEvent) -> None:
        """Follows the producer as the ledger did. Of one from before the log begins, the stream's bound is known."""
        self._first = self._first if self._first.seq else Head(event.seq, None, None, 0)
        self._end = Head(event.seq, event.stream_floor, event.stream_largest, event.stream_rows)
        done = logged_event(event.kind, event.producer, event.floor)
        self._clock.apply(done)
        record = self._records.setdefault(event.producer, ProducerRecord(event.producer))
        record.tick(self._clock.producers.get(event.producer), GONE.get(type(done), Status.ATTACHED))
        self._clock.floor = event.stream_floor

    def _former_snapshot(self, now: Snapshot) -> Snapshot:
        """Returns the snapshot as it was at the end of the log; of some producers not everything is known."""
        records = {record.name: record for record in (*self._producers(now), *self._forgotten(now))}
        return replace(
            now,
            head=self._end,
            ancestors={stream: min(seq, self._end.seq) for stream, seq in now.ancestors.items()},
            records=records,
            readers=tuple(map(self._former_reader, now.readers)),
            statuses=tuple(one for one in now.statuses if one.name in self._known),
            keys={name: parts for name, parts in now.keys.items() if name in self._known},
        )

    def _producers(self, now: Snapshot) -> Iterator[ProducerRecord]:
        for record in now.records.values():
            later, committed = self._later.get(record.name), record.receipt_seq > self._end.seq
            rows = min(later.rows, record.accepted) if later else 0  # it may have been forgotten, and have come back
            if self._was_there(record, later):
                if committed:
                    self.unknown.append(record.name)
                else:
                    self._known.add(record.name)
                yield self._former(record, later, rows, committed) if later or committed else record

    def _forgotten(self, now: Snapshot) -> Iterator[ProducerRecord]:
        """The producers that ``gc`` has forgotten since, and that the stream waited for at the limit."""
        for name, record in self._records.items():
            if name not in now.records and record.status in WAITED_FOR:
                self.unknown.append(name)
                yield replace(record, epoch=now.forgotten_epoch, seen=now.uptime, sent=now.uptime)

    def _former_reader(self, reader: ReaderInfo) -> ReaderInfo:
        """Returns a reader as it is; one that is beyond the limit has read what the stream had handed out there."""
        at = reader.position
        if at.seq <= self._end.seq:
            return reader
        released = 0 if self._end.floor is None else self._end.floor + 1
        cut = None if at.cut is None else min(at.cut, released)
        return replace(reader, position=Position(self._end.seq, cut, None))

    def _was_there(self, record: ProducerRecord, later: _Later | None) -> bool:
        """Whether the stream knew the producer at the limit, or counts its rejected rows, which stay."""
        new = self._first.seq <= 1 or (later is not None and later.first == "expected")
        return later is None or record.name in self._records or bool(record.rejected) or not new

    def _former(self, record: ProducerRecord, later: _Later | None, rows: int, committed: bool) -> ProducerRecord:
        """Returns the producer as it was ``rows`` before; without what is not known if it has ``committed`` since."""
        now = self._history.snapshot.uptime
        former = replace(record, seen=now, sent=now, session="", detached_by_hand=False)  # whoever held it is fenced
        if committed:
            former.number, former.checkpoint, former.disorder = 0, None, ""
            former.receipt_seq, former.receipt_floor = 0, None
        if later is not None:
            former.accepted -= rows
            former.status, former.floor = self._state(record.name, later)
        return former

    def _state(self, name: str, later: _Later) -> tuple[Status, int | None]:
        """Returns the status and the floor that the producer had. One of which that is not known is waited for."""
        if name in self._records:
            return self._records[name].status, self._records[name].floor
        came_later = self._first.seq <= 1 or later.first in ("joined", "expected")
        return (Status.LEFT if came_later else Status.EXPECTED), None

    def rejections(self) -> Iterator[KeptRejection]:
        """Yields all that are kept, also later ones: no rejected row is lost. None is that of a commit to come."""
        for one in self._history.rejections():
            yield one if one.rejection.producer in self._known else one._replace(at_commit=False)

    def cuts(self) -> Iterator[LoggedCut]:
        """Yields the cuts up to the limit. Without one that a later one stands for, bounds would count too early."""
        for logged in self._history.cuts():
            if logged.seq <= self._end.seq:
                yield logged
            elif logged.cut is not None and logged.cut.folded:
                raise DataLostError(
                    f"Cuts of producer {logged.producer!r} up to event {logged.seq} were folded, since registered "
                    f"queries had passed them, so the stream cannot be copied up to {self._limit}. Name event "
                    f"{logged.seq} or a later one, or a later time.",
                    horizon=logged.seq,
                )
