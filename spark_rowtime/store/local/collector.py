"""Collector: removes the oldest trains of a local stream, on request and according to its settings."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from spark_rowtime.errors import RowtimeError
from spark_rowtime.store import cut_folding, retention
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Staged
from spark_rowtime.store.cut_folding import fold_due, passed, reached_by_all
from spark_rowtime.store.local import cuts, producers, readers
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.guard import Guard
from spark_rowtime.store.local.log import Log, ends
from spark_rowtime.store.local.removal import (
    Limits,
    Look,
    cleaned,
    last_before,
    last_bound,
    least_needed,
    look,
    needed,
    newest,
    remove_events,
    set_cleaned,
)
from spark_rowtime.store.local.segment import FULL_SEGMENT_BYTES
from spark_rowtime.store.local.sweep import PORTION_FILES, NamedSegments, forgotten, remove_files
from spark_rowtime.store.position import Position
from spark_rowtime.store.retention import needs
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import FORGET_MICROS, Collected

LOG = logging.getLogger(__name__)
END = 1 << 60
"""Greater than every seq."""


def full_segment(settings: StreamSettings) -> int:
    """Returns the size in bytes at which a segment is full."""
    if settings.retainBytes is None:
        return FULL_SEGMENT_BYTES
    return min(FULL_SEGMENT_BYTES, settings.retainBytes // retention.LIMIT_PARTS)


class Collector:
    """See ``Store.gc``. ``transaction`` and ``uptime`` are the store's. Call the methods outside of a transaction."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        log: Log,
        guard: Guard,
        transaction: Callable[[], AbstractContextManager[None]],
        uptime: Callable[[], int],
    ) -> None:
        self._store, self._catalog, self._log, self._guard = store, catalog, log, guard
        self._transaction, self._uptime = transaction, uptime
        self._header = store.schema.serialize().size
        self._named = NamedSegments(catalog)
        self._cleaned: int | None = None
        self._unfinished = False

    def collect(self, age: int | None, size: int | None, force: bool) -> Collected:
        """Runs ``gc``. An argument that is None takes its value from the stream's settings."""
        settings = self._store.settings
        limits = self._limits(
            settings.retainAge if age is None else age, settings.retainBytes if size is None else size
        )
        rows, found = self._remove(limits, force)
        self.fold()
        return Collected(rows, *self._sweep(), found.kept_for, self._forget_producers())

    def fold(self, age: int | None = None) -> None:
        """Folds the cuts that no registered query needs: all, or those of events of this age."""
        more = True
        while more:
            with self._transaction():
                upto = passed(readers.waited_for(self._catalog, self._uptime()))
                upto = upto if age is None else last_before(self._catalog, upto, self._uptime() - age)
                more = cuts.fold(self._catalog, upto)

    def _forget_producers(self) -> int:
        """Forgets producers that left long ago. Returns how many."""
        forgotten, before = 0, self._uptime() - FORGET_MICROS
        while True:
            with self._guard:
                names = producers.forgettable(self._catalog, before, retention.PORTION_PRODUCERS)
            if not names:
                return forgotten
            with self._transaction():
                forgotten += sum(producers.forget(self._catalog, name, before) for name in names)

    def _forget_bounds(self) -> None:
        """Removes the events of bounds with which the log begins, where their cuts were folded a day ago."""
        more = True
        while more:
            with self._transaction():
                now = self._uptime()
                before, known = now - cut_folding.KEPT_MICROS, readers.waited_for(self._catalog, now)
                upto = reached_by_all(known, passed(known))
                last = last_bound(self._catalog, self._log.horizon().seq, upto, before)
                more = last > ends(self._catalog)[0]  # the last one that goes stays as the beginning of the log
                if more:
                    remove_events(self._catalog, last)

    def after_bounds(self, last: int, bounds: int) -> None:
        """Folds cuts now and then, behind a commit of so many bounds, the last of which is the event ``last``."""
        if fold_due(last, bounds):
            try:
                self.fold(cut_folding.FOLD_AGE_MICROS)
                self._forget_bounds()
            except RowtimeError as error:
                path = self._store.path
                LOG.warning("Cuts of %s could not be folded; later commits will try again. %s", path, error)

    def after_commit(self, trains: Sequence[Staged]) -> None:
        """Removes old trains if the stream has a retention limit and a part of it has passed.

        A failure is only logged, since the commit has landed already.
        """
        settings = self._store.settings
        if settings.retainAge is None and settings.retainBytes is None:
            return
        try:
            if self._due(trains):
                self._clean(settings)
        except RowtimeError as error:
            path = self._store.path
            LOG.warning("Old rows of %s could not be removed; the next commits will try again. %s", path, error)

    def _clean(self, settings: StreamSettings) -> None:
        now = self._uptime()
        limits = self._limits(settings.retainAge, settings.retainBytes)
        rows, found = self._remove(limits, False, retention.MOST_PORTIONS)
        self._unfinished = not found.end
        if settings.retainAge is not None and found.end:
            with self._transaction():
                set_cleaned(self._catalog, now)
            self._cleaned = now
        if rows:
            self._sweep()

    def _due(self, trains: Sequence[Staged]) -> bool:
        """Returns whether it is time to remove old trains.

        With an age limit, that is when a part of it has passed since any process did so last; with a size limit,
        when a segment is begun.
        """
        age, size = self._store.settings.retainAge, self._store.settings.retainBytes
        if self._unfinished or (age is not None and self._part_passed(age // retention.LIMIT_PARTS)):
            return True
        return size is not None and any(train.location.offset == self._header for train in trains)

    def _part_passed(self, part: int) -> bool:
        """Returns whether ``part`` has passed. The catalog knows what other processes, and former ones, have done."""
        now = self._uptime()
        if self._cleaned is None or not self._cleaned <= now < self._cleaned + part:
            with self._guard:
                self._cleaned = cleaned(self._catalog)
        return self._cleaned is None or not self._cleaned <= now < self._cleaned + part

    def _limits(self, age: int | None, size: int | None) -> Limits:
        now = self._uptime()
        return Limits(now, None if age is None else now - age, 0 if size is None else self._beyond(size))

    def _beyond(self, size: int) -> int:
        """Returns the seq up to which trains lie beyond the newest ``size`` bytes; 0 if none does."""
        before, rest = END, size
        while True:
            with self._guard:
                trains = newest(self._catalog, before)
            for seq, length in trains:
                rest -= length
                if rest < 0:
                    return seq
            if not trains:
                return 0
            before = trains[-1][0]

    def _remove(self, limits: Limits, force: bool, portions: int = END) -> tuple[int, Look]:
        """Removes trains from the log. Returns the number of their rows, and the last look at the log."""
        with self._guard:
            self._catalog.verify("readers")  # a reader that is missing because of damage may need rows
            first = self._log.horizon()
        found, left = Look(first.seq), portions
        while left and not found.end:
            found, left = self._portion(found, limits, force), left - 1
        with self._guard:
            return self._log.horizon().rows - first.rows, found

    def _portion(self, so_far: Look, limits: Limits, force: bool) -> Look:
        """Examines the next portion and removes what may go.

        Returns a look at the beginning of the log if another process has removed events, or a reader may need them.
        """
        with self._guard, self._catalog.transaction("DEFERRED"):
            first = self._log.horizon().seq
            so_far = so_far if so_far.scanned >= first else Look(first)
            found = look(self._catalog, so_far, limits, self._needs(force))
        while found.last:
            with self._transaction():
                first = self._log.horizon().seq
                if first >= found.last or needed(least_needed(self._needs(force)), found.last, found.largest):
                    return Look(first)
                last = min(found.last, first + retention.PORTION_EVENTS)
                remove_events(self._catalog, last)
            if last == found.last:
                break
        return found

    def _needs(self, force: bool) -> list[tuple[str, Position]]:
        known = readers.waited_for(self._catalog, self._uptime())
        return needs([(one.name, one.position) for one in known], self._store.head(), force)

    def _sweep(self) -> tuple[int, int]:
        """Removes the files of removed trains and of crashed writers. Returns how many files, and their bytes."""
        stream, more, sizes = Path(self._store.path), True, list[int]()
        while more:
            with self._guard:
                more = self._named.read()
        with self._guard:
            files = [*self._named.others(stream), *forgotten(self._catalog, stream)]
        if files:
            self._catalog.sync()  # files that are gone are damage to a log that has their trains again
        for start in range(0, len(files), PORTION_FILES):
            some = files[start : start + PORTION_FILES]
            with self._transaction():
                sizes += remove_files(self._catalog, stream, some, self._named, self._store.now())
        return len(sizes), sum(sizes)
