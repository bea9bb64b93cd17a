"""Pulse: the one thread of a sink, for what is due while nobody calls."""

import threading
from collections.abc import Callable

LONGEST = 3600.0
"""Seconds that the thread sleeps at the most; the system knows no time so far ahead as a lease may end."""


class Pulse:
    """Calls ``beat`` under the sink's lock, then sleeps for as many seconds as it says (None: until woken).

    The thread starts with the first ``wake``; it is a daemon, and ends with ``stop``. All calls are
    under the lock.
    """

    def __init__(self, lock: threading.RLock, beat: Callable[[], float | None], name: str) -> None:
        self._condition, self._beat, self._name = threading.Condition(lock), beat, name
        self._thread: threading.Thread | None = None
        self._stopped = False

    def wake(self) -> None:
        """Something may be due sooner than it last said."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        with self._condition:
            self._condition.notify()

    def stop(self) -> None:
        """No further beat."""
        self._stopped = True
        self._condition.notify_all()

    def _run(self) -> None:
        with self._condition:
            while not self._stopped:
                wait = self._beat()
                self._condition.wait(None if wait is None else min(wait, LONGEST))
