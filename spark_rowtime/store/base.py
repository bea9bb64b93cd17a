"""The interface of a store: it holds the log of a stream and its clock, and returns the rows between two positions.

RowSink and Spark's sink write (attach, stage, commit, leave). RowReader and Spark's source read
(head, at, slices, read). Several processes may write and read one stream at the same time. A store
object belongs to one process, and several threads of that process may use it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, Self

import pyarrow as pa

from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.errors import ProducerFencedError, StreamCompleteError
from spark_rowtime.store.commits import Commit, Receipt, Rejected, Rejection, Slice, Staged
from spark_rowtime.store.position import Head, Position
from spark_rowtime.store.record import Held, ProducerInfo
from spark_rowtime.store.settings import Change, StreamSettings
from spark_rowtime.store.snapshot import (
    READS_STREAM,
    Collected,
    Snapshot,
    Summary,
)
from spark_rowtime.store.steady_clock import Reading

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
    def renew(self, producer: str, epoch: int, *, sends: bool = False, session: str | None = None) -> bool:
        """Extends the lease of a producer that has nothing to send. Raises ProducerFencedError at an old epoch.

        Raises StreamSetBackError if another ``session`` has the epoch, as after a restored backup.

        A producer whose lease had ended joins again at the stream's bound, and repeats what it has itself
        promised. ``renew`` then returns True, so that the caller can report it. A producer that was detached
        by hand stays detached until it sends: ``sends`` says that it is about to. Raises StreamCompleteError if
        the stream has become complete meanwhile.
        """

    @abstractmethod
    def renew_all(self, producers: Sequence[Held]) -> list[Renewal]:
        """Does ``renew`` for several producers, as far as it can in one transaction."""

    def renew_beside(self, producers: Sequence[Held]) -> list[Renewal]:
        """Does ``renew_all`` beside a call of another thread that takes long, such as a commit that sends its rows."""
        return self.renew_all(producers)

    @abstractmethod
    def expire(self) -> bool:
        """Logs the leases that have ended and the producers that became idle. Returns whether there were any.

        Readers call it when they poll; it is cheap when nothing is due, and waits for no lock: if nothing can be
        written just now, it does nothing. Every commit does the same. Each
        decision made by a clock is therefore an event in the log, and a replay gives the same result.
        """

    @abstractmethod
    def stage(self, rows: pa.RecordBatch, ends: tuple[int, int] | None = None) -> Staged:
        """Writes the bytes of ``rows`` (at least 1 row). No reader sees them yet.

        They may differ from ``schema`` in nullability and metadata, which no message has.

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
    def leave(self, producer: str, epoch: int, cut: TopicCut | None = None, *, session: str | None = None) -> None:
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
    def alter(self, add: pa.Schema | None = None, change: Change | None = None, expected: Sequence[str] = ()) -> None:
        """Adds columns at the end of the stream's schema. Raises SchemaMismatchError if one of them is there already.

        In the same transaction it replaces the settings by what ``change`` makes of them, and does what ``expect``
        does. This object and all others that are open keep their ``schema`` and ``settings``: they read the rows of
        the new schema without the new columns, and write rows of the old one. Objects that are opened later have the
        new schema, and read null in rows of the old one.
        """

    @abstractmethod
    def head(self) -> Head:
        """Returns the end of the log. It is cheap, since readers call it on each poll."""

    @abstractmethod
    def at(self, seq: int) -> Head:
        """Returns the log as it was at ``seq`` (0: empty). Raises DataLostError before the horizon."""

    @abstractmethod
    def made(self, *seqs: int) -> dict[int, int]:
        """Returns when each of these events was committed, of those that are in the log."""

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
