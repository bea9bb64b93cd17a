"""The views of a stream besides its rows, as tables: its log, and its rejected rows."""

from collections.abc import Sequence

import pyarrow as pa

from spark_rowtime.store.base import Rejected

REJECTED_COLUMNS = pa.schema(
    [
        pa.field("producer", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("bound", pa.timestamp("us", "UTC")),
    ]
)
"""The columns that precede the stream's own in ``view=rejected``."""


BOUNDS_COLUMNS = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("producer", pa.string(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("producerBound", pa.timestamp("us", "UTC")),
        pa.field("bound", pa.timestamp("us", "UTC")),
    ]
)
"""``view=bounds``: one row per event of the log. ``bound`` is the stream's non-strict bound after the event."""


def rejected_schema(schema: pa.Schema) -> pa.Schema:
    """Returns REJECTED_COLUMNS followed by the stream's columns."""
    return pa.schema([*REJECTED_COLUMNS, *schema])


def rejected_table(producer: str, rejected: Rejected, schema: pa.Schema) -> pa.Table:
    """Returns one rejection as a table with the columns of ``rejected_schema``."""
    count = rejected.rows.num_rows
    bound = pa.scalar(rejected.bound, pa.int64()).cast(pa.timestamp("us", "UTC"))
    extra = [pa.repeat(producer, count), pa.repeat(rejected.reason, count), pa.repeat(bound, count)]
    return pa.Table.from_arrays([*extra, *rejected.rows.columns], schema=schema)


def bounds_table(columns: Sequence[Sequence[object]]) -> pa.Table:
    """Returns the values for BOUNDS_COLUMNS, with times in microseconds, as a table."""
    types = [pa.int64() if pa.types.is_timestamp(f.type) else f.type for f in BOUNDS_COLUMNS]
    arrays = [pa.array(c, t).cast(f.type) for c, t, f in zip(columns, types, BOUNDS_COLUMNS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=BOUNDS_COLUMNS)
