"""Collector: removes the oldest trains of a local stream, when asked and by its settings."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from spark_rowtime.errors import RowtimeError
from spark_rowtime.store.base import Collected, Staged, Store
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.log import Log
from spark_rowtime.store.local.removal import held_back, last_old, remove_files, remove_trains
from spark_rowtime.store.retention import needs

LOG = logging.getLogger(__name__)
PORTION = 8
"""A stream that keeps so much of it is cleaned after each eighth."""


class Collector:
    """See ``Store.gc``. ``transaction`` is the store's; both calls come outside one."""

    def __init__(
        self, store: Store, catalog: Catalog, log: Log, transaction: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._store, self._catalog, self._log, self._transaction = store, catalog, log, transaction
        self._header = store.schema.serialize().size
        self._cleaned: int | None = None

    def collect(self, age: int | None, size: int | None, force: bool) -> Collected:
        """``gc``: None is what the stream's settings say."""
        settings = self._store.settings
        age = settings.retainAge if age is None else age
        size = settings.retainBytes if size is None else size
        rows, held = self._remove(age, size, force)
        return Collected(rows, *self._sweep(), held)

    def after_commit(self, trains: tuple[Staged, ...]) -> None:
        """Collects where the stream has settings for it and it is time. The commit landed, whatever comes."""
        if not self._due(trains):
            return
        self._cleaned = self._store.now()
        try:
            rows, _ = self._remove(self._store.settings.retainAge, self._store.settings.retainBytes, force=False)
            if rows:
                self._sweep()
        except RowtimeError:
            path = self._store.path
            LOG.warning("Old rows of %s could not be removed; the next commits try again", path, exc_info=True)

    def _due(self, trains: tuple[Staged, ...]) -> bool:
        """By age after each portion of it, and in a process's first commit; by size when a segment is begun."""
        age, size = self._store.settings.retainAge, self._store.settings.retainBytes
        if age is not None and (self._cleaned is None or self._store.now() >= self._cleaned + age // PORTION):
            return True
        return size is not None and any(train.location.offset == self._header for train in trains)

    def _remove(self, age: int | None, size: int | None, force: bool) -> tuple[int, str | None]:
        """Takes trains out of the log: how many rows, and who holds the next one."""
        with self._transaction():
            before, head = self._log.horizon(), self._log.last
            last = last_old(self._catalog, head.seq, None if age is None else self._store.now() - age, size)
            last, held = held_back(self._catalog, last, needs(self._store.readers(), head, force))
            if last > before.seq:
                for table in ("readers", "events"):  # what damage hides might be needed
                    self._catalog.verify(table)
                remove_trains(self._catalog, last)
            return self._log.horizon().rows - before.rows, held

    def _sweep(self) -> tuple[int, int]:
        """Removes the files of trains that are gone, and what crashes left: how many, and their bytes."""
        with self._transaction():
            return remove_files(self._catalog, Path(self._store.path), self._header, self._store.now())
