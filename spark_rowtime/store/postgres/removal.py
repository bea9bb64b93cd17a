"""Retention: removes the oldest trains, and forgets producers that left long ago, in portions."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from spark_rowtime.errors import RowtimeError
from spark_rowtime.store import cut_folding, retention
from spark_rowtime.store.base import Store
from spark_rowtime.store.cut_folding import fold_due, reached_by_all
from spark_rowtime.store.postgres import cuts, named_objects, registrations
from spark_rowtime.store.postgres.background import Background
from spark_rowtime.store.postgres.log_state import LogState
from spark_rowtime.store.postgres.object_removal import ObjectRemoval
from spark_rowtime.store.postgres.stream_locks import no_registration, unread
from spark_rowtime.store.postgres.transaction import Transact, Transaction
from spark_rowtime.store.postgres.waited_for import Needed, foldable, last_before, needed, readers_of_cuts
from spark_rowtime.store.snapshot import FORGET_MICROS, Collected

LOG = logging.getLogger(__name__)
PORTION_BYTES = 16 << 20
"""How many bytes of trains one transaction removes at most, if they are of several trains."""
READ = "a copy or a check of the stream goes on"
REGISTERING = "a session that registers a reader has not ended its transaction"
MOST_MISSED = 20
"""How often a removal comes while a reader registers, which takes a millisecond, before it is left to the next one."""
FAILED = "Old rows or cuts of %s could not be removed; the next commits will try again. %s"
END_SECONDS = 5
"""How long the end of a store waits for the removal that goes on."""
EVENTS = (
    "SELECT seq, time, least, largest, length FROM rowtime.events WHERE stream = %s AND seq > %s AND seq <= %s "
    "ORDER BY seq"
)
_CUT = (
    "SELECT seq, time, least, largest, length, stream_floor, stream_largest, stream_rows FROM rowtime.events "
    "WHERE stream = %s AND seq > %s AND seq <= %s ORDER BY seq"
)
_PLAIN = (
    "SELECT seq, length, time, stream_floor, stream_largest, stream_rows FROM rowtime.events WHERE stream = %s AND "
    "seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
)
_BEGINNING = (
    "UPDATE rowtime.events SET (least, largest, width, length, checksum) = (NULL, NULL, NULL, NULL, NULL) "
    "WHERE stream = %s AND seq = %s"
)
_FORGETTABLE = (
    "SELECT name, accepted, rejected, epoch FROM rowtime.producers p WHERE stream = %s AND status = 'left' AND "
    "checkpoint IS NULL AND seen < %s AND NOT EXISTS (SELECT FROM rowtime.rejected r WHERE r.stream = p.stream AND "
    "r.producer = p.name) LIMIT %s"
)


class Access(NamedTuple):
    """How the log is read and changed.

    ``transact`` runs a function in a transaction of the stream, ``rows`` runs queries and returns the rows of each, and
    ``look`` returns the head and the uptime.
    """

    transact: Transact
    rows: Callable[..., list[list[tuple[Any, ...]]]]
    look: Callable[[], tuple[LogState, int]]


class Collector:
    """See ``Store.gc``. ``access`` is for calls of ``collect``; ``apart`` makes one for the time after a commit."""

    def __init__(
        self,
        store: Store,
        stream: int,
        access: Access,
        apart: Callable[[], AbstractContextManager[Access]],
        objects: Callable[[Access], ObjectRemoval] | None,
    ) -> None:
        self._path, self._settings, self._stream = store.path, store.settings, stream
        self._access, self._apart, self._objects = access, apart, objects
        self.background = Background(f"rowtime retention {store.path}")
        self._tried: int | None = None
        """How many bytes there were when a size limit was looked at last, and nothing more could go."""

    def collect(self, age: int | None, size: int | None, force: bool) -> Collected:
        """Runs ``gc``. An argument that is None takes its value from the stream's settings."""
        age = self._settings.retainAge if age is None else age
        size = self._settings.retainBytes if size is None else size
        objects = None if self._objects is None else self._objects(self._access)
        if objects is not None:
            objects.require_own()
        removed = _Removal(self._access, self._stream, age, size, force=force, in_objects=objects is not None)
        while not removed.portion():
            pass
        while self._access.transact(partial(_fold, retained=age)):
            pass
        files = 0 if objects is None else objects.outdated()
        forgotten = 0
        while some := self._access.transact(_forget):
            forgotten += some
        others, size = (0, 0) if objects is None else objects.abandoned()
        return Collected(removed.rows, files + others, removed.size + size, removed.kept_for, forgotten)

    def after_commit(self, now: int, cleaned: int | None, train_bytes: int) -> None:
        """Removes old trains, if a part of a retention limit had passed at a commit, while the sink goes on.

        ``now`` is the uptime of the commit, ``cleaned`` and ``train_bytes`` are those of the head behind it.
        """
        if not self.background.busy and self._due(now, cleaned, train_bytes):
            self._begin(partial(self._clean, train_bytes))

    def after_bounds(self, last: int, bounds: int) -> None:
        """Folds cuts now and then, behind a commit of so many bounds, the last of which is the event ``last``."""
        if fold_due(last, bounds) and not self.background.busy:
            self._begin(self._fold)

    def _begin(self, work: Callable[[Access], None]) -> None:
        try:
            self.background.start(partial(self._run, work))
        except RuntimeError as error:
            LOG.warning(FAILED, self._path, error)

    def _run(self, work: Callable[[Access], None]) -> None:
        """Does what is due. A failure is only logged, since the commit has landed already: later ones try again."""
        try:
            with self._apart() as access:
                work(access)
        except RowtimeError as error:
            if not self.background.ending.is_set():
                LOG.warning(FAILED, self._path, error)

    def _fold(self, access: Access) -> None:
        """Folds the cuts that no registered query needs."""
        retained = self._settings.retainAge
        fold = partial(_fold, retained=retained, age=cut_folding.FOLD_AGE_MICROS)
        for work in (fold, partial(_forget_bounds, retained=retained)):
            while not self.background.ending.is_set() and access.transact(work):
                pass

    def end(self) -> None:
        """Waits for the removal that goes on after a commit, and stops it if it takes long. The next one goes on."""
        self.background.end(END_SECONDS)

    def _due(self, now: int, cleaned: int | None, train_bytes: int) -> bool:
        age, size = self._settings.retainAge, self._settings.retainBytes
        if age is not None and (cleaned is None or now >= cleaned + age // retention.LIMIT_PARTS):
            return True
        if size is None or train_bytes <= size + size // retention.LIMIT_PARTS:
            return False
        tried = self._tried
        return tried is None or not tried <= train_bytes <= tried + max(size, tried) // retention.LIMIT_PARTS

    def _clean(self, train_bytes: int, access: Access) -> None:
        ending = self.background.ending.is_set
        age, size, in_objects = self._settings.retainAge, self._settings.retainBytes, self._objects is not None
        removed = _Removal(access, self._stream, age, size, force=False, in_objects=in_objects)
        finished = any(ending() or removed.portion() for _ in range(retention.MOST_PORTIONS))
        self._tried = train_bytes if finished and removed.kept_for else None
        if self._objects is not None and not ending():
            self._objects(access).outdated(ending)


class _Attempt(NamedTuple):
    """What a transaction removes: the log begins at the event ``horizon`` then, without so many rows and bytes."""

    horizon: int
    rows: int
    size: int


class _Removal:
    """The removal of the oldest trains, portion by portion.

    What may go is looked for outside of a transaction, since a transaction keeps every producer waiting. The
    transaction repeats what may have changed: whether others have removed events, and who needs which train.
    """

    def __init__(
        self, access: Access, stream: int, age: int | None, size: int | None, *, force: bool, in_objects: bool
    ) -> None:
        self._access, self._stream, self._in_objects = access, stream, in_objects
        self._age, self._limit, self._force = age, size, force
        self._horizon = self._scanned = -1
        self._target = self._left = self._missed = 0
        self._end = False
        self.rows = self.size = 0
        self.kept_for: str | None = None
        self._attempt: _Attempt | None = None

    def portion(self) -> bool:
        """Looks at the next events, and removes the next ones that may go. Returns whether no more may."""
        if self._target <= self._horizon or self._horizon < 0:
            self._look()
        if self._target > self._horizon:
            self._attempt = None
            self._access.transact(self._cut)
            self._count()
        return self._end and self._target <= self._horizon

    def _look(self) -> None:
        head, now = self._access.look()
        if head.horizon > self._scanned or self._horizon != head.horizon:
            self._horizon = self._scanned = self._target = head.horizon
            self._left, self.kept_for = head.train_bytes, None
        upto = self._scanned + retention.PORTION_EVENTS
        asked = (registrations.ALL, (self._stream,)), (EVENTS, (self._stream, self._scanned, upto))
        readers, events = self._access.rows(*asked)
        self._end = len(events) < retention.PORTION_EVENTS
        kept = needed(readers, head.head, now, force=self._force)
        for seq, time, least, largest, length in events:
            if length is not None:
                beyond = self._limit is not None and self._left > self._limit
                old = beyond or (self._age is not None and time <= now - self._age)
                self.kept_for = kept.who(seq, time, least, largest) if old else None
                if not old or self.kept_for:
                    self._end = True
                    break
                self._target, self._left = seq, self._left - length
            self._scanned = seq
        if self._age is not None and self._end:
            self._access.transact(partial(_note, now=now))

    def _cut(self, transaction: Transaction) -> None:
        """Removes the next events up to the train that was found to be the last that may go.

        It may run again, if the connection was lost in its commit, which has then landed or not.
        """
        head, before = transaction.head, self._attempt
        if before is not None and head.horizon == before.horizon:
            return
        self._attempt = None
        if head.horizon != self._horizon:  # others have removed events
            self._horizon = -1
            return
        if not transaction.ask(unread(self._stream))[0][0]:
            self.kept_for, self._end, self._target = READ, True, head.horizon
            return
        upto = min(self._target, head.horizon + retention.PORTION_EVENTS)
        if not transaction.ask(no_registration(self._stream)):
            self._missed += 1
            if self._missed == MOST_MISSED:
                self.kept_for, self._end, self._target = REGISTERING, True, head.horizon
            return
        events = transaction.query(_CUT, self._stream, head.horizon, upto)
        readers = transaction.query(registrations.ALL, self._stream)
        kept = needed(readers, head.head, transaction.at.uptime, force=self._force)
        last, size, held = self._step(events, kept)
        if held is not None or last is None:
            self.kept_for, self._end, self._target = held, True, head.horizon if last is None else last[0]
        if last is not None:
            self._remove(transaction, last, size)

    def _step(self, events: Sequence[tuple[Any, ...]], kept: Needed) -> tuple[tuple[Any, ...] | None, int, str | None]:
        """Returns the last event that goes now, the bytes of the trains up to it, and who needs the one after it."""
        last, train, size = None, None, 0
        for event in events:
            seq, time, least, largest, length, *_ = event
            if length is not None:
                if held := kept.who(seq, time, least, largest):
                    return train, size, held
                if size and size + length > PORTION_BYTES:
                    break
                train, size = event, size + length
            last = event
        return last, size, None

    def _remove(self, transaction: Transaction, last: tuple[Any, ...], size: int) -> None:
        """Removes the log up to the event ``last``, whose own row stays as the log's beginning."""
        head, stream, (seq, *_, rows) = transaction.head, transaction.stream, last
        transaction.write("DELETE FROM rowtime.trains WHERE stream = %s AND seq <= %s", stream, seq)
        if self._in_objects:
            named_objects.cut(transaction, seq)
        self._attempt = _Attempt(seq, rows - head.horizon_rows, size)
        _begin_log(transaction, last)
        head.train_bytes -= size

    def _count(self) -> None:
        """Counts what was removed, once its transaction has landed."""
        if (done := self._attempt) is not None:
            self.rows, self.size, self._horizon = self.rows + done.rows, self.size + done.size, done.horizon


def _begin_log(transaction: Transaction, last: tuple[Any, ...]) -> None:
    """Makes the event ``last`` the log's beginning."""
    head, stream, (seq, *_, floor, largest, rows) = transaction.head, transaction.stream, last
    transaction.write("DELETE FROM rowtime.events WHERE stream = %s AND seq < %s", stream, seq)
    transaction.write(_BEGINNING, stream, seq)
    head.horizon, head.horizon_floor, head.horizon_largest, head.horizon_rows = seq, floor, largest, rows


def _note(transaction: Transaction, now: int) -> None:
    """Notes that all was removed that was too old at the uptime ``now``."""
    transaction.head.cleaned = now
    transaction.changed = True


def _fold(transaction: Transaction, retained: int | None, age: int | None = None) -> bool:
    """Folds the next cuts that no registered query needs: all, or those of events of this age.

    ``retained``: see ``foldable``. Returns whether there may be more of them.
    """
    stream = transaction.stream
    if not transaction.ask(unread(stream))[0][0] or not transaction.ask(no_registration(stream)):
        return False
    upto = foldable(readers_of_cuts(transaction), transaction, retained)
    return cuts.fold(transaction, upto if age is None else last_before(transaction, upto, age))


def _forget_bounds(transaction: Transaction, retained: int | None) -> bool:
    """Removes the next events of bounds with which the log begins, where their cuts were folded a day ago.

    Returns whether there may be more of them.
    """
    stream, before = transaction.stream, transaction.at.uptime - cut_folding.KEPT_MICROS
    if not transaction.ask(unread(stream))[0][0] or not transaction.ask(no_registration(stream)):
        return False
    readers = readers_of_cuts(transaction)
    upto = reached_by_all(readers, foldable(readers, transaction, retained))
    rows = transaction.query(_PLAIN, stream, transaction.head.horizon, upto, retention.PORTION_EVENTS)
    gone = list(takewhile(lambda row: row[1] is None and row[2] <= before, rows))
    if gone:
        _begin_log(transaction, gone[-1])
    return bool(gone)


def _forget(transaction: Transaction) -> int:
    """Forgets the next producers that left long ago. Returns how many."""
    head, stream = transaction.head, transaction.stream
    before = transaction.at.uptime - FORGET_MICROS
    found = transaction.query(_FORGETTABLE, stream, before, retention.PORTION_PRODUCERS)
    for name, accepted, rejected, epoch in found:
        transaction.write("DELETE FROM rowtime.producers WHERE stream = %s AND name = %s", stream, name)
        transaction.write("DELETE FROM rowtime.key_floors WHERE stream = %s AND producer = %s", stream, name)
        head.forgotten, head.forgotten_accepted = head.forgotten + 1, head.forgotten_accepted + accepted
        head.forgotten_rejected += rejected
        head.forgotten_epoch = max(head.forgotten_epoch, epoch)
    return len(found)
