"""Transaction: the unit in which everything happens, ordered by the lock on the stream's head."""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from spark_rowtime.store.postgres import eras, log_state
from spark_rowtime.store.postgres.ahead import Ahead
from spark_rowtime.store.postgres.connection import Statement, gone
from spark_rowtime.store.postgres.log_state import LogState
from spark_rowtime.store.postgres.message import run_at_once
from spark_rowtime.store.postgres.stream_locks import lock_stream
from spark_rowtime.store.postgres.uptime import Moment, note
from spark_rowtime.store.steady_clock import Reading


class Transaction:
    """A transaction that has locked the head of one stream. Nobody else changes the stream meanwhile.

    Writes are sent together with the next query, or with the commit. So a commit of few rows takes two round trips:
    the first one begins the transaction, locks the head and reads the producer. Large values are in the database before
    it locks anything: see ``Ahead``.

    Law: whatever is sent from the lock on is one message (``run_at_once``), so that a client that stands still, or has
    vanished, loses the lock after STILL_SECONDS.
    """

    def __init__(self, connection: psycopg.Connection[Any], stream: int, ahead: Ahead | None = None) -> None:
        self._connection, self.stream, self.ahead = connection, stream, ahead or Ahead()
        self._later: list[Statement] = []
        self.changed = False
        """Whether the head has changed, or anything is written: the head is written with the commit then."""
        self.head: LogState
        self.at: Moment

    def begin(
        self, path: str, name: str, first: Sequence[Statement], patience: str = ""
    ) -> tuple[Reading, list[list[tuple[Any, ...]]]]:
        """Locks the head, and runs the queries ``first`` in the same round trip.

        ``patience``: how long to wait for the lock, if not as long as usual. Returns the reading of the database's
        clock, and the rows of the queries. Raises DataLostError if the stream was deleted or renamed.
        """
        begin: list[Statement] = [] if self.ahead.send(self._connection, self.stream) else [("BEGIN", ())]
        begin += [(f"SET LOCAL lock_timeout = '{patience}'", ())] if patience else []
        begin += [lock_stream(self.stream), (log_state.LOCK, (self.stream, name))]
        locked, *found = run_at_once(self._connection, [*begin, *first])[len(begin) - 1 :]
        if not locked:
            raise gone(path)
        self.head, reading = log_state.loaded(locked[0])
        return reading, found

    def write(self, sql: str, *values: Any) -> None:
        """Runs a statement that returns nothing, before the next query or the commit."""
        self._later.append((sql, values))
        self.changed = True

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Returns the rows of a query, which sees what was written before."""
        later, self._later = self._later, []
        return run_at_once(self._connection, [*later, (sql, values)])[-1]

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Does what ``query`` does, for a statement with its values."""
        return self.query(statement[0], *statement[1])

    def flush(self) -> None:
        """Writes everything. Nothing may be changed afterwards."""
        self._send()

    def finish(self) -> None:
        """Writes everything, and commits the transaction, in one round trip."""
        self._send(("COMMIT", ()))

    def _send(self, *last: Statement) -> None:
        later, self._later = [*self._later, *self.ahead.removed(self.stream)], []
        if self.changed:
            note(self.head, self.at)
            later.insert(0, (log_state.UPDATE, (*log_state.values(self.head), self.stream, self.head.era)))
            if eras.ends(self.head.seq, self.head.era, self.head.attached):
                later.append(eras.begin(self.stream, self.head.era, self.head.seq))
        if later or last:
            run_at_once(self._connection, [*later, *last])


Transact = Callable[[Callable[[Transaction], Any]], Any]
"""Runs a function in a transaction of one stream, and returns what it returns."""
