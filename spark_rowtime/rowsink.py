"""RowSink: how an adapter says rows and bounds, and the sink that writes them into a stream."""

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta, tzinfo
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bound import RowtimeBound, as_bound, stronger
from spark_rowtime.disorder import Disorder, Verdict, declared
from spark_rowtime.errors import (
    BoundRegressionError,
    InvalidOptionError,
    LateRowError,
    ProducerFencedError,
    SinkClosedError,
)
from spark_rowtime.intake import Intake
from spark_rowtime.outbox import Outbox
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Receipt, Rejected, Store, show_late
from spark_rowtime.timestamps import show_micros, to_interval

RETRY = 100_000
"""Microseconds between two attempts in the background to commit, at the least."""
LATE_LOG = logging.getLogger("spark_rowtime.laterow")


@runtime_checkable
class RowSink(Protocol):
    """Takes rows and rowtime bounds. Adapters call it; consumers may implement it.

    ``openSink`` gives one that writes into a stream; ``RowReader.drainTo`` calls any. A consumer
    needs only ``sendRows`` and ``sendRowtimeBound``; the others are used where they exist.
    """

    def sendRow(self, row: Mapping[str, Any] | tuple[Any, ...] | list[Any]) -> None:
        """One row: a mapping, or a sequence in schema order. A mapping without rowtime gets now."""

    def sendRows(self, rows: pa.RecordBatch | pa.Table | Iterable[Any]) -> None:
        """Many rows: Arrow, or an iterable of rows; all or nothing."""

    def sendRowtimeBound(self, t: Any, strict: bool = False, tz: str | tzinfo | None = None) -> None:
        """Promises that every later row is at or after ``t`` (strict: after it)."""

    def getRowtimeBound(self) -> RowtimeBound | None:
        """The producer's own bound in force; None while there is none."""

    def flush(self, checkpoint: str | None = None) -> None:
        """Durable and visible; ``checkpoint`` is stored in the same commit."""

    def close(self) -> None:
        """The producer leaves and no longer holds the stream back."""


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
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        """``linger`` and ``now`` in microseconds."""
        if onLate not in ("raise", "reject"):
            raise InvalidOptionError(f"onLate={onLate!r} is neither 'raise' nor 'reject'.")
        self._store, self._disorder, self._now, self._linger = store, disorder, now, linger
        self._raise_late = onLate == "raise"
        self._intake = Intake(store.schema, rowtime, now, store.settings.maxAhead)
        info = store.attach(producer, str(uuid.uuid4()), disorder.declaration)
        disorder.restore(info.disorder)
        self._known = stronger(info.floor, store.head().floor)
        self._said: int | None = None
        self._checkpoint = info.checkpoint
        self._late_seen = info.rejected
        self._unreported: list[Rejected] = []
        self._outbox = Outbox(store, info, maxTrainRows)
        self._lock = threading.RLock()
        self._timer = threading.Condition(self._lock)
        self._pid, self._closed = os.getpid(), False
        self._thread: threading.Thread | None = None

    @property
    def producer(self) -> str:
        """The producer's name in the stream."""
        return self._outbox.producer

    @property
    def checkpoint(self) -> str | None:
        """The last checkpoint stored: where a restarted adapter resumes; None: there is none."""
        return self._checkpoint

    def sendRow(self, row: Mapping[str, Any] | tuple[Any, ...] | list[Any]) -> None:
        """See RowSink. Raises SchemaMismatchError, LateRowError (onLate="raise"), SinkClosedError."""
        self._check_process()
        with self._lock:
            self._start_send()
            values = self._intake.row(row, self._floor())
            verdict = self._disorder.judge_time(values.rowtime, self._floor())
            if verdict is None or verdict.fits is not None or self._intake.ahead(values.rowtime):
                self._take(self._intake.batch([values]))
            else:
                self._outbox.add_row(values)
                self._imply(verdict.floor)
            self._settle()

    def sendRows(self, rows: pa.RecordBatch | pa.Table | Iterable[Any]) -> None:
        """See RowSink. Raises as sendRow does, with the number of the row."""
        self._check_process()
        with self._lock:
            self._start_send()
            batch = self._intake.rows(rows, self._floor())
            if batch.num_rows:
                self._take(batch)
            self._settle()

    def sendRowtimeBound(self, t: Any, strict: bool = False, tz: str | tzinfo | None = None) -> None:
        """See RowSink. ``t``: a datetime, an ISO 8601 string, a pandas or pyarrow timestamp; naive: ``tz``, or UTC.

        Raises BoundRegressionError if this sink has promised, or sent in order, more than that. One
        that is known already (from joining, a takeover, lateness) changes nothing.
        """
        self._check_process()
        bound = RowtimeBound(t, strict, tz)
        with self._lock:
            self._start_send()
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
        self._check_process()
        with self._lock:
            return as_bound(self._floor())

    def flush(self, checkpoint: str | None = None) -> None:
        """See RowSink: all that was sent lands in one commit, with ``checkpoint`` where one is given."""
        self._check_process()
        with self._lock:
            self._start_call()
            self._commit(checkpoint)

    def close(self) -> None:
        """Commits what was sent and leaves. Again: nothing happens.

        Where the store fails it stays open, for another try; where it was fenced it is closed all the same.
        """
        self._check_process()
        with self._lock:
            if self._closed:
                return
            try:
                self._commit(None)
                self._outbox.leave()
            except ProducerFencedError:
                self._end()
                raise
            self._end()

    def abandon(self) -> None:
        """Goes without leaving: the producer still holds the stream back, until it is taken over.

        What was sent is committed, unless a checkpoint was stored: then the last flush stands.
        """
        self._check_process()
        with self._lock:
            if self._closed:
                return
            try:
                if self._checkpoint is None:
                    self._commit(None)
            finally:
                self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def _floor(self) -> int | None:
        return self._known

    def _start_call(self) -> None:
        if self._closed:
            raise SinkClosedError(
                f"The sink of producer {self.producer!r} is closed. Open it again under its name to go on.",
                producer=self.producer,
            )
        if self._unreported:
            late, self._unreported = self._unreported, []
            if self._raise_late:
                raise _late_error(self.producer, late, "An earlier call's rows became late before their commit")

    def _start_send(self) -> None:
        self._start_call()
        if self._outbox.failing:
            self._commit(None)

    def _check_process(self) -> None:
        """Before the lock: a fork may have copied it as held by a thread that is not there."""
        if os.getpid() != self._pid:
            raise SinkClosedError("This sink was opened in another process; open one in each process after the fork.")

    def _take(self, batch: pa.RecordBatch) -> None:
        batch, ahead = self._intake.split_ahead(batch)
        verdict = self._disorder.judge(batch, self._floor()) if batch.num_rows else None
        late: list[Rejected] = ahead
        if verdict is not None and verdict.fits is not None:
            late = [*ahead, *_late_rows(batch, verdict)]
            batch = batch.filter(verdict.fits)
        if late:
            self._reject(late)
            if self._raise_late:
                self._settle()
                why = f"A row must not be below {verdict.why}. " if verdict is not None and verdict.why else ""
                raise _late_error(self.producer, late, f"{why}Nothing of this call was taken")
        if verdict is not None and batch.num_rows:
            self._disorder.take(batch)
            self._outbox.add_batch(batch)
            self._imply(verdict.floor)

    def _imply(self, floor: int | None) -> None:
        if floor is not None:
            if not self._disorder.state():
                self._said = stronger(self._said, floor)
            self._known = stronger(self._known, floor)
            self._outbox.promise(floor)

    def _reject(self, late: list[Rejected]) -> None:
        self._outbox.reject(late)
        self._log(late)

    def _log(self, late: list[Rejected]) -> None:
        for rejected in late:
            before, self._late_seen = self._late_seen, self._late_seen + rejected.rows.num_rows
            if len(str(before)) < len(str(self._late_seen)) or before == 0:
                LATE_LOG.warning("%s (%d so far)", show_late(self.producer, rejected), self._late_seen)
            elif LATE_LOG.isEnabledFor(logging.DEBUG):
                LATE_LOG.debug("%s: %s", show_late(self.producer, rejected), rejected.rows.to_pylist())

    def _settle(self) -> None:
        """After a call: commits if it is time, or sees to it that the timer will."""
        if self._checkpoint is not None or not self._outbox.pending:
            return
        if self._outbox.full or self._left() <= 0:
            self._commit_unasked()
        if self._outbox.pending:
            self._wake_timer()

    def _left(self) -> int:
        """Microseconds until a commit is due."""
        passed = self._now() - self._outbox.committed_at
        wait = max(self._linger, RETRY) if self._outbox.failing else self._linger
        return wait - passed if passed >= 0 else 0  # a clock that was set back must not hold rows up

    def _commit(self, checkpoint: str | None) -> None:
        if not self._outbox.pending and checkpoint is None:
            return
        receipt = self._outbox.commit(self._disorder.state(), checkpoint, self._now())
        self._checkpoint = self._checkpoint if checkpoint is None else checkpoint
        self._land(receipt)

    def _land(self, receipt: Receipt) -> None:
        self._known = stronger(self._known, receipt.floor)
        if receipt.rejected:
            self._log(list(receipt.rejected))
            self._unreported += receipt.rejected

    def _wake_timer(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_timer, name=f"rowtime-{self.producer}", daemon=True)
            self._thread.start()
        self._timer.notify()

    def _run_timer(self) -> None:
        with self._lock:
            while not self._closed:
                if self._outbox.pending and self._checkpoint is None:
                    left = self._left()
                    if left <= 0:
                        with suppress(ProducerFencedError):
                            self._commit_unasked()
                    else:
                        self._timer.wait(left / 1e6)
                else:
                    self._timer.wait()

    def _commit_unasked(self) -> None:
        try:
            self._commit(None)
        except Exception as error:
            self._outbox.failed(self._now())
            if isinstance(error, ProducerFencedError):
                raise

    def _end(self) -> None:
        self._closed = True
        self._timer.notify_all()
        self._store.close()


def openSink(
    path: str,
    *,
    producer: str | None = None,
    rowtime: str | None = None,
    onLate: str = "raise",
    rowsImplyBounds: bool = True,
    lateness: str | timedelta | Mapping[str, str | timedelta] | None = None,
    kSort: int | None = None,
    maxTrainRows: int = 65536,
    linger: str | timedelta = "100 ms",
    durability: str = "process",
) -> StreamSink:
    """Attaches a producer to the stream at ``path`` and gives the sink that it sends with.

    - ``producer``: its name; opened again under it, it takes over from whoever has it, with bound,
      disorder and checkpoint. None: a unique name.
    - ``rowtime``: the column that fills ``rowtime``.
    - ``onLate``: "raise" refuses a call with a late row, "reject" takes the rest of it; late rows are
      recorded in both.
    - ``rowsImplyBounds=False``, ``lateness``, ``kSort``: in which order rows may come; see ``disorder``.
    - ``maxTrainRows``, ``linger``: how rows are grouped. ``durability``: "process" survives the end of
      all processes, "power" also that of the machine.

    Raises StreamNotFoundError, StoreCorruptError, StoreUnavailableError, InvalidOptionError.
    """
    micros = to_interval(linger, "linger")
    if not isinstance(maxTrainRows, int) or maxTrainRows < 1 or micros is None:
        raise InvalidOptionError(f"maxTrainRows={maxTrainRows!r} must be a whole number from 1 on, linger a time.")
    store = open_store(path, durability)
    try:
        disorder = declared(store.schema, rowsImplyBounds=rowsImplyBounds, lateness=lateness, kSort=kSort)
        name = producer if producer is not None else f"producer-{uuid.uuid4().hex[:12]}"
        return StreamSink(
            store, name, disorder, rowtime=rowtime, onLate=onLate, maxTrainRows=maxTrainRows, linger=micros
        )
    except BaseException:
        store.close()
        raise


def _late_rows(batch: pa.RecordBatch, verdict: Verdict) -> list[Rejected]:
    """The late rows of a call in their order, each with the bound in force for it."""
    assert verdict.bounds is not None, "where rows are late, a verdict says what they fell below"
    late = pc.invert(verdict.fits)
    rows, runs = batch.filter(late), pc.run_end_encode(verdict.bounds.filter(late))
    ends = runs.run_ends.to_pylist()
    spans = zip(runs.values.to_pylist(), [0, *ends], ends, strict=False)
    return [Rejected("late", bound, rows.slice(start, end - start)) for bound, start, end in spans]


def _late_error(producer: str, late: list[Rejected], note: str) -> LateRowError:
    said = "; ".join(show_late(producer, rejected) for rejected in late[:3])
    more = f" and {len(late) - 3} groups more" if len(late) > 3 else ""
    return LateRowError(
        f"{said}{more}. {note}. They are recorded as rejected (view=rejected shows them). Send rows in "
        "order, declare lateness, or open the sink with onLate='reject' to go on without them.",
        producer=producer,
        rows=sum(rejected.rows.num_rows for rejected in late),
        bound=late[0].bound,
    )
