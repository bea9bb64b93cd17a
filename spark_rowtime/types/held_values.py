"""Values that a stream cannot hold, in rows that are kept all the same: each becomes one that it can hold."""

import pyarrow as pa

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.types.schema import cast_to_field, rejected_to_schema
from spark_rowtime.types.values import within_years


def held_in_schema(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Converts late rows into one batch of exactly ``schema``, whatever values of its types they have.

    Law (*no value ends it*): a text that is no UTF-8 gets replacement characters. Any other value that the stream
    cannot hold, such as a time beyond the year 9999, or a STRUCT with one, becomes NULL; in a column that is NOT NULL
    a time becomes the nearest one that it can hold. All other values are kept exactly. Raises SchemaMismatchError for
    columns or types that are not the stream's, and for other values that a NOT NULL column cannot hold.
    """
    try:
        return rejected_to_schema(rows, schema)
    except SchemaMismatchError:
        rejected_to_schema(rows.schema.empty_table(), schema)  # another schema is an error, whatever the values
    table = pa.table(rows) if isinstance(rows, pa.RecordBatch) else rows
    held = {name: pa.chunked_array(_held(table.column(name), schema.field(name))) for name in table.column_names}
    return rejected_to_schema(pa.table(held), schema)


def _held(values: pa.ChunkedArray, field: pa.Field) -> list[pa.Array]:
    """The values as those of the field. Halves are tried again, down to the values that cannot be held."""
    try:
        return list(cast_to_field(values, field).chunks)
    except SchemaMismatchError:
        count = len(values)
        if count == 1:
            return [_replacement(values.combine_chunks(), field)]
        return _held(_part(values, 0, count // 2), field) + _held(_part(values, count // 2, count), field)


def _part(values: pa.ChunkedArray, start: int, end: int) -> pa.ChunkedArray:
    """A copy, since Arrow checks all that lies in the memory of a slice with parts."""
    return values.take(pa.array(range(start, end), pa.int64()))


def _replacement(value: pa.Array, field: pa.Field) -> pa.Array:
    """What is kept in the place of the one value, which the field cannot hold."""
    kind = field.type
    if pa.types.is_string(kind) and value.null_count == 0:
        return pa.array([value.cast(pa.binary())[0].as_py().decode(errors="replace")], kind)
    if field.nullable:
        return pa.nulls(1, kind)
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    nearest = within_years(value) if is_time else value
    return cast_to_field(pa.chunked_array([nearest]), field).combine_chunks()
