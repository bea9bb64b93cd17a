"""StreamSink: the RowSink that writes into a stream."""

import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import tzinfo
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound, stronger
from spark_rowtime.bounds.disorder import Disorder, InOrderPer
from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import (
    BoundRegressionError,
    InvalidOptionError,
    ProducerFencedError,
    RowtimeError,
    SinkClosedError,
)
from spark_rowtime.producer.fork_guard import refuse_in_forks
from spark_rowtime.producer.intake import Intake, gathered
from spark_rowtime.producer.late_log import LateLog, late_error, late_rows
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.producer.timer import Timer
from spark_rowtime.producer.unclosed import EXIT_PATIENCE_SECONDS, collected, not_closed, watch
from spark_rowtime.store.base import Receipt, Rejected, Store
from spark_rowtime.types.arguments import to_text
from spark_rowtime.types.local_time import LocalTime
from spark_rowtime.types.timestamps import show_micros, wall_clock

LOG = logging.getLogger("spark_rowtime")
COMMIT_RETRY_MICROS = 100_000
"""The least number of microseconds between two attempts of the timer thread to commit."""
LEAST_RENEWAL_MICROS = 1000
"""The least number of microseconds between two renewals of a lease."""
REJOINED = (
    "The lease of producer %r had ended before it was renewed, as where its process stood still: the stream no longer "
    "waited for it. It has joined again and holds the stream's bound; its rows before %s are late now."
)
"""The log message for a producer that joins again after its lease has ended."""
ALL_KEYS: Any = object()
"""The default of ``key``: a bound is about all rows. None stands for the value NULL."""
NEVER_MICROS = 1 << 62
"""Later than any time of the wall clock, in microseconds."""


class StreamSink:
    """The RowSink of a stream; ``openSink`` returns it. It is thread-safe, but not fork-safe.

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
        ...     sink.flush(checkpoint="offset 1")
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
    ) -> None:
        """``linger``, ``lease`` and ``now`` are in microseconds; ``local`` is the zone of naive times, None: UTC."""
        if onLate not in ("raise", "reject"):
            raise InvalidOptionError(f"onLate={onLate!r} is neither 'raise' nor 'reject'.")
        self._store, self._disorder, self._now, self._linger = store, disorder, now, linger
        self._raise_late = onLate == "raise"
        self._intake = Intake(store.schema, rowtime, now, store.settings.maxAhead, local)
        self._zone = None if local is None else local.zone
        info = store.attach(producer, str(uuid.uuid4()), disorder.declaration, lease)
        disorder.restore(info.disorder, store.keys(producer))
        self._known = stronger(info.floor, store.head().floor)
        self._said: int | None = None
        self._late_log = LateLog(producer, info.rejected)
        self._unreported: list[Rejected] = []
        self._outbox = Outbox(store, info, disorder, maxTrainRows, local is None)
        self._take_plain = self._outbox.rows.take
        self._lock: Any = threading.RLock()
        self._closed, self._close_failed = False, False
        self._process = os.getpid()
        self.delivery: Any = None
        """The unfinished part of the train on which a drain into this sink failed; see ``Delivery``."""
        self._lease, self._contact, self._timer_due_at = lease, now(), NEVER_MICROS
        self._fenced: ProducerFencedError | None = None
        self._timer = Timer(self._lock, self._run_due, f"rowtime-{producer}")
        refuse_in_forks(self)
        watch(self)
        if lease is not None:
            self._timer.wake()

    @property
    def producer(self) -> str:
        """The producer's name in the stream."""
        return self._outbox.producer

    @property
    def checkpoint(self) -> str | None:
        """The checkpoint stored last, where a restarted adapter resumes; None if there is none.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-checkpoint", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-checkpoint", producer="nyse") as sink:
            ...     sink.flush(checkpoint="offset 7")
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
                ``sendRow``. A pandas DataFrame is refused; ``pa.Table.from_pandas`` converts it.

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
        if not isinstance(rows, pa.RecordBatch | pa.Table) and type(rows) not in (list, tuple):
            with self._lock:
                self._start_send()
            rows = gathered(rows)
        with self._lock:
            self._start_send()
            timed = self._intake.rows(rows, self._known)
            if timed is not None:
                self._take(timed)
            self._settle()

    def sendRowtimeBound(
        self, t: Any, strict: bool = False, tz: str | tzinfo | None = None, *, key: Any = ALL_KEYS
    ) -> None:
        """Promises that every later row of this producer is at or after ``t``.

        A bound that is not above the bound in force (from joining, a takeover or lateness) changes nothing.

        In a sink with ``inOrderPer``, ``key`` names one value of its column: the bound is about the rows with this
        value alone. The value is known from then on, and holds the producer's bound until its rows or bounds go on.

        Args:
            t: A datetime, an ISO 8601 text, a pandas or pyarrow timestamp, or a RowtimeBound.
            strict: If True, every later row is after ``t``, not at it. Left out with a RowtimeBound.
            tz: The time zone of a time without one, as a name or a tzinfo. None: the sink's ``tz``, or UTC. Left out
                with a RowtimeBound.
            key: The value of the column ``inOrderPer`` whose rows the bound is about. Left out: the bound is about all
                rows.

        Raises:
            BoundRegressionError: The bound is weaker than what this sink has promised, or implied by rows in order.
            InvalidOptionError: ``t`` is no time, or lies beyond the stream's ``maxAhead``.
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
        bound = RowtimeBound.told(t, strict, tz, self._zone)
        keys = None if key is ALL_KEYS else self._keys("sendRowtimeBound(key=...)")
        value = None if keys is None else keys.key(key)
        with self._lock:
            self._start_send()
            self._intake.check_ahead(bound)
            self._check_regression(bound, None if keys is None else keys.said(value))
            if keys is None:
                self._said = bound.floor
                self._disorder.promise(bound.floor)
                self._imply(bound.floor)
            else:
                self._change_keys(lambda: keys.promise_of(value, bound.floor))
            self._settle()

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
            self._change_keys(lambda: keys.close(value))
            self._settle()

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
            self._gather()
            return as_bound(self._known)

    def flush(self, checkpoint: str | None = None) -> None:
        """Commits all that was sent, durably, in one commit.

        Without a checkpoint, what is committed lies after the checkpoint that was stored last: an adapter that resumes
        from that checkpoint sends it again.

        Args:
            checkpoint: A text that is stored in the same commit, such as the feed's offset; None: no checkpoint.

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
            ...     sink.flush(checkpoint="offset 2")
            ...     rt.describeStream("memory://docs-flush").rows
            2
        """
        checkpoint = None if checkpoint is None else to_text(checkpoint, "checkpoint")
        with self._lock:
            self._require_open()
            reported = len(self._unreported)
            self._commit(checkpoint)
            late, self._unreported = self._unreported[:reported], self._unreported[reported:]
            self._report(late)

    def close(self) -> None:
        """Commits what was sent; the producer leaves the stream. Closing a closed sink does nothing.

        Closing declares the feed complete: all that was sent is committed, also what was sent after the last
        checkpoint. A feed that will resume from its checkpoint calls ``flush(checkpoint=...)`` before ``close``.

        If the store fails, the sink stays open, so that ``close`` can be called again, but it no longer renews its
        lease, unless a later call sends or flushes. A fenced sink is closed although it raises.

        Raises:
            LateRowError: A row that was taken became late before its commit (``onLate="raise"``).
            ProducerFencedError: Another sink took the producer over.
            SinkClosedError: An earlier call was interrupted, or the sink was opened in another process.
            StoreUnavailableError: The store cannot be reached or written just now.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-close", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> sink = rt.openSink("memory://docs-close", producer="nyse")
            >>> sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
            >>> sink.close()
            >>> rt.describeStream("memory://docs-close").producers[0].status.value
            'left'
        """
        with self._lock:
            if self._closed:
                return
            if self._outbox.broken:
                self._end()
                raise self._interrupted()
            self._close_failed = True  # until it has succeeded
            try:
                self._commit(None)
                self._outbox.leave()
            except ProducerFencedError:
                self._end()
                raise
            self._end()
            self._report(self._unreported)

    def abandon(self) -> None:
        """Ends the sink, but the producer stays attached: it holds the stream's bound back until it is taken over.

        What was sent is committed, unless a checkpoint was stored: then rows and bounds since the last ``flush`` are
        dropped, and only the rows rejected since then are recorded. Abandoning a closed sink does nothing.

        Raises:
            ProducerFencedError: Another sink took the producer over.
            SinkClosedError: The sink was opened in another process.
            StoreUnavailableError: The store cannot be reached or written just now.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-abandon", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> sink = rt.openSink("memory://docs-abandon", producer="nyse", lease=None)
            >>> sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
            >>> sink.abandon()
            >>> info = rt.describeStream("memory://docs-abandon")
            >>> info.rows, info.holder
            (1, 'nyse')
        """
        with self._lock:
            if self._closed:
                return
            try:
                if self._outbox.checkpoint is not None:
                    self._outbox.drop()
                if not self._outbox.broken:
                    self._commit(None)
            finally:
                self._end()

    def end_unclosed(self) -> str:
        """Abandons a sink that nobody will close any more, and returns the text of a warning; see ``unclosed``."""
        if self._closed or self._process != os.getpid():
            return ""
        if self._fenced is not None and not self._outbox.pending:
            self.abandon()
            return ""
        leased, path, outcome = self._lease is not None, self._store.path, "Another thread is in a call of it."
        if self._lock.acquire(timeout=EXIT_PATIENCE_SECONDS):
            try:
                outcome = self._abandoned()
            finally:
                self._lock.release()
        return not_closed(self.producer, path, leased, outcome)

    def _abandoned(self) -> str:
        """Abandons the sink, and returns what happened to the rows sent since the last commit."""
        rows, checkpoint, failed = self._outbox.count, self._outbox.checkpoint, None
        try:
            self.abandon()
        except Exception as error:  # noqa: BLE001  (no caller could catch it: the warning reports it)
            failed = f"{type(error).__name__}: {error}"
        if self._outbox.broken:
            return "A call of it was interrupted: what was sent since the last flush may be in the stream or not."
        if checkpoint is not None:
            return f"{rows} row(s) sent since checkpoint {checkpoint!r} are dropped: its feed resumes from there."
        if failed is not None:
            return f"{rows} row(s), and bounds, that were sent are lost, as their commit failed: {failed}"
        return "What was sent is committed now."

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self._process == os.getpid():
            collected(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def _send_row(self, row: Any) -> None:
        """The slow path: does all that a call must do first, and takes rows of any form."""
        self._start_send()
        row = self._intake.row(row, self._known)
        self._open()
        plain = self._take_plain(row)
        self._shut()
        if plain:
            self._intake.taken()
        else:
            self._take(self._intake.checked(row))
        self._settle()
        timed = self._outbox.pending and not self._outbox.failing
        if timed or (self._outbox.checkpoint is not None and not self._unreported):
            self._open(again=True)

    def _open(self, *, again: bool = False) -> None:
        """Opens the fast path, which checks only the row itself, for plain rows until the next call of another kind.

        The path stays open only while a call has nothing else to do, because the timer or ``flush`` will commit.
        ``again`` opens it for later calls, too; it stays closed if this sink gives rows their rowtime.
        """
        if self._disorder.one_by_one and not (again and self._intake.gives):
            self._outbox.open(self._intake.ceiling(), self._known)

    def _gather(self) -> None:
        """Records the bound that the rows of the fast path imply."""
        self._imply(self._outbox.rows.last() if self._disorder.implies else self._disorder.weakest())

    def _shut(self) -> None:
        """Closes the fast path, and records the bound that its rows imply."""
        self._gather()
        self._outbox.rows.shut()

    def _require_open(self) -> None:
        if self._closed:
            raise SinkClosedError(
                f"The sink of producer {self.producer!r} is closed. Open it again under its name to go on.",
                producer=self.producer,
            )
        if self._outbox.broken:
            raise self._interrupted()
        if self._fenced is not None:
            raise self._fenced
        if self._close_failed:
            self._close_failed = False
            with suppress(RuntimeError):  # the system has no more threads; the next call tries again
                self._timer.wake()

    def _interrupted(self) -> SinkClosedError:
        return SinkClosedError(
            f"A call of the sink of producer {self.producer!r} was interrupted in its middle. What the last flush "
            "acknowledged is in the stream; what was sent since may be or not, by whole calls. Open it again under "
            "its name, and go on from its checkpoint if it has one.",
            producer=self.producer,
        )

    def _report(self, late: list[Rejected]) -> None:
        """Raises LateRowError, if late rows raise, for rows that became late while they waited for their commit."""
        if late and self._raise_late:
            raise late_error(self.producer, late, "An earlier call's rows became late before their commit")

    def _start_send(self) -> None:
        self._require_open()
        self._shut()
        unreported, self._unreported = self._unreported, []
        self._report(unreported)
        if self._outbox.failing:
            self._commit(None)

    def _take(self, given: Timed) -> None:
        timed, late = self._intake.split_ahead(given)
        if timed is None:
            self._refuse(late, "")
            return
        verdict = self._disorder.judge(timed, self._known)
        fitting: Timed | None = timed
        if verdict.fits is not None:
            late += late_rows(timed.rows, verdict)
            fitting = timed.where(verdict.fits)
        if late:
            self._refuse(late, verdict.why)
        if fitting is not None:
            self._intake.taken()
            with self._outbox.interrupt_guard:
                self._disorder.take(fitting.rows)
                self._outbox.add_batch(fitting)
                self._imply(verdict.floor)
                self._imply(None if self._disorder.implies else self._disorder.weakest())

    def _refuse(self, late: list[Rejected], below: str) -> None:
        """Records rows as rejected; raises LateRowError under onLate="raise". ``below``: what the rows fell below."""
        self._outbox.reject(late)
        self._late_log.note(late)
        if self._raise_late:
            self._settle()
            why = f"A row must not be below {below}. " if below else ""
            raise late_error(self.producer, late, f"{why}Nothing of this call was taken")

    def _imply(self, floor: int | None) -> None:
        if floor is not None:
            if self._disorder.implies:
                self._said = stronger(self._said, floor)
            self._known = stronger(self._known, floor)
            self._outbox.promise(floor)

    def _keys(self, call: str) -> InOrderPer:
        if not isinstance(self._disorder, InOrderPer):
            raise InvalidOptionError(
                f"{call} is about one value of a column, but this sink has no such column: open it with inOrderPer."
            )
        return self._disorder

    def _change_keys(self, change: Callable[[], None]) -> None:
        """Changes the floor of one value, and records the bound that follows."""
        with self._outbox.interrupt_guard:
            change()
            self._outbox.touch()
            self._imply(self._disorder.weakest())

    def _check_regression(self, bound: RowtimeBound, said_of_key: int | None) -> None:
        said = stronger(self._said, said_of_key)
        if said is not None and bound.floor < said:
            raise BoundRegressionError(
                f"The bound '{bound}' is weaker than what this sink has said already (no row before "
                f"{show_micros(said)}). A bound cannot be taken back; send a later one.",
                bound=bound,
                said=said,
            )

    def _settle(self) -> None:
        """Ends a call: commits if a commit is due, or wakes the timer, which commits later."""
        if not self._outbox.pending or self._outbox.checkpoint is not None:
            return
        now = self._now()
        left = self._left(now)
        if self._outbox.full or left <= 0:
            self._commit_unasked()
        if self._outbox.pending and not now < self._timer_due_at <= now + left:
            self._timer_due_at = now + left
            self._wake()

    def _wake(self) -> None:
        try:
            self._timer.wake()
        except RuntimeError:  # the system has no more threads: nothing would commit it later
            self._timer_due_at = NEVER_MICROS
            self._commit_unasked()

    def _left(self, now: int) -> int:
        """Microseconds until a commit is due."""
        passed = now - self._outbox.committed_at
        wait = max(self._linger, COMMIT_RETRY_MICROS) if self._outbox.failing else self._linger
        return wait - passed if passed >= 0 else 0  # a clock that was set back must not delay rows

    def _commit(self, checkpoint: str | None) -> None:
        self._shut()
        if not self._outbox.pending and checkpoint is None:
            return
        receipt = self._outbox.commit(checkpoint, self._now())
        self._contact = self._now()
        self._land(receipt)

    def _land(self, receipt: Receipt) -> None:
        self._known = stronger(self._known, receipt.floor)
        if receipt.rejected:
            self._late_log.note(receipt.rejected)
            self._unreported += receipt.rejected

    def _run_due(self) -> float | None:
        """Does what is due; returns the seconds until something will be due. The timer's thread calls it, locked."""
        if self._outbox.broken or self._close_failed:
            self._timer_due_at = NEVER_MICROS
            return None
        if self._outbox.pending and self._outbox.checkpoint is None and self._left(self._now()) <= 0:
            with suppress(ProducerFencedError):
                self._commit_unasked()
        now, waits = self._now(), []
        if self._outbox.pending and self._outbox.checkpoint is None:
            waits.append(self._left(now))
        if self._lease is not None:
            waits.append(self._renewed())
        wait = max(min(waits), 0) if waits else None
        self._timer_due_at = NEVER_MICROS if wait is None else now + wait
        return None if wait is None else wait / 1e6

    def _renewed(self) -> int:
        """Renews the lease if that is due; returns the microseconds until the next renewal."""
        assert self._lease is not None
        passed, pause = self._now() - self._contact, max(self._lease // 3, LEAST_RENEWAL_MICROS)
        if 0 <= passed < pause:
            return pause - passed
        try:
            if self._outbox.renew():
                self._known = stronger(self._known, self._store.head().floor)
                LOG.warning(REJOINED, self.producer, show_micros(self._known))
        except ProducerFencedError as error:
            self._fenced = error
            self._outbox.rows.shut()
        except RowtimeError:
            LOG.warning("The lease of producer %r could not be renewed", self.producer, exc_info=True)
        self._contact = self._now()
        return pause

    def _commit_unasked(self) -> None:
        try:
            self._commit(None)
        except Exception as error:
            self._outbox.failed(self._now())
            if isinstance(error, ProducerFencedError):
                raise

    def _end(self) -> None:
        self._closed = True
        self._outbox.rows.shut()
        self._timer.stop()
        self._store.close()
