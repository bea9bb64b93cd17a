"""One stream that is watched: what has changed in it since the last look."""

import logging
import time
from collections.abc import Iterator

import pyarrow as pa

from spark_rowtime.admin.description import show_bound
from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.errors import RowtimeError
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.state import (
    State,
    Value,
    bound_value,
    details_of,
    producer_value,
    read_shown,
    read_state,
    reasons_of,
    times_of,
)
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Rejection
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.short_repr import short_error

LOG = logging.getLogger("spark_rowtime")
TIMES_SECONDS = 5.0
"""How often it is read when the producers were last seen, and why the stream stands where it is. Leases that have
ended show then, too."""
DETAILS_SECONDS = 30.0
"""How often the facts that change rarely are read."""
REASONS_SECONDS = 0.5
"""The delay, after the clock's holder changes, before the reason is read."""
LATE_ROWS = 50
"""The largest number of late rows that the page shows of a stream: the newest."""
_TIMES = ("sent", "seen", "lease")


class WatchedStream:
    """A stream, and what the page knows of it. Not for use by several threads at once."""

    def __init__(self, path: str, served: Served) -> None:
        self.path, self._served = path, served
        self._error: str | None = None
        self._forget("")

    def _forget(self, stream: str) -> None:
        """Starts from the beginning, with the stream of this id."""
        self._stream = stream
        self._state = State({}, {}, frozenset())
        self._producers: dict[str, Value] = {}
        self._details: Value = {}
        self._reasons: Value = {}
        self._late: list[Value] = []
        self._rejection = 0
        self._times_due = self._details_due = 0.0

    def look(self) -> Value | None:
        """Reads the stream, and returns what has changed; None if nothing has. Cheap if nothing was committed.

        The stream is open only meanwhile: a page that somebody leaves open keeps nobody from renaming or deleting it.
        """
        try:
            with open_store(self.path) as store:
                if store.stream == self._stream:
                    return self._look(store, time.monotonic())
                return self._first_look(store)
        except RowtimeError as error:
            return self._failed(str(error))
        except Exception as error:  # one stream with something unheard of in it must not hide the others
            LOG.exception("The stream %s cannot be shown", self.path)
            return self._failed(f"It cannot be shown: {short_error(error)}")

    def whole(self) -> Value:
        """Returns all that was known after the last look."""
        known = self._message(list(self._producers.values()), self._late)
        return {**known, "full": True, "details": self._details, "why": self._reasons}

    def _first_look(self, store: Store) -> Value:
        """Reads what the page needs to be drawn; the rest follows with the next look.

        After an error all is read at once: a stream of which only a part can be read stays one that cannot be shown.
        """
        self._forget(store.stream)
        self._read(store, timed=True)
        if self._error is not None:
            self._answers(detailed=True)
        self._error = None
        return self.whole()

    def _look(self, store: Store, now: float) -> Value | None:
        timed, detailed = now >= self._times_due, now >= self._details_due
        if not timed and self._is_known(store):
            return None
        message, more = self._read(store, timed), {}
        if timed:
            self._times_due = now + TIMES_SECONDS
            more = self._answers(detailed)
        if detailed:
            self._details_due = now + DETAILS_SECONDS
        if message is None and not more:
            return None
        return {**(message or self._changes([], [], [])), **more}

    def _is_known(self, store: Store) -> bool:
        return store.head().seq == self._state.facts["seq"] and store.rejections_end() == self._rejection

    def _read(self, store: Store, timed: bool) -> Value | None:
        """Reads the state, and returns what has changed."""
        before = self._state
        self._state, snapshot = read_state(store, self.path)
        state, times = self._state, times_of(snapshot) if timed else {}
        shown = {name: self._producer(name, before, times.get(name)) for name in state.producers}
        moved = [value for name, value in shown.items() if value is not self._producers.get(name)]
        gone = [name for name in self._producers if name not in shown]
        self._producers, late = shown, self._new_late(store, snapshot.rejections)
        if state.facts.get("holders") != before.facts.get("holders"):
            self._times_due = min(self._times_due, time.monotonic() + REASONS_SECONDS)
        if not (moved or gone or late or state.facts != before.facts):
            return None
        return self._changes(moved, gone, late)

    def _producer(self, name: str, before: State, times: Value | None) -> Value:
        """Returns what is known of a producer: the same object as before if nothing has changed.

        If the times were not read, a producer that has moved has sent now.
        """
        known, info, holds = self._producers.get(name), self._state.producers[name], name in self._state.holding
        if known is None or info != before.producers[name] or holds != known["holds"]:
            value = producer_value(info, holds)
            sent = known is None or any(value[key] != known[key] for key in ("bound", "accepted", "rejected"))
            return {**value, **(times or _times_of(known, sent))}
        return known if times is None or times.items() <= known.items() else {**known, **times}

    def _answers(self, detailed: bool) -> Value:
        """Reads why the stream stands where it is and, if they are due, the details; returns what has changed."""
        reasons, details = self._reasons, self._details
        self._reasons = reasons_of(self._served.why(self.path))
        if detailed:
            self._details = details_of(read_shown(self.path))
        return {
            **({"why": self._reasons} if self._reasons != reasons else {}),
            **({"details": self._details} if self._details != details else {}),
        }

    def _new_late(self, store: Store, end: int) -> list[Value]:
        if end <= self._rejection:
            return []
        after = max(self._rejection, end - LATE_ROWS)
        found = [row for rejection in store.rejections(after, end) for row in _late_rows(rejection)][-LATE_ROWS:]
        self._rejection = end
        self._late = [*self._late, *found][-LATE_ROWS:]
        return found

    def _message(self, producers: list[Value], late: list[Value]) -> Value:
        return {
            "stream": self.path,
            "error": self._error,
            "facts": self._state.facts,
            "producers": producers,
            "late": late,
        }

    def _changes(self, producers: list[Value], gone: list[str], late: list[Value]) -> Value:
        return {**self._message(producers, late), "full": False, "gone": gone}

    def _failed(self, error: str) -> Value | None:
        """Says the error once. The next look that succeeds gives the whole: what this one has seen, nobody was told."""
        known, self._error, self._stream = self._error, error, ""
        return None if error == known else self._changes([], [], [])


def _times_of(known: Value | None, sent: bool) -> Value:
    """Returns the times that are known of a producer; if it ``sent``, then now."""
    second = round(time.time()) * 1000
    times = {key: known[key] if known else None for key in _TIMES}
    return {**times, "sent": second, "seen": second} if sent else times


def _late_rows(rejection: Rejection) -> Iterator[Value]:
    """Yields the newest rows of a rejection."""
    rejected = rejection.rejected
    bound = show_bound(as_bound(rejected.bound))
    times = rejected.rows.column(ROWTIME)
    for micros in times.slice(max(len(times) - LATE_ROWS, 0)).cast(pa.int64()).to_pylist():
        yield {
            "producer": rejection.producer,
            "rowtime": bound_value(as_bound(micros)),
            "reason": rejected.reason,
            "bound": bound,
            "boundOf": str(rejected.origin) if rejected.origin else None,
            "rejectedAt": rejection.time / 1000,
        }
