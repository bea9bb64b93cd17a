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
from spark_rowtime.bounds.disorder import Disorder
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
"""Microseconds between two attempts in the background to commit, at the least."""
LEAST_RENEWAL_MICROS = 1000
"""Microseconds between two renewals of a lease, at the least."""
REJOINED = (
    "The lease of producer %r had ended before it was renewed, as where its process stood still: the stream no longer "
    "waited for it. It has joined again and holds the stream's bound; its rows before %s are late now."
)
"""A warning for the log."""
NEVER_MICROS = 1 << 62
"""Later than any time of the wall clock, in microseconds."""


class StreamSink:
    """The RowSink of a stream; see ``openSink``. Thread-safe, not fork-safe.

    Laws: a call that raises has taken nothing (its late rows are recorded, and count); what was
    taken becomes visible in the order of the calls; received = accepted + rejected. So a store that
    fails while it commits what a call has sent is reported by the next call, and what was taken is
    kept; only ``flush`` and ``close``, which take nothing, raise it themselves.

    Visibility: after a quiet ``linger`` the next row or bound is committed at once; under load a
    timer thread commits each linger. Once a checkpoint has been stored only ``flush`` commits.
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
        """``linger``, ``lease`` and ``now`` in microseconds; ``local``: what times without a zone mean, None: UTC."""
        if onLate not in ("raise", "reject"):
            raise InvalidOptionError(f"onLate={onLate!r} is neither 'raise' nor 'reject'.")
        self._store, self._disorder, self._now, self._linger = store, disorder, now, linger
        self._raise_late = onLate == "raise"
        self._intake = Intake(store.schema, rowtime, now, store.settings.maxAhead, local)
        self._zone = None if local is None else local.zone
        info = store.attach(producer, str(uuid.uuid4()), disorder.declaration, lease)
        disorder.restore(info.disorder)
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
        """What is left of the train on which a drain into this sink failed; see ``Delivery``."""
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
        """The last checkpoint stored: where a restarted adapter resumes; None: there is none."""
        return self._outbox.checkpoint

    def sendRow(self, row: Mapping[str, Any] | tuple[Any, ...] | list[Any]) -> None:
        """See RowSink. Raises SchemaMismatchError, LateRowError (onLate="raise"), SinkClosedError."""
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
        """See RowSink. Raises as sendRow does, with the number of the row.

        An iterable is read to its end first: until then nothing of it is taken, and other calls, commits and the
        renewal of the lease go on.
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

    def sendRowtimeBound(self, t: Any, strict: bool = False, tz: str | tzinfo | None = None) -> None:
        """See RowSink. ``t``: a datetime, an ISO 8601 string, a pandas or pyarrow timestamp, or a RowtimeBound.

        A naive time is in ``tz``, or in the sink's zone, or in UTC; a RowtimeBound comes without ``strict`` and ``tz``.
        Raises BoundRegressionError if this sink has promised, or sent in order, more than that, and
        InvalidOptionError beyond the stream's ``maxAhead``. One
        that is known already (from joining, a takeover, lateness) changes nothing.
        """
        bound = RowtimeBound.told(t, strict, tz, self._zone)
        with self._lock:
            self._start_send()
            self._intake.check_ahead(bound)
            if self._said is not None and bound.floor < self._said:
                raise BoundRegressionError(
                    f"The bound '{bound}' is weaker than what this sink has said already (no row before "
                    f"{show_micros(self._said)}). A bound cannot be taken back; send a later one.",
                    bound=bound,
                    said=self._said,
                )
            self._said = bound.floor
            self._known = stronger(self._known, bound.floor)
            self._outbox.promise(bound.floor)
            self._settle()

    def getRowtimeBound(self) -> RowtimeBound | None:
        """The stronger of the producer's own bound and the stream's, as this sink knows it."""
        with self._lock:
            self._gather()
            return as_bound(self._known)

    def flush(self, checkpoint: str | None = None) -> None:
        """See RowSink: all that was sent lands in one commit, with ``checkpoint`` where one is given.

        Without one, what lands lies after the checkpoint that was stored last: an adapter that goes on
        from that sends it again.
        """
        checkpoint = None if checkpoint is None else to_text(checkpoint, "checkpoint")
        with self._lock:
            self._require_open()
            told = len(self._unreported)
            self._commit(checkpoint)
            late, self._unreported = self._unreported[:told], self._unreported[told:]
            self._report(late)

    def close(self) -> None:
        """Commits what was sent and leaves; raises what no later call could report. Again: nothing happens.

        It says that the feed is complete, so all that was sent lands, also after the last checkpoint. A feed
        that is to go on later from its checkpoint ends with ``flush(checkpoint=...)`` before it.

        Where the store fails it stays open, for another try, but no longer renews its lease, unless a later call
        sends or flushes. Where it was fenced it is closed all the same.
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
        """Goes without leaving: the producer still holds the stream back, until it is taken over.

        What was sent is committed, unless a checkpoint was stored: then the last flush stands, and
        only what was rejected since is recorded.
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
        """Abandons a sink that nobody will close any more; see ``unclosed``. What to warn of."""
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
        """Abandons it; what became of what was sent since the last commit."""
        rows, checkpoint, failed = self._outbox.count, self._outbox.checkpoint, None
        try:
            self.abandon()
        except Exception as error:  # noqa: BLE001  (nobody is there to catch it: the warning says it)
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
        """The long way: sees to all that is to be done first, and takes rows of any form."""
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
        """Lets plain rows in the short way, which looks at nothing but the row, until the next call of another kind.

        Left open only where no call has anything else to do: the timer will commit, or ``flush``. ``again``: for
        further rows, too, which have a rowtime then.
        """
        if self._disorder.by_floor and not (again and self._intake.gives):
            self._outbox.open(self._intake.ceiling(), self._known)

    def _gather(self) -> None:
        """What the rows that came the short way imply."""
        if self._disorder.implies:
            self._imply(self._outbox.rows.last())

    def _shut(self) -> None:
        """Ends the short way; what came by it counts."""
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
            with suppress(RuntimeError):  # no more threads: the next call may have one
                self._timer.wake()

    def _interrupted(self) -> SinkClosedError:
        return SinkClosedError(
            f"A call of the sink of producer {self.producer!r} was interrupted in its middle. What the last flush "
            "acknowledged is in the stream; what was sent since may be or not, by whole calls. Open it again under "
            "its name, and go on from its checkpoint if it has one.",
            producer=self.producer,
        )

    def _report(self, late: list[Rejected]) -> None:
        """What only a commit could see: the stream went ahead meanwhile. Raised where late rows are."""
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

    def _refuse(self, late: list[Rejected], below: str) -> None:
        """Records rows as rejected; raises where this sink is to. ``below``: what it is that they fell below."""
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

    def _settle(self) -> None:
        """After a call: commits if it is time, or sees to it that the timer will."""
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
        except RuntimeError:  # the system has no more threads: nobody would commit it later
            self._timer_due_at = NEVER_MICROS
            self._commit_unasked()

    def _left(self, now: int) -> int:
        """Microseconds until a commit is due."""
        passed = now - self._outbox.committed_at
        wait = max(self._linger, COMMIT_RETRY_MICROS) if self._outbox.failing else self._linger
        return wait - passed if passed >= 0 else 0  # a clock that was set back must not hold rows up

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
        """In the pulse's thread, under the lock: does what is due; seconds until something will be."""
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
        """Keeps the lease; microseconds until it must be done again."""
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
