"""CommitScheduler: decides when a sink commits what it has taken, and when it renews its lease."""

import threading
from collections.abc import Callable
from contextlib import suppress

from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.errors import ProducerFencedError
from spark_rowtime.producer.late_log import LateReport
from spark_rowtime.producer.lease import Lease
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.producer.timer import Timer
from spark_rowtime.types.timestamps import SECOND_MICROS

COMMIT_RETRY_MICROS = 100_000
"""The least number of microseconds between two attempts of the timer thread to commit."""
FAST_PATH_MICROS = 100_000
"""The longest time for which the fast path takes rows without a look at the store."""
NEVER_MICROS = 1 << 62
"""Later than any time of the clock, in microseconds."""


class CommitScheduler:
    """Commits within a call if a commit is due there, and otherwise on the timer's thread.

    A commit is due ``linger`` microseconds after the last one, or when the rows fill a train. Once a checkpoint has
    been stored, none is due any more: only ``flush`` and ``close`` commit. ``now`` is a clock that nobody can set. All
    methods are called under ``lock``, the sink's. The scheduler holds no reference to the sink, so that the timer's
    thread does not keep a sink that nobody holds from being collected.
    """

    def __init__(
        self,
        outbox: Outbox,
        lease: Lease,
        late: LateReport,
        *,
        linger: int,
        now: Callable[[], int],
        lock: threading.RLock,
    ) -> None:
        self._outbox, self._late, self._linger, self._now = outbox, late, linger, now
        self.lease = lease
        self._timer_due_at, self._paused = NEVER_MICROS, False
        self._fast_path_until = NEVER_MICROS
        self.timer = Timer(lock, self.run_due, f"rowtime-{outbox.path}")

    def start(self) -> None:
        """Starts the renewals of the lease, if there is one."""
        self.lease.lives = True
        if self.lease.micros is not None:
            for timer in self._timers:
                timer.wake()

    def pause(self) -> None:
        """Stops commits and renewals by the timer's thread until ``resume``."""
        self._paused, self.lease.lives = True, False

    def resume(self) -> None:
        """Goes on after ``pause``; otherwise it does nothing."""
        if self._paused:
            self._paused, self.lease.lives = False, True
            for timer in self._timers:
                with suppress(RuntimeError):  # the system has no more threads; the next call tries again
                    timer.wake()

    def stop(self) -> None:
        """Ends commits and renewals by the timer's thread."""
        self.lease.lives = False
        for timer in self._timers:
            timer.stop()

    @property
    def commits_later(self) -> bool:
        """Whether the timer's thread or ``flush`` will commit what is taken next, so that no call has to."""
        timed = self._outbox.pending and not self._outbox.failing
        return timed or (self._outbox.checkpoint is not None and not self._outbox.late)

    def commit(self, checkpoint: str | None, *, idle: bool = False, behind: TopicCut | None = None) -> None:
        """Commits what was taken, if anything, and the checkpoint, if there is one.

        ``idle`` and ``behind``: see Outbox.commit.
        """
        self._outbox.end_fast_path()
        if not self._outbox.pending and checkpoint is None:
            return
        known = len(self._outbox.late)
        try:
            self._outbox.commit(checkpoint, self._now(), idle=idle, behind=behind)
        finally:
            self._late.note(self._outbox.late[known:])
        self.lease.renewed()

    def commit_unasked(self) -> None:
        """Commits outside of ``flush`` and ``close``: if that fails, a later call raises the error.

        Only ProducerFencedError is raised at once, since no later attempt can succeed.
        """
        try:
            self.commit(None)
        except Exception as error:
            self._outbox.failed(self._now())
            if isinstance(error, ProducerFencedError):
                raise

    def settle(self) -> None:
        """Ends a call: commits if a commit is due, or wakes the timer, which commits later."""
        if not self._waits:
            return
        now = self._now()
        left = self._left(now)
        if self._outbox.full or left <= 0:
            self.commit_unasked()
            if not self._outbox.pending:
                return
        if not now < self._timer_due_at <= now + left:
            self._timer_due_at = now + left
            self._wake()

    def end_fast_path_soon(self) -> None:
        """Has the timer's thread end the fast path, so that a later call looks whether the stream still waits."""
        now = self._now()
        self._fast_path_until = now + FAST_PATH_MICROS
        if now < self._timer_due_at <= self._fast_path_until:
            return
        self._timer_due_at = self._fast_path_until
        try:
            self.timer.wake()
        except RuntimeError:  # the system has no more threads
            self._outbox.end_fast_path()

    def run_due(self) -> float | None:
        """Does what is due; returns the seconds until something will be due. The timer's thread calls it, locked."""
        if self._outbox.broken or self._paused:
            self._timer_due_at = NEVER_MICROS
            return None
        if self._waits and self._left(self._now()) <= 0:
            with suppress(ProducerFencedError):
                self.commit_unasked()
        now = self._now()
        if now >= self._fast_path_until:
            self._outbox.end_fast_path()
            self._fast_path_until = NEVER_MICROS
        waits = [self._left(now)] if self._waits else []
        waits += [self._fast_path_until - now] if self._fast_path_until < NEVER_MICROS else []
        renewal = self.lease.renew_if_due()
        waits += [] if renewal is None else [renewal]
        wait = max(min(waits), 0) if waits else None
        self._timer_due_at = NEVER_MICROS if wait is None else now + wait
        return None if wait is None else wait / SECOND_MICROS

    @property
    def _waits(self) -> bool:
        """Whether something waits for a commit that the scheduler makes."""
        return self._outbox.pending and self._outbox.checkpoint is None

    @property
    def _timers(self) -> list[Timer]:
        return [self.timer] if self.lease.micros is None else [self.timer, self.lease.watch]

    def _wake(self) -> None:
        try:
            self.timer.wake()
        except RuntimeError:  # the system has no more threads: nothing would commit it later
            self._timer_due_at = NEVER_MICROS
            self.commit_unasked()

    def _left(self, now: int) -> int:
        """Microseconds until a commit is due."""
        wait = max(self._linger, COMMIT_RETRY_MICROS) if self._outbox.failing else self._linger
        return self._outbox.committed_at + wait - now
