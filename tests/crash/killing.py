"""The rowtime data source, with a sink that sends a signal to a process at a point that the test chooses."""

import os
import signal
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from spark_rowtime.spark.datasource import RowtimeDataSource
from spark_rowtime.spark.options import WRITE, Options
from spark_rowtime.spark.output_bound import local_property
from spark_rowtime.spark.sink import RowtimeStreamWriter
from spark_rowtime.spark.task_output import TaskOutput
from spark_rowtime.store import in_database
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Commit, Receipt, Staged
from spark_rowtime.store.postgres.objects import InObject

IN_TASK, BEFORE_COMMIT, IN_COMMIT, AFTER_COMMIT = (
    "in a task",
    "before the sink's commit",
    "in it, with the rows down",
    "after it",
)
"""Points of a batch. The first is in a task that writes through Python; other tasks do not reach it."""
WITH_OBJECTS = " and its objects written"
"""The end of the name of a point that only a task or commit with objects reaches: IN_TASK or IN_COMMIT before it."""


class Hit(NamedTuple):
    """A signal to send once, at a point of this batch or of a later one. It is a file beside the sink's stream,
    or among the temporary files.

    ``group``: the process group that gets the signal; 0: the Spark worker that reaches the point.
    """

    point: str
    batch: int
    group: int = 0
    signal: int = signal.SIGKILL

    def lay(self, path: str) -> None:
        """For the sink at ``path``."""
        file = _file(path)
        file.with_suffix(".tmp").write_text("\n".join(map(str, self)))
        file.with_suffix(".tmp").rename(file)

    @classmethod
    def laid(cls, path: str) -> Self | None:
        """The hit that is set for ``path``; None if there is none."""
        try:
            point, *numbers = _file(path).read_text().split("\n")
        except FileNotFoundError:
            return None
        return cls(point, *map(int, numbers))


def stopped(path: str) -> int | None:
    """The process id of the worker that was stopped by SIGSTOP."""
    file = _file(path).with_suffix(".worker")
    return int(file.read_text()) if file.exists() else None


def _file(path: str) -> Path:
    if in_database(path):
        return Path(tempfile.gettempdir(), f"rowtime-{sha256(path.encode()).hexdigest()[:16]}.hit")
    return Path(f"{path}.hit")


def _come_to(point: str, batch: int, path: str) -> None:
    hit = Hit.laid(path)
    if hit is None or hit.point != point or batch < hit.batch:
        return
    try:
        _file(path).rename(_file(path).with_suffix(".done"))
    except FileNotFoundError:  # another task was faster
        return
    if hit.group:
        os.killpg(hit.group, hit.signal)
        while True:
            signal.pause()  # until Spark's daemon, which is not in the driver's group, ends its workers
    if hit.signal == signal.SIGSTOP:
        _file(path).with_suffix(".tmp").write_text(str(os.getpid()))
        _file(path).with_suffix(".tmp").rename(_file(path).with_suffix(".worker"))
    os.kill(os.getpid(), hit.signal)


def _in_objects(trains: Iterable[Staged]) -> bool:
    return any(isinstance(train.location, InObject) for train in trains)


class KillingWriter(RowtimeStreamWriter):
    """Runs in Spark's workers: a process for each task, and one for each commit."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        output = super().write(iterator)
        batch = int(local_property("streaming.sql.batchId") or 0)
        _come_to(IN_TASK, batch, self._path)
        if _in_objects(output.trains):
            _come_to(IN_TASK + WITH_OBJECTS, batch, self._path)
        return output

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _come_to(BEFORE_COMMIT, batchId, self._path)
        super().commit(messages, batchId)
        _come_to(AFTER_COMMIT, batchId, self._path)

    def _commit(self, store: Store, outputs: list[TaskOutput]) -> None:
        land = store.commit

        def hit_and_land(commit: Commit) -> Receipt:
            _come_to(IN_COMMIT, outputs[0].batch.number, self._path)
            if _in_objects(commit.trains):
                _come_to(IN_COMMIT + WITH_OBJECTS, outputs[0].batch.number, self._path)
            return land(commit)

        with patch.object(store, "commit", hit_and_land):
            super()._commit(store, outputs)


class KillingDataSource(RowtimeDataSource):
    """Replaces the real data source."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> KillingWriter:
        assert not overwrite
        return KillingWriter(Options(self.options, WRITE), schema)
