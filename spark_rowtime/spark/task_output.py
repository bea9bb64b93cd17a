"""TaskOutput: the message of a task of a rowtime sink to the commit."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from spark_rowtime.drain.properties import QUERY_STATUS
from spark_rowtime.spark.output_bound import floors_said, of_this_query
from spark_rowtime.spark.query_batch import Batch
from spark_rowtime.store.commits import Staged


@dataclass
class TaskOutput(WriterCommitMessage):
    """The rows of a task: ``trains`` that are staged in ``stream``, or ``rows`` that travel with the message.

    At most one of the two is present. ``floors`` are those of the batch's output columns, in microseconds.
    ``stream`` is the id of the stream that a Python worker opened; empty without a worker. ``rows`` is an Arrow
    IPC stream; empty if no rows travel. ``query_status`` is what the query tells about the batch, from one task.
    """

    batch: Batch
    floors: dict[str, int]
    stream: str = ""
    trains: list[Staged] = field(default_factory=list)
    rows: bytes = b""
    query_status: str | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows that travel with the message."""
        if self.rows:
            with pa.ipc.open_stream(self.rows) as stream:
                yield from stream


def carried(rows: bytes, properties_json: str) -> TaskOutput:
    """Returns the output of a task that had few rows and no Python worker.

    The message that the extension made for the task calls it. ``properties_json`` contains the local properties
    that a worker would have read, as a JSON object.
    """
    properties: dict[str, str | None] = json.loads(properties_json)
    read = properties.get
    return TaskOutput(Batch.said_by(read), floors_said(read), rows=rows, query_status=of_this_query(QUERY_STATUS, read))
