"""The batch writer: df.write.format("rowtime").mode("append") adds all rows of a DataFrame in one commit."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark_rowtime.bounds.clock import Status
from spark_rowtime.errors import ProducerFencedError
from spark_rowtime.spark.options import Options
from spark_rowtime.spark.output import Output, replaced
from spark_rowtime.spark.versioned_pickle import VersionedPickle
from spark_rowtime.store import in_database, open_store
from spark_rowtime.store.admission import complete
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Staged
from spark_rowtime.store.record import WAITED_FOR, ProducerRecord
from spark_rowtime.types.arguments import to_name
from spark_rowtime.types.timestamps import END

LEASE_MICROS = 30_000_000
"""How long the stream waits for a new producer whose driver died between its commit and its end."""


@dataclass
class StagedRows(WriterCommitMessage):
    """The message of a task: the ``trains`` that it has staged in ``stream``, the id of the stream that it opened.

    ``stream`` is empty if the task opened none, since all rows travel with the message.
    """

    stream: str
    trains: list[Staged] = field(default_factory=list)


class RowtimeBatchWriter(VersionedPickle, DataSourceArrowWriter):
    """Created on the driver for each write, and pickled into the tasks for ``write``.

    Law (*all or nothing*): the rows become visible in one commit, after all tasks. What a task staged that failed, or
    that ran twice, is never read. The producer joins for the commit alone and then leaves, so a write that takes long
    holds nobody back. After one that fails, the stream waits for the producer if it did before, and as long as before.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._output = Output(options, schema, creates=False)
        self._producer = to_name(options.get("producer", f"batch-{uuid.uuid4()}"), "producer")
        self._complete = options.choice("complete", "false", "true") == "true"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Called once for each attempt of a task. Stages each Arrow batch as one train, which no reader sees yet."""
        if in_database(self._output.path):
            return StagedRows(*self._output.staged_without_store(iterator))
        self._output.require_directory()
        with self._output.opened(open_store(self._output.path)) as store:
            return StagedRows(store.stream, [store.stage(self._output.fit(rows)) for rows in iterator if rows.num_rows])

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called once, on the driver, with the messages of the attempts that count."""
        staged = [message for message in messages if isinstance(message, StagedRows)]
        with self._output.opened(open_store(self._output.path)) as store:
            if any(message.stream not in ("", store.stream) for message in staged):
                raise replaced(self._output.path)
            self._commit(store, [train for message in staged for train in message.trains])

    def _commit(self, store: Store, staged: list[Staged]) -> None:
        session, declaration = str(uuid.uuid4()), self._output.disorder().declaration
        before = self._waited_for(store)
        info = store.attach(self._producer, session, declaration, LEASE_MICROS if before is None else before.lease)
        if info.status is Status.COMPLETE:
            raise complete(store.path, self._producer)
        try:
            self._output.commit(store, info, staged, END if self._complete else None, None)
        except ProducerFencedError:  # another holder goes on with it
            raise
        except BaseException:
            if before is None:
                store.detach(self._producer)  # it has sent nothing: the stream's bound stays where it is
            raise
        store.leave(info.name, info.epoch, session=info.session)

    def _waited_for(self, store: Store) -> ProducerRecord | None:
        """The producer before the write; None if the stream does not wait for it."""
        known = store.producer(self._producer)
        return store.snapshot().records[known.name] if known and known.status in WAITED_FOR else None

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called after the write failed. Does nothing, since what its tasks staged is never read."""
