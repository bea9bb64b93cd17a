"""The uptime of a stream: how long the machine has run, over all its boots, as the catalog counts it."""

from collections.abc import Callable
from sqlite3 import Connection

from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact, sealed
from spark_rowtime.store.steady_clock import COPIED, Reading

STALL_MICROS = 200_000
"""This much of each stall is counted all the same, so that the uptime also goes on where every commit is slow."""
_LAST = "SELECT boot, ahead, counted, seal FROM uptime"
_STAMPS = (
    "SELECT MAX(COALESCE((SELECT MAX(MAX(seen, sent)) FROM producers), 0), "
    "COALESCE((SELECT MAX(seen) FROM readers), 0), "
    "COALESCE((SELECT time FROM events ORDER BY seq DESC LIMIT 1), 0))"
)


def stop(catalog: Connection, at: Reading) -> None:
    """Stops the uptime of a copy at the reading ``at``, until the copy is opened. Call it in a transaction.

    So its leases and ages do not include the time in which the copy was only kept.
    """
    row = catalog.execute(_LAST).fetchone()
    if row is not None and intact(row, "uptime")[0] == at.boot:
        values = (COPIED, row[1], at.micros)
        catalog.execute("UPDATE uptime SET boot = ?, ahead = ?, counted = ?, seal = ?", sealed(values))


class Uptime:
    """Counts the microseconds in which the machine runs and the catalog can be written.

    It starts at the wall clock of the first write transaction, and then follows a clock that nobody can
    set: ``uptime = reading + ahead``. It stands still while the machine is off or suspended, and in a stall: while
    nobody can write. So a lease or an age never includes a time in which no process could act.

    Law (*stalls*): a process takes out of the uptime what it knows of a stall, whoever caused it. It knows how long it
    waited for the lock, since when its transactions fail, as on a full disk, and how long it held the lock itself, as
    when it was stopped. What others wrote shows that it was no stall until then. So the uptime never falls below a time
    that was written. ``counted`` is the reading up to which stalls have been taken out, so that several processes that
    know of the same stall take it out once.
    """

    def __init__(self, catalog: Catalog, read: Callable[[], Reading], wall: Callable[[], int]) -> None:
        self._catalog, self._read, self._wall = catalog, read, wall
        self._ahead = self._now = 0
        self._since: int | None = None
        """The reading since which this process has wanted to write and has not committed."""
        self._looked = 0
        """The reading at which the transaction got the lock, or last took out how long it held it."""

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
        """Returns the uptime at which the transaction began; it stays the same in the transaction."""
        return self._now

    def ask(self) -> None:
        """Notes the time. Call it before a transaction begins, which may wait for the lock, or when a write fails."""
        if self._since is None:
            self._since = self._read().micros

    def begin(self) -> None:
        """Takes out the stall before the transaction. Call it at the start of one that may write."""
        at, row = self._read(), self._row()
        self._ahead, self._looked = self._ahead_at(at, row), at.micros
        if row is None or self._is_new_boot(at, row):
            self._write(at.boot, at.micros)
        elif self._since is not None and _stalled(max(self._since, row[2]), at.micros):
            self._take_out(at, max(self._since, row[2], self._last_stamp() - self._ahead))
        self._now = at.micros + self._ahead

    def end(self) -> None:
        """Takes out the time for which this process held the lock. Call it at the end of the same transaction."""
        at = self._read()
        self._take_out(at, self._looked)
        self._looked = at.micros

    def committed(self) -> None:
        """Begins again. If the commit itself took long, the next transaction takes that out."""
        self._since = self._looked if _stalled(self._looked, self._read().micros) else None

    def failed(self, *, unwritable: bool) -> None:
        """Notes that the transaction failed, so that the next one takes out again what this one took out.

        ``unwritable``: because nothing can be written just now. Then the stall goes on, if it is one.
        """
        if not unwritable and self._since is not None and not _stalled(self._since, self._read().micros):
            self._since = None

    def _take_out(self, at: Reading, since: int) -> None:
        if _stalled(since, at.micros):
            self._ahead -= at.micros - since - STALL_MICROS
            self._write(at.boot, at.micros)

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
        self._catalog.execute("INSERT INTO uptime VALUES (?, ?, ?, ?)", sealed(values))


def _stalled(since: int, until: int) -> bool:
    """Returns whether a time in which nobody wrote was longer than what is counted of it."""
    return until - since > STALL_MICROS
