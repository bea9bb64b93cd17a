"""What a task of a rowtime sink tells the commit."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from spark_rowtime.spark.output_bound import floors_said
from spark_rowtime.spark.query_batch import Batch
from spark_rowtime.store.base import Staged


@dataclass
class TaskOutput(WriterCommitMessage):
    """A task's rows: ``trains`` that are down in ``stream``, or ``rows`` that travel with it; one of the two at most.

    ``floors``: of the batch's output columns, in microseconds. ``stream``: the id of the one that a Python worker
    opened, empty where there was none. ``rows``: an Arrow IPC stream, empty where there are none.
    """

    batch: Batch
    floors: dict[str, int]
    stream: str = ""
    trains: list[Staged] = field(default_factory=list)
    rows: bytes = b""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows that travel."""
        if self.rows:
            with pa.ipc.open_stream(self.rows) as stream:
                yield from stream


def carried(rows: bytes, properties_json: str) -> TaskOutput:
    """Of a task that had few rows and no Python worker: called by the message that the extension made for it.

    ``properties_json``: the local properties that a worker would have asked for, as a JSON object.
    """
    properties: dict[str, str | None] = json.loads(properties_json)
    return TaskOutput(Batch.said_by(properties.get), floors_said(properties.get), rows=rows)
