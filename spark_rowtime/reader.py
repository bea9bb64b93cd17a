"""RowReader: a stream's rows in order, each train with the bound that follows it."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from spark_rowtime.arguments import to_flag, to_text
from spark_rowtime.bound import RowtimeBound, as_bound
from spark_rowtime.release import Release, dump_position, load_position, release, start_bound
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Position, Store
from spark_rowtime.store.retention import SEEN_SECONDS
from spark_rowtime.streamsink import StreamSink
from spark_rowtime.train import ROWTIME, Train, one_batch

TRAIN_ROWS, TRAIN_BYTES = 65536, 1 << 30
EXPIRY = 1.0
"""Seconds after which a reader that waits looks for leases that have ended."""


class RowReader:
    """Reads a stream; see ``openReader``. One thread; several readers of a stream do not meet.

    One with a name tells the stream where it is when it opens and each time that it is asked for the next train.

    Law: each row is handed out once, none below a bound that was handed out before it; in
    ``order="rowtime"`` sorted by rowtime, rows of one rowtime in the order of their commits.
    """

    def __init__(
        self, store: Store, how: Release, start: Any = "earliest", follow: bool = False, name: str | None = None
    ) -> None:
        self._store, self._how, self._follow, self._name = store, how, follow, name
        self._kept: Position | None = None
        self._kept_at = 0.0
        text = start if isinstance(start, str) else ""
        if text == "latest":
            self._at = how.latest(store)
        elif text.startswith("{"):
            self._resume(text)
        else:
            self._how = how if text == "earliest" else replace(how, since=start_bound(start))
            self._at = self._how.earliest(store)
        self._keep()

    @property
    def schema(self) -> pa.Schema:
        """The stream's schema."""
        return self._store.schema

    @property
    def position(self) -> str:
        """Where this reader is, as JSON: ``openReader(..., start=position)`` goes on from there."""
        fields = dump_position(self._at, self._store.stream, self._how.order)
        return json.dumps(fields if self._how.since is None else {**fields, "since": self._how.since})

    def getRowtimeBound(self) -> RowtimeBound | None:
        """A non-strict lower bound on rows not yet handed out; None while there is none. It may rise."""
        return as_bound(self._at.floor)

    def read(self, timeout: float | None = None) -> Train | None:
        """The next train: rows, or a bound that has moved, or both.

        None if there is none within ``timeout`` seconds; without a timeout, at once, or never if the
        reader follows.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._keep()
            self._store.expire()
            seen = self._store.head().seq
            train = self._next()
            if train is not None:
                return train
            left = None if deadline is None else deadline - time.monotonic()
            if (left is None and not self._follow) or (left is not None and left <= 0):
                return None
            self._store.wait(seen, EXPIRY if left is None else min(left, EXPIRY))

    def __iter__(self) -> Iterator[Train]:
        """The trains up to the end of the log; a reader that follows never ends."""
        while (train := self.read()) is not None:
            yield train

    def drainTo(self, sink: Any) -> None:
        """Sends every train to ``sink``: an object with sendRows and sendRowtimeBound.

        A sink with ``checkpoint`` and ``flush(checkpoint=...)`` keeps this reader's position with its
        rows, and a drain into it resumes from there.
        """
        flush: Callable[..., Any] | None = getattr(sink, "flush", None)
        checkpoint = getattr(sink, "checkpoint", None)
        if checkpoint is not None:
            self._resume(checkpoint)
        elif isinstance(sink, StreamSink):
            sink.flush(checkpoint=self.position)  # from now on linger shows no row without its position
        for train in self:
            if train.rows.num_rows:
                sink.sendRows(train.rows)
            if train.bound is not None:
                sink.sendRowtimeBound(train.bound.time, strict=train.bound.strict)
            if flush is not None:
                flush(checkpoint=self.position)

    def close(self) -> None:
        """Frees what is open."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _resume(self, position: str) -> None:
        self._at = load_position(position, self._store.stream, self._how.order)
        self._how = replace(self._how, since=json.loads(position).get("since"))

    def _keep(self) -> None:
        """All trains that were read are done with: the next one is asked for."""
        if self._name is not None and (self._at != self._kept or time.monotonic() - self._kept_at > SEEN_SECONDS):
            self._store.keep(self._name, self._at)
            self._kept, self._kept_at = self._at, time.monotonic()

    def _next(self) -> Train | None:
        to = self._how.step(self._store, self._at)
        if to == self._at:
            return None
        pieces = self._how.slices(self._store, self._at, to)
        parts = [self._how.rows(self._store, piece, self._at, to) for piece in pieces]
        rows = pa.Table.from_batches(parts, self._store.schema)
        if self._how.order == "rowtime" and rows.num_rows:
            rows = rows.sort_by(ROWTIME)
        self._at = to
        return Train(one_batch(rows), as_bound(to.floor))


def openReader(
    path: str,
    *,
    order: str = "rowtime",
    start: Any = "earliest",
    hold: str | timedelta | None = None,
    follow: bool = False,
    name: str | None = None,
) -> RowReader:
    """Opens the stream at ``path`` for reading.

    - ``order``: "rowtime" hands rows out sorted, as the stream's bound releases them; "arrival" as
      they are committed.
    - ``start``: "earliest", "latest", a time (rows before it are left out), or a reader's ``position``.
    - ``hold``: hand a row out only once the stream is that far past it (Feldera's WATERMARK).
    - ``follow``: iterating waits for more at the end of the log.
    - ``name``: what this reader has still to read is kept for it by the stream's retention, also while it
      is not running; a train counts as read when the next one is asked for. ``rowtime gc --forget`` ends that.

    Raises StreamNotFoundError, StoreCorruptError, InvalidOptionError; DataLostError, also while reading, where
    rows from ``start`` on, or from where it is, were removed.
    """
    how = release(order, hold, max_rows=TRAIN_ROWS, max_bytes=TRAIN_BYTES)
    to_flag(follow, "follow")
    label = None if name is None else to_text(name, "name")
    store = open_store(path)
    try:
        return RowReader(store, how, start, follow, label)
    except BaseException:
        store.close()
        raise
