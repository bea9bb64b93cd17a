"""What must not be used in a fork of the process that opened it: its lock raises there."""

import os
import weakref
from typing import Any, Protocol

from spark_rowtime.errors import SinkClosedError


class Locked(Protocol):
    """Takes its lock before it does anything."""

    _lock: Any


class _Forked:
    """In the place of a lock that in the child a thread may hold which is not there."""

    def acquire(self) -> None:
        raise SinkClosedError("This sink was opened in another process; open one in each process after the fork.")

    __enter__ = acquire

    def _is_owned(self) -> bool:
        return False

    def __exit__(self, *error: object) -> None:
        """Is never reached."""


_OWNERS: "weakref.WeakSet[Locked]" = weakref.WeakSet()


def refuse_in_forks(owner: Locked) -> None:
    """After a fork each call of ``owner`` that takes its lock raises SinkClosedError; before, it costs nothing."""
    _OWNERS.add(owner)


def _after_fork() -> None:
    for owner in _OWNERS:
        owner._lock = _Forked()  # noqa: SLF001  (what Locked is for)


os.register_at_fork(after_in_child=_after_fork)
