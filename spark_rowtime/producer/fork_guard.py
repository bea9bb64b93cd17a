"""Protects objects that must not be used in a fork of the process that opened them: their locks raise there."""

import os
import weakref
from typing import Any

from spark_rowtime.errors import SinkClosedError


class _Forked:
    """Replaces a lock that may be held by a thread that does not exist in the forked child."""

    def __init__(self, what: str, process: int) -> None:
        self._what, self._process = what, process

    def acquire(self, *_: object, **__: object) -> bool:
        raise SinkClosedError(
            f"This {self._what} was opened in process {self._process}, from which process {os.getpid()} was forked. "
            "It goes on there. Open another one here: a sink under a producer name of its own."
        )

    __enter__ = acquire

    def _is_owned(self) -> bool:
        return False

    def __exit__(self, *error: object) -> None:
        """Never runs, because ``__enter__`` raises."""


_OWNERS: "weakref.WeakKeyDictionary[Any, tuple[str, int, tuple[str, ...]]]" = weakref.WeakKeyDictionary()


def refuse_in_forks(owner: object, what: str, *locks: str) -> None:
    """Makes each call of ``owner`` that takes one of its ``locks`` raise SinkClosedError in a forked child.

    ``what`` it is, for the error. ``locks`` are names of attributes. Calls cost no more.
    """
    _OWNERS[owner] = what, os.getpid(), locks


def _after_fork() -> None:
    for owner, (what, process, locks) in list(_OWNERS.items()):
        for lock in locks:
            setattr(owner, lock, _Forked(what, process))


os.register_at_fork(after_in_child=_after_fork)
