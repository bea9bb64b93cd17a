"""What one Spark task reads: some trains, and the positions between which their rows lie."""

from collections.abc import Iterator
from itertools import groupby

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from spark_rowtime.release import Release
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Position, Slice, Store

PARTITION_ROWS = 262_144
"""About as many rows as one task reads: enough to be worth a task, few enough to use all cores."""


class SlicePartition(InputPartition):
    """Pickled on the driver, read in a Python worker that needs nothing else."""

    def __init__(self, path: str, pieces: list[Slice], how: Release, after: Position, upto: Position) -> None:
        self.path, self.pieces, self.how, self.after, self.upto = path, pieces, how, after, upto


def plan(store: Store, how: Release, after: Position, upto: Position) -> list[SlicePartition]:
    """The rows between two positions as partitions; none where only the bound has moved."""
    starts, total = [], 0
    pieces = how.slices(store, after, upto)
    for piece in pieces:
        starts.append(total // PARTITION_ROWS)
        total += piece.rows
    numbered = zip(starts, pieces, strict=True)
    return [
        SlicePartition(store.path, [piece for _, piece in group], how, after, upto)
        for _, group in groupby(numbered, key=lambda pair: pair[0])
    ]


def read_slices(partition: SlicePartition) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, a batch a train, as they lie in the store."""
    store = open_store(partition.path)
    try:
        for piece in partition.pieces:
            rows = partition.how.rows(store, piece, partition.after, partition.upto)
            if rows.num_rows:
                yield rows
    finally:
        store.close()
