"""The streaming sink: a batch's rows and its output bound in one commit, once."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark_rowtime.bound import stronger
from spark_rowtime.ddl import from_spark_json
from spark_rowtime.disorder import AnyOrder, Disorder, declared
from spark_rowtime.errors import (
    DataLostError,
    DisorderedOutputError,
    InvalidOptionError,
    SchemaMismatchError,
    StreamExistsError,
    StreamNotFoundError,
)
from spark_rowtime.schema import batch_to_schema, fitting_schema, stream_schema
from spark_rowtime.spark.landed import Batch
from spark_rowtime.spark.options import Options
from spark_rowtime.spark.taskbound import floors_said, local_property, path_of
from spark_rowtime.spark.taskoutput import TaskOutput
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.admission import admit
from spark_rowtime.store.base import Commit, ProducerInfo, Rejected, Staged, Store, StreamSettings
from spark_rowtime.timestamps import show_micros, to_interval
from spark_rowtime.train import ROWTIME, Timed


class RowtimeStreamWriter(DataSourceStreamArrowWriter):
    """Made anew for each batch, on the driver; pickled into the tasks for ``write``.

    Law (*once*): a batch is keyed by query and batch id; run again, it changes nothing. See :class:`Batch`.
    The first batch of a query creates the stream if it is not there.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._path, self._column = options.path, options.get("rowtime") or ROWTIME
        self._reject = options.choice("onDisorder", "fail", "reject") == "reject"
        wanted = self._wanted(from_spark_json(schema.jsonValue()))
        self._lateness = options.get("lateness")
        to_interval(self._lateness, "lateness")
        self._schema = _schema_at(self._path, wanted)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        """Once a task; with the extension only for tasks of many rows, as few travel to the commit (``carried``).

        Each Arrow batch goes down as one train; nothing is visible yet.
        """
        batch = Batch.said_by(local_property)
        with self._opened(begins=batch.number == 0) as store:
            trains = [store.stage(self._fit(rows)) for rows in iterator if rows.num_rows]
            return TaskOutput(batch, floors_said(local_property), store.stream, trains)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Once a batch, on the driver, after all its tasks; again if the driver died before it was logged."""
        outputs = [message for message in messages if isinstance(message, TaskOutput)]
        assert outputs, "Spark starts at least one task, also for a batch without rows"
        assert all(output.batch.number == batchId for output in outputs)
        with self._opened(begins=batchId == 0 and not any(output.stream for output in outputs)) as store:
            self._commit(store, outputs)

    @contextmanager
    def _opened(self, *, begins: bool) -> Iterator[Store]:
        """The stream, with ``self._schema`` as its own; made where the query ``begins`` and it is not there."""
        store = _open_or_create(self._path, self._schema) if begins else self._go_on()
        try:
            self._schema = fitting_schema(store.schema, self._schema, self._path)
            yield store
        finally:
            store.close()

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
        if disordered and not self._reject:
            raise _disordered(self._path, disordered)
        floor = stronger(stronger(info.floor, first.floors.get(path_of(self._column))), implied)
        rejected, checkpoint = (*late, *disordered), first.batch.checkpoint(info)
        store.commit(
            Commit(info.name, info.epoch, info.number + 1, accepted, floor, rejected, checkpoint, disorder.state())
        )

    def _travelled(self, outputs: list[TaskOutput]) -> list[pa.RecordBatch]:
        """The rows that came with the tasks' messages, as one train, if there are any."""
        found = [self._fit(rows) for output in outputs for rows in output.batches()]
        train: list[pa.RecordBatch] = pa.Table.from_batches(found, self._schema).combine_chunks().to_batches()
        return train

    def _go_on(self) -> Store:
        try:
            return open_store(self._path)
        except StreamNotFoundError as error:
            raise DataLostError(
                f"There is no stream at {self._path}, but this query has written to it before: it was deleted or "
                "moved, or the path is another. Restore the stream, or start the query with a new checkpoint.",
                path=self._path,
            ) from error

    def _attach(self, store: Store, outputs: list[TaskOutput], declaration: str) -> ProducerInfo:
        """Looks before it takes over: a run whose turn it is not leaves the one whose turn it is alone."""
        if any(output.stream not in ("", store.stream) for output in outputs):
            raise _replaced(self._path)
        batch = outputs[0].batch
        for info in store.producers():
            if info.name == batch.producer:
                batch.landed(info, self._path)
        return store.attach(batch.producer, batch.run, declaration)

    def _disorder(self) -> Disorder:
        return declared(self._schema, rowsImplyBounds=self._lateness is not None, lateness=self._lateness)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """A batch failed: what its tasks staged is never read."""

    def _wanted(self, output: pa.Schema) -> pa.Schema:
        if self._column not in output.names:
            raise SchemaMismatchError(
                f"The output has no column {self._column!r}, only {output.names}. Name the event time of a result, "
                "for example .select(col('window.end').alias('rowtime'), ...), or say option('rowtime', <column>).",
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
    """A batch is one step of its ``lateness``: what fits, what is late by it, and the floor that the rows imply."""
    if not trains or isinstance(disorder, AnyOrder):
        return trains, (), None
    fit: list[tuple[Staged, pa.RecordBatch]] = []
    late: list[Rejected] = []
    implied = None
    for train in trains:
        rows = Timed(store.read(train))
        verdict = disorder.judge(rows, None)
        implied = stronger(implied, verdict.floor)
        if verdict.fits is None:
            fit.append((train, rows.rows))
            continue
        late.append(Rejected("late", pc.max(verdict.bounds).as_py(), rows.rows.filter(pc.invert(verdict.fits))))
        fitting = rows.where(verdict.fits)
        if fitting is not None:
            fit.append((store.stage(fitting.rows, fitting.ends), fitting.rows))
    for _, accepted in fit:
        disorder.take(accepted)
    return [train for train, _ in fit], tuple(late), implied


def _disordered(path: str, rows: tuple[Rejected, ...]) -> DisorderedOutputError:
    return DisorderedOutputError(
        f"{sum(r.rows.num_rows for r in rows)} row(s) of this batch lie below {show_micros(rows[0].bound)}, "
        f"which was promised on {path} already. Check which column is its rowtime, write to a stream "
        "of its own, or say option('onDisorder', 'reject') to have such rows recorded as rejected.",
        path=path,
        bound=rows[0].bound,
    )


def _replaced(path: str) -> DataLostError:
    return DataLostError(
        f"The stream at {path} was deleted and created again while a batch was written; nothing of the batch has "
        "landed. Restore the stream, or start the query with a new checkpoint.",
        path=path,
    )


def _schema_at(path: str, wanted: pa.Schema) -> pa.Schema:
    """The schema of the stream at ``path``; ``wanted`` where there is none yet."""
    try:
        store = open_store(path)
    except StreamNotFoundError:
        return wanted
    try:
        return fitting_schema(store.schema, wanted, path)
    finally:
        store.close()


def _open_or_create(path: str, wanted: pa.Schema) -> Store:
    try:
        return open_store(path)
    except StreamNotFoundError:
        pass
    try:
        create_store(path, wanted, StreamSettings())
    except StreamExistsError as something:
        try:
            return open_store(path)  # another query was quicker
        except StreamNotFoundError:
            raise something from None  # it is no stream
    return open_store(path)
