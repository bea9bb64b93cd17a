"""Keeps the late rows of topics in the stream that has their bounds."""

import base64

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.store.base import Rejected, Store
from spark_rowtime.store.query_status import QUERY_PRODUCER
from spark_rowtime.types.schema import ROWTIME, rejected_to_schema
from spark_rowtime.types.values import FIRST_TIME, LAST_TIME

LATE = "late"


def keep_late(store: Store, reader: str, batch: int, bound: int, rows: str) -> None:
    """Keeps the late rows of one batch of a query as rejections, exactly once.

    ``reader`` names the query and its source. ``rows`` is an Arrow stream in base64, with the columns of the stream.
    A batch that runs again has the same rows, and changes nothing.
    """
    table = pa.ipc.open_stream(base64.b64decode(rows)).read_all().combine_chunks()
    late = [rejected_to_schema(part, store.schema) for part in _within_years(table).to_batches()]
    origin = BoundOrigin(STREAM)
    store.reject(f"{QUERY_PRODUCER}{reader}", batch + 1, tuple(Rejected(LATE, bound, part, origin) for part in late))


def _within_years(table: pa.Table) -> pa.Table:
    """The rows with times that a stream can hold: a rowtime beyond becomes the nearest of these, another time NULL.

    So one row with such a time does not end the query.
    """
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            micros = table.column(at).cast(pa.int64())
            nearest = pc.min_element_wise(pc.max_element_wise(micros, FIRST_TIME), LAST_TIME)
            kept = nearest if field.name == ROWTIME else pc.if_else(pc.equal(micros, nearest), micros, None)
            table = table.set_column(at, field, kept.cast(field.type))
    return table
