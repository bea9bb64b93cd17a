"""The views of a stream besides its rows, as tables: its log, and its rejected rows."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from spark_rowtime.bounds.origin import origin_values
from spark_rowtime.store.commits import Rejection
from spark_rowtime.types.schema import TIMESTAMP

REJECTED_COLUMNS = pa.schema(
    [
        pa.field("producer", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("bound", TIMESTAMP),
        pa.field("boundOf", pa.string()),
        pa.field("boundBy", pa.string()),
        pa.field("boundEvent", pa.string()),
        pa.field("rejectedAt", TIMESTAMP, nullable=False),
    ]
)
"""The columns that precede the stream's own in ``view=rejected``. The three after ``bound`` are a BoundOrigin; null
for rows too far ahead, and for rows that an earlier version rejected."""


BOUNDS_COLUMNS = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("producer", pa.string(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("producerBound", TIMESTAMP),
        pa.field("bound", TIMESTAMP),
    ]
)
"""``view=bounds``: one row per event of the log. ``bound`` is the stream's non-strict bound after the event."""


def rejected_schema(schema: pa.Schema) -> pa.Schema:
    """Returns REJECTED_COLUMNS followed by the stream's columns."""
    return pa.schema([*REJECTED_COLUMNS, *schema])


def rejected_table(rejections: Iterable[Rejection], schema: pa.Schema) -> pa.Table:
    """Returns the rejections of a stream with this ``schema`` as a table with the columns of ``rejected_schema``."""
    columns = rejected_schema(schema)
    return pa.concat_tables([columns.empty_table(), *(_one_table(rejection, columns) for rejection in rejections)])


def _one_table(rejection: Rejection, columns: pa.Schema) -> pa.Table:
    rejected, count = rejection.rejected, rejection.rejected.rows.num_rows
    extra = [
        rejection.producer,
        rejected.reason,
        rejected.bound,
        *origin_values(rejected.origin).values(),
        rejection.time,
    ]
    repeated = [_repeated(value, field.type, count) for value, field in zip(extra, REJECTED_COLUMNS, strict=True)]
    return pa.Table.from_arrays([*repeated, *rejected.rows.columns], schema=columns)


def _repeated(value: object, kind: pa.DataType, count: int) -> pa.Array:
    plain = pa.int64() if pa.types.is_timestamp(kind) else kind
    return pa.repeat(pa.scalar(value, plain), count).cast(kind)


def bounds_table(columns: Sequence[Sequence[object]]) -> pa.Table:
    """Returns the values for BOUNDS_COLUMNS, with times in microseconds, as a table."""
    types = [pa.int64() if pa.types.is_timestamp(f.type) else f.type for f in BOUNDS_COLUMNS]
    arrays = [pa.array(c, t).cast(f.type) for c, t, f in zip(columns, types, BOUNDS_COLUMNS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=BOUNDS_COLUMNS)
