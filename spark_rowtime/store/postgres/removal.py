"""Retention: removes the oldest trains, and forgets producers that left long ago, in portions."""

import logging
from collections.abc import Callable
from typing import Any

from spark_rowtime.errors import RowtimeError
from spark_rowtime.store.base import FORGET_MICROS, Collected, Position, ReaderInfo, StreamSettings
from spark_rowtime.store.difference import between
from spark_rowtime.store.postgres import named_objects
from spark_rowtime.store.postgres.gate import removing
from spark_rowtime.store.postgres.object_removal import ObjectRemoval
from spark_rowtime.store.postgres.objects import Objects
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.retention import needs

LOG = logging.getLogger(__name__)
PORTION_TRAINS = 1000
"""How many trains one transaction removes at most."""
PORTION_PRODUCERS = 200
"""How many producers one transaction forgets at most."""
LIMIT_PARTS = 8
"""The retention limit is divided into this many parts. Commits remove old rows after each part that passes."""
MOST_PORTIONS = 20
"""How many portions one commit removes at most. The next commits continue."""
TRAINS = (
    "SELECT seq, time, least, largest, length, stream_floor, stream_largest, stream_rows FROM rowtime.events "
    "WHERE stream = %s AND seq > %s AND width IS NOT NULL ORDER BY seq LIMIT %s"
)
_READERS = "SELECT name, seq, cut FROM rowtime.readers WHERE stream = %s ORDER BY name"
_BEGINNING = (
    "UPDATE rowtime.events SET (least, largest, width, length, checksum) = (NULL, NULL, NULL, NULL, NULL) "
    "WHERE stream = %s AND seq = %s"
)
_FORGETTABLE = (
    "SELECT name, accepted, rejected, epoch FROM rowtime.producers p WHERE stream = %s AND status = 'left' AND "
    "checkpoint IS NULL AND seen < %s AND NOT EXISTS (SELECT FROM rowtime.rejected r WHERE r.stream = p.stream AND "
    "r.producer = p.name) LIMIT %s"
)
_AFTER_ALL = Position(1 << 60, None, None)

Transact = Callable[[Callable[[Transaction], Any]], Any]


class Collector:
    """See ``Store.gc``. ``transact`` runs a function in a transaction of the stream."""

    def __init__(self, path: str, settings: StreamSettings, transact: Transact, objects: Objects | None) -> None:
        self._path, self._settings, self._transact = path, settings, transact
        self._objects = None if objects is None else ObjectRemoval(objects, transact)

    def collect(self, age: int | None, size: int | None, force: bool) -> Collected:
        """Runs ``gc``. An argument that is None takes its value from the stream's settings."""
        age = self._settings.retainAge if age is None else age
        size = self._settings.retainBytes if size is None else size
        removed = self._remove(age, size, force, None)
        forgotten = 0
        while some := self._transact(_forget):
            forgotten += some
        if self._objects is None:
            return Collected(removed.rows, 0, removed.size, removed.held, forgotten)
        files, size = self._objects.abandoned()
        return Collected(removed.rows, removed.files + files, removed.size + size, removed.held, forgotten)

    def after_commit(self, now: int, cleaned: int | None, train_bytes: int) -> None:
        """Removes old trains, if a part of a retention limit had passed at a commit.

        ``now`` is the uptime of the commit, ``cleaned`` and ``train_bytes`` are those of the head behind it.

        A failure is only logged, since the commit has landed already.
        """
        age, size = self._settings.retainAge, self._settings.retainBytes
        old = age is not None and (cleaned is None or now >= cleaned + age // LIMIT_PARTS)
        if not old and (size is None or train_bytes <= size + size // LIMIT_PARTS):
            return
        try:
            self._remove(age, size, False, MOST_PORTIONS)
        except RowtimeError:
            LOG.warning(
                "Old rows of %s could not be removed; the next commits will try again", self._path, exc_info=True
            )

    def _remove(self, age: int | None, size: int | None, force: bool, portions: int | None) -> Collected:
        rows = removed = 0
        while True:
            found: _Portion = self._transact(
                lambda transaction: _Portion(transaction, age, size, force, self._objects is not None)
            )
            rows, removed = rows + found.rows, removed + found.size
            portions = None if portions is None else portions - 1
            if found.end or portions == 0:
                files = 0 if self._objects is None else self._objects.outdated()
                return Collected(rows, files, removed, found.held)


class _Portion:
    """The removal of the oldest trains in one transaction. ``end``: no train after them may go."""

    def __init__(
        self, transaction: Transaction, age: int | None, size: int | None, force: bool, in_objects: bool
    ) -> None:
        self._in_objects = in_objects
        head, now, stream = transaction.head, transaction.at.uptime, transaction.stream
        self.rows = self.size = 0
        self.held: str | None = None
        trains = transaction.query(TRAINS, stream, head.horizon, PORTION_TRAINS)
        needed = needs(_readers(transaction), head.head, force)
        last: tuple[Any, ...] | None = None
        self.end = len(trains) < PORTION_TRAINS
        for train in trains:
            seq, time, least, largest, length, *_ = train
            beyond = size is not None and head.train_bytes - self.size > size
            if not beyond and (age is None or time > now - age):
                self.end = True
                break
            self.held = next((who for who, at in needed if between(at, _AFTER_ALL, seq, least, largest)), None)
            if self.held:
                self.end = True
                break
            last, self.size = train, self.size + length
        if last is not None:
            self._cut(transaction, last)
        if age is not None and self.end:
            head.cleaned = now
            transaction.changed()

    def _cut(self, transaction: Transaction, last: tuple[Any, ...]) -> None:
        """Removes the log up to the train ``last``, whose own row stays as the log's beginning."""
        head, stream, (seq, *_, floor, largest, rows) = transaction.head, transaction.stream, last
        transaction.write("DELETE FROM rowtime.events WHERE stream = %s AND seq < %s", stream, seq)
        transaction.write("DELETE FROM rowtime.trains WHERE stream = %s AND seq <= %s", stream, seq)
        if self._in_objects:
            named_objects.cut(transaction, seq)
        transaction.write(_BEGINNING, stream, seq)
        self.rows = rows - head.horizon_rows
        head.horizon, head.horizon_floor, head.horizon_largest, head.horizon_rows = seq, floor, largest, rows
        head.train_bytes -= self.size


def _readers(transaction: Transaction) -> list[ReaderInfo]:
    transaction.ask(removing(transaction.stream))
    rows = transaction.query(_READERS, transaction.stream)
    return [ReaderInfo(name, Position(seq, cut, None), 0) for name, seq, cut in rows]


def _forget(transaction: Transaction) -> int:
    """Forgets the next producers that left long ago. Returns how many."""
    head, stream = transaction.head, transaction.stream
    before = transaction.at.uptime - FORGET_MICROS
    found = transaction.query(_FORGETTABLE, stream, before, PORTION_PRODUCERS)
    for name, accepted, rejected, epoch in found:
        transaction.write("DELETE FROM rowtime.producers WHERE stream = %s AND name = %s", stream, name)
        transaction.write("DELETE FROM rowtime.key_floors WHERE stream = %s AND producer = %s", stream, name)
        head.forgotten, head.forgotten_accepted = head.forgotten + 1, head.forgotten_accepted + accepted
        head.forgotten_rejected += rejected
        head.forgotten_epoch = max(head.forgotten_epoch, epoch)
    return len(found)
