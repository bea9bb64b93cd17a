"""Verifies a stream in a database: every event, every train, and that they are consistent with each other."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from spark_rowtime.bounds.clock import KINDS, StreamClock, logged_event
from spark_rowtime.bounds.train import span
from spark_rowtime.errors import DataLostError, StoreCorruptError
from spark_rowtime.store.postgres import cuts, log_state, records, rejections, trains
from spark_rowtime.store.postgres.connection import Statement, gone
from spark_rowtime.store.postgres.log_state import LogState
from spark_rowtime.store.postgres.store import PostgresStore, at_once
from spark_rowtime.store.record import ATTACHED, ProducerRecord
from spark_rowtime.store.report import Report
from spark_rowtime.store.widths import width_class

PORTION_EVENTS = 1000
"""How many events are read, with the bytes of their trains, at a time."""
_EVENTS = (
    "SELECT seq, kind, producer, floor, stream_floor, stream_largest, stream_rows, rows, least, largest, width, "
    "length, checksum FROM rowtime.events WHERE stream = %s AND seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
)
_STRANGE_CUTS = (
    "SELECT c.seq, c.producer FROM rowtime.topic_cuts c LEFT JOIN rowtime.events e ON e.stream = c.stream AND "
    "e.seq = c.seq WHERE c.stream = %s AND c.seq >= %s AND c.seq <= %s AND "
    "(e.producer IS DISTINCT FROM c.producer OR e.kind NOT IN ('sent', 'left', 'idled'))"
)


def check(store: PostgresStore) -> Report:
    """Reads the whole stream as of one moment, while others may use it.

    What commits replace is read at once; the log, which only grows, in portions up to that moment.
    """
    return store.kept_call(lambda connection: _Check(store, connection).run())


class _Check:
    def __init__(self, store: PostgresStore, connection: psycopg.Connection[Any]) -> None:
        self._store, self._connection, self._stream = store, connection, store.number
        self._report = Report()
        self._clock: StreamClock | None = None
        self._last = self._rows = 0

    def run(self) -> Report:
        """Returns what is damaged. It ends at a row of the head or of a producer that cannot be read."""
        try:
            self._compare()
        except StoreCorruptError as error:
            self._damage(str(error))
        return self._report

    def _compare(self) -> None:
        """Compares the events with the head, the trains with the events, and the producers with both."""
        with at_once(self._connection):
            found = self._query(log_state.SELECT, self._stream, self._store.name)
            known = self._query(records.ALL, self._stream)
            (totals,) = self._ask(rejections.totals(self._stream))
        if not found:
            raise gone(self._store.path)
        head = log_state.loaded(found[0])[0]
        self._last, self._rows = max(head.horizon - 1, 0), head.horizon_rows
        self._clock = self._store.settings.clock() if head.horizon == 0 else None
        size = 0
        for event in self._events(head.seq):
            self._follows(event, head)
            size += event[11] or 0
        if (self._last, self._rows) != (head.seq, head.rows):
            self._damage(
                f"the log ends at seq {self._last} with {self._rows} rows, but {head.seq} and {head.rows} were "
                "committed"
            )
        if size != head.train_bytes:
            self._damage(f"the trains have {size} bytes, but {head.train_bytes} are counted")
        self._cuts(head)
        self._producers(head, [records.opened(row) for row in known])
        self._rejections(head, *totals)

    def _events(self, upto: int) -> Iterator[tuple[Any, ...]]:
        seq = 0
        while found := self._query(_EVENTS, self._stream, seq, upto, PORTION_EVENTS):
            yield from found
            seq = found[-1][0]

    def _follows(self, event: tuple[Any, ...], head: LogState) -> None:
        seq, kind, producer, floor, stream_floor, largest, total, rows, *_ = event
        if seq != self._last + 1:
            self._damage(f"seq {self._last + 1} to {seq - 1} are missing from the log")
            self._clock = None
        self._last, before = seq, self._rows
        self._rows = total
        if seq == head.horizon:
            return
        if total != before + (rows or 0):
            self._damage(f"event {seq} does not follow from the one before it: {total} rows after {before}")
        if kind not in KINDS:
            self._damage(f"event {seq} is of no kind that there is")
            self._clock = None
        if self._clock is not None:
            reached = self._clock.apply(logged_event(kind, producer, floor, event[9]))
            if (reached, self._clock.largest) != (stream_floor, largest):
                self._damage(f"the bound at seq {seq} does not follow from the events up to it")
                self._clock = None
        if event[10] is not None:
            self._train(event)

    def _train(self, event: tuple[Any, ...]) -> None:
        seq, _, producer, *_, rows, least, largest, width, length, checksum = event
        try:
            piece = trains.as_slice((seq, producer, rows, least, largest, length, checksum))
        except StoreCorruptError as error:
            self._report.trains += 1
            self._damage(str(error))
            return
        self._report.trains, self._report.rows = self._report.trains + 1, self._report.rows + rows
        queries = trains.contents(self._stream, [piece], in_objects=self._store.objects is not None)
        found = trains.with_contents([piece], [self._ask(query) for query in queries])
        if width != width_class(least, largest):
            self._damage(f"train {seq} is at the wrong place in the index")
        try:
            if not found or span(self._store.carried.read(found[0])) != (least, largest):
                what = "the bytes are missing" if not found else "the rowtimes differ from those in the log"
                self._damage(f"train {seq} of {producer!r} ({rows} rows): {what}")
                return
        except (StoreCorruptError, DataLostError) as error:
            self._damage(str(error))
            return
        self._report.readable_trains += 1
        self._report.readable_rows += rows

    def _cuts(self, head: LogState) -> None:
        for seq, who in self._query(_STRANGE_CUTS, self._stream, max(head.horizon, 1), head.seq):
            self._damage(f"the cut of event {seq} is not one of {who!r}")
        seq = 0
        while rows := self._ask(cuts.between(self._stream, seq, head.seq)):
            seq = rows[-1][0]
            try:
                cuts.opened(rows)
            except (StoreCorruptError, ValueError, KeyError, AttributeError) as error:
                self._damage(f"cuts up to event {seq} cannot be read ({error!r})")

    def _producers(self, head: LogState, known: Sequence[ProducerRecord]) -> None:
        accepted = sum(producer.accepted for producer in known) + head.forgotten_accepted
        if accepted != head.rows:
            self._damage(f"the producers sent {accepted} rows, but the log has {head.rows}")
        attached = sum(producer.status in ATTACHED for producer in known)
        rejected = sum(producer.rejected for producer in known) + head.forgotten_rejected
        if (attached, rejected) != (head.attached, head.rejected):
            self._damage(
                f"{attached} producers are attached, and {rejected} rows were rejected, but {head.attached} and "
                f"{head.rejected} are counted"
            )

    def _rejections(self, head: LogState, kept: int, size: int) -> None:
        last, decoded, whole = 0, 0, True
        while found := self._ask(rejections.portion(self._stream, last, head.rejections)):
            last = found[-1][0]
            for row in found:
                try:
                    opened = rejections.opened(row, self._store.schema, self._store.path)
                    decoded += opened.rejected.rows.num_rows
                except StoreCorruptError as error:
                    self._damage(str(error))
                    whole = False
        if (kept + head.rejected_removed, size) != (head.rejected, head.rejected_bytes) or (whole and decoded != kept):
            self._damage(
                f"{kept} rejected rows are kept and {head.rejected_removed} were removed, but {head.rejected} were "
                "counted"
            )

    def _ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        return self._query(statement[0], *statement[1])

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values, binary=True).fetchall()

    def _damage(self, what: str) -> None:
        self._report.damage.append(what)
