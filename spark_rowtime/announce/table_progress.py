"""TableProgress: up to which period a table or a topic is announced. A stream of its own keeps it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from spark_rowtime.announce.progress import first_moment, require_alone, require_sensible, shifted
from spark_rowtime.announce.target import LOG
from spark_rowtime.bounds.bound import is_end
from spark_rowtime.calendar import Calendar, Span
from spark_rowtime.drain.properties import FIRST, LAST, bound_in
from spark_rowtime.errors import KafkaUnavailableError, StoreUnavailableError
from spark_rowtime.store.base import Store
from spark_rowtime.store.position import Position
from spark_rowtime.store.registration import Registration
from spark_rowtime.types.timestamps import END, to_micros

LOOK_SECONDS = 5.0
"""How often a table or a topic is looked at for another bound."""
_AWAY = (StoreUnavailableError, KafkaUnavailableError)


class Complete(NamedTuple):
    """Up to where a table is complete, and the first and the last rowtime of its rows, None where it is not told."""

    floor: int | None
    first: int | None
    last: int | None


class TableProgress:
    """The position of one announcer of a table or a topic.

    ``read`` returns the properties of the table's last commit. ``kept`` is the stream that keeps the position: as a
    registered reader, with the start of the next period as its cut.

    Law: once a first period is known, it is kept before it is announced; each period follows the one before it, without
    a gap.
    """

    def __init__(
        self,
        target: str,
        read: Callable[[], Mapping[str, str]],
        kept: Store,
        calendar: Calendar,
        reader: str,
        start: Any,
        *,
        ends: bool,
        wait: Callable[[float], object],
    ) -> None:
        self._target, self._read, self._wait = target, read, wait
        self._registration = Registration(kept, reader)
        self._kept, self._reader = kept, reader
        self._calendar, self._shift, self._away = calendar, int(ends), False
        self.id = UUID(kept.stream)
        self._promise: int | None = None
        """The last floor that was seen, the end of time aside."""
        self._last = self._read_now()
        found = kept.snapshot().position_of(reader)
        self._next = first_moment(calendar, self._last.floor, start, self._shift) if found is None else found.cut
        self._keep()

    def look(self) -> Complete:
        """The table as it is now; as it was, while it cannot be reached."""
        try:
            self._last, self._away = self._read_now(), False
        except _AWAY as error:
            if not self._away:
                LOG.warning(
                    "%s cannot be read, and is looked at again every %g s. %s", self._target, LOOK_SECONDS, error
                )
            self._away = True
        return self._last

    def complete(self, state: Complete) -> Iterator[Span]:
        """The periods that are complete and not announced, in order. Call ``announced`` for each."""
        limit = self._limit(state)
        if limit is None:
            return
        if self._next is None and (first := self._first_period(state, limit)) is not None:
            self._next = first
            self._keep()
        if self._next is not None:
            require_sensible(self._target, self._calendar.unit, max(self._next, state.last or 0), limit)
            yield from self._calendar.complete(self._next, limit)

    def announced(self, span: Span, state: Complete) -> None:  # noqa: ARG002
        """Records that a period is announced."""
        require_alone(self._kept, self._reader, self._next)
        self._next = span.end
        self._registration.keep(self._position)

    def wait(self, state: Complete) -> None:  # noqa: ARG002
        """Waits until the table is to be looked at again."""
        if self._next is not None and self._registration.due:
            require_alone(self._kept, self._reader, self._next)
            self._registration.keep(self._position)
        self._wait(LOOK_SECONDS)

    def finish(self) -> None:
        """Nobody announces more in this run: raises StoreUnavailableError if its position cannot be kept."""
        self._keep()

    def _keep(self) -> None:
        """Keeps the position; raises StoreUnavailableError if it cannot be kept."""
        if self._next is not None:
            require_alone(self._kept, self._reader, self._next)
            self._registration.require(self._position)

    def _read_now(self) -> Complete:
        properties = self._read()
        bound = bound_in(properties)
        first, last = (to_micros(properties[name]) if name in properties else None for name in (FIRST, LAST))
        return Complete(None if bound is None else bound.floor, first, last)

    def _first_period(self, state: Complete, limit: int) -> int | None:
        """The start of the period of the first row; where that is not told, of the one that the bound lies in.

        None while the first row is not below ``limit``: earlier ones may follow.
        """
        if state.first is not None:
            moment = state.first - self._shift
            return self._calendar.holding(moment).start if moment < limit else None
        if state.floor is None or state.floor >= END:
            return None
        return self._calendar.holding(max(state.floor - 1 - self._shift, 0)).start

    def _limit(self, state: Complete) -> int | None:
        """The moment up to which the table is complete; at the end of time, the end of its last row's period."""
        if not is_end(state.floor):
            self._promise = shifted(state.floor, self._shift)
            return self._promise
        if state.last is None:
            LOG.warning(
                "%s is complete, but does not say which is its last row, since an earlier version or a query has "
                "written it: the periods behind %s are not announced.",
                self._target,
                "its last bound" if self._promise is not None else "those that are announced",
            )
            return self._promise
        return max(self._calendar.holding(state.last - self._shift).end, self._promise or 0)

    @property
    def _position(self) -> Position:
        return Position(0, self._next, None)
