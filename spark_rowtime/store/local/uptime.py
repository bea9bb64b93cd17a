"""The uptime of a stream: how long the machine has run, over all its boots, as the catalog counts it."""

from collections.abc import Callable
from itertools import pairwise, takewhile
from sqlite3 import Connection

from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact, seal
from spark_rowtime.store.steady_clock import Reading

STALL_MICROS = 200_000
"""A longer wait for the catalog's lock is not counted, since no process could renew a lease meanwhile."""
RETRY_MICROS = 15_000_000
"""An attempt to get the lock within this time after a failed one counts as the same wait."""
_LAST = "SELECT boot, ahead, counted, seal FROM uptime"
_EVENT_STAMPS = "SELECT time FROM events ORDER BY seq DESC LIMIT 100000"
_OTHER_STAMPS = "SELECT seen FROM producers WHERE seen >= ? UNION ALL SELECT seen FROM readers WHERE seen >= ?"
_STAMPS = (
    "SELECT MAX(COALESCE((SELECT MAX(MAX(seen, sent)) FROM producers), 0), "
    "COALESCE((SELECT MAX(seen) FROM readers), 0))"
)


COPIED = "copied"
"""Stands for the boot in the catalog of a copy: the uptime goes on when the copy is opened."""


def stop(catalog: Connection, at: Reading) -> None:
    """Stops the uptime of a copy at the reading ``at``, until the copy is opened. Call it in a transaction.

    So its leases and ages do not include the time in which the copy was only kept.
    """
    row = catalog.execute(_LAST).fetchone()
    if row is not None and intact(row, "uptime")[0] == at.boot:
        values = (COPIED, row[1], at.micros)
        catalog.execute("UPDATE uptime SET boot = ?, ahead = ?, counted = ?, seal = ?", (*values, seal(values)))


class Uptime:
    """Counts the microseconds in which the machine runs and the catalog can be written.

    It starts at the wall clock of the first write transaction, and then follows a clock that nobody can
    set: ``uptime = reading + ahead``. It stands still while the machine is off or suspended, and while a
    process keeps the catalog locked. So a lease or an age never includes a time in which no process could act.

    A wait for the lock is not subtracted as far as others wrote meanwhile: their leases were renewed, and this process
    was only slower. The times of what they wrote are in the catalog.

    ``counted`` is the reading up to which such waits have been subtracted, so that several processes that
    waited for the same lock subtract the wait only once.
    """

    def __init__(self, catalog: Catalog, read: Callable[[], Reading], wall: Callable[[], int]) -> None:
        self._catalog, self._read, self._wall = catalog, read, wall
        self._ahead = 0
        self._asked: int | None = None
        self._tried = 0
        self._waits: list[tuple[int, int]] = []

    def look(self) -> int:
        """Returns the uptime. May be called outside of a transaction."""
        at = self._read()
        return at.micros + self._ahead_at(at, self._row())

    def rebooted(self) -> bool:
        """Returns whether the machine was rebooted since the last transaction that counted it.

        Until a transaction notes the reboot, :meth:`look` always returns the same uptime.
        """
        at, row = self._read(), self._row()
        return row is not None and self._is_new_boot(at, row)

    def now(self) -> int:
        """Returns the uptime. Call it in a transaction after :meth:`begin`."""
        return self._read().micros + self._ahead

    def ask(self) -> None:
        """Notes the time. Call it before beginning a transaction, which may wait for the lock."""
        at = self._read().micros
        if self._asked is None or not 0 <= at - self._tried <= RETRY_MICROS:
            self._asked = at
        self._tried = at

    def begin(self) -> None:
        """Subtracts a long wait for the lock. Call it at the start of a transaction that may write."""
        at, row = self._read(), self._row()
        asked, self._asked = self._asked, None
        self._ahead = self._ahead_at(at, row)
        if row is None or self._is_new_boot(at, row):
            self._waits.clear()
            self._write(at.boot, at.micros)
            return
        if asked is not None and at.micros - asked > STALL_MICROS:
            self._waits.append((asked, at.micros))
        stalls = [stall for wait in self._waits for stall in self._stalls(*wait)]
        if stalls:
            self._ahead -= sum(max(end - max(start, row[2]), 0) for start, end in stalls)
            self._write(at.boot, max(row[2], stalls[-1][1]))

    def committed(self) -> None:
        """Forgets the waits that were subtracted. Without this call, the next transaction subtracts them again."""
        self._waits.clear()

    def _stalls(self, asked: int, got: int) -> list[tuple[int, int]]:
        """Returns the parts of a wait, in readings of the clock, in which nobody wrote for longer than a stall."""
        since = asked + self._ahead
        writes = sorted(stamp - self._ahead for stamp in self._stamps(since) if stamp <= got + self._ahead)
        moments = [asked, *writes, got]
        return [(start, end) for start, end in pairwise(moments) if end - start > STALL_MICROS]

    def _stamps(self, since: int) -> list[int]:
        """Returns the uptimes, from ``since`` on, at which events, producers and readers were written."""
        newest = self._catalog.execute(_EVENT_STAMPS)
        events = list(takewhile(lambda stamp: stamp >= since, (stamp for (stamp,) in newest)))
        return events + [stamp for (stamp,) in self._catalog.execute(_OTHER_STAMPS, (since, since))]

    def _ahead_at(self, at: Reading, row: tuple[str, int, int] | None) -> int:
        if row is None:
            return max(self._wall(), self._last_stamp()) - at.micros
        _, ahead, counted = row
        return max(ahead + counted, self._last_stamp()) - at.micros if self._is_new_boot(at, row) else ahead

    @staticmethod
    def _is_new_boot(at: Reading, row: tuple[str, int, int]) -> bool:
        boot, _, counted = row
        return boot != at.boot or at.micros < counted

    def _row(self) -> tuple[str, int, int] | None:
        row = self._catalog.execute(_LAST).fetchone()
        if row is None:
            return None
        boot, ahead, counted = intact(row, "uptime")
        return boot, ahead, counted

    def _last_stamp(self) -> int:
        (stamp,) = self._catalog.execute(_STAMPS).fetchone()
        return int(stamp)

    def _write(self, boot: str, counted: int) -> None:
        values = (boot, self._ahead, counted)
        self._catalog.execute("DELETE FROM uptime")
        self._catalog.execute("INSERT INTO uptime VALUES (?, ?, ?, ?)", (*values, seal(values)))
