"""Pulse: the one thread of a sink, for what is due while nobody calls."""

import threading
from collections.abc import Callable
from weakref import WeakMethod

LONGEST = 3600.0
"""Seconds that the thread sleeps at the most; the system knows no time so far ahead as a lease may end."""


class Pulse:
    """Calls ``beat`` under the sink's lock, then sleeps for as many seconds as it says (None: until woken).

    The thread starts with the first ``wake``; it is a daemon. It ends with ``stop``, or when the sink is
    garbage collected: it holds no reference to the sink while it sleeps.
    """

    def __init__(self, lock: threading.RLock, beat: Callable[[], float | None], name: str) -> None:
        """``beat``: a method of the sink; its object is referenced weakly."""
        self._lock, self._beat, self._name = lock, WeakMethod(beat), name
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def wake(self) -> None:
        """Something may be due sooner than it last said. Called under the lock."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        self._woken.set()

    def stop(self) -> None:
        """No further beat."""
        self._stopped = True
        self._woken.set()

    def _run(self) -> None:
        wait: float | None = 0.0
        while not self._stopped:
            self._woken.wait(None if wait is None else min(wait, LONGEST))
            self._woken.clear()
            beat = self._beat()
            if beat is None:
                return
            with self._lock:
                wait = None if self._stopped else beat()
            del beat  # outside of the lock: the sink may be collected here, and ends in another thread
