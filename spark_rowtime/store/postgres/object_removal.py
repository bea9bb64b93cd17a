"""Removes objects: those whose rows were removed from the log, and those that no commit has named for a day."""

from collections.abc import Callable
from functools import partial

from spark_rowtime.store.postgres import named_objects
from spark_rowtime.store.postgres.objects import Objects
from spark_rowtime.store.postgres.owner import Ownership
from spark_rowtime.store.postgres.transaction import Transact

PORTION_OBJECTS = 200
"""How many objects one transaction looks at, or forgets, at most."""


class ObjectRemoval:
    """Removes objects of a stream. ``transact`` runs a function in a transaction of the stream.

    The database first notes that an object is to be removed. So no commit names it, and if the process is killed, the
    next call removes it.
    """

    def __init__(self, objects: Objects, owner: Ownership, transact: Transact) -> None:
        self._objects, self._owner, self._transact = objects, owner, transact

    def require_own(self) -> None:
        """Raises StoreUnavailableError unless this database owns the objects."""
        self._owner.renew()

    def outdated(self, ending: Callable[[], bool] = lambda: False) -> int:
        """Removes the objects whose rows were removed, until ``ending``. Returns how many there were."""
        removed = 0
        while not ending() and (names := self._transact(partial(named_objects.outdated, limit=PORTION_OBJECTS))):
            self._owner.renew()
            removed += self._objects.remove(names)
            self._transact(partial(named_objects.forget, names=names))
        return removed

    def abandoned(self) -> tuple[int, int]:
        """Removes the objects that no commit names, once a day has passed since a call has seen that.

        Returns how many there were, and their bytes. Call it after ``require_own``.
        """
        sizes, removed, size = self._objects.sizes(), 0, 0
        names = list(sizes)
        for start in range(0, len(names), PORTION_OBJECTS):
            portion = names[start : start + PORTION_OBJECTS]
            old = self._transact(partial(named_objects.abandon, names=portion))
            removed, size = removed + self._objects.remove(old), size + sum(sizes[name] for name in old)
        self._transact(named_objects.forget_absent)
        return removed, size
