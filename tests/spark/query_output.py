"""Helpers for tests that look at a query batch by batch, or at a stream through Spark's batch reads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.streams import clock_of


def plain(row: Any) -> tuple[Any, ...]:
    """A row with its first value, a rowtime, as a clock time."""
    return (clock_of(row[0]), *row[1:])


class Watched:
    """A query into foreachBatch, with its batches and the bound after each."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[Any, ...]]] = []
        self.bounds: list[rt.RowtimeBound | None] = []
        self.partitions: list[int] = []
        self._seen = 0
        self.then: Callable[[], None] = lambda: None
        self.query: StreamingQuery | None = None

    def __call__(self, frame: DataFrame, _: int) -> None:
        self.partitions.append(frame.rdd.getNumPartitions())
        self.batches.append(collected(frame))
        self.bounds.append(rt.currentRowtimeBound())
        self.then()

    def start(self, frame: DataFrame, checkpoint: Path | None = None, every: str = "0 seconds") -> Self:
        """Starts the query, which runs until it is stopped."""
        writer = frame.writeStream.foreachBatch(self).trigger(processingTime=every)
        self.query = (writer.option("checkpointLocation", str(checkpoint)) if checkpoint else writer).start()
        return self

    def all_available(self, frame: DataFrame, checkpoint: Path | None = None) -> Self:
        """Runs the query with Trigger.AvailableNow, and waits for its end."""
        writer = frame.writeStream.foreachBatch(self).trigger(availableNow=True)
        self.query = (writer.option("checkpointLocation", str(checkpoint)) if checkpoint else writer).start()
        assert self.query.awaitTermination(240), "AvailableNow has not ended"
        return self

    def step(self) -> list[tuple[Any, ...]]:
        """Waits until the query has processed all available data; returns the new rows."""
        assert self.query is not None
        self.query.processAllAvailable()
        before, self._seen = self._seen, len(self.batches)
        return sorted(row for batch in self.batches[before:] for row in batch)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """All rows of all batches."""
        return sorted(row for batch in self.batches for row in batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.query is not None:
            self.query.stop()


def table(spark: SparkSession, path: str, view: str = "rows") -> list[tuple[Any, ...]]:
    """A batch read of a stream or of a view of it."""
    return [tuple(row) for row in spark.read.format("rowtime").option("view", view).load(path).collect()]


def rows_of(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    """The committed rows, rowtime as a clock time."""
    return sorted(plain(row) for row in table(spark, path))


def collected(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows of a batch, rowtime as a clock time, sorted."""
    return sorted(plain(row) for row in frame.collect())


def contents(path: str) -> tuple[Any, ...]:
    """Everything that is visible of a stream without Spark."""
    store = open_store(path)
    try:
        tables = store.bounds(), store.rejected()
    finally:
        store.close()
    rows = [row for train in rt.openReader(path, order="arrival") for row in train.rows.to_pylist()]
    return rt.describeStream(path), rows, *(table.to_pylist() for table in tables)


@contextmanager
def refused(kind: type[rt.RowtimeError], *said: str) -> Iterator[None]:
    """Expects that Spark refuses the block with an error that names ``kind`` and contains each text of ``said``."""
    with pytest.raises((PySparkException, StreamingQueryException)) as caught:
        yield
    text = str(caught.value)
    for part in (kind.__name__, *said):
        assert part in text, f"{part!r} is not in: {text}"


def last_batch(query: StreamingQuery) -> int:
    """The number of the last batch. A query that waits for some time reports progress with the next number."""
    return max(progress.batchId for progress in query.recentProgress if "addBatch" in progress.durationMs)


def finish(query: StreamingQuery) -> None:
    """Waits until a query has processed all available data, and stops it; raises the error with which it failed."""
    try:
        query.processAllAvailable()
    finally:
        query.stop()
