"""SinkLifecycle: how a sink ends: it is closed, abandoned, fenced, interrupted, or left unclosed."""

import os
import threading
from types import TracebackType
from typing import Any, Self

from spark_rowtime.errors import ProducerFencedError, SinkClosedError
from spark_rowtime.producer.fork_guard import refuse_in_forks
from spark_rowtime.producer.late_log import LateReport
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.producer.scheduler import CommitScheduler
from spark_rowtime.producer.unclosed import EXIT_PATIENCE_SECONDS, collected, not_closed, watch
from spark_rowtime.store.base import Store


class SinkLifecycle:
    """The part of StreamSink that ends it, and that refuses calls of a sink that has ended."""

    def __init__(
        self, store: Store, outbox: Outbox, late: LateReport, scheduler: CommitScheduler, lock: threading.RLock
    ) -> None:
        self._store, self._outbox, self._late, self._scheduler = store, outbox, late, scheduler
        self._lock: Any = lock
        self._closed = False
        self._process = os.getpid()
        refuse_in_forks(self)
        watch(self)
        scheduler.start()

    @property
    def producer(self) -> str:
        """The producer's name in the stream."""
        return self._outbox.producer

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
            self._scheduler.pause()
            try:
                self._scheduler.commit(None)
                self._outbox.leave()
            except ProducerFencedError:
                self._end()
                raise
            self._end()
            self._late.raise_postponed()

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
                    self._scheduler.commit(None)
            finally:
                self._end()

    def end_unclosed(self) -> str:
        """Abandons a sink that nobody will close any more, and returns the text of a warning; see ``unclosed``."""
        if self._closed or self._process != os.getpid():
            return ""
        lease, path, outcome = self._scheduler.lease, self._store.path, "Another thread is in a call of it."
        if lease.fenced is not None and not self._outbox.pending:
            self.abandon()
            return ""
        if self._lock.acquire(timeout=EXIT_PATIENCE_SECONDS):
            try:
                outcome = self._abandoned()
            finally:
                self._lock.release()
        return not_closed(self.producer, path, lease.micros is not None, outcome)

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

    def _require_open(self) -> None:
        if self._closed:
            raise SinkClosedError(
                f"The sink of producer {self.producer!r} is closed. Open it again under its name to go on.",
                producer=self.producer,
            )
        if self._outbox.broken:
            raise self._interrupted()
        if self._scheduler.lease.fenced is not None:
            raise self._scheduler.lease.fenced
        self._scheduler.resume()

    def _interrupted(self) -> SinkClosedError:
        return SinkClosedError(
            f"A call of the sink of producer {self.producer!r} was interrupted in its middle. What the last flush "
            "acknowledged is in the stream; what was sent since may be or not, by whole calls. Open it again under "
            "its name, and go on from its checkpoint if it has one.",
            producer=self.producer,
        )

    def _end(self) -> None:
        self._closed = True
        self._outbox.end_fast_path()
        self._scheduler.stop()
        self._store.close()
