"""Watch: when to look for news from other processes."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

if sys.platform == "linux":
    from inotify_simple import INotify, flags

FIRST, POLL, CALM = 0.000_05, 0.001, 0.02
"""Seconds: between the first two looks after the folder was written to; between the first two where the system
tells nothing of that; between two looks at the most."""


class Watch:
    """Paces the looks of one thread that waits for a commit.

    Linux tells when a file of the stream's folder was written to (inotify). That is not yet the
    commit, so after it the pauses begin at FIRST and double; and it may be missed, on some file
    systems always, so they end at CALM. Where the system has no more such watches, or is another,
    they begin at POLL with each wait and double to CALM. ``sleep`` waits for so many seconds.
    """

    def __init__(self, folder: Path, sleep: Callable[[float], object] = time.sleep) -> None:
        self._folder, self._sleep = folder, sleep
        self._step, self._blind_step = FIRST, POLL
        self._told: INotify | None = None
        self._tried = False

    def begin(self) -> None:
        """Somebody begins to wait: where the system tells nothing, the pauses are short again."""
        self._blind_step = POLL

    def pause(self, most: float) -> None:
        """Returns when a look is worth it, after ``most`` seconds at the latest. The first pause is short."""
        if not self._tried:
            self._tried, self._told = True, _begin(self._folder)
        step, self._step = min(self._step, most), min(2 * self._step, CALM)
        if self._told is None:
            self._sleep(min(self._blind_step, most))
            self._blind_step = min(2 * self._blind_step, CALM)
        elif step < POLL:
            self._sleep(step)
        elif self._told.read(timeout=round(1000 * step)):
            self._step = FIRST

    def close(self) -> None:
        """Ends the watch, if it has begun."""
        if self._told is not None:
            self._told.close()


def _begin(folder: Path) -> "INotify | None":
    if sys.platform != "linux":
        return None
    try:
        told = INotify()
    except OSError:  # a user may have only so many
        return None
    try:
        told.add_watch(folder, flags.MODIFY)
    except OSError:
        told.close()
        return None
    return told
