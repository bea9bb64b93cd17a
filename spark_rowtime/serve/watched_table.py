"""One table that is watched: its bound, and what holds it there."""

import logging
import time

from spark_rowtime.admin.description import show_bound
from spark_rowtime.diagnosis.explanation import Explanation
from spark_rowtime.errors import RowtimeError
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.state import Value, bound_value, reasons_of
from spark_rowtime.types.short_repr import short_error

LOG = logging.getLogger("spark_rowtime")
TABLE_SECONDS = 5.0
"""How often a table is read: its log or its metadata, and those of the tables before it."""


class WatchedTable:
    """A Delta or Iceberg table, and what the page knows of it. Not for use by several threads at once."""

    def __init__(self, path: str, served: Served) -> None:
        self.path, self._served = path, served
        self._known: Value = {"error": None, "facts": {}, "why": {}}
        self._due = 0.0

    def look(self) -> Value | None:
        """Reads the table if it is time to; returns all that is known if that has changed, None otherwise."""
        if time.monotonic() < self._due:
            return None
        before, self._known = self._known, self._read()
        self._due = time.monotonic() + TABLE_SECONDS
        return self.whole() if self._known != before else None

    def whole(self) -> Value:
        """Returns all that was known after the last look."""
        return {"stream": self.path, "full": True, "producers": [], "late": [], "details": {}, **self._known}

    def _read(self) -> Value:
        try:
            found = self._served.why(self.path)
        except RowtimeError as error:
            return {**self._known, "error": str(error)}
        except Exception as error:  # one table with something unheard of in it must not hide the others
            LOG.exception("The table %s cannot be shown", self.path)
            return {**self._known, "error": f"It cannot be shown: {short_error(error)}"}
        return {"error": None, "facts": facts_of(found), "why": reasons_of(found)}


def facts_of(found: Explanation) -> Value:
    """Returns the facts about a table that the page shows, under the names that those about a stream have."""
    bounds = [link.bound for link in found.chain if link.bound is not None and not link.bound.isEnd]
    at = "; it has no bound yet" if found.bound is None else f", at {show_bound(found.bound)}"
    return {
        "kind": "table",
        "bound": bound_value(found.bound),
        "complete": found.complete,
        "holders": [],
        "holderCount": 0,
        "waitsFor": f"{found.holder or 'whoever writes it'}{at}",
        "largest": bound_value(max(bounds, key=lambda bound: bound.floor, default=None)),
        "seq": 0,
    }
