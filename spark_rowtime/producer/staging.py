"""Staging: the pending batches as trains whose bytes the store has."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.train import Timed
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Staged

SMALL_BATCH_ROWS = 4096
"""Batches with fewer rows are joined to longer trains, if their schemas agree; larger ones are not copied."""
Train = tuple[pa.RecordBatch, tuple[int, int] | None]
"""The rows of a train, and their least and largest rowtime if these are known."""


class _Plan(NamedTuple):
    """The trains of the first pending batches, and those of them that the store has."""

    batches: int
    trains: list[Train]
    staged: list[Staged]


_NOTHING = _Plan(0, [], [])


class Staging:
    """Stages the pending batches, each once: what an attempt has staged that failed, the next one commits.

    That holds for stores that keep it (``Store.keeps_staged``). Elsewhere each attempt stages everything again. An
    interrupt at any point leaves no train out, and none twice.
    """

    def __init__(self, store: Store, max_train_rows: int) -> None:
        self._store, self._max_train_rows, self._plan = store, max_train_rows, _NOTHING

    def stage(self, batches: Sequence[Timed]) -> tuple[Staged, ...]:
        """Returns all batches as trains. ``batches`` begin with those of the last call, if that did not land."""
        done = self._plan if self._store.keeps_staged else _NOTHING
        more = list(_trains(batches[done.batches :], self._max_train_rows))
        plan = self._plan = _Plan(len(batches), done.trains + more, list(done.staged))
        while len(plan.staged) < len(plan.trains):
            plan.staged.append(self._store.stage(*plan.trains[len(plan.staged)]))
        return tuple(plan.staged)

    def forget(self) -> None:
        """Forgets what was staged: it has landed, was dropped, or is gone."""
        self._plan = _NOTHING


def _trains(batches: Sequence[Timed], most_rows: int) -> Iterator[Train]:
    for (small, _), alike in groupby(batches, key=_shape):
        given = list(alike)
        if len(given) == 1 and len(given[0].micros) <= most_rows:
            yield given[0].rows, given[0].ends
            continue
        rows = pa.Table.from_batches([batch.rows for batch in given])
        trains = (rows.combine_chunks() if small else rows).to_batches(max_chunksize=most_rows)
        whole = not small and len(trains) == len(given)  # no batch was cut
        yield from zip(trains, [batch.ends for batch in given] if whole else [None] * len(trains), strict=True)


def _shape(batch: Timed) -> tuple[bool, pa.Schema]:
    return batch.rows.num_rows < SMALL_BATCH_ROWS, batch.rows.schema
