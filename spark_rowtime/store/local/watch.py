"""Watch: decides when to check for commits of other processes."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from spark_rowtime.store.forks import close_in_children

if sys.platform == "linux":
    from inotify_simple import INotify, flags

FIRST, POLL, CALM, QUIET = 0.000_05, 0.001, 0.02, 0.5
"""Pauses in seconds: FIRST is the first one after a write to the folder, POLL the first one if the system does not
report writes, CALM the longest one, and QUIET the longest one where the system has reported the last commit."""


class Watch:
    """Paces the checks of one thread that waits for a commit.

    Linux reports when a file of the stream's folder is written (inotify). The write precedes the
    commit, so after it the pauses start at FIRST and double. Some file systems report nothing, so no
    pause is longer than CALM until a write was reported before a commit was found; then up to QUIET, as
    long as each commit that is found was reported. If the system has no free inotify watches, or is
    not Linux, the pauses start at POLL with each wait and double up to CALM. ``sleep`` waits for a
    number of seconds.
    """

    def __init__(self, folder: Path, sleep: Callable[[float], object] = time.sleep) -> None:
        self._folder, self._sleep = folder, sleep
        self._step, self._blind_step = FIRST, POLL
        self._notifier: INotify | None = None
        self._tried = False
        self._reported, self._longest = False, CALM
        self._reading, self._closed = threading.Lock(), False
        close_in_children(self)

    def begin(self) -> None:
        """Starts a new wait. If the system does not report writes, the pauses are short again."""
        self._blind_step = POLL

    def pause(self, most: float) -> None:
        """Waits until a check is worthwhile, at most ``most`` seconds. The first pause is short."""
        if not self._tried and not self._closed:
            self._tried, self._notifier = True, _begin(self._folder)
        step, self._step = min(self._step, most), min(2 * self._step, self._longest)
        if self._notifier is None:
            self._sleep(min(self._blind_step, most))
            self._blind_step = min(2 * self._blind_step, CALM)
        elif step < POLL:
            self._sleep(step)
        elif self._written(self._notifier, step):
            self._reported, self._step = True, FIRST

    def found(self) -> None:
        """Notes that a check has found a commit. Its writes were reported by now, if the system reports writes."""
        if self._notifier is not None:
            self._reported = self._written(self._notifier, 0) or self._reported
            self._longest, self._reported = QUIET if self._reported else CALM, False

    def _written(self, notifier: "INotify", timeout: float) -> bool:
        """Whether the system reports a write within the time. False once the watch is closed."""
        with self._reading:
            written = not self._closed and bool(notifier.read(timeout=round(1000 * timeout)))
        if self._closed:
            self.close()
        return written

    def close(self) -> None:
        """Ends the watch, if it was started. If another thread is just waiting, that one ends it afterwards."""
        self._closed = True
        if self._reading.acquire(blocking=False):
            try:
                self.close_inherited()
            finally:
                self._reading.release()

    def close_inherited(self) -> None:
        """Closes the descriptor. Nobody else uses it."""
        self._closed = True
        if self._notifier is not None:
            self._notifier.close()


def _begin(folder: Path) -> "INotify | None":
    if sys.platform != "linux":
        return None
    try:
        notifier = INotify()
    except OSError:  # the number of inotify instances per user is limited
        return None
    try:
        notifier.add_watch(folder, flags.MODIFY)
    except OSError:
        notifier.close()
        return None
    return notifier
