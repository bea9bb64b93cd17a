"""Outbox: the rows and bounds that a sink has taken and not yet committed."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.disorder import Disorder, InOrderPer
from spark_rowtime.bounds.train import Timed
from spark_rowtime.producer.interrupt_guard import InterruptGuard
from spark_rowtime.producer.row_buffer import RowBuffer
from spark_rowtime.store.base import Commit, ProducerInfo, Receipt, Rejected, Store

SMALL_BATCH_ROWS = 4096
"""Batches with fewer rows are joined to longer trains, if their schemas agree; larger ones are not copied."""


class Attempt(NamedTuple):
    """A commit that has not returned, and how many of the pending batches and changes of keys it contains."""

    commit: Commit
    batches: int
    touches: int


class Outbox:
    """Rows, the producer's floor after them, and rejections, in the order of the calls.

    Law (*all or nothing*): a commit that fails leaves everything pending, under the same number. A retry therefore
    lands it once, even if the failed commit had landed but had not returned, as when a signal handler raised.
    All methods are called under the sink's lock.
    """

    def __init__(self, store: Store, info: ProducerInfo, disorder: Disorder, max_train_rows: int, naive: bool) -> None:
        """``naive``: see RowBuffer."""
        self.producer = info.name
        self.committed_at = 0
        self._store, self._epoch, self._number = store, info.epoch, info.number
        self._max_train_rows = max_train_rows
        self._disorder, self._committed_disorder = disorder, info.disorder
        keys = disorder if isinstance(disorder, InOrderPer) else None
        self.rows = RowBuffer(store.schema, rises=disorder.implies, naive=naive, keys=keys)
        """The rows that came one by one since the last batch."""
        self._batches: list[Timed] = []
        self._count = 0
        self._floor = self._committed_floor = info.floor
        self._rejected: list[Rejected] = []
        self._touches = self._committed_touches = 0
        self._attempt: Attempt | None = None
        self.checkpoint = info.checkpoint
        """The checkpoint that was stored last."""
        self.interrupt_guard = InterruptGuard()
        self.failing = False
        """Whether the last commit in the background failed, that is, one outside of ``flush`` and ``close``."""

    @property
    def broken(self) -> bool:
        """Whether an interrupt has left the outbox incomplete, so that nothing of it may be used again."""
        return self.interrupt_guard.broken

    @property
    def pending(self) -> bool:
        """Whether there is anything to commit."""
        said = self._floor != self._committed_floor or self._touches != self._committed_touches
        return said or bool(self.count or self._rejected)

    @property
    def count(self) -> int:
        """The number of rows that are not committed."""
        return self._count + len(self.rows)

    @property
    def full(self) -> bool:
        """Whether the rows fill a train."""
        return self.count >= self._max_train_rows

    def open(self, ceiling: int | None, floor: int | None) -> None:
        """Lets ``rows`` take single rows of [floor, ceiling], up to one less than what fills the train."""
        left = self._max_train_rows - self._count % self._max_train_rows
        self.rows.open(floor, ceiling, left - 1)

    def add_batch(self, batch: Timed) -> None:
        """Adds checked rows after all earlier ones. Their types are the stream's; nullability may differ."""
        self._roll()
        self._batches.append(batch)
        self._count += batch.rows.num_rows

    def promise(self, floor: int) -> None:
        """Raises the producer's floor after the rows that were added so far."""
        self._floor = stronger(self._floor, floor)

    def touch(self) -> None:
        """Records that a bound for one value was raised, or a value was let go."""
        self._touches += 1

    def reject(self, rejected: list[Rejected]) -> None:
        """Adds rows that the next commit records as rejected."""
        self._rejected += rejected

    def failed(self, now: int) -> None:
        """Records that a commit in the background failed; the next call tries again and raises its error."""
        self.failing, self.committed_at = True, now

    def commit(self, checkpoint: str | None, now: int) -> Receipt:
        """Commits everything pending, in one commit."""
        late = self._landed_before()
        trains = tuple(self._store.stage(rows, ends) for rows, ends in self._trains())
        self._attempt = Attempt(
            Commit(
                self.producer,
                self._epoch,
                self._number + 1,
                trains,
                self._floor,
                tuple(self._rejected),
                checkpoint,
                self._disorder.state(),
                keys=self._disorder.changes(),
            ),
            len(self._batches),
            self._touches,
        )
        receipt = self._store.commit(self._attempt.commit)
        self._landed(self._attempt)
        self.committed_at, self.failing = now, False
        return replace(receipt, rejected=late + receipt.rejected)

    def _landed_before(self) -> tuple[Rejected, ...]:
        """Checks whether a commit that raised has landed nevertheless; returns the rows of it that the store rejected.

        If it has landed, no other commit could land under its number.
        """
        attempt = self._attempt
        stored = self._store.producer(self.producer) if attempt else None
        if attempt is None or stored is None or stored.number < attempt.commit.number:
            return ()
        late = self._store.commit(attempt.commit).rejected  # repeating it changes nothing
        self._landed(attempt)
        return late

    def _landed(self, attempt: "Attempt") -> None:
        commit = attempt.commit
        with self.interrupt_guard:
            self._batches = self._batches[attempt.batches :]
            self._count = sum(batch.rows.num_rows for batch in self._batches)
            self._rejected = self._rejected[len(commit.rejected) :]
            self._committed_floor, self._committed_disorder = commit.floor, commit.disorder
            self._committed_touches = attempt.touches
            if commit.keys is not None:
                self._disorder.landed(commit.keys)
            self.checkpoint = self.checkpoint if commit.checkpoint is None else commit.checkpoint
            self._number, self._attempt = commit.number, None

    def drop(self) -> None:
        """Drops the rows and bounds that were not committed; rejections stay."""
        self.rows.clear()
        self._batches, self._count = [], 0
        self._floor = self._committed_floor
        self._disorder.restore(self._committed_disorder)

    def renew(self) -> bool:
        """Renews the producer's lease; True if it had ended, so that the producer has joined again."""
        return self._store.renew(self.producer, self._epoch)

    def leave(self) -> None:
        """Records that the producer has closed."""
        self._store.leave(self.producer, self._epoch)

    def _roll(self) -> None:
        if len(self.rows):
            with self.interrupt_guard:
                self._count += len(self.rows)
                self._batches += map(Timed, self.rows.drain())

    def _trains(self) -> Iterator[tuple[pa.RecordBatch, tuple[int, int] | None]]:
        """The rows of each train, and their least and largest rowtime if these are known."""
        self._roll()
        schema = self._store.schema
        for (small, _), alike in groupby(self._batches, key=_shape):
            given = list(alike)
            rows = pa.Table.from_batches([batch.rows for batch in given])
            if not rows.schema.equals(schema, check_metadata=True):
                rows = pa.Table.from_arrays(rows.columns, schema=schema)
            trains = (rows.combine_chunks() if small else rows).to_batches(max_chunksize=self._max_train_rows)
            whole = not small and len(trains) == len(given)  # no batch was cut
            yield from zip(trains, [batch.ends for batch in given] if whole else [None] * len(trains), strict=True)


def _shape(batch: Timed) -> tuple[bool, pa.Schema]:
    return batch.rows.num_rows < SMALL_BATCH_ROWS, batch.rows.schema
