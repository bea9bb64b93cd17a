"""Keeps the late rows of topics in the stream that has their bounds."""

import base64
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.spark.query_batch import short_hash
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Rejected
from spark_rowtime.store.query_status import QUERY_PRODUCER
from spark_rowtime.types.held_values import held_in_schema

LATE = "late"


class LateBatch(NamedTuple):
    """A batch of a query, by its number, and the offsets of the bounds and of the topics at which it ends."""

    number: int
    end: Mapping[str, Any]
    of_topics: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """A hash of where the batch ends, which is the same when it runs again."""
        return short_hash(json.dumps([self.end, self.of_topics], sort_keys=True))


def keep_late(store: Store, reader: str, batch: LateBatch, bound: int, rows: str) -> None:
    """Keeps the late rows of one batch of a query as rejections, exactly once.

    ``reader`` names the query and its source. ``rows`` is an Arrow stream in base64, with the columns of the stream.
    A batch that runs again has the same rows, and changes nothing. A value that the stream cannot hold ends no query.
    Raises ProducerFencedError where the query has an older checkpoint, whose rows the stream would take for those of
    a batch that it has.
    """
    table = pa.ipc.open_stream(base64.b64decode(rows)).read_all().combine_chunks()
    late = [held_in_schema(part, store.schema) for part in table.to_batches()]
    origin = BoundOrigin(STREAM)
    rejected = tuple(Rejected(LATE, bound, part, origin) for part in late)
    store.reject(f"{QUERY_PRODUCER}{reader}", batch.number + 1, rejected, batch.digest)
