"""Protects objects that must not be used in a fork of the process that opened them: their lock raises there."""

import os
import weakref
from typing import Any, Protocol

from spark_rowtime.errors import SinkClosedError


class Locked(Protocol):
    """An object whose calls take its lock before they do anything."""

    _lock: Any


class _Forked:
    """Replaces a lock that may be held by a thread that does not exist in the forked child."""

    def acquire(self) -> None:
        raise SinkClosedError("This sink was opened in another process; open one in each process after the fork.")

    __enter__ = acquire

    def _is_owned(self) -> bool:
        return False

    def __exit__(self, *error: object) -> None:
        """Never runs, because ``__enter__`` raises."""


_OWNERS: "weakref.WeakSet[Locked]" = weakref.WeakSet()


def refuse_in_forks(owner: Locked) -> None:
    """Makes each call of ``owner`` that takes its lock raise SinkClosedError in a forked child. Calls cost no more."""
    _OWNERS.add(owner)


def _after_fork() -> None:
    for owner in _OWNERS:
        owner._lock = _Forked()  # noqa: SLF001  (Locked declares it for this)


os.register_at_fork(after_in_child=_after_fork)
