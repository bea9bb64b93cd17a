"""Background: work that a commit leaves behind, in a thread of its own, so that no sink waits for it."""

import threading
from collections.abc import Callable


class Background:
    """At most one piece of work at a time. ``ending`` tells it to stop early."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self.ending = threading.Event()

    @property
    def busy(self) -> bool:
        """Whether the work goes on. The child of a fork has no threads of its parent."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[], None]) -> None:
        """Begins the work, unless some goes on already or is just begun, or the end was asked for.

        Raises RuntimeError if the system has no thread for it.
        """
        if not self._starting.acquire(blocking=False):  # a signal's handler would wait for what it has interrupted
            return
        try:
            if not self.busy and not self.ending.is_set():
                thread = threading.Thread(target=work, name=self._name, daemon=True)
                thread.start()
                self._thread = thread
        finally:
            self._starting.release()

    def end(self, seconds: float) -> None:
        """Waits until the work is done; no longer than ``seconds``, then it is asked to stop. None begins after it."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds)
        self.ending.set()
