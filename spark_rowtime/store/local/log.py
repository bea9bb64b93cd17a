"""The log of a stream in its catalog: the events in commit order."""

from collections.abc import Sequence

from spark_rowtime.bounds.clock import Event, Sent, logged_event
from spark_rowtime.store.commits import Staged
from spark_rowtime.store.history import LoggedEvent
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, intact, sealed
from spark_rowtime.store.position import EMPTY, Head
from spark_rowtime.store.views import BOUNDS_COLUMNS
from spark_rowtime.store.widths import width_class
from spark_rowtime.types.short_repr import short_repr

_ENDS = "SELECT COALESCE((SELECT MIN(seq) FROM events), 1), COALESCE((SELECT MAX(seq) FROM events), 0)"
"""Two look-ups. For both aggregates in one SELECT SQLite reads the whole table."""
_LAST = "SELECT seq, stream_floor, stream_largest, stream_rows FROM events ORDER BY seq DESC LIMIT 1"
_TOTALS = (
    "SELECT COALESCE(SUM(accepted), 0) + COALESCE((SELECT forgotten_accepted FROM producer_totals), 0), "
    "COALESCE((SELECT stream_rows FROM events ORDER BY seq DESC LIMIT 1), 0), "
    "COALESCE(MAX(receipt_seq), 0), (SELECT COALESCE(MAX(seq), 0) FROM events) FROM producers"
)
_INSERT = f"INSERT INTO events VALUES ({', '.join('?' * 17)})"  # noqa: S608  (constants)


class Log:
    """The table ``events``, as far as this object knows it: :meth:`catch_up` moves it to the log's end."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self.last = catalog, EMPTY
        """``last``: the end of the log after :meth:`catch_up` and all events appended since."""

    def head(self) -> Head:
        """Returns the end of the log as it is on disk now."""
        return self._one("ORDER BY seq DESC LIMIT 1") or EMPTY

    def at(self, seq: int) -> Head | None:
        """Returns the log as it was at ``seq``; None before the horizon."""
        found = self._one("WHERE seq = ?", seq) if seq else EMPTY
        if found is None and seq > self.horizon().seq:
            raise Damaged(f"event {seq} is missing from the log")
        return found

    def made(self, seqs: Sequence[int]) -> dict[int, int]:
        """Returns when each of these events was committed, of those that are there."""
        rows = (self._catalog.execute("SELECT * FROM events WHERE seq = ?", (seq,)).fetchone() for seq in seqs)
        return {row[0]: row[3] for row in rows if row is not None and intact(row, "events")}

    def horizon(self) -> Head:
        """Returns the last removed event, with which the log begins; EMPTY if no trains were removed."""
        first = self._one("ORDER BY seq LIMIT 1")
        return first if first and first.seq > 1 else EMPTY

    def verify(self) -> None:
        """Raises Damaged if the log and the producers disagree: the end of the log or a producer is missing."""
        sent, rows, last, seq = self._catalog.execute(_TOTALS).fetchone()
        if sent != rows or type(last) is not int or last > seq:
            raise Damaged(
                f"the log ends at seq {seq} with {short_repr(rows)} rows, but producers have sent {short_repr(sent)}, "
                f"up to seq {short_repr(last)}"
            )

    def _one(self, which: str, *values: int) -> Head | None:
        row = self._catalog.execute(f"SELECT * FROM events {which}", values).fetchone()  # noqa: S608
        if row is None:
            return None
        seq, _, _, _, _, floor, largest, rows, *_ = intact(row, "events")
        return Head(seq, floor, largest, rows)

    def catch_up(self) -> None:
        """Takes over what other processes wrote. Call it in a transaction."""
        if self._catalog.execute(_LAST).fetchone() != self.last:
            self.last = self.head()

    def forget(self) -> None:
        """Discards the cached state. Called after a transaction that was rolled back, from which the state came."""
        self.last = EMPTY

    def append(self, event: Event, head: Head, train: Staged | None, now: int) -> None:
        """Adds one event, with which the log ends at ``head``. Call it in a transaction after :meth:`catch_up`."""
        self._insert(event, head, now, _train_columns(train) if train else (None,) * 8)

    def restore(self, event: LoggedEvent, train: Staged | None) -> None:
        """Adds an event of another log, with its rows, if they are not gone."""
        columns = _train_columns(train) if train else (event.rows, *(None,) * 7)
        head = Head(event.seq, event.stream_floor, event.stream_largest, event.stream_rows)
        self._insert(logged_event(event.kind, event.producer, event.floor), head, event.time, columns)

    def _insert(self, event: Event, head: Head, time: int, train: tuple[object, ...]) -> None:
        kind, own = type(event).__name__.lower(), event.floor if isinstance(event, Sent) else None
        row = (head.seq, kind, event.producer, time, own, *head[1:], *train)
        self._catalog.execute(_INSERT, sealed(row))
        self.last = head

    def columns(self) -> list[list[object]]:
        """Returns the log as the values of BOUNDS_COLUMNS."""
        found = [intact(row, "events") for row in self._catalog.execute("SELECT * FROM events ORDER BY seq")]
        rows = [(row[0], row[2], row[1], row[8] or 0, row[4], row[5]) for row in found]
        if any(row[0] != rows[0][0] + n for n, row in enumerate(rows)):
            raise Damaged("events are missing from the log")
        return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in BOUNDS_COLUMNS]


def ends(catalog: Catalog) -> tuple[int, int]:
    """Returns the first and the last event of the log; (1, 0) if it has none. Its cost does not grow with the log."""
    first, last = catalog.execute(_ENDS).fetchone()
    return first, last


def _train_columns(train: Staged) -> tuple[object, ...]:
    return (train.rows, train.least, train.largest, width_class(train.least, train.largest), *train.location)
