"""GatheringSink: gathers what a drain sends into commits."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.train import span
from spark_rowtime.drain.properties import exact_bound, require_at_or_after
from spark_rowtime.errors import SinkClosedError
from spark_rowtime.producer.block import BlockEnd
from spark_rowtime.store.forks import close_in_children
from spark_rowtime.types.schema import ROWTIME, batch_to_schema
from spark_rowtime.types.timestamps import SECOND_MICROS


class GatheringSink(BlockEnd):
    """The part of a table's sink that gathers: it commits when ``every`` has passed, or ``max_rows`` have come.

    ``bounds_every`` must have passed since the last commit for one that brings no rows; None: ``every``.

    Law (*flushed*, tests/tables/test_gathering.py): a commit has what ``flush`` was called for, with the position and
    the bound of the last one, and nothing that was sent since. What was gathered is committed, or the sink has ended:
    the next one reads the table's position. The bound never falls, and no row is below it.
    """

    def __init__(
        self,
        target: str,
        schema: pa.Schema,
        every: int,
        max_rows: int,
        bounds_every: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target = target
        self._bounds_every = (every if bounds_every is None else bounds_every) / SECOND_MICROS
        self._committed = float("-inf")
        """When the last commit was made."""
        self._schema, self._every, self._max_rows, self._now = schema, every / SECOND_MICROS, max_rows, now
        self._sent: list[pa.RecordBatch] = []
        self._sent_bound: RowtimeBound | None = None
        """What was sent since the last ``flush``."""
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bound: RowtimeBound | None = None
        self._checkpoint: str | None = None
        """The position after what was flushed, which may not be committed yet."""
        self._since: float | None = None
        """When the oldest of what is gathered came; None while nothing is."""
        self._ended = ""
        self._thread = ThreadPoolExecutor(1, "rowtime-table")
        self._write_future: Future[None] | None = None
        """What the thread writes, while the reader reads the next rows."""
        close_in_children(self)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.target}: {self._rows} row(s) gathered{self._ended and ', ' + self._ended}>"
        )

    @property
    def checkpoint(self) -> str | None:
        """The position that the table has: a drain continues there. None for a table without one."""
        raise NotImplementedError

    @property
    def rowtimeBound(self) -> RowtimeBound | None:
        """The bound of the table's last commit: no later row is below it. None while nothing is promised."""
        raise NotImplementedError

    def resume(self) -> str | None:
        """Begins a drain: what was sent since the last ``flush`` is dropped, and the drain sends it again.

        Returns:
            The position after what was flushed, which may not be committed yet: the drain continues there. None for a
            table without one.

        Raises:
            SinkClosedError: The sink is closed, or a commit failed.
        """
        self._require_open()
        self._sent, self._sent_bound = [], None
        return self._checkpoint

    def sendRows(self, rows: pa.RecordBatch) -> None:
        """Takes rows. They are in the table after the commit that a later ``flush`` leads to.

        Args:
            rows: An Arrow batch with the columns of the schema.

        Raises:
            SchemaMismatchError: The rows do not have the columns.
            DisorderedOutputError: A row is below a bound that was sent, or that the table has.
            SinkClosedError: The sink is closed, or a commit failed.
        """
        self._require_open()
        batch = rows if rows.schema == self._schema else batch_to_schema(rows, self._schema)
        ends, bound = span(batch), self._sent_bound or self._bound
        if ends is not None and bound is not None:
            require_at_or_after(bound, ends[0], ROWTIME, self.target)
        self._sent.append(batch)

    def sendRowtimeBound(self, t: Any, strict: bool = False) -> None:
        """Promises that no later row is below a bound. A later ``flush`` leads to its commit, with the rows before it.

        Args:
            t: A time, as for ``RowtimeBound``.
            strict: If True, every later row is after ``t``, not at it.
        """
        self._require_open()
        bound = exact_bound(t, strict) if not isinstance(t, RowtimeBound) else t
        before = self._sent_bound or self._bound
        self._sent_bound = bound if before is None else max(before, bound)

    def flush(self, checkpoint: str | None = None) -> None:
        """Takes what was sent into the next commit, and commits if that is due.

        Args:
            checkpoint: The reader's position after what was sent; None: as before.

        Raises:
            ProducerFencedError: Another drain has committed to the table.
            StoreUnavailableError: The table cannot be written.
        """
        self._require_open()
        with self._or_ended():
            self._take_sent(checkpoint)
            self._since = self._now() if self._since is None else self._since
        if self._rows >= self._max_rows:
            self._commit_in_background()
        else:
            self.commitDue()

    def _take_sent(self, checkpoint: str | None) -> None:
        """Moves what was sent, with the position behind it, to what is gathered."""
        for rows in self._sent:
            self._gather(rows)
        self._bound = self._sent_bound or self._bound
        self._checkpoint = checkpoint if checkpoint is not None else self._checkpoint
        self._sent, self._sent_bound = [], None

    def _gather(self, rows: pa.RecordBatch) -> None:
        self._batches.append(rows)
        self._rows += rows.num_rows

    def commitDue(self) -> float | None:
        """Commits if the interval has passed. A reader that waits for its stream calls this.

        Returns:
            The number of seconds until the next commit is due; None if nothing is gathered.
        """
        if self._since is None:
            return None
        left = self._due(self._since) - self._now()
        if left > 0:
            return left
        self.commit()
        return None

    def _due(self, since: float) -> float:
        """When what has been gathered since a moment is to be committed."""
        due = since + self._every
        return due if self._rows else max(due, self._committed + self._bounds_every)

    def commit(self) -> None:
        """Commits now what ``flush`` was called for, if there is anything."""
        self._require_open()
        if self._since is None:
            return
        with self._or_ended():
            self._write()
            self._since, self._committed = None, self._now()

    def close(self) -> None:
        """Commits what ``flush`` was called for, and closes the sink."""
        try:
            if not self._ended:
                self.commit()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes the sink without another commit. One that is under way is made."""
        self._ended = self._ended or "closed"
        if self._write_future is not None:
            self._write_future.exception()
        self._thread.shutdown()

    def close_inherited(self) -> None:
        """Ends the sink in a forked child, which has not its thread. The parent goes on with it."""
        self._ended, self._write_future = "it was opened in the process from which this one was forked", None

    def _write(self) -> None:
        raise NotImplementedError

    def _commit_in_background(self) -> None:
        raise NotImplementedError

    def _start(self, write: Callable[..., None], *what: Any) -> None:
        """Writes in the sink's thread; at most one write is under way."""
        self._wait()
        self._write_future = self._thread.submit(write, *what)

    def _wait(self) -> None:
        """Waits for the write that is under way; raises its error, after which the sink is of no more use."""
        if self._write_future is not None:
            with self._or_ended():
                self._write_future.result()
                self._write_future = None

    @contextmanager
    def _or_ended(self) -> Iterator[None]:
        """If the block raises, the sink ends and does not commit the rows that it still holds."""
        before, self._ended = self._ended, "a commit failed"
        yield
        self._ended = before

    def _taken(self) -> pa.Table:
        """All gathered rows, which are then no longer gathered."""
        batches, self._batches, self._rows = self._batches, [], 0
        return pa.Table.from_batches(batches, self._schema)

    def _require_open(self) -> None:
        if self._ended:
            raise SinkClosedError(
                f"The sink into {self.target} has ended: {self._ended}. Open another one; a drain into it "
                "continues at the table's position.",
                path=self.target,
            )
