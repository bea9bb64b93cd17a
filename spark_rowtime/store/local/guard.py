"""Guard: each call on an open stream runs in one thread, in the process that opened it, and raises RowtimeErrors."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from spark_rowtime.store.admission import closed, elsewhere, interrupted
from spark_rowtime.store.local.storage_errors import STORAGE_ERRORS, storage_error


class Guard:
    """``with guard:`` admits one thread at a time, in the process that opened the stream. It is reentrant.

    It holds ``lock`` meanwhile, and translates SQLite's errors. It refuses calls in a forked child, which opens the
    stream for itself: two processes must not commit under the same numbers, nor write to the same segment.
    """

    def __init__(self, path: str, lock: threading.RLock) -> None:
        self._path, self._process, self._closed = path, os.getpid(), False
        self._lock, self.inner = lock, lock
        """``inner``: the lock that is taken after this one, where both are. A signal's handler, which comes between any
        two steps, must not take them the other way round: another thread may have this one, and wait for that one."""

    def __enter__(self) -> None:
        if os.getpid() != self._process:
            raise elsewhere(self._path, self._process)
        if self.inner._is_owned() and not self._lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001
            raise interrupted(self._path)
        self._lock.acquire()
        if self._closed:
            self._lock.release()
            raise closed(self._path)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._lock.release()
        if isinstance(error, STORAGE_ERRORS):
            raise storage_error(error, self._path) from error

    @property
    def open_here(self) -> bool:
        """Whether calls are admitted in this process."""
        return not self._closed and os.getpid() == self._process

    def shut(self) -> bool:
        """Refuses all further calls. Returns False if it did so already, or in a forked child."""
        open_here = self.open_here
        self._closed = True
        return open_here

    @contextmanager
    def after_calls(self) -> Iterator[None]:
        """Runs a block alone, once the call of another thread that has begun before ``shut`` has ended."""
        with self._lock:
            yield
