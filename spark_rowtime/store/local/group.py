"""Group: commits that threads make at once land in one transaction, with one sync of the disk."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from spark_rowtime.errors import RowtimeError, SinkClosedError
from spark_rowtime.store.commits import Commit, Receipt, Staged
from spark_rowtime.store.limits import Cuts, Limits
from spark_rowtime.store.local.guard import Guard
from spark_rowtime.store.local.storage_errors import is_locked

MOST_COMMITS = 64
"""How many commits a transaction has at most. It keeps other processes from committing meanwhile."""


@dataclass(eq=False, slots=True)
class Member:
    """A commit of one thread, and what became of it; None: that is not known yet."""

    commit: Commit
    cuts: Cuts
    made: Receipt | Limits | RowtimeError | None = None
    trains: Sequence[Staged] = ()
    """The trains that landed."""


class Group:
    """The commits of the threads that wait for the store.

    Law (*as if alone*; tests/store/test_group.py): each commit gives what it would have given in a transaction of its
    own, in the order in which they came. One that is refused leaves nothing, and no other is refused for it.
    """

    def __init__(self, guard: Guard, land: Callable[[Sequence[Member]], None]) -> None:
        """``land`` runs one transaction for all members. If it raises, none of them has landed."""
        self._guard, self._land = guard, land
        self._waiting = deque[Member]()

    def commit(self, own: Member) -> Receipt | Limits:
        """Lands the commit, and those of the threads that wait meanwhile, unless one of these has landed it."""
        try:
            self._waiting.append(own)
            with self._guard:
                if own.made is None:
                    self._lead(own)
        except SinkClosedError:
            if own.made is None:
                raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(own)
        assert own.made is not None, "it has landed, or raised"
        if isinstance(own.made, RowtimeError):
            raise own.made
        return own.made

    def _lead(self, own: Member) -> None:
        """Lands all of them together. If that fails, each thread tries its own alone, and gets its own error.

        Not if another process has the catalog's lock: it would wait as long again.
        """
        while own.made is None:
            members = [one for one in self._waiting.copy() if one.made is None][:MOST_COMMITS]
            try:
                self._land(members)
            except Exception as error:
                if members == [own] or is_locked(error.__cause__):
                    raise
                self._land([own])
