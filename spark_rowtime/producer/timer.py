"""Timer: the one thread of a sink, which does what is due while no call is made."""

import threading
from collections.abc import Callable
from weakref import WeakMethod

LONGEST_SLEEP_SECONDS = 3600.0
"""The longest sleep of the thread, in seconds; a lease may end later than the system's largest timeout."""


class Timer:
    """Calls ``run_due`` under the sink's lock, then sleeps for as many seconds as it returns (None: until woken).

    The thread starts with the first ``wake``; it is a daemon. It ends with ``stop``, or when the sink is
    garbage collected: it holds no reference to the sink while it sleeps.
    """

    def __init__(self, lock: threading.RLock, run_due: Callable[[], float | None], name: str) -> None:
        """``run_due``: a method of the sink; the sink is referenced weakly."""
        self._lock, self._run_due, self._name = lock, WeakMethod(run_due), name
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def wake(self) -> None:
        """Wakes the thread, since something may be due sooner than ``run_due`` last returned. Called under the lock."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        self._woken.set()

    def stop(self) -> None:
        """Stops the thread: it does not call ``run_due`` again."""
        self._stopped = True
        self._woken.set()

    def _run(self) -> None:
        wait: float | None = 0.0
        while not self._stopped:
            self._woken.wait(None if wait is None else min(wait, LONGEST_SLEEP_SECONDS))
            self._woken.clear()
            run_due = self._run_due()
            if run_due is None:
                return
            with self._lock:
                wait = None if self._stopped else run_due()
            del run_due  # outside of the lock: the sink may be collected here, and is then ended in another thread
