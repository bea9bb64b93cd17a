"""The streaming sink: writes the rows of a batch and its output bound in one commit, exactly once."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.disorder import AnyOrder, Disorder, declared
from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import (
    DataLostError,
    DisorderedOutputError,
    InvalidOptionError,
    LateRowError,
    SchemaMismatchError,
    StreamExistsError,
    StreamNotFoundError,
)
from spark_rowtime.spark.options import Options
from spark_rowtime.spark.output_bound import floors_said, local_property, path_of
from spark_rowtime.spark.query_batch import Batch
from spark_rowtime.spark.task_output import TaskOutput
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.admission import admit
from spark_rowtime.store.base import Commit, ProducerInfo, Rejected, Staged, Store, StreamSettings
from spark_rowtime.types.ddl import from_spark_json
from spark_rowtime.types.schema import ROWTIME, batch_to_schema, fitting_schema, stream_schema
from spark_rowtime.types.timestamps import show_micros


class RowtimeStreamWriter(DataSourceStreamArrowWriter):
    """Created on the driver for each batch, and pickled into the tasks for ``write``.

    Law (*once*): a batch is identified by query and batch id; a retry changes nothing. See :class:`Batch`.
    The first batch of a query creates the stream if it does not exist.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._path, self._column = options.path, options.get("rowtime") or ROWTIME
        self._whole = options.choice("onDisorder", "fail", "reject") == "fail"
        wanted = self._wanted(from_spark_json(schema.jsonValue()))
        self._schema = _schema_at(self._path, wanted)
        self._lateness = options.lateness(self._schema.names)
        self._disorder()  # refuses unsupported options before the query starts

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        """Called once per task. Stages each Arrow batch as one train, which no reader sees yet.

        With the extension it is called only for tasks with many rows; few rows travel with the task's message to
        the commit (see ``carried``).
        """
        batch = Batch.said_by(local_property)
        with self._opened(begins=batch.number == 0) as store:
            trains = [store.stage(self._fit(rows)) for rows in iterator if rows.num_rows]
            return TaskOutput(batch, floors_said(local_property), store.stream, trains)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called once per batch, on the driver, after all tasks.

        It is called again for the same batch if the driver died before Spark logged the commit.
        """
        outputs = [message for message in messages if isinstance(message, TaskOutput)]
        assert outputs, "Spark starts at least one task, also for a batch without rows"
        assert all(output.batch.number == batchId for output in outputs)
        with self._opened(begins=batchId == 0 and not any(output.stream for output in outputs)) as store:
            self._commit(store, outputs)

    @contextmanager
    def _opened(self, *, begins: bool) -> Iterator[Store]:
        """Opens the stream, and sets ``self._schema`` to that of the stream.

        Creates the stream if the query ``begins`` and the stream does not exist.
        """
        store = _open_or_create(self._path, self._schema) if begins else self._go_on()
        with store:
            self._schema = fitting_schema(store.schema, self._schema, self._path)
            yield store

    def _commit(self, store: Store, outputs: list[TaskOutput]) -> None:
        travelled = self._travelled(outputs)
        first, disorder = outputs[0], self._disorder()
        info = self._attach(store, outputs, disorder.declaration)
        if first.batch.landed(info, self._path):
            return
        disorder.restore(info.disorder)
        down = [train for output in outputs for train in output.trains] + [store.stage(rows) for rows in travelled]
        trains, late, implied = _one_step(store, down, disorder)
        accepted, disordered = admit(store, trains, stronger(info.floor, store.head().floor))
        floor = stronger(stronger(info.floor, first.floors.get(path_of(self._column))), implied)
        rejected, checkpoint = (*late, *disordered), first.batch.checkpoint(info)
        commit = Commit(
            info.name, info.epoch, info.number + 1, accepted, floor, rejected, checkpoint, disorder.state(), self._whole
        )
        if disordered and self._whole:
            raise _disordered(self._path, sum(r.rows.num_rows for r in disordered), disordered[0].bound)
        try:
            store.commit(commit)
        except LateRowError as error:  # the stream's bound has passed these rows since
            raise _disordered(self._path, error.values["rows"], error.values["bound"]) from error

    def _travelled(self, outputs: list[TaskOutput]) -> list[pa.RecordBatch]:
        """Returns the rows that came with the tasks' messages, as one train, if there are any."""
        found = [self._fit(rows) for output in outputs for rows in output.batches()]
        train: list[pa.RecordBatch] = pa.Table.from_batches(found, self._schema).combine_chunks().to_batches()
        return train

    def _go_on(self) -> Store:
        try:
            return open_store(self._path)
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
            raise _replaced(self._path)
        batch = outputs[0].batch
        existing = store.producer(batch.producer)
        if existing is not None:
            batch.landed(existing, self._path)
        return store.attach(batch.producer, batch.run, declaration)

    def _disorder(self) -> Disorder:
        return declared(self._schema, rowsImplyBounds=self._lateness is not None, lateness=self._lateness)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called after a batch failed. Does nothing, since what its tasks staged is never read."""

    def _wanted(self, output: pa.Schema) -> pa.Schema:
        if self._column not in output.names:
            raise SchemaMismatchError(
                f"The output has no column {self._column!r}, only {output.names}. Name the event time of a result, "
                "for example .select(col('window.end').alias('rowtime'), ...), or set option('rowtime', <column>).",
                columns=output.names,
            )
        if self._column == ROWTIME:
            return stream_schema(output)
        if ROWTIME in output.names:
            raise InvalidOptionError(f"rowtime={self._column!r} would be a second column 'rowtime' of the output.")
        return stream_schema(output.append(pa.field(ROWTIME, output.field(self._column).type)))

    def _fit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._column != ROWTIME:
            batch = batch.append_column(ROWTIME, batch.column(self._column))
        return batch_to_schema(batch, self._schema)


def _one_step(
    store: Store, trains: list[Staged], disorder: Disorder
) -> tuple[list[Staged], tuple[Rejected, ...], int | None]:
    """Applies ``lateness`` to a batch, which is one step of it.

    Returns the trains that are in time, the late rows, and the floor that the rows imply. The trains are read one
    by one, so memory holds the rows of one train at a time, and the late rows.
    """
    if not trains or isinstance(disorder, AnyOrder):
        return trains, (), None
    fit: list[Staged] = []
    late: list[Rejected] = []
    implied, after = None, deepcopy(disorder)
    for train in trains:
        fitting, rejected, floor = _judged(store, train, disorder, after)
        fit, late, implied = fit + fitting, late + rejected, stronger(implied, floor)
    disorder.restore(after.state())
    return fit, tuple(late), implied


def _judged(
    store: Store, train: Staged, before: Disorder, after: Disorder
) -> tuple[list[Staged], list[Rejected], int | None]:
    """Judges one train by the state ``before`` the step. Adds the rows that are in time to the state ``after`` it."""
    rows = Timed(store.read(train))
    verdict = before.judge(rows, None)
    if verdict.fits is None:
        after.take(rows.rows)
        return [train], [], verdict.floor
    late = Rejected("late", pc.max(verdict.bounds).as_py(), rows.rows.filter(pc.invert(verdict.fits)))
    fitting = rows.where(verdict.fits)
    if fitting is None:
        return [], [late], verdict.floor
    after.take(fitting.rows)
    return [store.stage(fitting.rows, fitting.ends)], [late], verdict.floor


def _disordered(path: str, rows: int, bound: int | None) -> DisorderedOutputError:
    return DisorderedOutputError(
        f"{rows} row(s) of this batch lie below {show_micros(bound)}, "
        f"which was promised on {path} already. Check which column is its rowtime, write to a stream "
        "of its own, or set option('onDisorder', 'reject') to have such rows recorded as rejected.",
        path=path,
        bound=bound,
    )


def _replaced(path: str) -> DataLostError:
    return DataLostError(
        f"The stream at {path} was deleted and created again while a batch was written; nothing of the batch was "
        "committed. Restore the stream, or start the query with a new checkpoint.",
        path=path,
    )


def _schema_at(path: str, wanted: pa.Schema) -> pa.Schema:
    """Returns the schema of the stream at ``path``; ``wanted`` if there is no stream yet."""
    try:
        store = open_store(path)
    except StreamNotFoundError:
        return wanted
    with store:
        return fitting_schema(store.schema, wanted, path)


def _open_or_create(path: str, wanted: pa.Schema) -> Store:
    try:
        return open_store(path)
    except StreamNotFoundError:
        pass
    try:
        create_store(path, wanted, StreamSettings())
    except StreamExistsError as something:
        try:
            return open_store(path)  # another query has created it meanwhile
        except StreamNotFoundError:
            raise something from None  # what exists there is not a stream
    return open_store(path)
