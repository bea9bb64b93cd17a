"""Columns that alterStream has added: rows from before have none of them, and later rows may leave them out.

A stream's columns are only ever added at the end. So an older schema of a stream is the beginning of every later one.
"""

import pyarrow as pa

_ADDED = b"rowtime.added"
"""The key in an Arrow field's metadata that marks an added column."""


def as_added(field: pa.Field) -> pa.Field:
    """Returns ``field`` with the mark of an added column."""
    return field.with_metadata({_ADDED: b"true"})


def has_added(schema: pa.Schema) -> bool:
    """Returns whether the schema has added columns. It is called for each train: the last column says so."""
    return _ADDED in (schema.field(len(schema) - 1).metadata or {})


def added_names(schema: pa.Schema) -> list[str]:
    """Returns the names of the added columns, which are the last ones."""
    return [field.name for field in schema if _ADDED in (field.metadata or {})]


def lacks_only_added(given: list[str], schema: pa.Schema) -> bool:
    """Returns whether ``given`` are the column names of ``schema`` in any order, apart from some added columns."""
    lacking = set(schema.names) - set(given)
    return len(given) + len(lacking) == len(schema) and lacking <= set(added_names(schema))


def without_added(schema: pa.Schema, columns: int) -> pa.Schema:
    """Returns the first ``columns`` columns of ``schema``."""
    return pa.schema([schema.field(i) for i in range(columns)], schema.metadata)


def with_columns(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns rows of an older or newer schema of the stream as rows of ``schema``. Added columns are null.

    The rows may differ from their schema in nullability and metadata.
    """
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = rows.columns[: len(schema)]
    columns += [pa.nulls(rows.num_rows, field.type) for field in list(schema)[len(columns) :]]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
