"""The streaming sink: writes the rows of a batch and its output bound in one commit, exactly once."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from spark_rowtime.drain.properties import QUERY_STATUS
from spark_rowtime.errors import DataLostError, StreamExistsError, StreamNotFoundError
from spark_rowtime.spark.options import Options
from spark_rowtime.spark.other_queries import tell_of_other_queries
from spark_rowtime.spark.output import Output, replaced
from spark_rowtime.spark.output_bound import floors_said, local_property, of_this_query, path_of
from spark_rowtime.spark.query_batch import Batch
from spark_rowtime.spark.task_output import TaskOutput
from spark_rowtime.spark.versioned_pickle import VersionedPickle
from spark_rowtime.store import create_store, in_database, open_kept_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.store.settings import NEW_STREAM

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # in Spark 4.0 a task gives Arrow to each writer that is also one for batches
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[misc, no-redef]
        """The base that later versions of Spark have."""


class RowtimeStreamWriter(VersionedPickle, DataSourceStreamArrowWriter):
    """Created on the driver for each batch, and pickled into the tasks for ``write``.

    Law (*once*): a batch is identified by query and batch id; a retry changes nothing. See :class:`Batch`.
    The first batch of a query creates the stream if it does not exist.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._path, self._output = options.path, Output(options, schema, creates=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        """Called once per task. Stages each Arrow batch as one train, which no reader sees yet.

        With the extension it is called only for tasks with many rows; few rows travel with the task's message to
        the commit (see ``carried``). For a stream in a database only large trains are staged, if it has a location;
        the others travel with the message.
        """
        batch = Batch.said_by(local_property)
        if in_database(self._path):
            stream, trains = self._output.staged_without_store(iterator)
            return TaskOutput(batch, floors_said(local_property), stream, trains, query_status=_status())
        self._output.require_directory()
        with self._output.opened(self._open(begins=batch.number == 0)) as store:
            trains = [store.stage(self._output.fit(rows)) for rows in iterator if rows.num_rows]
            return TaskOutput(batch, floors_said(local_property), store.stream, trains, query_status=_status())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called once per batch, on the driver, after all tasks.

        It is called again for the same batch if the driver died before Spark logged the commit.
        """
        outputs = [message for message in messages if isinstance(message, TaskOutput)]
        assert outputs, "Spark starts at least one task, also for a batch without rows"
        assert all(output.batch.number == batchId for output in outputs)
        begins = batchId == 0 and not any(output.stream for output in outputs)
        with self._output.opened(self._open(begins=begins)) as store:
            self._commit(store, outputs)

    def _open(self, *, begins: bool) -> Store:
        """Opens the stream. Creates it if the query ``begins`` and the stream does not exist."""
        return _open_or_create(self._path, self._output.schema) if begins else self._go_on()

    def _commit(self, store: Store, outputs: list[TaskOutput]) -> None:
        travelled = self._travelled(outputs)
        first = outputs[0]
        info = self._attach(store, outputs, self._output.disorder().declaration)
        if first.batch.landed(info, self._path):
            return
        staged = [train for output in outputs for train in output.trains] + [store.stage(rows) for rows in travelled]
        floor = first.floors.get(path_of(self._output.column))
        status = next((output.query_status for output in outputs if output.query_status is not None), None)
        self._output.commit(store, info, staged, floor, first.batch.checkpoint(info), status)

    def _travelled(self, outputs: list[TaskOutput]) -> list[pa.RecordBatch]:
        """Returns the rows that came with the tasks' messages, as one train, if there are any."""
        found = [self._output.fit(rows) for output in outputs for rows in output.batches()]
        table = pa.Table.from_batches(found, self._output.schema)
        train: list[pa.RecordBatch] = table.combine_chunks().to_batches()
        return train

    def _go_on(self) -> Store:
        try:
            return open_kept_store(self._path)
        except StreamNotFoundError as error:
            raise DataLostError(
                f"There is no stream at {self._path}, but this query has written to it before: it was deleted or "
                "moved, or the path has changed. Restore the stream, or start the query with a new checkpoint.",
                path=self._path,
            ) from error

    def _attach(self, store: Store, outputs: list[TaskOutput], declaration: str) -> ProducerInfo:
        """Attaches the producer, but first checks that it is the turn of this batch.

        So a run whose turn it is not does not fence the run whose turn it is.
        """
        if any(output.stream not in ("", store.stream) for output in outputs):
            raise replaced(self._path)
        batch = outputs[0].batch
        existing = store.producer(batch.producer)
        batch.require_other_input(store.stream, self._path)
        if existing is None:
            tell_of_other_queries(store, self._path, batch.producer)
        else:
            batch.landed(existing, self._path)
        return store.attach(batch.producer, batch.run, declaration)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called after a batch failed. Does nothing, since what its tasks staged is never read."""


def _status() -> str | None:
    """What the query tells about the batch; only the first task takes it to the commit."""
    task = TaskContext.get()
    return of_this_query(QUERY_STATUS, local_property) if task is not None and task.partitionId() == 0 else None


def _open_or_create(path: str, wanted: pa.Schema) -> Store:
    try:
        return open_kept_store(path)
    except StreamNotFoundError:
        pass
    try:
        create_store(path, wanted, NEW_STREAM)
    except StreamExistsError as something:
        try:
            return open_kept_store(path)  # another query has created it meanwhile
        except StreamNotFoundError:
            raise something from None  # what exists there is not a stream
    return open_kept_store(path)
