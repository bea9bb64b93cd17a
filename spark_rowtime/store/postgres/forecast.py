"""Forecast: a commit in one round trip, by an object that was the last to change the stream.

The result of a commit follows from the stream's head, the producer's row and the weakest of the other producers. The
object that committed last knows all of them. So it computes the result as in a transaction, and sends it in a single
statement, which does nothing unless the head's row is still the one that its last commit wrote. If it does nothing, the
commit runs in a transaction that locks the head first.
"""

import time
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import psycopg

from spark_rowtime.store.base import Commit
from spark_rowtime.store.postgres import heads
from spark_rowtime.store.postgres.heads import HeadRow
from spark_rowtime.store.postgres.records import Record
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.postgres.uptime import Moment, note
from spark_rowtime.store.postgres.writes import combinable, combine, make
from spark_rowtime.store.steady_clock import Reading

CLOCK_DIFFERENCE_MICROS = 1_000_000
"""How far the computed time of the database may be behind its clock. After a longer pause of the process, a transaction
asks the database's clock."""
_HEAD = (
    f"{heads.UPDATE} AND name = %s AND xmin = %s::xid AND seq = %s AND stamp = %s AND (%s::bigint IS NULL OR "
    f"{heads.MICROS} - %s::bigint BETWEEN 0 AND {CLOCK_DIFFERENCE_MICROS}) RETURNING {heads.VERSION}, {heads.CLOCK}"
)


class Unforeseen(Exception):  # noqa: N818  (it is no error)
    """The commit needs more than the object knows."""


@dataclass(frozen=True, slots=True)
class Known:
    """What an object knows of the stream after its own commit.

    ``version`` is that of the head's row, ``weakest`` the answer to ``weakest_but``. ``reading`` is the database's
    clock at some moment before ``arrival``, which is in nanoseconds of this process's monotonic clock.
    """

    version: str
    head: HeadRow
    record: Record
    weakest: list[tuple[Any, ...]]
    reading: Reading
    arrival: int

    def now(self) -> Reading:
        """Returns a reading of the database's clock that is not later than now."""
        passed = (time.monotonic_ns() - self.arrival) // 1000
        return Reading(self.reading.boot, self.reading.micros + passed)


class Forecast(Transaction):
    """Stands for a transaction, for one commit, without the database. ``apply`` makes it happen, or nothing."""

    def __init__(self, connection: psycopg.Connection[Any], stream: int, known: Known, at: Moment) -> None:
        super().__init__(connection, stream)
        self._known, self.record = known, replace(known.record)
        self.head, self.at = replace(known.head), at

    def write(self, sql: str, *values: Any) -> None:
        """See Transaction. Raises Unforeseen if one statement cannot make all writes."""
        super().write(sql, *values)
        if not combinable(self._later):
            raise Unforeseen

    def query(self, sql: str, *values: Any) -> NoReturn:  # noqa: ARG002
        """Raises Unforeseen, since only the database can answer."""
        raise Unforeseen

    def apply(self, name: str, asked: int | None) -> Known | None:
        """Makes all writes, if the head is as it was known; returns what is known then, or None.

        ``asked``: the reading from which ``at`` was computed, unless the caller has replaced the clock.
        """
        note(self.head, self.at)
        before = self._known
        guard = (self.stream, name, before.version, before.head.seq, before.head.stamp, asked, asked)
        head = (_HEAD, (*heads.values(self.head), *guard))
        rows = make(self._connection, combine(head, self._later))
        if not rows:
            return None
        version, boot, micros = rows[0]
        return Known(version, self.head, self.record, before.weakest, Reading(boot, micros), time.monotonic_ns())


class Foresight:
    """What an object knows, from one of its commits to the next.

    It forecasts a commit only if nobody else has changed the stream between its last two: a forecast that does not come
    true costs a round trip.
    """

    def __init__(self) -> None:
        self._known: Known | None = None
        self._version: str | None = None
        """The version that the object's last commit gave the head's row."""

    def take(self, commit: Commit) -> Known | None:
        """Returns what is known, if ``commit`` can be computed from it. It is forgotten then."""
        known, self._known = self._known, None
        plain = not commit.rejected and commit.keys is None and commit.account is None
        return known if plain and known is not None and known.record.name == commit.producer else None

    def foresaw(self, applied: Known | None) -> None:
        """Notes the outcome of a forecast."""
        self._known, self._version = applied, applied.version if applied else None

    def learn(self, transaction: Transaction, record: Record, weakest: list[tuple[Any, ...]]) -> None:
        """Notes a commit that ran in a transaction, which has ended."""
        before, self._version = self._version, transaction.own_version
        if transaction.writes and before == transaction.version:
            arrived = transaction.reading, transaction.arrival
            self._known = Known(self._version, transaction.head, record, weakest, *arrived)

    def forget(self) -> None:
        """Forgets what is known, since the object changes the stream otherwise."""
        self._known = None
