"""SinkLifecycle: how a sink ends: it is closed, abandoned, fenced, interrupted, or left unclosed."""

import os
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.bounds.topic_cut import to_cut
from spark_rowtime.errors import ProducerFencedError, SinkClosedError, not_serializable
from spark_rowtime.producer.acceptance import Acceptance
from spark_rowtime.producer.block import BlockEnd
from spark_rowtime.producer.fork_guard import refuse_in_forks
from spark_rowtime.producer.late_log import LateReport
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.producer.scheduler import CommitScheduler
from spark_rowtime.producer.unclosed import EXIT_PATIENCE_SECONDS, collected, not_closed, watch
from spark_rowtime.store.base import Store
from spark_rowtime.types.arguments import to_flag
from spark_rowtime.types.timestamps import END


class SinkLifecycle(BlockEnd):
    """The part of StreamSink that ends it, and that refuses calls of a sink that has ended."""

    def __init__(
        self,
        store: Store,
        outbox: Outbox,
        late: LateReport,
        scheduler: CommitScheduler,
        lock: threading.RLock,
        acceptance: Acceptance,
    ) -> None:
        self._store, self._outbox, self._late, self._scheduler = store, outbox, late, scheduler
        self._lock: Any = lock
        self._acceptance = acceptance
        self._closed = False
        self._process = os.getpid()
        refuse_in_forks(self, "sink", "_lock")
        watch(self)
        scheduler.start()

    @property
    def producer(self) -> str:
        """The producer's name in the stream."""
        return self._outbox.producer

    def __repr__(self) -> str:
        """The stream, the producer, the bound in force and the state; it takes no lock."""
        bound = as_bound(self._outbox.floor_in_force()) or "no bound"
        return f"<{type(self).__name__} of {self._store.path}: producer {self.producer!r}, {bound}, {self._state}>"

    @property
    def _state(self) -> str:
        if self._closed:
            return "closed"
        if self._process != os.getpid():
            return "of another process"
        if self._outbox.broken:
            return "interrupted"
        return "open" if self._scheduler.lease.fenced is None else "taken over by another sink"

    def __reduce__(self) -> NoReturn:
        raise not_serializable("sink", self._store.path)

    def close(
        self,
        *,
        complete: bool = False,
        cut: Mapping[str, Mapping[int, int]] | None = None,
        topicIds: Mapping[str, str] | None = None,
    ) -> None:
        """Commits what was sent; the producer leaves the stream. Closing a closed sink does nothing.

        With ``complete``, the producer declares in the same commit that it will never send again. When the last
        producer that the stream waits for is complete, no row follows: the stream's bound is ``RowtimeBound.END``, and
        every window of a query closes. A producer that is complete cannot be opened again.

        Closing declares the feed complete: all that was sent is committed, also what was sent after the last
        checkpoint. A feed that will resume from its checkpoint calls ``flush(checkpoint=...)`` before ``close``.

        With ``cut``, the producer leaves where its last messages in the topics have been read: until then it holds the
        bound of a query as before. Without it, a producer that has sent cuts leaves at the last of them.

        If the store fails, the sink stays open, so that ``close`` can be called again, but it no longer renews its
        lease, unless a later call sends or flushes. A fenced sink is closed although it raises.

        Args:
            complete: If True, the producer will never send again.
            cut: For each topic and partition, the offset after the last message of this producer, as for
                ``sendRowtimeBound``.
            topicIds: The ids of the topics, as for ``sendRowtimeBound``.

        Raises:
            LateRowError: A row that was taken became late before its commit (``onLate="raise"``).
            CutRegressionError: The cut lies below an earlier cut of this producer.
            InvalidOptionError: ``cut`` is no cut, or this stream or sink takes none.
            ProducerFencedError: Another sink took the producer over, or somebody closed it.
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
            >>> rt.openSink("memory://docs-close", producer="xetra").close(complete=True)
            >>> rt.describeStream("memory://docs-close").bound
            RowtimeBound.END
        """
        to_flag(complete, "complete")
        at = None if cut is None else to_cut(cut, topicIds)
        with self._lock:
            if self._closed:
                return
            if self._outbox.broken:
                self._end()
                raise self._interrupted()
            if at is not None:
                self._acceptance.require_cut(at)
            self._scheduler.pause()
            if complete:
                self._outbox.end_fast_path()
                self._outbox.promise(END, at)
            try:
                self._scheduler.commit(None)
                self._outbox.leave(at)
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
        lease, path, outcome = self._scheduler.lease, self._store.path, "Another thread is still in a call of the sink."
        released = lease.fenced is not None or self._outbox.holds_nobody()
        if released and not self._outbox.pending:
            self.abandon()
            return ""
        if self._lock.acquire(timeout=EXIT_PATIENCE_SECONDS):
            try:
                outcome = self._abandoned()
            finally:
                self._lock.release()
        return not_closed(self.producer, path, None if released else lease.micros is not None, outcome)

    def _abandoned(self) -> str:
        """Abandons the sink, and returns what happened to the rows sent since the last commit."""
        rows, checkpoint, failed = self._outbox.count, self._outbox.checkpoint, None
        try:
            self.abandon()
        except Exception as error:  # noqa: BLE001  (no caller could catch it: the warning reports it)
            failed = f"{type(error).__name__}: {error}"
        if self._outbox.broken:
            return (
                "A call of the sink was interrupted: what was sent since the last flush may or may not be in the "
                "stream."
            )
        if checkpoint is not None:
            return f"{rows} row(s) sent since checkpoint {checkpoint!r} are dropped: its feed resumes from there."
        if failed is not None:
            return f"{rows} row(s), and bounds, that were sent are lost, because their commit failed: {failed}"
        return "What was sent is committed now."

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self._process == os.getpid():
            collected(self)

    def _require_open(self) -> None:
        if self._closed:
            raise SinkClosedError(
                f"The sink of producer {self.producer!r} is closed. Open it again under its name to continue.",
                producer=self.producer,
            )
        if self._outbox.broken:
            raise self._interrupted()
        if self._scheduler.lease.fenced is not None:
            raise self._scheduler.lease.fenced
        self._scheduler.resume()

    def _interrupted(self) -> SinkClosedError:
        return SinkClosedError(
            f"A call of the sink of producer {self.producer!r} was interrupted. What the last flush acknowledged is in "
            "the stream; each later call is in it as a whole or not at all. Open the sink again under its name, and "
            "continue from its checkpoint if it has one.",
            producer=self.producer,
        )

    def _end(self) -> None:
        self._closed = True
        self._outbox.end_fast_path()
        self._scheduler.stop()
        self._store.close()
