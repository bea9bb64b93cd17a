"""Batch reads: the committed rows of a stream, and its views "bounds", "rejected" and "producers", as tables."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_rowtime.reader.release import Release
from spark_rowtime.spark.directory_mark import DirectoryMark
from spark_rowtime.spark.options import VIEWS, Options
from spark_rowtime.spark.partition import SlicePartition, plan, read_slices
from spark_rowtime.spark.versioned_pickle import VersionedPickle
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.views import BOUNDS_COLUMNS, rejected_schema

PRODUCERS_COLUMNS = pa.schema(
    [
        pa.field("producer", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("bound", pa.timestamp("us", "UTC")),
        pa.field("accepted", pa.int64(), nullable=False),
        pa.field("rejected", pa.int64(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("checkpoint", pa.string()),
    ]
)


class RowtimeBatchReader(VersionedPickle, DataSourceReader):
    """``spark.read.format("rowtime")``: reads up to the end that the stream had when the read was planned.

    ``columns`` is the number of columns that the stream or the view had when the read was analysed.
    """

    def __init__(self, options: Options, columns: int) -> None:
        self._columns = columns
        self._path, self._view = options.path, options.choice("view", *VIEWS)
        self._release = Release("arrival", since=options.release().since)

    def partitions(self) -> Sequence[InputPartition]:
        """Called once on the driver, when the read is planned."""
        if self._view != "rows" and (directory := DirectoryMark.of(self._path)):
            return [InputPartition(directory)]
        with open_store(self._path) as store:
            if self._view != "rows":
                return [InputPartition(view_table(store, self._view))]
            first, last = self._release.earliest(store), self._release.latest(store)
            everything = plan(store, self._release, first, last, self._columns)
            return list(everything) or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Called in a Python worker, once per partition."""
        if isinstance(partition, SlicePartition):
            yield from read_slices(partition)
        elif isinstance(partition.value, pa.Table):
            yield from partition.value.select(range(self._columns)).to_batches()
        elif partition.value is not None:
            partition.value.require_same()
            with open_store(self._path) as store:
                yield from view_table(store, self._view).select(range(self._columns)).to_batches()


def view_schema(path: str, view: str) -> pa.Schema:
    """Returns the columns of a view of the stream at ``path``."""
    with open_store(path) as store:
        views = {
            "rows": store.schema,
            "bounds": BOUNDS_COLUMNS,
            "rejected": rejected_schema(store.schema),
            "producers": PRODUCERS_COLUMNS,
        }
        return views[view]


def view_table(store: Store, view: str) -> pa.Table:
    """Returns the rows of a view other than "rows"."""
    if view == "bounds":
        return store.bounds()
    return store.rejected() if view == "rejected" else _producers(store)


def _producers(store: Store) -> pa.Table:
    found = store.snapshot().producers.values()
    bounds = pa.array([p.floor for p in found], pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = [
        [p.name for p in found],
        [p.status.value for p in found],
        bounds,
        [p.accepted for p in found],
        [p.rejected for p in found],
        [p.epoch for p in found],
        [p.checkpoint for p in found],
    ]
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, PRODUCERS_COLUMNS, strict=True)], schema=PRODUCERS_COLUMNS
    )
