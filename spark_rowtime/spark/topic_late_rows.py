"""Keeps the late rows of topics in the stream that has their bounds."""

import base64

import pyarrow as pa

from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.store.base import Rejected, Store
from spark_rowtime.store.query_status import QUERY_PRODUCER
from spark_rowtime.types.held_values import held_in_schema

LATE = "late"


def keep_late(store: Store, reader: str, batch: int, bound: int, rows: str) -> None:
    """Keeps the late rows of one batch of a query as rejections, exactly once.

    ``reader`` names the query and its source. ``rows`` is an Arrow stream in base64, with the columns of the stream.
    A batch that runs again has the same rows, and changes nothing. A value that the stream cannot hold ends no query.
    """
    table = pa.ipc.open_stream(base64.b64decode(rows)).read_all().combine_chunks()
    late = [held_in_schema(part, store.schema) for part in table.to_batches()]
    origin = BoundOrigin(STREAM)
    store.reject(f"{QUERY_PRODUCER}{reader}", batch + 1, tuple(Rejected(LATE, bound, part, origin) for part in late))
