"""RowReader: a stream's rows in order, each train with the bound that follows it."""

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from numbers import Real
from typing import Any, NamedTuple, NoReturn, Self

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound, is_end
from spark_rowtime.bounds.train import Timed, Train, one_batch
from spark_rowtime.errors import DataLostError, InvalidOptionError, StoreCorruptError, not_serializable
from spark_rowtime.producer.fork_guard import refuse_in_forks
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.reader.delivery import Delivery, gathers, require_consumer, resumes
from spark_rowtime.reader.held_back import say_held_back
from spark_rowtime.reader.release import Release, dump_position, is_position, load_position, release, start_bound
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.position import Position
from spark_rowtime.store.registration import Registration
from spark_rowtime.types.arguments import known_keywords, to_flag, to_name
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import SECOND_MICROS, to_required_interval


class _Unfinished(NamedTuple):
    """A train on which a drain failed: the sink, the calls that are left, and the reader's position before it."""

    sink: Any
    delivery: Delivery
    before: Position


class _Begun(NamedTuple):
    """A step of which the first trains were read, as ``parts``, before one could not be.

    The next call goes on with it if its step is the same: another server may have taken over, with another log.
    """

    at: Position
    to: Position
    parts: list[pa.RecordBatch]


TRAIN_ROWS, TRAIN_BYTES = 65536, 1 << 30
LOCATION_TRAIN_BYTES = 16 << 20
"""As ``TRAIN_BYTES``, of a stream with a location in order of arrival: some 256 objects at most, which a reader that is
opened again after a failure reads again. In order of rowtime, trains that overlap would be read for each step."""
EXPIRY_CHECK_SECONDS = 1.0
"""Seconds between two checks for ended leases by a waiting reader."""
QUIET_SECONDS = 10.0
"""After so many seconds without a train a reader at a stream without a bound says so."""


class RowReader:
    """Reads a stream; ``openReader`` returns it. The readers of a stream are independent of each other.

    Iteration yields trains up to the end of the log; a reader with ``follow=True`` waits there for more.
    Several threads may read from one reader: each train goes to one of them. ``drainTo`` needs the reader for itself.
    A reader is a context manager: leaving the block calls ``close``.

    Rows wait for the stream's bound. At the end of a stream without one, or after ten seconds there, a reader in order
    of rowtime logs, once, how many rows wait, and for whom.

    A reader with a name reports its position to the stream each time that the next train is requested. When it opens,
    it registers there, but does not go beyond what an earlier one of the name has read: a drain that is started again
    continues at its sink's position.

    Law: each row is handed out once, and no row below a bound that was handed out before it; with
    ``order="rowtime"`` rows are sorted by rowtime, and rows of the same rowtime come in the order of their commits.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-rowreader", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-rowreader") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> with rt.openReader("memory://docs-rowreader") as reader:
        ...     for train in reader:
        ...         print(train.rows.column("ticker").to_pylist(), train.bound)
        ['IBM'] every later row is at or after 2026-01-05T14:30:00Z
    """

    def __init__(
        self, store: Store, how: Release, start: Any = "earliest", follow: bool = False, name: str | None = None
    ) -> None:
        self._store, self._how, self._follow, self._name = store, how, follow, name
        self._registration = None if name is None else Registration(store, name)
        self._confirmed: Position | None = None
        """What a sink that gathers has committed, during a drain into it."""
        self._lock = threading.RLock()
        refuse_in_forks(self, "reader", "_lock")
        self._drained_by: int | None = None
        self._unfinished: _Unfinished | None = None
        self._begun: _Begun | None = None
        self._closed = self._hasSaid = False
        self._quiet_since: float | None = None
        """When this reader first found no train since the last one."""
        self._lost: DataLostError | None = None
        """Why this reader cannot read from ``start`` on. A drain may go on at its sink's position."""
        text = start if isinstance(start, str) else ""
        if text == "latest":
            self._at = how.latest(store)
        elif text.startswith("{"):
            self._resume(text)
        else:
            self._how = how if text == "earliest" else replace(how, since=start_bound(start))
            self._lost, self._at = self._how.lost(store), self._how.first_left(store)
        self._register()

    def __repr__(self) -> str:
        bound = as_bound(self._at.floor) or "no bound"
        of = f"{type(self).__name__} {self._name!r}" if self._name else type(self).__name__
        state = "closed" if self._closed else "following" if self._follow else "open"
        return f"<{of} of {self._store.path}: order {self._how.order!r}, seq {self._at.seq}, {bound}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise not_serializable("reader", self._store.path)

    @property
    def schema(self) -> pa.Schema:
        """The stream's schema, as a pyarrow schema.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-readerschema", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openReader("memory://docs-readerschema") as reader:
            ...     reader.schema.names
            ['rowtime', 'ticker']
        """
        return self._store.schema

    @property
    def position(self) -> str:
        """The position of this reader, as JSON. ``openReader(..., start=position)`` resumes there.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-position", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-position") as sink:
            ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
            >>> with rt.openReader("memory://docs-position") as reader:
            ...     trains, position = list(reader), reader.position
            >>> with rt.openReader("memory://docs-position", start=position) as reader:
            ...     list(reader)
            []
        """
        self._require_start()
        fields = dump_position(self._at, self._store.stream, self._how.order)
        return json.dumps(fields if self._how.since is None else {**fields, "since": self._how.since})

    def getRowtimeBound(self) -> RowtimeBound | None:
        """Returns a lower bound on the rows that were not yet handed out.

        Returns:
            A non-strict bound, which may rise; None while there is none.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-readerbound", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-readerbound") as sink:
            ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
            >>> with rt.openReader("memory://docs-readerbound") as reader:
            ...     train = reader.read()
            ...     reader.getRowtimeBound()
            RowtimeBound('2026-01-05T14:30:00Z')
        """
        return as_bound(self._at.floor)

    def read(self, timeout: float | str | timedelta | None = None) -> Train | None:
        """Reads the next train: rows, or a bound that has moved, or both.

        Args:
            timeout: How long to wait for a train: a number of seconds, or an interval such as "500 ms". None: does not
                wait, or, with ``follow=True``, waits without a limit.

        Returns:
            The next train; None if there is none within the time.

        Raises:
            InvalidOptionError: Another thread drains this reader; or ``timeout`` is no length of time.
            DataLostError: Rows after this reader's position were removed from the stream.
            StoreUnavailableError: The store cannot be read just now; with a ``timeout`` also if a database does not
                answer within the time, or within five seconds if that is more.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-read", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-read") as sink:
            ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
            >>> with rt.openReader("memory://docs-read") as reader:
            ...     reader.read().rows.num_rows
            ...     reader.read(timeout=0.1) is None
            1
            True
        """
        timeout = _seconds(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._drained_by not in (None, threading.get_ident()):
            raise _is_drained()
        if not self._lock.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)):
            return None
        try:
            if timeout is None:
                return self._read(None)
            with self._store.answering(timeout):
                return self._read(deadline)
        finally:
            self._lock.release()

    def _read(self, deadline: float | None) -> Train | None:
        self._require_start()
        while True:
            self._keep()
            self._store.expire()
            seen = self._store.head().seq
            train = self._next()
            now = time.monotonic()
            if train is not None:
                self._quiet_since = None
                return train
            self._quiet_since = now if self._quiet_since is None else self._quiet_since
            left = None if deadline is None else deadline - now
            ends = left is None and not self._follows()
            if ends or now - self._quiet_since >= QUIET_SECONDS:
                self._say_held_back()
            if ends or (left is not None and left <= 0):
                return None
            self._store.wait(seen, EXPIRY_CHECK_SECONDS if left is None else min(left, EXPIRY_CHECK_SECONDS))

    def _say_held_back(self) -> None:
        """Says once that rows wait for a bound, if there is none: all of them, and nobody may ever send it."""
        if self._how.order == "rowtime" and self._at.floor is None and not self._hasSaid:
            self._hasSaid = True
            say_held_back(self._store)

    def _follows(self) -> bool:
        """Whether more may come: not after all rows of a stream whose producers are complete."""
        return self._follow and not is_end(self._at.floor)

    def __iter__(self) -> Iterator[Train]:
        """Yields the trains up to the end of the log; with ``follow=True``, until the stream is complete."""
        while (train := self.read()) is not None:
            yield train

    def drainTo(self, sink: Any) -> None:
        """Sends every train to ``sink``, up to the end of the log; with ``follow=True``, until the stream is complete.

        A sink with ``checkpoint`` and ``flush(checkpoint=...)`` keeps this reader's position with its
        rows, and a drain into it resumes there. A sink that gathers several trains into one commit also has
        ``commit()`` and ``commitDue()``. The latter commits what is due, and returns the number of seconds until the
        next commit, or None; ``checkpoint`` is then the position that is committed. If it keeps what it has gathered
        from drain to drain, it has ``resume()``, which drops what was sent since the last ``flush`` and returns the
        position of that one, where the drain goes on.

        After an error the same sink may be drained into again: what it has taken is not sent twice. If the sink has
        ``flush``, but no ``resume``, and is not from ``openSink``, it is not known whether it has kept the rows, and
        the next drain raises SinkClosedError: make a new sink.

        Rows that the sink rejects as late are recorded there, and counted, each time that they are sent: with
        ``onLate="raise"`` a drain ends at a train with a late row, and each further drain into that sink sends the
        train, and records its late rows, again. Drain into a sink with ``onLate="reject"`` to go on.

        Args:
            sink: An object with ``sendRows`` and ``sendRowtimeBound``; see ``RowSink``.

        Raises:
            InvalidOptionError: The sink lacks a method, or another thread uses this reader.
            SinkClosedError: An earlier drain into this sink failed, and whether it has kept the rows is not known.
            DataLostError: Rows after this reader's position were removed from the stream.
            StoreCorruptError: The position of a table is none, as where others have written it.
            Exception: Whatever the sink raises.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-drainfrom", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with rt.openSink("memory://docs-drainfrom") as sink:
            ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
            >>> rt.createStream("memory://docs-drainto", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> with (
            ...     rt.openReader("memory://docs-drainfrom") as reader,
            ...     rt.openSink("memory://docs-drainto", producer="copy") as copy,
            ... ):
            ...     reader.drainTo(copy)
            >>> rt.describeStream("memory://docs-drainto").rows
            1
        """
        require_consumer(sink)
        with self._alone():
            self._finish_delivery(sink)
            position = sink.resume() if resumes(sink) else getattr(sink, "checkpoint", None)
            if position is not None:
                _require_position(sink, position)
                self._resume(position)
            elif isinstance(sink, StreamSink) or gathers(sink):
                sink.flush(checkpoint=self.position)  # from now on no row becomes visible without its position
            if gathers(sink):
                sink.commit()
            while self._deliver(sink):
                pass
            if gathers(sink):
                sink.commit()
                self._confirm(sink)
                self._keep()

    def _deliver(self, sink: Any) -> bool:
        """Delivers the next train; False if there is none.

        If this fails, the reader's position stays before the train, so that another sink gets the whole train.
        """
        before = self._at
        try:
            train = self._awaited(sink) if gathers(sink) else self.read()
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

    def _awaited(self, sink: Any) -> Train | None:
        """The next train for a sink that gathers, which commits what is due while the stream has nothing."""
        while True:
            seconds = sink.commitDue()
            self._confirm(sink)
            if seconds is None or not self._follows():
                return self.read()
            if (train := self.read(timeout=seconds)) is not None:
                return train

    def _confirm(self, sink: Any) -> None:
        """A named reader confirms what a sink that gathers has committed, not what it has gathered."""
        if (committed := sink.checkpoint) is not None:
            self._confirmed = load_position(committed, self._store.stream, self._how.order, self._store.ancestors)

    def _finish_delivery(self, sink: Any) -> None:
        """Makes the remaining calls for a train on which an earlier drain into ``sink`` failed."""
        last, self._unfinished = self._unfinished, None
        if isinstance(sink, StreamSink):
            if sink.delivery is not None:
                sink.delivery.finish(sink)
        elif last is not None and last.sink is sink and not resumes(sink):
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
            self._drained_by = self._confirmed = None
            self._lock.release()

    def close(self) -> None:
        """Closes the reader, and frees what it holds open.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-readerclose", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> reader = rt.openReader("memory://docs-readerclose")
            >>> reader.close()
        """
        self._closed = True
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _resume(self, position: str) -> None:
        self._at = load_position(position, self._store.stream, self._how.order, self._store.ancestors)
        self._how = replace(self._how, since=json.loads(position).get("since"))
        self._lost = self._begun = None

    def _require_start(self) -> None:
        if self._lost is not None:
            raise self._lost

    def _register(self) -> None:
        """Registers a named reader, unless one of its name is registered with rows before this position unread."""
        if self._name is not None and not any(
            known.name == self._name and known.position.is_behind(self._at) for known in self._store.snapshot().readers
        ):
            self._keep()

    def _keep(self) -> None:
        """Reports the position of a named reader: a request for the next train confirms the trains before it."""
        if self._registration is not None:
            self._registration.keep(self._at if self._confirmed is None else self._confirmed)

    def _next(self) -> Train | None:
        at, to = self._at, self._how.step(self._store, self._at)
        if to == at:
            return None
        if self._begun is None or (self._begun.at, self._begun.to) != (at, to):
            self._begun = _Begun(at, to, [])
        parts, pieces = self._begun.parts, self._how.slices(self._store, at, to)
        for piece in pieces[len(parts) :]:
            parts.append(self._how.rows(self._store, piece, at, to))
        rows = one_batch(pa.Table.from_batches(parts, self._store.schema))
        if self._how.order == "rowtime" and rows.num_rows and not Timed(rows).rises:
            rows = rows.sort_by(ROWTIME)
        train = Train(rows, as_bound(to.floor))
        self._at, self._begun = to, None  # last: if something raises before this line, this train is the next one again
        return train


def _seconds(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, Real) and not math.isnan(timeout):
        with suppress(OverflowError):
            return float(timeout)
    if isinstance(timeout, str | timedelta):
        return to_required_interval(timeout, "timeout") / SECOND_MICROS
    raise InvalidOptionError(
        f"timeout={short_repr(timeout)} is no length of time. Give a number of seconds, such as 0.5, an interval, such "
        "as '500 ms', or a timedelta.",
        option="timeout",
        value=short_repr(timeout),
    )


def _require_position(sink: Any, position: Any) -> None:
    """Raises StoreCorruptError if a target has something else than a position: nobody has given it as a start."""
    place = getattr(sink, "checkpointPlace", None)
    if place is not None and not is_position(position):
        raise StoreCorruptError(
            f"The position in {place} is {short_repr(position)}, which is no position of a reader. How far the "
            "stream has come there is not known. Drain into a new one, or set it back to before that commit, or let "
            "its writer make another commit with the properties (rowtime.*) of the last right one.",
            path=getattr(sink, "target", None),
        )


def _is_drained() -> InvalidOptionError:
    return InvalidOptionError(
        "Another thread uses this reader, but drainTo needs a reader of its own. Open one for each thread. Threads "
        "that share a reader can only call read() or iterate."
    )


@known_keywords
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

    Args:
        path: The path of the stream, as for ``createStream``.
        order: "rowtime": rows come sorted by rowtime, as the stream's bound releases them. "arrival": rows come in
            the order of their commits.
        start: "earliest"; "latest"; a time in any form that ``RowtimeBound`` takes, so that rows before it are left
            out; or the ``position`` of a reader of the same stream and order.
        hold: An interval, such as "1 minute" or a timedelta: a row is handed out only once the stream is that far
            past it (Feldera's WATERMARK). None: rows are not held.
        follow: If True, iteration and ``read`` wait for more at the end of the log.
        name: A name under which the stream's retention keeps what this reader has still to read, also while it does
            not run. A train counts as read when the next one is requested. ``rowtime gc --forget`` ends that. None:
            retention does not regard this reader.

    Returns:
        The reader; it is a context manager that closes itself.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StoreCorruptError: The stream's files do not hold what was written.
        InvalidOptionError: An argument has a value that cannot be used.

    Reading raises DataLostError if rows from ``start`` on, or after the reader's position, were removed from the
    stream. A drain into a sink that has a position goes on there, whatever ``start`` is.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-openreader", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-openreader", lateness="1 hour") as sink:
        ...     sink.sendRow(("2026-01-05T14:31:00Z", "AAPL"))
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> with rt.openReader("memory://docs-openreader") as reader:
        ...     [train.rows.column("ticker").to_pylist() for train in reader]
        [['IBM', 'AAPL']]
        >>> with rt.openReader("memory://docs-openreader", order="arrival", start="2026-01-05T14:31:00Z") as reader:
        ...     [train.rows.column("ticker").to_pylist() for train in reader]
        [['AAPL']]
    """
    how = release(order, hold, max_rows=TRAIN_ROWS, max_bytes=TRAIN_BYTES)
    to_flag(follow, "follow")
    label = None if name is None else to_name(name, "name")
    store = open_store(path)
    try:
        if store.objects is not None and order == "arrival":
            how = replace(how, max_bytes=LOCATION_TRAIN_BYTES)
        return RowReader(store, how, start, follow, label)
    except BaseException:
        store.close()
        raise
