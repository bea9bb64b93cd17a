"""What Avro and Protobuf refuse: names of columns, types that they have no place for, and maps with a key twice."""

import re
from contextlib import suppress
from typing import Any

import pyarrow as pa

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.types.schema import names_in

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def require_names(schema: pa.Schema, form: str) -> None:
    """Raises SchemaMismatchError for a column, or a field within one, whose name the format cannot have."""
    for column in schema:
        for name in names_in(column):
            if _NAME.fullmatch(name) is None:
                raise SchemaMismatchError(
                    f"{form} has letters, digits and _ in names, and column {column.name!r} has the name {name!r}. "
                    "Rename it in the stream's query or feed, or drain with another encoder.",
                    column=column.name,
                )


def unsupported(column: str, kind: pa.DataType, why: str) -> SchemaMismatchError:
    """The error for a column of a type that the format cannot keep."""
    return SchemaMismatchError(
        f"Column {column!r} has {kind}: {why}. Leave it out or change it in the stream's query, or drain with another "
        "encoder.",
        column=column,
        type=str(kind),
    )


def dicts_of(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows, with dicts for structs and maps. SchemaMismatchError for a map that has one key twice."""
    names, columns = rows.schema.names, [_values(rows.column(name), name) for name in rows.schema.names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(column: pa.Array, name: str) -> list[Any]:
    with suppress(KeyError):
        return list(column.to_pylist(maps_as_pydicts="strict"))
    raise SchemaMismatchError(
        f"Column {name!r} has a map with one key twice, of which a consumer would see one. Write others in the "
        "stream's query, or give value=, a function that writes the rows.",
        column=name,
    )
