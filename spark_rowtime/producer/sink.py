"""StreamSink: the RowSink that writes into a stream."""

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import tzinfo
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.disorder import Disorder, InOrderPer
from spark_rowtime.bounds.topic_cut import TopicCut, to_cut
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.producer.acceptance import Acceptance
from spark_rowtime.producer.intake import Intake, gathered
from spark_rowtime.producer.late_log import BoundOwner, LateReport
from spark_rowtime.producer.lease import Lease
from spark_rowtime.producer.lifecycle import SinkLifecycle
from spark_rowtime.producer.misspelled import tell_of_misspelled
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.producer.scheduler import CommitScheduler
from spark_rowtime.store.admission import complete
from spark_rowtime.store.base import Store
from spark_rowtime.store.steady_clock import elapsing
from spark_rowtime.types.arguments import is_whole, to_choice, to_text
from spark_rowtime.types.local_time import LocalTime
from spark_rowtime.types.timestamps import check_range, to_micros, wall_clock

ALL_KEYS: Any = object()
"""The default of ``key``: a bound is about all rows. None stands for the value NULL."""
_IN_MEMORY = pa.RecordBatch, pa.Table
"""A tuple: to make a union of types at each call takes as long as a check of the rows."""


class StreamSink(SinkLifecycle):
    """The RowSink of a stream; ``openSink`` returns it. It is thread-safe. A child made by fork cannot use it.

    Laws: a call that raises has taken nothing (its late rows are recorded, and count); what was
    taken becomes visible in the order of the calls; received = accepted + rejected. Therefore, if the store
    fails while it commits what a call has sent, the sink keeps what it took, and the next call raises the error;
    only ``flush`` and ``close``, which take nothing, raise it themselves.

    Visibility: after a quiet ``linger`` the next row or bound is committed at once; under load a
    timer thread commits once per ``linger``. Once a checkpoint has been stored, only ``flush`` and ``close`` commit.

    A sink is a context manager: leaving the block calls ``close``, or ``abandon`` after an error.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-streamsink", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-streamsink", producer="nyse") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        ...     _ = sink.flush(checkpoint="offset 1")
        >>> with rt.openSink("memory://docs-streamsink", producer="nyse") as sink:  # a restart
        ...     sink.checkpoint
        'offset 1'
    """

    def __init__(
        self,
        store: Store,
        producer: str,
        disorder: Disorder,
        *,
        rowtime: str | None = None,
        onLate: str = "raise",
        maxTrainRows: int = 65536,
        linger: int = 100_000,
        lease: int | None = None,
        local: LocalTime | None = None,
        now: Callable[[], int] = wall_clock,
        steady: Callable[[], int] | None = None,
    ) -> None:
        """``linger`` and ``lease`` are in microseconds; ``local`` is the zone of naive times, None: UTC.

        ``now`` is the wall clock, for rows without a rowtime and for ``maxAhead``; ``steady`` the clock by which
        ``linger`` and ``lease`` are measured. Both give microseconds.
        """
        steady = steady or elapsing(now)
        raises = to_choice(onLate, "onLate", "raise", "reject") == "raise"
        intake = Intake(store.schema, rowtime, now, local)
        self._zone = None if local is None else local.zone
        info = store.attach(producer, str(uuid.uuid4()), disorder.declaration, lease)
        if info.status is Status.COMPLETE:
            raise complete(store.path, producer)
        tell_of_misspelled(store, info)
        disorder.restore(info.disorder, store.keys(producer))
        outbox = Outbox(store, info, disorder, maxTrainRows, local is None)
        late = LateReport(producer, info.rejected, outbox.late, raises=raises)
        lock = threading.RLock()
        leased = Lease(outbox, lease, steady, lock)
        scheduler = CommitScheduler(outbox, leased, late, linger=linger, now=steady, lock=lock)
        self._disorder = disorder
        owner = BoundOwner(store, producer)
        self._acceptance = Acceptance(intake, disorder, outbox, late, scheduler, owner, now)
        self._take_plain = outbox.rows.take
        self.delivery: Any = None
        """The unfinished part of the train on which a drain into this sink failed; see ``Delivery``."""
        super().__init__(store, outbox, late, scheduler, lock, self._acceptance)

    @property
    def closed(self) -> bool:
        """Whether the sink was closed or abandoned."""
        return self._closed

    @property
    def checkpoint(self) -> str | None:
        """The checkpoint stored last, where a restarted adapter resumes; None if there is none.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-checkpoint", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-checkpoint", producer="nyse") as sink:
            ...     _ = sink.flush(checkpoint="offset 7")
            ...     sink.checkpoint
            'offset 7'
        """
        return self._outbox.checkpoint

    def sendRow(self, row: Mapping[str, Any] | tuple[Any, ...] | list[Any]) -> None:
        """Sends one row.

        A rowtime is a datetime, an ISO 8601 text, or a pandas or pyarrow timestamp. A rowtime without a time zone is in
        the sink's ``tz``, or in UTC.

        Args:
            row: A mapping with a value for each column, or a tuple or list of values in schema order. A mapping without
                ``rowtime`` gets the value of the column that ``openSink(rowtime=...)`` names, or otherwise the time
                now. Without that column, all rows of a sink come with a rowtime or all come without.

        Raises:
            SchemaMismatchError: The row does not fit the stream.
            LateRowError: The row, or an earlier one that became late before its commit, is late (``onLate="raise"``).
            SinkClosedError: The sink is closed, or was opened in another process.
            ProducerFencedError: Another sink took the producer over.
            RowtimeError: The store failed in an earlier commit, and fails again.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-sendrow", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-sendrow") as sink:
            ...     sink.sendRow({"rowtime": "2026-01-05T14:30:00Z", "ticker": "IBM"})
            ...     sink.sendRow(("2026-01-05T14:31:00Z", "AAPL"))
            >>> rt.describeStream("memory://docs-sendrow").rows
            2
        """
        lock = self._lock
        try:
            lock.acquire()  # ``with`` takes twice as long
            if not self._take_plain(row):
                self._send_row(row)
        except BaseException:
            if lock._is_owned():  # noqa: SLF001  (not where an interrupt ended the wait for it)
                self._outbox.rows.mend()
                lock.release()
            raise
        lock.release()

    def sendRows(self, rows: pa.RecordBatch | pa.Table | Iterable[Any]) -> None:
        """Sends many rows; takes all of them or none, except for late rows under ``onLate="reject"``.

        An iterable is read to its end first. Until then the sink takes none of its rows, and other calls, commits and
        the renewal of the lease go on.

        Args:
            rows: A pyarrow RecordBatch or Table, whose columns are matched by name, or an iterable of rows as for
                ``sendRow``. A pandas DataFrame is refused; ``pa.Table.from_pandas`` converts it. Arrow data is not
                copied: do not change its memory, as through a numpy array below it, before the next ``flush``.

        Raises:
            SchemaMismatchError: A row or a column does not fit the stream; the message names the row or the column.
            LateRowError: A row, or one of an earlier call that became late before its commit, is late
                (``onLate="raise"``).
            SinkClosedError: The sink is closed, or was opened in another process.
            ProducerFencedError: Another sink took the producer over.
            RowtimeError: The store failed in an earlier commit, and fails again.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-sendrows", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-sendrows") as sink:
            ...     sink.sendRows([("2026-01-05T14:30:00Z", "IBM"), ("2026-01-05T14:31:00Z", "AAPL")])
            >>> rt.describeStream("memory://docs-sendrows").rows
            2
        """
        if not isinstance(rows, _IN_MEMORY) and type(rows) not in (list, tuple):
            with self._lock:
                self._start_send()
            rows = gathered(rows)
        with self._lock:
            self._start_send()
            self._acceptance.accept_rows(rows)
            self._scheduler.settle()

    def sendRowtimeBound(
        self,
        t: Any,
        strict: bool = False,
        tz: str | tzinfo | None = None,
        *,
        key: Any = ALL_KEYS,
        cut: Mapping[str, Mapping[int, int]] | None = None,
        topicIds: Mapping[str, str] | None = None,
    ) -> None:
        """Promises that every later row of this producer is at or after ``t``.

        A bound that is not above the bound in force (from joining, a takeover or lateness) changes nothing.

        In a sink with ``inOrderPer``, ``key`` names one value of its column: the bound is about the rows with this
        value alone. The value is known from then on, and holds the producer's bound until its rows or bounds go on.

        With ``cut``, the rows are in Kafka topics, and only the bounds in this stream: the bound is about the messages
        of this producer from these offsets on. A query that reads the topics with Spark's Kafka source uses the bound
        once it has read up to the cut in every partition that it names. A bound without a cut is about whole topics,
        whatever the offset.

        Args:
            t: A datetime, an ISO 8601 text, a pandas or pyarrow timestamp, or a RowtimeBound. With
                ``RowtimeBound.END``, as it comes from a stream that is complete, this producer is complete too.
            strict: If True, every later row is after ``t``, not at it. Left out with a RowtimeBound.
            tz: The time zone of a time without one, as a name or a tzinfo. None: the sink's ``tz``, or UTC. Left out
                with a RowtimeBound.
            key: The value of the column ``inOrderPer`` whose rows the bound is about. Left out: the bound is about all
                rows.
            cut: For each topic and partition, the offset after the last message that the bound follows. A partition
                that is left out stays at its offset in an earlier cut; one that this producer has not written to may
                be left out.
            topicIds: The ids of the topics, as the broker gives them. With them, a topic that was deleted and created
                again is an error.

        Raises:
            BoundRegressionError: The bound is weaker than what this sink has promised, or implied by rows in order.
            CutRegressionError: The cut lies below an earlier cut of this producer.
            KafkaTopicError: A topic has another id than in an earlier cut of this producer.
            RowtimeAheadError: ``t`` lies further ahead of the clock than the stream's ``maxAhead``.
            InvalidOptionError: ``t`` is no time; or ``cut`` is no cut, or this stream or sink takes none (``maxLag``,
                ``boundsBeforeRows=False``, ``lateness``, ``kSort``, ``inOrderPer``).
            LateRowError: A row of an earlier call became late before its commit (``onLate="raise"``).
            SinkClosedError: The sink is closed, or was opened in another process.
            ProducerFencedError: Another sink took the producer over.
            RowtimeError: The store failed in an earlier commit, and fails again.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-sendbound", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-sendbound") as sink:
            ...     sink.sendRowtimeBound("2026-01-05T15:00:00Z")
            ...     sink.sendRowtimeBound("2026-01-05T17:00", strict=True, tz="Europe/Berlin")
            >>> rt.describeStream("memory://docs-sendbound").bound
            RowtimeBound('2026-01-05T16:00:00.000001Z')
        """
        bound = RowtimeBound.inZone(t, strict, tz, self._zone)
        keys = None if key is ALL_KEYS else self._keys("sendRowtimeBound(key=...)")
        value = None if keys is None else keys.key(key)
        at = None if cut is None else to_cut(cut, topicIds)
        if at is not None and keys is not None:
            raise InvalidOptionError("A bound is about one key or follows a cut of topics, not both.", option="cut")
        with self._lock:
            self._start_send()
            if keys is None:
                self._acceptance.accept_bound(bound, at)
            else:
                self._acceptance.accept_bound_of(keys, value, bound)
            self._scheduler.settle()

    def closeKey(self, value: Any) -> None:
        """Lets one value of the column ``inOrderPer`` go: it no longer holds the producer's bound back.

        A value that is not known is no error. If the value sends again, it is known again; then its rows below the
        producer's bound are late. When the last value is let go, the bound stays where it is.

        Args:
            value: The value, as its column holds it; None for NULL.

        Raises:
            InvalidOptionError: The sink was opened without ``inOrderPer``, or its column cannot hold ``value``.
            LateRowError: A row of an earlier call became late before its commit (``onLate="raise"``).
            SinkClosedError: The sink is closed, or was opened in another process.
            ProducerFencedError: Another sink took the producer over.
            RowtimeError: The store failed in an earlier commit, and fails again.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-closekey", "rowtime TIMESTAMP NOT NULL, device STRING")
            >>> with rt.openSink("memory://docs-closekey", inOrderPer="device") as sink:
            ...     sink.sendRows([("2026-01-05T14:30:00Z", "a"), ("2026-01-05T14:10:00Z", "b")])
            ...     sink.closeKey("b")
            ...     sink.getRowtimeBound()
            RowtimeBound('2026-01-05T14:30:00Z')
        """
        keys = self._keys("closeKey")
        value = keys.key(value)
        with self._lock:
            self._start_send()
            self._outbox.change_keys(lambda: keys.close(value))
            self._scheduler.settle()

    def requireInTime(self, rowtime: Any) -> int:
        """Raises LateRowError if a row with this rowtime would be late now. It sends and records nothing.

        It is for rows that go elsewhere, as into a Kafka topic, while their bounds go through this sink.

        Args:
            rowtime: The rowtime, as in ``sendRow``, or in microseconds since the epoch.

        Returns:
            The floor in force: the least rowtime, in microseconds since the epoch, that is not late; 0 if there is no
            bound.

        Raises:
            LateRowError: The row would be late.
            InvalidOptionError: It is no legal rowtime.
            SinkClosedError: The sink is closed, or was opened in another process.
            ProducerFencedError: Another sink took the producer over.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-intime", "rowtime TIMESTAMP NOT NULL")
            >>> with rt.openSink("memory://docs-intime") as sink:
            ...     sink.sendRowtimeBound("1970-01-01T00:00:02Z")
            ...     sink.requireInTime("1970-01-01T00:00:03Z")
            2000000
        """
        micros = check_range(rowtime, rowtime) if is_whole(rowtime) else to_micros(rowtime, self._zone)
        with self._lock:
            self._start_send()
            return self._acceptance.require_in_time(micros)

    def getRowtimeBound(self) -> RowtimeBound | None:
        """Returns the bound below which a row of this producer is late.

        Returns:
            The stronger of the producer's own bound and the stream's, as far as this sink knows the latter; None
            while there is none.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-getbound", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-getbound") as sink:
            ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
            ...     sink.getRowtimeBound()
            RowtimeBound('2026-01-05T14:30:00Z')
        """
        with self._lock:
            return as_bound(self._outbox.floor_after_rows())

    def flush(self, checkpoint: str | None = None) -> str:
        """Commits all that was sent, durably, in one commit.

        Without a checkpoint, what is committed lies after the checkpoint that was stored last: an adapter that resumes
        from that checkpoint sends it again.

        Args:
            checkpoint: A text that is stored in the same commit, such as the feed's offset; None: no checkpoint.

        Returns:
            A token, a small text: ``rt.wait(token, path)`` returns when what this sink has committed so far is in the
            results of another stream.

        Raises:
            LateRowError: A row that was taken became late before its commit (``onLate="raise"``).
            SinkClosedError: The sink is closed, or was opened in another process.
            ProducerFencedError: Another sink took the producer over.
            StoreUnavailableError: The store cannot be reached or written just now; call ``flush`` again.
            InvalidOptionError: ``checkpoint`` is no text.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-flush", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-flush", linger="1 hour") as sink:
            ...     sink.sendRows([("2026-01-05T14:30:00Z", "IBM"), ("2026-01-05T14:31:00Z", "AAPL")])
            ...     token = sink.flush(checkpoint="offset 2")
            ...     rt.describeStream("memory://docs-flush").rows
            2
        """
        return self._flush(None if checkpoint is None else to_text(checkpoint, "checkpoint"))

    def flush_idle(
        self,
        checkpoint: str,
        cut: Mapping[str, Mapping[int, int]] | None = None,
        topicIds: Mapping[str, str] | None = None,
    ) -> None:
        """Does what ``flush`` does; from then on the stream does not wait for this producer, until its next commit.

        It promises nothing by that: its floor, and that of the stream, stay where the bounds are that were sent. With
        ``cut`` it holds the bound of a query as before until its messages in the topics have been read up to there.
        """
        self._flush(checkpoint, idle=True, behind=None if cut is None else to_cut(cut, topicIds))

    def _flush(self, checkpoint: str | None, *, idle: bool = False, behind: TopicCut | None = None) -> str:
        with self._lock:
            self._require_open()
            self._outbox.end_fast_path()
            self._scheduler.lease.require_attached(commits=self._outbox.pending or checkpoint is not None)
            if behind is not None:
                self._acceptance.require_cut(behind)
            earlier = len(self._outbox.late)
            self._scheduler.commit(checkpoint, idle=idle, behind=behind)
            self._late.raise_postponed(earlier)
            return self._outbox.mark().token()

    def _send_row(self, row: Any) -> None:
        """Does all that a call must do first, then takes a row of any form; may start the fast path."""
        self._start_send()
        self._acceptance.accept_row(row)
        self._scheduler.settle()
        if self._scheduler.commits_later:
            self._acceptance.start_fast_path()
            self._scheduler.end_fast_path_soon()

    def _keys(self, call: str) -> InOrderPer:
        if not isinstance(self._disorder, InOrderPer):
            raise InvalidOptionError(
                f"{call} is about one value of a column, but this sink has no such column: open it with inOrderPer."
            )
        return self._disorder

    def _start_send(self) -> None:
        """Begins a call that sends: raises what earlier calls left, and ends the fast path."""
        self._require_open()
        self._scheduler.lease.require_attached()
        self._outbox.end_fast_path()
        self._late.raise_postponed()
        if self._outbox.failing:
            self._scheduler.commit(None)
