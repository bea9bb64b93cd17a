"""What a store is: the log of a stream, its clock, and the rows between two positions.

Who calls: RowSink and Spark's sink write (attach, stage, commit, leave); RowReader and Spark's
source read (head, at, slices, read). Several processes write and read one stream at once; a store
object belongs to one process and may be used by several of its threads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.clock import Event, Status, StreamClock
from spark_rowtime.store.steady_clock import Reading


class Position(NamedTuple):
    """How far a reader is. Microseconds; all coordinates only grow.

    Rows in trains <= ``seq`` with rowtime < ``cut`` have been read; ``cut`` None: all of them.
    ``floor``: the least rowtime that may still be handed out, None: nothing is promised.
    """

    seq: int
    cut: int | None
    floor: int | None


class Head(NamedTuple):
    """The log at one ``seq``: the stream's floor, the largest rowtime and the number of rows so far."""

    seq: int
    floor: int | None
    largest: int | None
    rows: int


REJECTED_BYTES = 256 << 20
"""Of rejected rows a stream keeps so many bytes, unless it was told otherwise."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """What createStream fixes for the life of a stream; intervals in microseconds, sizes in bytes."""

    boundsBeforeRows: bool = True
    maxLag: int | None = None
    idleTimeout: int | None = None
    maxAhead: int | None = None
    retainAge: int | None = None
    retainBytes: int | None = None
    retainRejected: int = REJECTED_BYTES

    def clock(self) -> StreamClock:
        """A new stream's clock."""
        return StreamClock(bounds_before_rows=self.boundsBeforeRows, max_lag=self.maxLag)


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows whose bytes are down but that no reader sees yet; pickles. ``location`` is the store's own.

    ``least`` and ``largest`` rowtime in microseconds; ``rows`` >= 1.
    """

    rows: int
    least: int
    largest: int
    location: Any


@dataclass(frozen=True, slots=True)
class Slice:
    """One train of the log that lies, at least in part, between two positions; pickles."""

    seq: int
    producer: str
    rows: int
    least: int
    largest: int
    size: int
    location: Any


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that did not land. ``reason``: late | ahead; ``bound``: the floor they lay below, or ceiling."""

    reason: str
    bound: int | None
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Commit:
    """What one producer makes visible at once, or not at all.

    ``number`` counts the producer's commits from 1, across epochs: one that is not above the last
    that landed is a retry and changes nothing. ``floor``: the producer's own after all of it.
    ``checkpoint`` None leaves the stored one; ``disorder`` is the state to carry on from. ``whole``: where a
    row of ``trains`` is late by the time of the commit nothing lands, and LateRowError is raised.
    """

    producer: str
    epoch: int
    number: int
    trains: tuple[Staged, ...] = ()
    floor: int | None = None
    rejected: tuple[Rejected, ...] = ()
    checkpoint: str | None = None
    disorder: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """After a commit: the log's seq, the stream's floor, and what only the commit could reject."""

    seq: int
    floor: int | None
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class ProducerInfo:
    """A producer as the catalog has it; ``floor`` in microseconds, received = accepted + rejected."""

    name: str
    status: Status
    epoch: int
    floor: int | None
    accepted: int
    rejected: int
    number: int
    checkpoint: str | None
    declaration: str
    """What openSink said of this producer's order (rowsImplyBounds, lateness, kSort), as JSON."""
    disorder: str
    """The state of its disorder, as JSON; empty where none is kept."""


@dataclass(frozen=True, slots=True)
class ReaderInfo:
    """A registered reader: rows after its ``position`` are kept for it. ``unseen``: microseconds since it said so."""

    name: str
    position: Position
    unseen: int


@dataclass(frozen=True, slots=True)
class Collected:
    """What one ``gc`` has removed: ``rows``, and ``size`` bytes in ``files`` files.

    ``held``: who needs the first train that stays although it is old enough; None: nobody.
    """

    rows: int
    files: int
    size: int
    held: str | None


class Store(ABC):
    """One stream, opened. Its laws are the conformance suite in tests/store/.

    1. a bound never falls; 2. no row lands below the bound that was in force before its commit;
    3. a train is all or nothing, visible only when its bytes are down; 4. a retry with the same
    (producer, epoch, number) changes nothing; 5. a fenced producer cannot append; 6. the rows
    between two positions are always the same; 7. a bound without rows is visible; 8. what a crashed
    writer left half-written is never read, and the next writer works; 9. rejected rows are kept
    with reason, bound and producer.
    """

    path: str
    stream: str
    """The stream's own id: a stream deleted and created again at one path has another."""
    schema: pa.Schema
    settings: StreamSettings
    now: Callable[[], int]
    """The wall clock, in microseconds. Nothing that is decided goes by it: it may jump."""
    steady: Callable[[], Reading]
    """The clock that leases, idleness and ages go by; where only ``now`` was given, that."""

    @abstractmethod
    def attach(self, producer: str, holder: str, declaration: str, lease: int | None = None) -> ProducerInfo:
        """Opens ``producer`` for ``holder`` (a token of one sink object or one query run).

        A holder that attaches again keeps its epoch; another one takes over with epoch + 1, which
        fences the old. ``lease``: microseconds after its last commit or ``renew`` when it is let go, by
        ``steady``; None: never. InvalidOptionError where ``declaration`` is not the stored one.
        """

    @abstractmethod
    def renew(self, producer: str, epoch: int) -> bool:
        """The producer lives, though it has nothing to say. ProducerFencedError at an old epoch.

        One whose lease had ended joins again at the stream's bound, with what it has promised itself:
        True, so that its caller can be told. One that was detached by hand stays so until it sends.
        """

    @abstractmethod
    def due(self) -> list[Event]:
        """What ``expire`` would log now. Writes nothing."""

    @abstractmethod
    def expire(self) -> bool:
        """Logs the leases that have ended and the producers that went idle; whether there were any.

        Readers call it when they poll, cheap when nothing is due; every commit does it by itself. So
        what a clock has decided is in the log as events, and a replay sees the same.
        """

    @abstractmethod
    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        """Puts the bytes of ``rows`` (>= 1 row, of exactly ``schema``) down. Nobody sees them yet.

        ``ends``: their ``span``, from who has looked already.
        """

    @abstractmethod
    def commit(self, commit: Commit) -> Receipt:
        """Makes it visible, atomically; folds the clock on.

        ProducerFencedError at an old epoch; LateRowError where it is to land whole and a row is late.
        """

    @abstractmethod
    def leave(self, producer: str, epoch: int) -> None:
        """The producer closed: it no longer holds the stream back. Again: nothing changes."""

    @abstractmethod
    def detach(self, producer: str) -> None:
        """A lost producer is let go by hand, whoever holds it; it does not remember as a closed one does."""

    @abstractmethod
    def head(self) -> Head:
        """The end of the log; cheap: called on each poll."""

    @abstractmethod
    def at(self, seq: int) -> Head:
        """The log as it was at ``seq`` (0: empty). DataLostError before the horizon."""

    @abstractmethod
    def slices(self, after: Position, upto: Position) -> list[Slice]:
        """The trains with a row in the difference of the two regions, by seq: a pure function of the log.

        DataLostError where ``gc`` has removed one with a row after ``after``.
        """

    @abstractmethod
    def read(self, piece: Slice | Staged) -> pa.RecordBatch:
        """All rows of a train, whole.

        StoreCorruptError where the bytes are not those written, DataLostError where ``gc`` has removed it since.
        """

    @abstractmethod
    def keep(self, reader: str, position: Position) -> None:
        """Registers ``reader``, or moves it: what it has not read at ``position`` is kept for it."""

    @abstractmethod
    def forget(self, reader: str) -> None:
        """Nothing is kept for ``reader`` any more. InvalidOptionError where it is not registered."""

    @abstractmethod
    def readers(self) -> list[ReaderInfo]:
        """The registered readers, by name."""

    @abstractmethod
    def horizon(self) -> Head:
        """Where the log begins: the trains up to its ``seq`` are gone, with all their ``rows``."""

    @abstractmethod
    def gc(self, age: int | None = None, size: int | None = None, force: bool = False) -> Collected:
        """Removes the oldest trains.

        All up to the last such that each of them

        - was committed at least ``age`` microseconds ago, by ``steady``, or lies beyond the newest ``size`` bytes;
        - is released: a reader in the order of rowtimes may still come;
        - is needed by no registered reader, or ``force``.

        None is what the stream's settings say; where they say nothing either, no train goes. Clock, producers,
        rejections and totals stay as they are. Killed at any point, it leaves a whole stream; what it has
        not finished the next call does. It removes a bounded portion at a time, so that nobody waits for long.
        """

    @abstractmethod
    def producers(self) -> list[ProducerInfo]:
        """All that ever attached, by name."""

    @abstractmethod
    def producer(self, name: str) -> ProducerInfo | None:
        """The producer of that name, if it ever attached; costs the same however many there are."""

    @abstractmethod
    def clock(self) -> StreamClock:
        """A copy of the clock as it stands."""

    @abstractmethod
    def rejected(self) -> pa.Table:
        """The rejected rows that are kept: REJECTED_COLUMNS, then the stream's columns.

        Beyond ``retainRejected`` bytes the oldest go, but not those of the newest commit. All are counted.
        """

    @abstractmethod
    def rejected_removed(self) -> int:
        """How many rejected rows are kept no longer."""

    @abstractmethod
    def bounds(self) -> pa.Table:
        """The log as BOUNDS_COLUMNS, from the horizon on."""

    @abstractmethod
    def wait(self, seq: int, timeout: float | None) -> bool:
        """Blocks until the log is longer than ``seq``; False after ``timeout`` seconds."""

    @abstractmethod
    def close(self) -> None:
        """Frees what is open; the stream stays."""
