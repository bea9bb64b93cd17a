"""Group: commits that threads make at once land in one transaction, with one sync of the disk."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from spark_rowtime.errors import RowtimeError, SinkClosedError
from spark_rowtime.store.commits import Commit, Receipt, Staged
from spark_rowtime.store.limits import Cuts, Limits
from spark_rowtime.store.local.guard import Guard
from spark_rowtime.store.local.storage_errors import is_locked

MOST_COMMITS = 64
"""How many commits a transaction has at most. It keeps other processes from committing meanwhile."""
PATIENCE_SECONDS = 0.1
"""How long a thread waits for the one that leads, before it waits for the store as for any other call."""


@dataclass(eq=False, slots=True)
class Member:
    """A commit of one thread, and what became of it; None: that is not known yet."""

    commit: Commit
    cuts: Cuts
    made: Receipt | Limits | RowtimeError | None = None
    trains: Sequence[Staged] = ()
    """The trains that landed."""
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Locked while its thread waits for another one that leads."""


class Group:
    """The commits of the threads that wait for the store.

    One thread at a time leads: it lands its own commit, and those of all that wait. Then it wakes these, and the first
    one that came later, which leads next. Who has landed does not wait for the store: there it would stand behind the
    next one that leads, and could not prepare its next commit meanwhile.

    Law (*as if alone*; tests/store/test_group.py): each commit gives what it would have given in a transaction of its
    own, in the order in which they came. One that is refused leaves nothing, and no other is refused for it.
    """

    def __init__(self, guard: Guard, land: Callable[[Sequence[Member]], None]) -> None:
        """``land`` runs one transaction for all members. If it raises, none of them has landed."""
        self._guard, self._land = guard, land
        self._waiting = deque[Member]()
        self._leader: int | None = None
        """The thread that leads just now."""

    def commit(self, own: Member) -> Receipt | Limits:
        """Lands the commit, and those of the threads that wait meanwhile, unless one of these has landed it."""
        by_other = False
        try:
            own.turn.acquire()
            self._waiting.append(own)
            if self._leader not in (None, threading.get_ident()):  # it sees this one, as it looks after it has ended
                by_other = own.turn.acquire(timeout=PATIENCE_SECONDS) and own.made is not None
            if not by_other:
                with self._guard:
                    if own.made is None:
                        self._lead(own)
        except SinkClosedError:
            if own.made is None:
                raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(own)
            if not by_other:
                self._wake()
        assert own.made is not None, "it has landed, or raised"
        if isinstance(own.made, RowtimeError):
            raise own.made
        return own.made

    def _wake(self) -> None:
        """Wakes those that have landed, and the first that has not. To wake one that is awake does nothing."""
        for one in self._waiting.copy():
            with suppress(RuntimeError):
                one.turn.release()
            if one.made is None:
                return

    def _lead(self, own: Member) -> None:
        """Lands all of them together. If that fails, each thread tries its own alone, and gets its own error.

        Not if another process has the catalog's lock: it would wait as long again.
        """
        self._leader = threading.get_ident()
        try:
            while own.made is None:
                members = [one for one in self._waiting.copy() if one.made is None][:MOST_COMMITS]
                try:
                    self._land(members)
                except Exception as error:
                    if members == [own] or is_locked(error.__cause__):
                        raise
                    self._land([own])
        finally:
            self._leader = None
