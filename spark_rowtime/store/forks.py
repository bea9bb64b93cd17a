"""What happens when the process forks. A forked child has the memory of its parent, but none of its threads or locks.

Files stay open in both, and what an open file is locked with is theirs together. So each part of the project that
keeps files open is told of a fork: before it, to close what can be opened again, and in the child, to close what is the
parent's. A fork waits for what is just being opened or used, at most ``PATIENCE_SECONDS`` in all.
"""

import ctypes
import fcntl
import logging  # noqa: F401  (what is imported first locks last before a fork; see _await_import_of_pandas)
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

PATIENCE_SECONDS = 5.0


class ClosedBefore(Protocol):
    """Something that is closed during a fork."""

    def close_for_fork(self, deadline: float) -> None:
        """Closes it; if a thread uses it, waits until then, or until the monotonic clock reaches ``deadline``."""

    def open_after_fork(self, deadline: float) -> None:
        """Opens it in the parent if it was closed. What cannot be opened until then opens itself when it is used."""


class ClosedInChild(Protocol):
    """Something with open files, which must not be used in a forked child."""

    def close_inherited(self) -> None:
        """Closes the child's descriptors, and changes nothing that the parent has. Nobody else uses it meanwhile."""


class _Forks:
    """Lets a thread fork only while no other is within a ``no_fork`` block."""

    def __init__(self) -> None:
        self._before: weakref.WeakSet[ClosedBefore] = weakref.WeakSet()
        self._inherited: weakref.WeakSet[ClosedInChild] = weakref.WeakSet()
        self.interrupted: set[str] = set()
        """The blocks that a thread was within when this process was forked."""
        self._renew()
        os.register_at_fork(before=self._prepare, after_in_parent=self._go_on, after_in_child=self._begin_child)

    def _renew(self) -> None:
        self._changed = threading.Condition()
        self._within: dict[int, list[str]] = {}
        """By thread: the blocks that it is within."""
        self._forking: int | None = None
        """The thread that forks."""
        self._deadline = 0.0

    def close_before_forks(self, owner: ClosedBefore) -> None:
        self._before.add(owner)

    def close_in_children(self, owner: ClosedInChild) -> None:
        self._inherited.add(owner)

    @contextmanager
    def no_fork(self, what: str = "") -> Iterator[None]:
        me = threading.get_ident()
        outer = self._within.get(me, [])
        with self._changed:
            if not outer:
                self._changed.wait_for(self._is_free)
            self._within[me] = [*outer, what]
        try:
            yield
        finally:
            with self._changed:
                self._within[me] = outer
                if not outer:
                    del self._within[me]
                    self._changed.notify_all()

    def _is_free(self) -> bool:
        """Whether no other thread forks."""
        return self._forking in (None, threading.get_ident())

    def _prepare(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(self._is_free)
            self._forking, self._deadline = me, time.monotonic() + PATIENCE_SECONDS
            self._changed.wait_for(lambda: self._within.keys() <= {me}, PATIENCE_SECONDS)
        for owner in list(self._before):
            owner.close_for_fork(self._deadline)
        _await_import_of_pandas(self._deadline)

    def _go_on(self) -> None:
        try:
            for owner in list(self._before):
                owner.open_after_fork(self._deadline)
        finally:
            with self._changed:
                self._forking = None
                self._changed.notify_all()

    def _begin_child(self) -> None:
        self.interrupted.update(*self._within.values())
        self._renew()
        for owner in list(self._inherited):
            owner.close_inherited()


def _await_import_of_pandas(deadline: float) -> None:
    """Waits while a thread imports pandas for Arrow, and holds a lock of Arrow, which nobody would free in a child.

    The import may need a lock that another module has taken for this fork already. So the wait has an end.
    """
    if "pandas" in sys.modules:
        waiting = threading.Thread(target=pa.array, args=([0],), name="rowtime-fork", daemon=True)
        waiting.start()
        waiting.join(max(deadline - time.monotonic(), 0))


_FORKS = _Forks()
close_before_forks = _FORKS.close_before_forks
close_in_children = _FORKS.close_in_children
no_fork = _FORKS.no_fork
"""``with no_fork(what):`` lets the process fork only after the block, if that ends in time."""


def was_interrupted(what: str) -> bool:
    """Whether a thread was within ``no_fork(what)`` when this process was forked."""
    return what in _FORKS.interrupted


def keep_for_ever(something: object) -> None:
    """Keeps an object from being freed in this process, a forked child, since that would change what the parent has."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(something))


class Descriptor:
    """A descriptor of an open file, which a forked child closes: a lock on the file is the parent's alone."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        close_in_children(self)

    def take(self) -> str | None:
        """Locks the file, and writes this process's id into it; returns the id of the process that has it instead."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(self.fd, 100, 0).decode(errors="replace") or "(starting)"
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, str(os.getpid()).encode(), 0)
        return None

    def close(self) -> None:
        """Closes it, if it is open. Its lock ends at once, also while a child that was just forked has it open."""
        if self.fd >= 0:
            fcntl.flock(self.fd, fcntl.LOCK_UN)
        self.close_inherited()

    def close_inherited(self) -> None:
        """Closes it, if it is open, and leaves the lock to the process that took it."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


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
