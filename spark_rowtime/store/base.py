"""The interface of a store: it holds the log of a stream and its clock, and returns the rows between two positions.

RowSink and Spark's sink write (attach, stage, commit, leave). RowReader and Spark's source read
(head, at, slices, read). Several processes may write and read one stream at the same time. A store
object belongs to one process, and several threads of that process may use it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import pyarrow as pa

from spark_rowtime.bounds.clock import Detached, Event, Status, StreamClock
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.members import Members, SortedMembers
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import CutBound, LoggedCut, TopicCut
from spark_rowtime.errors import ProducerFencedError, StreamCompleteError
from spark_rowtime.store.record import LastSeen, ProducerInfo, ProducerRecord, overdue
from spark_rowtime.store.steady_clock import Reading
from spark_rowtime.types.timestamps import DAY_MICROS, WEEK_MICROS


class Position(NamedTuple):
    """A reader's position in the log. Times are in microseconds. No coordinate ever decreases.

    The reader has read those rows of the trains up to ``seq`` whose rowtime is below ``cut``; if
    ``cut`` is None, it has read all rows of these trains. ``floor`` is the least rowtime that the
    reader may still receive; None if nothing is promised.
    """

    seq: int
    cut: int | None
    floor: int | None


class Head(NamedTuple):
    """The log at one ``seq``: the stream's floor, and the largest rowtime and the number of rows up to there."""

    seq: int
    floor: int | None
    largest: int | None
    rows: int


REJECTED_BYTES = 256 << 20
"""Default of ``retainRejected``: how many bytes of rejected rows a stream keeps."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The settings of a stream. Intervals are in microseconds, sizes in bytes."""

    boundsBeforeRows: bool = True
    maxLag: int | None = None
    idleTimeout: int | None = None
    maxAhead: int | None = None
    retainAge: int | None = None
    retainBytes: int | None = None
    retainRejected: int = REJECTED_BYTES
    location: str | None = None
    """The URL where trains are that are too large for the database; None: all are in the store."""
    closed: tuple[str, ...] | None = None
    """The only producers that may attach; None: anybody may."""

    def clock(self, members: Members | None = None) -> StreamClock:
        """Returns the clock of a new stream. ``members`` is where it keeps its producers; None: in memory."""
        return StreamClock(
            self.boundsBeforeRows, self.maxLag, producers=SortedMembers() if members is None else members
        )


Change = Callable[[StreamSettings], StreamSettings]
"""Makes other settings of those that a stream has. It may be called again with what it has made."""
NEW_STREAM = StreamSettings(maxAhead=DAY_MICROS)
"""The settings of a new stream unless others are given: ``maxAhead`` is a day. Older streams may have none."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows whose bytes are written but that no reader sees yet. Can be pickled.

    ``rows`` is at least 1. ``least`` and ``largest`` are the limits of the rowtimes, in microseconds.
    Only the store interprets ``location``.
    """

    rows: int
    least: int
    largest: int
    location: Any


@dataclass(frozen=True, slots=True)
class Slice:
    """One train of the log that lies, at least in part, between two positions. Can be pickled."""

    seq: int
    producer: str
    rows: int
    least: int
    largest: int
    size: int
    location: Any


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that the stream did not accept. ``reason`` is "late" or "ahead".

    ``bound`` is the floor that late rows lay below, or the ceiling that rows too far ahead exceeded. ``origin`` says
    whose bound late rows lay below; None if it was not recorded.
    """

    reason: str
    bound: int | None
    rows: pa.RecordBatch
    origin: BoundOrigin | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """One entry of the log of rejections.

    ``number`` counts the entries from 1 without gaps; a number is never used again. ``time`` is the wall clock, in
    microseconds, when the rejection was committed.
    """

    number: int
    producer: str
    time: int
    rejected: Rejected


@dataclass(frozen=True, slots=True)
class Commit:
    """What one producer commits atomically: all of it becomes visible, or nothing.

    ``number`` counts the producer's commits from 1, across epochs. A commit with the number of the last one that landed
    is a retry and changes nothing; any other number but the next raises DataLostError. ``floor`` is the producer's own
    floor after the commit. If ``checkpoint`` is None, the stored checkpoint stays. ``disorder`` is the
    state of the producer's disorder, from which its next commit continues; ``keys`` are the changes of that part of the
    state that is not written with every commit; None: there are none. If ``all_or_nothing`` is true
    and a row of ``trains`` is late when the commit runs, nothing lands and LateRowError is raised. ``query_status``
    becomes the producer's ReportedStatus as a WRITER; None: that stays. ``bounds`` are the bounds that the producer
    sent, in their order, if it sends cuts; each becomes an event of its own behind the rows. ``floor`` is then that of
    the last one. ``idle``: the producer does not count for the stream's bound from here on, until its next commit that
    is not idle.
    """

    producer: str
    epoch: int
    number: int
    trains: tuple[Staged, ...] = ()
    floor: int | None = None
    rejected: tuple[Rejected, ...] = ()
    checkpoint: str | None = None
    disorder: str = ""
    all_or_nothing: bool = False
    keys: KeyChanges | None = None
    query_status: str | None = None
    bounds: tuple[CutBound, ...] = ()
    idle: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a commit: the log's seq, the stream's floor, and the rows that only the commit could reject."""

    seq: int
    floor: int | None
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """All producers in brief: the stream's floor, who holds it, how many producers are attached, idle ones included.

    ``expected`` says whether the holder is an expected producer. ``rejected`` is the number of rows rejected from any
    producer, ``forgotten`` that of the producers that ``gc`` has forgotten. Their rows stay counted.
    """

    floor: int | None
    holder: str | None
    expected: bool
    attached: int
    rejected: int
    forgotten: int


REJECTS_ONLY = "rejects only"
"""How the checkpoint of a producer begins that only rejects rows; see ``Store.reject``. Behind it, and a space, is the
digest of what it has rejected last, unless an earlier version wrote it. A producer with one is not forgotten."""


def rejects_only(checkpoint: str | bytes | None) -> bool:
    """Whether a producer with this checkpoint only rejects rows."""
    return isinstance(checkpoint, str) and checkpoint.startswith(REJECTS_ONLY)


FORGET_MICROS = DAY_MICROS
"""``gc`` forgets a producer that left at least this long ago: a day."""


READS_STREAM, READS_TOPIC, READS_UNKNOWN = "stream", "topic", ""
"""What a registered reader reads: the stream, or a topic beside it, to which the stream's cuts belong. Of readers that
an earlier version has registered it is not known: rows and cuts are kept for these."""
READS_COPIED = "copied"
"""The same of a reader in a copy that a user has registered in the stream who may only read. It keeps rows and cuts
there, not for ever, until it registers in the copy."""


@dataclass(frozen=True, slots=True)
class ReaderInfo:
    """A registered reader. The store keeps rows after its ``position``.

    ``unseen``: microseconds since the reader last registered. ``reads``: see READS_STREAM. ``trusted``: whether its
    user may write, too.
    """

    name: str
    position: Position
    unseen: int
    reads: str
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class Collected:
    """What one ``gc`` removed: ``rows``, and ``size`` bytes in ``files`` files.

    ``kept_for`` says who needs the first train that was kept although it is old enough; None if nobody does.
    ``forgotten`` is the number of producers that were forgotten.
    """

    rows: int
    files: int
    size: int
    kept_for: str | None
    forgotten: int = 0


WRITER, READER, HOST = "writer", "reader", "host"
"""The roles of a status: a query writes the stream, a query reads it, a process hosts an adapter for it."""
FORGET_STATUS_MICROS = WEEK_MICROS
"""A status of a reader or a host that was reported at least this long ago is removed: a week."""


@dataclass(frozen=True, slots=True)
class ReportedStatus:
    """What a query, or the host of an adapter, last reported about itself.

    It is for people alone: no result, bound or position depends on it. ``role`` is WRITER, READER or HOST. ``name`` is
    that of the producer under which the query or the adapter writes; of a READER, the id of the query. ``content`` is
    a JSON object of a few KB, which the store does not interpret. ``unseen``: microseconds of uptime since then.
    """

    role: str
    name: str
    content: str
    unseen: int


@dataclass(frozen=True)
class Snapshot:
    """A stream at one moment; everything that is said of a stream as a whole is a function of it.

    Law (*one moment*; tests/store/test_snapshot.py): all of it is as one transaction has left it, whatever others
    commit meanwhile. What lies between two positions of the log is read afterwards, since it stays the same.

    ``wall`` is the wall clock, ``uptime`` that of leases. ``records`` are the producers that are not forgotten, by
    name, as the log has them. ``rejected`` counts the rows rejected from any producer, also of those that are
    forgotten, of whose epochs ``forgotten_epoch`` is the largest; ``rejections`` is the number of the newest rejection.
    A full snapshot alone has the rest. ``moved``: how many microseconds of uptime ago the stream's bound became what it
    is; None if there is none, or if ``gc`` may have removed the event that raised it. ``keys`` are those of each
    producer that has any, see ``Store.keys``; ``cuts`` the last of each producer, see ``Store.last_cuts``.
    ``open_transactions``: what is known of transactions that keep a database from freeing space, each as a text.
    """

    path: str
    stream: str
    ancestors: Mapping[str, int]
    schema: pa.Schema
    settings: StreamSettings
    wall: int
    uptime: int
    head: Head
    horizon: Head
    records: Mapping[str, ProducerRecord]
    forgotten: int
    rejected: int
    rejected_removed: int
    rejections: int
    readers: tuple[ReaderInfo, ...]
    statuses: tuple[ReportedStatus, ...]
    moved: int | None = None
    keys: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    cuts: Mapping[str, Sequence[LoggedCut]] = field(default_factory=dict)
    open_transactions: tuple[str, ...] = ()
    forgotten_epoch: int = 0

    @cached_property
    def due(self) -> list[Event]:
        """The events that ``Store.expire`` would log at this moment."""
        attached = [record for record in self.records.values() if record.attached]
        return [event for event, _ in overdue(attached, self.uptime, self.settings.idleTimeout)]

    @property
    def logged_clock(self) -> StreamClock:
        """The clock after the last event of the log."""
        clocks = {name: record.clock for name, record in self.records.items()}
        members = SortedMembers({name: clock for name, clock in clocks.items() if clock is not None})
        clock = self.settings.clock(members)
        clock.floor, clock.largest = self.head.floor, self.head.largest
        return clock

    @cached_property
    def clock(self) -> StreamClock:
        """The clock as the next poll logs it, which may be long in coming: after the events that are ``due``."""
        clock = self.logged_clock
        clock.replay(self.due)
        return clock

    @cached_property
    def producers(self) -> Mapping[str, ProducerInfo]:
        """The producers by name. Those whose lease has ended, or who became idle, have that status."""
        due = {event.producer: Status.DETACHED if isinstance(event, Detached) else Status.IDLE for event in self.due}
        infos = {name: record.info for name, record in self.records.items()}
        return {name: replace(info, status=due[name]) if name in due else info for name, info in infos.items()}

    @cached_property
    def seen(self) -> Mapping[str, LastSeen]:
        """When each producer was last seen."""
        return {name: record.last_seen(self.uptime) for name, record in self.records.items()}


Renewal = bool | ProducerFencedError | StreamCompleteError
"""The result of one producer's ``renew``, or the error that it raises about this producer."""


class TrainReader(Protocol):
    """Reads trains. A Store is one; a process that cannot reach the store has one that reads what it was given."""

    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        """See ``Store.read``."""


class Store(ABC):
    """One open stream.

    The conformance suite in tests/store/ verifies these laws for each store:

    1. A bound never falls.
    2. No row lands below the bound that was in force before its commit.
    3. A train lands as a whole or not at all, and becomes visible only after its bytes are written.
    4. A retry with the same (producer, epoch, number) changes nothing, and no number is left out.
    5. A fenced producer cannot append.
    6. The rows between two positions are always the same.
    7. A bound without rows is visible.
    8. What a crashed writer left half-written is never read, and the next writer works.
    9. Rejected rows are kept with reason, bound, whose bound it was, producer and time.
    10. A cut is visible with the event of its bound, and stays when the event is removed.
    """

    path: str
    stream: str
    """The id of the stream. A stream that is deleted and created again at the same path gets another id."""
    ancestors: Mapping[str, int]
    """The ids of the streams of which this one is a copy, each with the seq up to which both logs are the same."""
    schema: pa.Schema
    settings: StreamSettings
    objects: Any = None
    """What a task needs to read and write trains in the stream's location; None: it has none. Can be pickled."""
    keeps_staged = False
    """Whether what ``stage`` returned can be committed for a day, whatever attempts fail meanwhile."""
    contact_micros = 10_000
    """For this many microseconds after a commit or a renewal, a sink assumes that its producer is still attached."""
    now: Callable[[], int]
    """The wall clock, in microseconds. It may jump, so no decision but ``maxAhead`` depends on it."""
    steady: Callable[[], Reading]
    """The clock for leases, idleness and ages. If a caller replaced only ``now``, ``now`` is used instead."""

    @abstractmethod
    def attach(self, producer: str, session: str, declaration: str, lease: int | None = None) -> ProducerInfo:
        """Opens ``producer`` for ``session`` (a token of one sink object or one query run).

        A session that attaches again keeps its epoch, unless the producer has left or was detached. Another
        session takes over with epoch + 1, which fences the old one. A complete producer does not join again, but a
        holder may repeat its last commit. Raises StreamCompleteError if the stream is complete and the producer
        would join. ``lease`` is how many microseconds of
        ``steady`` after its last commit or ``renew`` the producer is detached; None means never. Raises
        InvalidOptionError if ``declaration`` differs from the stored one, or if the stream is closed to ``producer``.
        """

    @abstractmethod
    def expect(self, names: Sequence[str]) -> None:
        """Makes the stream wait for each of these producers until it attaches, or is detached or closed.

        Nothing changes for those that it knows. Raises StreamCompleteError if the stream is complete.
        """

    @abstractmethod
    def renew(self, producer: str, epoch: int, *, sends: bool = False) -> bool:
        """Extends the lease of a producer that has nothing to send. Raises ProducerFencedError at an old epoch.

        A producer whose lease had ended joins again at the stream's bound, and repeats what it has itself
        promised. ``renew`` then returns True, so that the caller can report it. A producer that was detached
        by hand stays detached until it sends: ``sends`` says that it is about to. Raises StreamCompleteError if
        the stream has become complete meanwhile.
        """

    def renew_all(self, producers: Sequence[tuple[str, int]]) -> list[Renewal]:
        """Does ``renew`` for several producers, each with its epoch, as far as it can in one transaction."""
        return [self._renewed(*producer) for producer in producers]

    def _renewed(self, producer: str, epoch: int) -> Renewal:
        try:
            return self.renew(producer, epoch)
        except (ProducerFencedError, StreamCompleteError) as error:
            return error

    @abstractmethod
    def expire(self) -> bool:
        """Logs the leases that have ended and the producers that became idle. Returns whether there were any.

        Readers call it when they poll; it is cheap when nothing is due, and waits for no lock: if nothing can be
        written just now, it does nothing. Every commit does the same. Each
        decision made by a clock is therefore an event in the log, and a replay gives the same result.
        """

    @abstractmethod
    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        """Writes the bytes of ``rows`` (at least 1 row, of exactly ``schema``). No reader sees them yet.

        ``ends`` is the ``span`` of the rows, if the caller has computed it already.
        """

    @abstractmethod
    def commit(self, commit: Commit) -> Receipt:
        """Makes the commit visible atomically, and advances the clock.

        With the floor END the producer is complete: it leaves the clock and is not waited for again.

        Raises ProducerFencedError at an old epoch, DataLostError if its number is neither that of the last commit nor
        the next, and LateRowError if ``commit.all_or_nothing`` is set and a row is late.
        """

    @abstractmethod
    def reject(self, producer: str, number: int, rejected: tuple[Rejected, ...], digest: str) -> None:
        """Keeps rows that are late elsewhere, under the name of a producer that takes no part in the clock.

        No event is logged, and nothing waits for this producer, whose status is LEFT. It is not forgotten. ``number``
        grows with each call: it is that of a query's batch, from 1 on. ``digest`` says which rows these are. A call
        with the number and the digest of the last one is a retry, and changes nothing. Raises ProducerFencedError if
        the stream has other rows of this number, or those of a later one. Where an earlier version has kept the last
        ones, without a digest, each number up to that of these is a retry.
        """

    @abstractmethod
    def leave(self, producer: str, epoch: int, cut: TopicCut | None = None) -> None:
        """Closes the producer, which then no longer holds the stream back. A repeated call changes nothing.

        ``cut``: until offsets have reached it, the producer holds the bound there as it did before.
        """

    @abstractmethod
    def detach(self, producer: str) -> None:
        """Detaches a lost producer by hand, whoever holds it.

        Unlike ``leave``, it does not raise the floor to the largest rowtime when the producer is the last one.
        """

    @abstractmethod
    def close_producer(self, producer: str, *, complete: bool = False) -> None:
        """Declares that a lost producer has left, whoever holds it, or, with ``complete``, that it is complete.

        This has the effect of its own ``leave`` or of its last commit, also if the producer was detached before. Its
        holder is fenced. A repeated call changes nothing.
        """

    @abstractmethod
    def alter(self, add: pa.Schema) -> None:
        """Adds columns at the end of the stream's schema. Raises SchemaMismatchError if one of them is there already.

        This object and all others that are open keep their ``schema``: they read the rows of the new schema without
        the new columns, and write rows of the old one. Objects that are opened later have the new schema, and read
        null in rows of the old one.
        """

    @abstractmethod
    def change(self, change: Change) -> None:
        """Replaces the settings by what ``change`` makes of them. Objects that are open keep theirs."""

    @abstractmethod
    def head(self) -> Head:
        """Returns the end of the log. It is cheap, since readers call it on each poll."""

    @abstractmethod
    def at(self, seq: int) -> Head:
        """Returns the log as it was at ``seq`` (0: empty). Raises DataLostError before the horizon."""

    @abstractmethod
    def slices(self, after: Position, upto: Position) -> list[Slice]:
        """Returns the trains that have a row in the difference of the two regions, by seq.

        The result is a pure function of the log. Raises DataLostError if ``gc`` has removed a train with a row
        after ``after``.
        """

    @abstractmethod
    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        """Returns all rows of a train, with the columns of ``schema``.

        Raises StoreCorruptError if the bytes are not those written, and DataLostError if ``gc`` has removed the
        train since.
        """

    def carry(self, pieces: Sequence[Slice]) -> list[Slice]:
        """Returns the trains with what a process needs to ``read`` them that cannot reach the store.

        Trains that were removed since are missing.
        """
        return list(pieces)

    @abstractmethod
    def keep(self, reader: str, position: Position, reads: str = READS_STREAM) -> None:
        """Registers ``reader``, or moves it. The store keeps what is unread at ``position`` for this reader.

        A position beyond the end of the log is that end: nobody has read further.
        ``reads``: READS_STREAM or READS_TOPIC. Cuts are kept for readers of topics alone.
        """

    @abstractmethod
    def forget(self, reader: str) -> None:
        """Removes the registration of ``reader``: nothing is kept for it any more.

        Raises InvalidOptionError if it is not registered.
        """

    @abstractmethod
    def put_status(self, role: str, name: str, content: str) -> None:
        """Replaces the status of that role and name; see :class:`ReportedStatus`. The log stays as it is.

        It also removes statuses of readers and hosts that were reported at least ``FORGET_STATUS_MICROS`` ago. Nobody
        but the queries and hosts themselves calls it, so it takes no part in retention.
        """

    @abstractmethod
    def horizon(self) -> Head:
        """Returns where the log begins. The trains up to its ``seq`` are removed, with all their ``rows``."""

    @abstractmethod
    def gc(self, age: int | None = None, size: int | None = None, force: bool = False) -> Collected:
        """Removes the oldest trains.

        It removes the longest beginning of the log of which each train meets all of these conditions:

        - The train was committed at least ``age`` microseconds of ``steady`` ago, or lies beyond the newest
          ``size`` bytes.
        - The bound has released the train, because a new reader in the order of rowtimes may still start.
        - No registered reader needs the train, or ``force`` is set.

        An argument that is None takes its value from the stream's settings; if these have none either, the limit
        does not apply, and without any limit no train is removed. Clock, rejections and totals stay unchanged.

        ``gc`` also folds the cuts that all queries beside topics have passed. And it forgets each producer
        that left at least ``FORGET_MICROS`` ago and has neither a checkpoint nor a rejected row that is kept. Its rows
        stay counted, and its old holder stays fenced.

        If the process is killed at any point, the stream stays consistent, and the next call finishes
        the work. ``gc`` removes a bounded portion at a time, so that other processes never wait for long.
        """

    @abstractmethod
    def snapshot(self, *, full: bool = False) -> Snapshot:
        """Returns the stream as it is at one moment, read in one transaction. The cost grows with the producers.

        ``full``: with what takes longer, see :class:`Snapshot`.
        """

    def summary(self) -> Summary:
        """Returns the producers in brief. In a lasting store the cost does not depend on how many there are."""
        now = self.snapshot()
        holder = now.logged_clock.holder()
        expected = holder is not None and now.records[holder].status is Status.EXPECTED
        attached = sum(record.attached for record in now.records.values())
        return Summary(now.head.floor, holder, expected, attached, now.rejected, now.forgotten)

    def producer(self, name: str) -> ProducerInfo | None:
        """Returns the producer of that name, if it ever attached; at a cost as that of ``summary``."""
        record = self.snapshot().records.get(name)
        return record.info if record else None

    def keys(self, producer: str) -> list[bytes]:
        """Returns the contents of the ``keys`` that the producer has committed, from the last whole ones on."""
        return list(self.snapshot(full=True).keys.get(producer, []))

    @abstractmethod
    def cuts(self, after: int = 0, upto: int | None = None) -> Iterator[LoggedCut]:
        """Yields the cuts of the events from ``after + 1`` to ``upto`` (None: the last), in their order.

        A removal of trains removes no cuts, since offsets at any earlier place may still be asked for. ``gc``, and now
        and then a commit of bounds, fold those that no registered query needs: see ``store/cut_folding.py``.
        """

    def has_cuts(self) -> bool:
        """Returns whether a producer has ever sent a cut. It is cheap."""
        return next(self.cuts(), None) is not None

    def last_cuts(self, producer: str) -> list[LoggedCut]:
        """Returns the producer's last whole cut and all that it sent after it; none if it has never sent a cut."""
        found: list[LoggedCut] = []
        for logged in self.cuts():
            if logged.producer == producer and logged.cut is not None and logged.cut.whole:
                found = [logged]
            elif logged.producer == producer and found:
                found.append(logged)
        return found

    @abstractmethod
    def raised(self, bound: int) -> BoundOrigin | None:
        """Returns which event raised the stream's bound to ``bound`` or beyond; None if the stream's bound is weaker.

        The origin names no producer if ``gc`` may have removed that event.
        """

    @abstractmethod
    def rejections(self, after: int = 0, upto: int | None = None) -> Iterator[Rejection]:
        """Yields the rejections that are kept, from the number ``after + 1`` to ``upto`` (None: the newest) in order.

        Beyond ``retainRejected`` bytes the oldest rejections are removed, but never those of the newest commit, nor
        those of a producer's last receipt. A number that is missing was removed. Removed rows stay counted.
        """

    @abstractmethod
    def rejections_end(self) -> int:
        """Returns the number of the newest rejection; 0 if there was none. It is cheap."""

    @abstractmethod
    def rejected(self) -> pa.Table:
        """Returns the rejected rows that are kept: REJECTED_COLUMNS, then the stream's columns."""

    @abstractmethod
    def bounds(self) -> pa.Table:
        """Returns the log from the horizon on, with the columns BOUNDS_COLUMNS."""

    def answering(self, seconds: float) -> AbstractContextManager[None]:  # noqa: ARG002
        """Limits how long the calls of the block wait for a store that is elsewhere and does not answer.

        They then raise StoreUnavailableError, after ``seconds`` or a little more.
        """
        return nullcontext()

    @abstractmethod
    def wait(self, seq: int, timeout: float | None) -> bool:
        """Blocks until the log extends beyond ``seq``. Returns False after ``timeout`` seconds; None waits forever."""

    @abstractmethod
    def close(self) -> None:
        """Releases the resources of this object. The stream itself stays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
