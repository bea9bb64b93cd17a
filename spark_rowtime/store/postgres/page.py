"""PostgresPage: a transaction of the database, as the ledger sees it."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.clock import Event, ProducerClock
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.commits import Rejected, Staged
from spark_rowtime.store.page import Page
from spark_rowtime.store.position import Head
from spark_rowtime.store.postgres import cuts, key_floors, log, named_objects, records, rejections, trains
from spark_rowtime.store.postgres.connection import Statement
from spark_rowtime.store.postgres.records import Stored
from spark_rowtime.store.postgres.transaction import Transaction
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.store.rejection_rules import marked
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import WRITER

Rows = list[tuple[Any, ...]]
_SET_STATUS = (
    "INSERT INTO rowtime.accounts (stream, role, name, seen, content) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (stream, role, name) DO UPDATE SET seen = excluded.seen, content = excluded.content"
)


def questions(stream: int, about: Sequence[str]) -> list[Statement]:
    """Returns the queries that a transaction about these producers begins with; their answers are for the page."""
    if len(about) == 1:
        return [(records.ONE, (stream, about[0])), records.weakest_but(stream, about[0])]
    return [records.some(stream, about)] if about else []


class PostgresPage(Page):
    """See :class:`Page`. The transaction has locked the stream, so what it has read once is as it was read."""

    def __init__(
        self,
        transaction: Transaction,
        path: str,
        schema: pa.Schema,
        settings: StreamSettings,
        about: Sequence[str] = (),
        answers: Sequence[Rows] = (),
    ) -> None:
        """``answers``: those to ``questions(about)``."""
        self.transaction, self._path, self._schema, self._settings = transaction, path, schema, settings
        self.head, self.now, self.wall = transaction.head.head, transaction.at.uptime, transaction.at.wall
        found = {row[0]: records.stored(row) for row in (answers[0] if answers else [])}
        self._stored: dict[str, Stored | None] = {name: found.get(name) for name in about}
        """The producers that were read or saved, as the database has them."""
        self._weakest: dict[str, tuple[str, ProducerClock] | None] = {}
        """The weakest but one of them, while that holds."""
        if len(answers) > 1:
            self._weakest[about[0]] = records.member(answers[1])
        self._was_due = False

    def forgotten_epoch(self) -> int:
        return self.transaction.head.forgotten_epoch

    def find(self, name: str) -> ProducerRecord | None:
        if name not in self._stored:
            rows = self.transaction.query(records.ONE, self.transaction.stream, name)
            self._stored[name] = records.stored(rows[0]) if rows else None
        found = self._stored[name]
        return found.record.copy() if found else None

    def names(self) -> Sequence[str]:
        return [name for (name,) in self.transaction.query(records.NAMES, self.transaction.stream)]

    def weakest_but(self, name: str) -> tuple[str, ProducerClock] | None:
        if name not in self._weakest:
            rows = self.transaction.ask(records.weakest_but(self.transaction.stream, name))
            self._weakest[name] = records.member(rows)
        return self._weakest[name]

    def strongest_floor_but(self, name: str) -> int | None:
        found = self.transaction.ask(records.strongest_but(self.transaction.stream, name))
        strongest = records.member(found)
        return None if strongest is None else strongest[1].floor

    def has_idle_but(self, name: str) -> bool:
        return bool(self.transaction.ask(records.idle_but(self.transaction.stream, name)))

    def overdue(self) -> Sequence[ProducerRecord]:
        due = self.transaction.head.due
        if due is None or self.now <= due:
            return []
        self._was_due = True
        rows = self.transaction.ask(records.overdue(self.transaction.stream, self.now, self._settings.idleTimeout))
        found = [records.stored(row) for row in rows]
        self._stored.update({one.record.name: one for one in found})
        return [one.record.copy() for one in found]

    def raised(self, bound: int) -> BoundOrigin | None:
        head, stream = self.transaction.head, self.transaction.stream
        return log.origin(self.transaction.ask(log.raised(stream, bound, head.horizon, head.seq)), head.horizon)

    def late_rows(self, record: ProducerRecord) -> tuple[Rejected, ...]:
        rows = self.transaction.ask(rejections.of_receipt(self.transaction.stream, record.name, record.number))
        return tuple(rejections.opened(row, self._schema, self._path).rejected for row in rows)

    def require_staged(self, trains: Sequence[Staged]) -> None:
        named_objects.require_kept(self.transaction, trains, self._path)

    def append(self, event: Event, head: Head, train: Staged | None) -> None:
        self.head = head
        row = self.transaction.head
        row.seq, row.floor, row.largest, row.rows = head
        log.append(self.transaction, event, head, train)
        if train is not None:
            trains.write(self.transaction, head.seq, train)

    def save(self, record: ProducerRecord) -> None:
        if record.name not in self._stored:
            self.find(record.name)
        before = self._stored[record.name]
        self._stored[record.name] = records.save(self.transaction, record, self._settings, before)
        self._weakest = {name: found for name, found in self._weakest.items() if name == record.name}

    def add_cut(self, logged: LoggedCut) -> None:
        cuts.add(self.transaction, logged)

    def reject(self, producer: str, number: int, known: Sequence[Rejected], late: Sequence[Rejected]) -> None:
        rejections.add(self.transaction, producer, number, marked(known, late), self._settings.retainRejected)

    def add_keys(self, producer: str, number: int, keys: KeyChanges) -> None:
        key_floors.add(self.transaction, producer, number, keys)

    def set_query_status(self, producer: str, content: str) -> None:
        self.transaction.write(_SET_STATUS, self.transaction.stream, WRITER, producer, self.now, content)

    def end(self) -> None:
        """Notes when something is due next, if something was. Call it behind all that is written."""
        if self._was_due:
            records.renew_due(self.transaction, self._settings.idleTimeout)
