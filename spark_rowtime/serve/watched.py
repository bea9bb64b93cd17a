"""One stream that is watched: what has changed in it since the last look."""

import time
from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from spark_rowtime.admin.description import show_bound
from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.diagnosis.why import why
from spark_rowtime.errors import RowtimeError
from spark_rowtime.serve.reasons import reasons_of
from spark_rowtime.serve.state import Value, bound_value, changed, details_of, read_state, read_times
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Rejection, Store
from spark_rowtime.stream import describeStream
from spark_rowtime.types.schema import ROWTIME

TIMES_SECONDS = 5.0
"""How often it is read when the producers were last seen. Leases that have ended show then, too."""
DETAILS_SECONDS = 30.0
"""How often the facts that change rarely are read."""
LATE_ROWS = 50
"""The largest number of late rows that the page shows of a stream: the newest."""


class WatchedStream:
    """A stream, and what the page knows of it. Not for use by several threads at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._error: str | None = None
        self._forget("")

    def _forget(self, stream: str) -> None:
        """Begins anew, with the stream of this id."""
        self._stream = stream
        self._facts: Value = {}
        self._details: Value = {}
        self._reasons: Value = {}
        self._producers: dict[str, Value] = {}
        self._times: dict[str, Value] = {}
        self._late: deque[Value] = deque(maxlen=LATE_ROWS)
        self._rejection = 0
        self._times_due = self._details_due = 0.0

    def look(self) -> Value | None:
        """Reads the stream, and returns what has changed; None if nothing has. Cheap if nothing was committed.

        The stream is open only meanwhile: a page that somebody leaves open keeps nobody from renaming or deleting it.
        """
        try:
            with open_store(self.path) as store:
                return self._look(store, time.monotonic())
        except RowtimeError as error:
            return self._failed(str(error))

    def whole(self) -> Value:
        """Returns all that was known after the last look."""
        producers = list(self._producers.values())
        return {
            **self._message(producers, list(self._late)),
            "full": True,
            "details": self._details,
            "why": self._reasons,
        }

    def _look(self, store: Store, now: float) -> Value | None:
        if store.stream != self._stream:  # the first look, or another stream is at the path now
            self._forget(store.stream)
            self._read(store, timed=True, detailed=True)
            return self.whole()
        timed, detailed = now >= self._times_due, now >= self._details_due
        unchanged = store.head().seq == self._facts["seq"] and store.rejections_end() == self._rejection
        if unchanged and not timed and not self._error:
            return None
        self._times_due = now + TIMES_SECONDS if timed else self._times_due
        self._details_due = now + DETAILS_SECONDS if detailed else self._details_due
        return self._read(store, timed, detailed)

    def _read(self, store: Store, timed: bool, detailed: bool) -> Value | None:
        before = (self._facts, self._producers, self._details, self._reasons, self._error)
        facts_before, producers_before, details_before, reasons_before, failed_before = before
        self._facts, found = read_state(store, self.path)
        self._times = read_times(store) if timed else self._moved(found)
        self._producers = {name: {**value, **self._times.get(name, {})} for name, value in found.items()}
        late, self._error = self._new_late(store), None
        if timed or self._facts["holders"] != facts_before.get("holders"):
            self._reasons = reasons_of(why(self.path))
        if detailed:
            self._details = details_of(describeStream(self.path))
        news = list(changed(producers_before, self._producers))
        gone = [name for name in producers_before if name not in self._producers]
        more = {
            **({"details": self._details} if self._details != details_before else {}),
            **({"why": self._reasons} if self._reasons != reasons_before else {}),
        }
        if not (news or gone or late or more or failed_before or self._facts != facts_before):
            return None
        return {**self._message(news, late), "full": False, "gone": gone, **more}

    def _moved(self, found: dict[str, Value]) -> dict[str, Value]:
        """Returns the known times; a producer that has moved since they were read has sent now."""
        second = round(time.time()) * 1000
        compared = ("bound", "accepted", "rejected")
        for name, value in found.items():
            before = self._producers.get(name)
            if before is None or any(value[key] != before[key] for key in compared):
                self._times[name] = {**self._times.get(name, {"lease": None}), "sent": second, "seen": second}
        return self._times

    def _new_late(self, store: Store) -> list[Value]:
        end = store.rejections_end()
        after = max(self._rejection, end - LATE_ROWS)
        if end <= self._rejection:
            return []
        found = [row for rejection in store.rejections(after, end) for row in _late_rows(rejection)][-LATE_ROWS:]
        self._rejection = end
        self._late.extend(found)
        return found

    def _message(self, producers: list[Value], late: list[Value]) -> Value:
        return {
            "stream": self.path,
            "error": self._error,
            "facts": self._facts,
            "producers": producers,
            "late": late,
        }

    def _failed(self, error: str) -> Value | None:
        known, self._error = self._error, error
        return None if error == known else {**self._message([], []), "full": False, "gone": []}


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
