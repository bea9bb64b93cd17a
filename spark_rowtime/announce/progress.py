"""Progress: up to which period a stream is announced, and which periods follow. The stream keeps it."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import UUID

from spark_rowtime.announce.target import LOG
from spark_rowtime.bounds.bound import is_end
from spark_rowtime.calendar import Calendar, Span
from spark_rowtime.errors import InvalidOptionError, StoreUnavailableError
from spark_rowtime.periods import Unit
from spark_rowtime.reader.reader import EXPIRY_CHECK_SECONDS
from spark_rowtime.reader.release import start_bound
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Slice
from spark_rowtime.store.position import Head, Position
from spark_rowtime.store.registration import Registration
from spark_rowtime.types.schema import rowtime_micros
from spark_rowtime.types.timestamps import END, show_micros

MOST_EMPTY_PERIODS = 1_000_000
"""The number of periods after the last row from which a bound is taken for an error: 114 years of hours."""


READER = "announce:"
"""What the names of the registered readers of announcers begin with."""
_QUERY = re.compile(r".*/sources/\d+(?: \(joins\))?", re.DOTALL)
"""The name of a query among the registered readers: the folder of a source in its checkpoint."""


class Progress:
    """The position of one announcer in its stream: a registered reader that has read what is announced.

    Law: which periods are complete is a function of the log. Each of them follows the one before it, without a gap,
    and retention keeps the rows of a period until it is announced.
    """

    def __init__(self, store: Store, calendar: Calendar, reader: str, start: Any, *, ends: bool = False) -> None:
        """``ends``: a row at the end of a period belongs to it, and not to the next one."""
        self._store, self._calendar, self._shift = store, calendar, int(ends)
        self._registration, self._reader = Registration(store, reader), reader
        found = store.snapshot().position_of(reader)
        self._next = (
            first_moment(calendar, store.head().floor, start, self._shift)
            if found is None
            else shifted(found.cut or None, self._shift)
        )  # 0 in a copy
        """The moment up to which everything is announced; None: no period has been complete yet."""
        self._looked_at: int | None = None
        self.id = UUID(store.stream)
        self._position = Position(0, None if found is None else found.cut, None)
        self._keep(store.head().seq if found is None else found.seq)

    def look(self) -> Head:
        """The stream as it is now, leases that have ended included."""
        self._store.expire()
        return self._store.head()

    def complete(self, head: Head) -> Iterator[Span]:
        """The periods that are complete at ``head`` and not announced, in order. Call ``announced`` for each."""
        limit = self._limit(head)
        if limit is None or limit == self._looked_at:
            return
        if self._next is None:
            has_topics = self._store.has_cuts()
            self._next = self._start_of_first_bound(head) if has_topics else self._start_of_first_row(head, limit)
        if self._next is not None:
            if (limit - self._next) // self._calendar.unit.micros > MOST_EMPTY_PERIODS:
                self._require_rows(head, self._next, limit)
            yield from self._calendar.complete(self._next, limit)
        self._looked_at = limit

    def _require_rows(self, head: Head, begin: int, limit: int) -> None:
        """Raises InvalidOptionError if too many periods between two rows, or behind the last one, have no row."""
        horizon, upto = self._store.horizon(), min(limit + self._shift, END)
        trains = self._store.slices(Position(horizon.seq, begin, None), Position(head.seq, upto, None))
        for least, largest in sorted(stretch for train in trains for stretch in self._stretches(train)):
            require_sensible(self._store.path, self._calendar.unit, begin, min(least, limit))
            begin = max(begin, largest)
        require_sensible(self._store.path, self._calendar.unit, begin, limit)

    def _stretches(self, train: Slice) -> Iterator[tuple[int, int]]:
        """Yields the least and the largest time of a train; each time, if it may have a gap of too many periods."""
        if (train.largest - train.least) // self._calendar.unit.micros <= MOST_EMPTY_PERIODS:
            yield train.least, train.largest
            return
        for time in rowtime_micros(self._store.read(train)).to_pylist():
            yield time, time

    def announced(self, span: Span, head: Head) -> None:
        """Records that a period is announced."""
        self._next = span.end
        self._keep(head.seq)

    def wait(self, head: Head) -> None:
        """Waits for an event after ``head``; renews the registration, so that it is known to be in use."""
        if self._registration.due:
            self._keep(self._store.head().seq)
        self._store.wait(head.seq, EXPIRY_CHECK_SECONDS)

    def finish(self) -> None:
        """Nobody announces more in this run: raises StoreUnavailableError if its position cannot be registered."""
        require_alone(self._store, self._reader, self._position.cut)
        self._registration.require(self._position)

    def _keep(self, last: int) -> None:
        """Registers the position: of the log up to seq ``last``, the rows before the next period are read."""
        seq = self._store.horizon().seq if self._next is None else last
        cut = None if self._next is None else self._next + self._shift
        require_alone(self._store, self._reader, self._position.cut)
        self._position = Position(seq, cut, None)
        self._registration.keep(self._position)

    def _limit(self, head: Head) -> int | None:
        """The moment up to which the stream is complete; None while there is none.

        A stream that has ended is complete up to its last promise before, and to the end of its last row's period.
        """
        if not is_end(head.floor):
            return shifted(head.floor, self._shift)
        last = None if head.largest is None else self._calendar.holding(head.largest - self._shift).end
        promise = shifted(self._last_promise(head), self._shift)
        return max((moment for moment in (last, promise) if moment is not None), default=None)

    def _last_promise(self, head: Head) -> int | None:
        """The floor before the end of time; None if there was none."""
        before = max(self._first_with(END, head) - 1, self._store.horizon().seq)
        floor = self._store.at(before).floor
        return None if floor is None or floor >= END else floor

    def _start_of_first_bound(self, head: Head) -> int | None:
        """The start of the period that the first bound was in, or at the end of: where rows are in a topic beside."""
        horizon = self._store.horizon()
        first = horizon if horizon.floor is not None else self._store.at(self._first_with(0, head))
        if first.floor is None or first.floor >= END:
            return None
        return self._calendar.holding(max(first.floor - 1 - self._shift, 0)).start

    def _first_with(self, least: int, head: Head) -> int:
        """The seq of the first event, up to that of ``head``, with a floor of at least this."""
        inner = range(self._store.horizon().seq + 1, head.seq)
        return min(head.seq, inner.start + bisect_left(inner, True, key=partial(self._has, least)))

    def _has(self, least: int, seq: int) -> bool:
        floor = self._store.at(seq).floor
        return floor is not None and floor >= least

    def _start_of_first_row(self, head: Head, limit: int) -> int | None:
        """The start of the period of the earliest row below ``limit``; None if there is no such row."""
        horizon = self._store.horizon()
        trains = self._store.slices(Position(horizon.seq, None, None), Position(head.seq, limit + self._shift, None))
        least = min((train.least for train in trains), default=None)
        return None if least is None else self._calendar.holding(least - self._shift).start


def first_moment(calendar: Calendar, floor: int | None, start: Any, shift: int) -> int | None:
    """The start of the first period of an announcer with a new name; None: a period that nobody has said yet."""
    moment = None if start == "earliest" else shifted(floor, shift) if start == "latest" else start_bound(start)
    return None if moment is None else calendar.holding(moment).start


def shifted(moment: int | None, shift: int) -> int | None:
    """A rowtime, or a floor, as a moment of the calendar.

    ``shift``: 1 where a row at the end of a period belongs to it, so that it counts as one before it; else 0.
    """
    return None if moment is None else moment - shift


def require_alone(store: Store, reader: str, kept: int | None) -> None:
    """Raises StoreUnavailableError if the stored position is beyond ``kept``, up to which this announcer has kept it.

    Then another one runs, which the lock does not know, as on another machine. A position never goes back.
    """
    try:
        found = store.snapshot().position_of(reader)
    except StoreUnavailableError:
        return  # so the position cannot be stored either, and what stores it says so
    if found is not None and found.cut and (kept is None or found.cut > kept):  # 0 in a copy
        raise StoreUnavailableError(
            f"Another announcer named {reader.removeprefix(READER)!r} runs, maybe on another machine. Its position in "
            f"{store.path} is {show_micros(found.cut)}, that of this one {show_micros(kept)}. Two would make "
            "each call twice, in any order: end one of them, or give it another name.",
            path=store.path,
        )


def require_sensible(path: str, unit: Unit, begin: int, limit: int) -> None:
    """Raises InvalidOptionError for a bound, or a row, so far after the row before it that it must be an error."""
    if (limit - begin) // unit.micros > MOST_EMPTY_PERIODS:
        raise InvalidOptionError(
            f"{path} has nothing from {show_micros(begin)} to {show_micros(limit)}, which is more than "
            f"{MOST_EMPTY_PERIODS} periods of {unit.name}. If the stream has ended, its producers must say "
            "so by close(complete=True): then the last period with rows is announced. Otherwise choose "
            "longer periods, or announce under another name from a later start on.",
            option="every",
            value=unit.name,
        )


def warn_of_other_readers(store: Store) -> None:
    """Warns where a drain may bring the rows of a stream elsewhere: the announcement can come before they are there."""
    names = [known.name for known in store.snapshot().readers]
    drains = [name for name in names if not name.startswith(READER) and not _QUERY.fullmatch(name)]
    if drains:
        LOG.warning(
            "%s has the readers %s. If one of them drains it into a table or a topic that the announcements are about, "
            "announce that one instead (rowtime announce delta:PATH --positions ...): the stream's bound is there "
            "before the rows are in the table.",
            store.path,
            ", ".join(map(repr, drains)),
        )
