"""StatusReporter: what a query tells about itself is kept in the streams that it reads."""

import json
import logging
import sys
import threading
from typing import Any

from spark_rowtime.errors import RowtimeError
from spark_rowtime.store.base import Store
from spark_rowtime.store.query_status import FAILED, REPORT_SECONDS, RUNNING, STOPPED
from spark_rowtime.store.snapshot import READER
from spark_rowtime.types.short_repr import short_error

LOG = logging.getLogger("spark_rowtime")
LEAST_SECONDS = 0.2
"""The least number of seconds between two reports, so that a query with many short batches writes few of them."""


class StatusReporter:
    """Reports a query's status to the store of one of its sources, as long as the process of the source lives.

    A thread writes it: soon after a batch, and every ``REPORT_SECONDS`` while there is no batch, or a long one. So who
    reads the status knows whether the query lives. The query's thread never waits for it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._status: dict[str, Any] = {}
        self._changed, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def running(self, status: str) -> None:
        """Takes the status of the query's last batch."""
        self._take(status)
        self._changed.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rowtime-report", daemon=True)
            self._thread.start()

    def ended(self, status: str, error: str | None) -> None:
        """Reports that the query has stopped, or failed with an error."""
        self._take(status)
        self._end(error)

    def close(self) -> None:
        """Called at the end of the process; while an error ends it, from the handler of that error.

        A query that is stopped is interrupted, and may not have told its end. Its process then reads the end of its
        input, and nothing else has failed.
        """
        error = sys.exc_info()[1]
        self._end(None if error is None or isinstance(error, EOFError) else short_error(error))

    def _end(self, error: str | None) -> None:
        """Ends the thread, and reports the end, unless it was reported before."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join()
        if self._status:
            self._write({"state": STOPPED if error is None else FAILED, "error": error})

    def _take(self, status: str) -> None:
        new: dict[str, Any] = json.loads(status)
        before = self._status or self._stored(new["query"])
        self._status = new if "batch" in new else {**before, **new}

    def _stored(self, query: str) -> dict[str, Any]:
        """The status of the query's last run, which stands until this run has a batch."""
        found = [a.content for a in self._store.snapshot().statuses if (a.role, a.name) == (READER, query)]
        return dict(json.loads(found[0])) if found else {}

    def _run(self) -> None:
        while not self._ended.is_set():
            self._changed.wait(REPORT_SECONDS)
            if self._ended.is_set():
                return
            self._changed.clear()
            self._write({"state": RUNNING, "error": None})
            self._ended.wait(LEAST_SECONDS)

    def _write(self, state: dict[str, Any]) -> None:
        status = {**self._status, **state}
        try:
            self._store.put_status(READER, status["query"], json.dumps(status, ensure_ascii=False))
        except RowtimeError:
            LOG.debug("The status of query %s could not be written", status["query"], exc_info=True)
