"""Holders: how many sinks and readers of a process share one open store."""

import threading
from collections.abc import Callable


class Holders:
    """Counts the holders of an open store, from one on. Each of them closes it; the last one closes it in fact."""

    def __init__(self) -> None:
        self._lock, self._count = threading.Lock(), 1

    def add(self, fits: Callable[[], bool]) -> bool:
        """Adds a holder, if there is one and the store ``fits`` another. Returns whether it was added."""
        with self._lock:
            added = self._count > 0 and fits()
            self._count += added
            return added

    def remove(self) -> bool:
        """Removes a holder. Returns whether it was the last one."""
        with self._lock:
            self._count -= 1
            return self._count == 0
