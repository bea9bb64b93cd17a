"""Timer: does what is due in a sink while no call is made. The sinks of a stream share a thread for each kind of it."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from weakref import WeakMethod, WeakValueDictionary

from spark_rowtime.store.forks import ForkLock

LONGEST_SLEEP_SECONDS = 3600.0
"""The longest sleep of the thread, in seconds; a lease may end later than the system's largest timeout."""
STALE_ENTRIES = 100
"""How many entries of the queue may be stale before they are removed."""
LOG = logging.getLogger("spark_rowtime")
BUSY_SECONDS = 0.05
"""How long the thread waits for a sink that is in a call, and then turns to the others and comes back."""


class Timer:
    """Calls ``run_due`` under ``lock``, and again after as many seconds as it returns (None: when woken).

    The timers of one ``name`` share a thread, which starts with the first ``wake``; it is a daemon. It ends when all
    its timers were stopped, or their sinks garbage collected: it holds no reference to a sink while it sleeps.
    """

    def __init__(self, lock: threading.RLock, run_due: Callable[[], float | None], name: str) -> None:
        """``run_due``: a method of an object of the sink, which is referenced weakly."""
        self._lock, self._run_due = lock, WeakMethod(run_due)
        self.stopped = False
        self._shared = _shared_thread(name)

    @property
    def _thread(self) -> threading.Thread | None:
        return self._shared.thread

    def wake(self) -> None:
        """Wakes the thread, since something may be due sooner than ``run_due`` last returned."""
        self._shared.wake(self)

    def stop(self) -> None:
        """Stops the timer: ``run_due`` is not called again. It waits for no lock, as a collected sink calls it."""
        self.stopped = True
        self._shared.remove(self)

    def run(self) -> float | None:
        """Does what is due; returns the seconds until the next time; None: when woken."""
        run_due = self._run_due()
        if run_due is None or self.stopped:
            return None
        if not self._lock.acquire(timeout=BUSY_SECONDS):
            return BUSY_SECONDS
        try:
            return None if self.stopped else run_due()
        finally:
            self._lock.release()  # the sink may be collected after it, and is then ended in another thread

    @property
    def ended(self) -> bool:
        """Whether the timer was stopped, or its sink collected."""
        return self.stopped or self._run_due() is None


class _SharedThread:
    """The thread of several timers. Any thread may call ``wake`` and ``remove``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.thread: threading.Thread | None = None
        self._starting, self._changed = threading.Lock(), threading.Event()
        self._timers: set[Timer] = set()
        self._woken: deque[Timer] = deque()
        self._due: dict[Timer, float] = {}
        self._queue: list[tuple[float, int, Timer]] = []
        """Times at which timers are due. An entry counts only if ``_due`` has the same time."""
        self._numbers = count()

    def wake(self, timer: Timer) -> None:
        """Runs ``timer`` at once."""
        with self._starting:
            self._timers.add(timer)
            self._woken.append(timer)
            if self.thread is None:
                self._start()
        self._changed.set()

    def remove(self, timer: Timer) -> None:
        """Forgets ``timer``. The thread ends with the last one."""
        self._timers.discard(timer)
        self._changed.set()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._timers.clear()
            self._woken.clear()
            raise
        self.thread = thread

    def _run(self) -> None:
        while not self._ends():
            self._changed.wait(self._sleep())
            self._changed.clear()
            for timer in self._ready():
                self._run_one(timer)

    def _ends(self) -> bool:
        with self._starting:
            if self._timers:
                return False
            self.thread = None
            self._woken.clear()
            self._queue.clear()
            self._due.clear()
            return True

    def _sleep(self) -> float:
        """The seconds until the next timer is due."""
        if self._woken:
            return 0.0
        left = self._queue[0][0] - time.monotonic() if self._queue else LONGEST_SLEEP_SECONDS
        return min(max(left, 0.0), LONGEST_SLEEP_SECONDS)

    def _ready(self) -> Iterator[Timer]:
        """Yields the timers that were woken, and then those that are due."""
        for _ in range(len(self._woken)):
            yield self._woken.popleft()
        now = time.monotonic()
        while self._queue and self._queue[0][0] <= now:
            due, _, timer = heappop(self._queue)
            if self._due.get(timer) == due:
                yield timer

    def _run_one(self, timer: Timer) -> None:
        wait = self._outcome(timer)
        self._due.pop(timer, None)
        if timer.ended:
            self._timers.discard(timer)
        elif wait is not None:
            self._due[timer] = due = time.monotonic() + min(wait, LONGEST_SLEEP_SECONDS)
            heappush(self._queue, (due, next(self._numbers), timer))
            self._drop_stale()

    def _outcome(self, timer: Timer) -> float | None:
        try:
            return timer.run()
        except Exception:
            LOG.exception("%s: the timer of a sink failed; it goes on with the sink's next call", self._name)
            return None

    def _drop_stale(self) -> None:
        if len(self._queue) > 2 * len(self._due) + STALE_ENTRIES:
            self._queue = [entry for entry in self._queue if self._due.get(entry[2]) == entry[0]]
            heapify(self._queue)


_THREADS: "WeakValueDictionary[tuple[str, int], _SharedThread]" = WeakValueDictionary()
"""By name and process: a thread does not exist in a fork."""
_FINDING = ForkLock()


def _shared_thread(name: str) -> _SharedThread:
    with _FINDING:
        shared = _THREADS.get((name, os.getpid()))
        if shared is None:
            shared = _THREADS[name, os.getpid()] = _SharedThread(name)
        return shared
