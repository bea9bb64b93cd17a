"""RowReader: a stream's rows in order, each train with the bound that follows it."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.bounds.train import Train, one_batch
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.reader.delivery import Delivery
from spark_rowtime.reader.release import Release, dump_position, load_position, release, start_bound
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Position, Store
from spark_rowtime.store.retention import SEEN_SECONDS
from spark_rowtime.types.arguments import to_flag, to_text
from spark_rowtime.types.schema import ROWTIME


class _Unfinished(NamedTuple):
    """A train on which a drain failed: the sink, what is left of it, and where the reader was before it."""

    sink: Any
    delivery: Delivery
    before: Position


TRAIN_ROWS, TRAIN_BYTES = 65536, 1 << 30
EXPIRY_CHECK_SECONDS = 1.0
"""Seconds after which a reader that waits looks for leases that have ended."""


class RowReader:
    """Reads a stream; see ``openReader``. Several readers of a stream do not meet.

    Several threads may read from one reader: each train goes to one of them. ``drainTo`` needs it for itself.

    One with a name tells the stream where it is when it opens and each time that it is asked for the next train.

    Law: each row is handed out once, none below a bound that was handed out before it; in
    ``order="rowtime"`` sorted by rowtime, rows of one rowtime in the order of their commits.
    """

    def __init__(
        self, store: Store, how: Release, start: Any = "earliest", follow: bool = False, name: str | None = None
    ) -> None:
        self._store, self._how, self._follow, self._name = store, how, follow, name
        self._kept: Position | None = None
        self._lock = threading.RLock()
        self._drained_by: int | None = None
        self._unfinished: _Unfinished | None = None
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
        reader follows. Raises InvalidOptionError while another thread drains this reader.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._drained_by not in (None, threading.get_ident()):
            raise _is_drained()
        if not self._lock.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)):
            return None
        try:
            return self._read(deadline)
        finally:
            self._lock.release()

    def _read(self, deadline: float | None) -> Train | None:
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
            self._store.wait(seen, EXPIRY_CHECK_SECONDS if left is None else min(left, EXPIRY_CHECK_SECONDS))

    def __iter__(self) -> Iterator[Train]:
        """The trains up to the end of the log; a reader that follows never ends."""
        while (train := self.read()) is not None:
            yield train

    def drainTo(self, sink: Any) -> None:
        """Sends every train to ``sink``: an object with sendRows and sendRowtimeBound.

        A sink with ``checkpoint`` and ``flush(checkpoint=...)`` keeps this reader's position with its
        rows, and a drain into it resumes from there. After an error the same sink may be drained into again: what
        it has taken is not sent twice. Where it has ``flush`` and is none of ``openSink``, whether it has kept the
        rows is not known, and SinkClosedError is raised: make a new one.
        """
        with self._alone():
            self._finish_delivery(sink)
            checkpoint = getattr(sink, "checkpoint", None)
            if checkpoint is not None:
                self._resume(checkpoint)
            elif isinstance(sink, StreamSink):
                sink.flush(checkpoint=self.position)  # from now on linger shows no row without its position
            while self._deliver(sink):
                pass

    def _deliver(self, sink: Any) -> bool:
        """The next train, if there is one. Where this fails, the reader is before it: another sink gets it whole."""
        before = self._at
        try:
            train = self.read()
            if train is None:
                return False
            delivery = Delivery(train, self.position, hasattr(sink, "flush"))
            self._unfinished = _Unfinished(sink, delivery, before)
            if isinstance(sink, StreamSink):
                sink.delivery = delivery  # the next drain into it may be another reader's
            delivery.finish(sink)
        except BaseException:
            self._at = before
            raise
        self._unfinished = None
        return True

    def _finish_delivery(self, sink: Any) -> None:
        """Gives ``sink`` what is left of a train on which an earlier drain into it failed."""
        last, self._unfinished = self._unfinished, None
        if isinstance(sink, StreamSink):
            if sink.delivery is not None:
                sink.delivery.finish(sink)
        elif last is not None and last.sink is sink:
            self._unfinished = last
            last.delivery.finish(sink)
            if self._at == last.before:
                self._resume(last.delivery.position)
            self._unfinished = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise _is_drained()
        self._drained_by = threading.get_ident()
        try:
            yield
        finally:
            self._drained_by = None
            self._lock.release()

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
        train = Train(one_batch(rows), as_bound(to.floor))
        self._at = to  # last: where something raises before it, this train is the next one again
        return train


def _is_drained() -> InvalidOptionError:
    return InvalidOptionError(
        "Another thread uses this reader: drainTo needs a reader for itself. Open one for each thread; a reader's "
        "rows may be shared out among threads by read() or iteration alone."
    )


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
