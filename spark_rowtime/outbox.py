"""Outbox: what a sink has taken and not yet committed."""

import pyarrow as pa

from spark_rowtime.bound import stronger
from spark_rowtime.disorder import Disorder
from spark_rowtime.intake import Values, checked_batch
from spark_rowtime.store.base import Commit, ProducerInfo, Receipt, Rejected, Store


class Outbox:
    """Rows, the producer's floor after them, and rejections, in the order of the calls.

    Law (*all or nothing*): a commit that fails leaves everything pending, under the same number, so
    that a retry lands it once. Called under the sink's lock.
    """

    def __init__(self, store: Store, info: ProducerInfo, disorder: Disorder, max_train_rows: int) -> None:
        self.producer = info.name
        self.committed_at = 0
        self._store, self._epoch, self._number = store, info.epoch, info.number
        self._max_train_rows = max_train_rows
        self._disorder, self._committed_disorder = disorder, info.disorder
        self._rows: list[Values] = []
        self._batches: list[pa.RecordBatch] = []
        self._count = 0
        self._floor = self._committed_floor = info.floor
        self._rejected: list[Rejected] = []
        self.failing = False
        """Whether the last commit that no call of ``flush`` or ``close`` asked for failed."""

    @property
    def pending(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._count or self._rejected) or self._floor != self._committed_floor

    @property
    def full(self) -> bool:
        """Whether there is a whole train of rows."""
        return self._count >= self._max_train_rows

    def add_row(self, row: Values) -> None:
        """One checked row."""
        self._rows.append(row)
        self._count += 1

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Checked rows, after all that were added before."""
        self._roll()
        self._batches.append(batch)
        self._count += batch.num_rows

    def promise(self, floor: int) -> None:
        """The producer's floor after what was added so far."""
        self._floor = stronger(self._floor, floor)

    def reject(self, rejected: list[Rejected]) -> None:
        """Rows to be recorded as rejected with the next commit."""
        self._rejected += rejected

    def failed(self, now: int) -> None:
        """A commit that nobody asked for failed; the next call tries again and raises what it meets."""
        self.failing, self.committed_at = True, now

    def commit(self, checkpoint: str | None, now: int) -> Receipt:
        """Everything pending, in one commit."""
        disorder = self._disorder.state()
        trains = tuple(self._store.stage(batch) for batch in self._trains())
        commit = Commit(
            self.producer,
            self._epoch,
            self._number + 1,
            trains,
            self._floor,
            tuple(self._rejected),
            checkpoint,
            disorder,
        )
        receipt = self._store.commit(commit)
        self._number += 1
        self._rows, self._batches, self._count, self._rejected = [], [], 0, []
        self._committed_floor, self._committed_disorder = self._floor, disorder
        self.committed_at, self.failing = now, False
        return receipt

    def drop(self) -> None:
        """Forgets rows and bounds that were not committed; rejections stay."""
        self._rows, self._batches, self._count = [], [], 0
        self._floor = self._committed_floor
        self._disorder.restore(self._committed_disorder)

    def renew(self) -> None:
        """Keeps the producer's lease."""
        self._store.renew(self.producer, self._epoch)

    def leave(self) -> None:
        """The producer closes."""
        self._store.leave(self.producer, self._epoch)

    def _roll(self) -> None:
        if self._rows:
            self._batches.append(checked_batch(self._rows, self._store.schema))
            self._rows = []

    def _trains(self) -> list[pa.RecordBatch]:
        self._roll()
        if not self._batches:
            return []
        rows = pa.Table.from_batches(self._batches).combine_chunks()
        trains: list[pa.RecordBatch] = rows.to_batches(max_chunksize=self._max_train_rows)
        return trains
