"""The schema of a stream after ``alterStream``."""

from typing import Any

import pyarrow as pa

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.types.added_columns import as_added
from spark_rowtime.types.schema import ROWTIME, as_arrow, columns_of, show_schema


def columns_to_add(add: Any) -> pa.Schema:
    """Converts DDL, such as "coupon STRING", a StructType or a pyarrow schema into columns that can be added.

    Raises SchemaMismatchError for columns that no stream can have, and for columns that are NOT NULL.
    """
    if any(name.lower() == ROWTIME for name in as_arrow(add).names):
        raise SchemaMismatchError("A stream has one column rowtime; it cannot be added.", column=ROWTIME)
    columns = columns_of(add)
    if not len(columns):
        raise SchemaMismatchError("There is no column to add. Write DDL, such as 'coupon STRING'.")
    strict = [field.name for field in columns if not field.nullable]
    if strict:
        raise SchemaMismatchError(
            f"Column {strict[0]!r} is NOT NULL and cannot be added: the rows that the stream has already have no "
            "value for it. Leave NOT NULL out.",
            column=strict[0],
        )
    return columns


def altered(schema: pa.Schema, add: pa.Schema, path: str) -> pa.Schema:
    """Returns ``schema`` with the columns ``add`` at its end.

    Raises SchemaMismatchError if one of them is there already. Names are compared without case, as in Spark.
    """
    there = {name.lower(): name for name in schema.names}
    for field in add:
        if field.name.lower() in there:
            raise SchemaMismatchError(
                f"The stream at {path} has a column {there[field.name.lower()]!r} already, so {field.name!r} cannot be "
                f"added; Spark ignores case. Its columns are {show_schema(schema)}. Choose another name.",
                path=path,
                column=field.name,
            )
    return pa.schema([*schema, *map(as_added, add)], schema.metadata)
