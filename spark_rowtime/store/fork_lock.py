"""ForkLock: a lock that is free in a forked child."""

import os
import threading


class ForkLock:
    """A lock of a module. It is free in a forked child, where a thread of the parent that held it does not exist.

    It is never garbage collected.
    """

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.Lock()
