"""EventWait: one source of a query waits for events of all streams that the query reads."""

import threading
from collections.abc import Sequence

from spark_rowtime.errors import RowtimeError
from spark_rowtime.store import open_store

WAIT_SECONDS = 0.5
"""The longest time for which a thread does not see that the query has ended, or waits after an error."""


class EventWait:
    """Waits for events of several streams, with a thread for each.

    Law: an event that is committed after the object was made ends a wait, this one or the next. Whoever was woken
    looks at all streams again.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._found, self._ended = threading.Event(), threading.Event()
        for path in dict.fromkeys(paths):
            threading.Thread(target=self._run, args=(path,), name="rowtime-events", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Returns whether an event has come since the last call that said so, or comes within this time."""
        found = self._found.wait(seconds)
        if found:
            self._found.clear()
        return found

    def close(self) -> None:
        """Ends the threads soon."""
        self._ended.set()

    def _run(self, path: str) -> None:
        """An error ends a wait, too: the stream's own source shows it."""
        while not self._ended.is_set():
            try:
                self._watch(path)
            except RowtimeError:
                self._found.set()
                self._ended.wait(WAIT_SECONDS)

    def _watch(self, path: str) -> None:
        with open_store(path) as store:
            seen = -1
            while not self._ended.is_set():
                if store.wait(seen, WAIT_SECONDS):
                    seen = store.head().seq
                    self._found.set()
