"""The schema of a stream, the rules for its rowtime column, and the conversion of rows to Arrow."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.types.added_columns import added_names, lacks_only_added
from spark_rowtime.types.ddl import NESTING_LEVELS, from_ddl, from_spark_json
from spark_rowtime.types.exact_casts import cast, way_to_times
from spark_rowtime.types.short_repr import REPR_CHARACTERS, short_repr
from spark_rowtime.types.timestamps import LARGEST, LEAST, check_range, to_micros
from spark_rowtime.types.values import MISFITS, column

ROWTIME = "rowtime"
"""The name of the event time column."""
TIMESTAMP = pa.timestamp("us", "UTC")
_WIDER = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def stream_schema(schema: Any) -> pa.Schema:
    """Converts a DDL string, a Spark StructType or a pyarrow schema into the Arrow schema of a stream.

    The schema has one column ``rowtime``, TIMESTAMP NOT NULL. Its types are those that survive the way through Spark
    and back exactly. Raises SchemaMismatchError, which names the column, for anything else.
    """
    columns = columns_of(schema)
    if ROWTIME not in columns.names:
        raise SchemaMismatchError(
            f"A stream needs a column 'rowtime TIMESTAMP NOT NULL', but there are only {columns.names}. "
            "Rename the event time column, or add one and fill it with openSink(..., rowtime='column').",
            columns=columns.names,
        )
    return columns


def columns_of(schema: Any) -> pa.Schema:
    """Does the same as ``stream_schema`` for columns that need not include ``rowtime``."""
    arrow = as_arrow(schema)
    names = [field.name.lower() for field in arrow]
    for name in names:
        if names.count(name) > 1:
            raise SchemaMismatchError(
                f"The column {name!r} occurs twice, as Spark ignores case. Rename one.", column=name
            )
    return pa.schema([_stream_field(field) for field in arrow])


def as_arrow(schema: Any) -> pa.Schema:
    """Converts a DDL string, a Spark StructType or a pyarrow schema into an Arrow schema, without a check."""
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, str):
        return from_ddl(schema)
    if hasattr(schema, "jsonValue") and hasattr(schema, "fields"):
        return from_spark_json(schema.jsonValue())
    raise SchemaMismatchError(
        f"{type(schema).__name__} is not a schema. Give a DDL string, a StructType or a pyarrow schema."
    )


def _stream_field(field: pa.Field) -> pa.Field:
    kind = _stream_type(field.type, field.name)
    if field.name == ROWTIME:
        if not pa.types.is_timestamp(field.type):
            raise SchemaMismatchError(
                f"rowtime must be a TIMESTAMP, but is {field.type}. Declare 'rowtime TIMESTAMP NOT NULL', and give a "
                "column of another type another name.",
                type=str(field.type),
            )
        return pa.field(ROWTIME, TIMESTAMP, nullable=False)
    return pa.field(field.name, kind, field.nullable)


def _stream_type(kind: pa.DataType, column: str, depth: int = 0) -> pa.DataType:
    types, depth = pa.types, depth + 1
    if depth > NESTING_LEVELS + 1:
        raise SchemaMismatchError(
            f"The type of column {column!r} is nested deeper than {NESTING_LEVELS} levels.", column=column
        )
    if kind in _WIDER:
        return _WIDER[kind]
    if types.is_timestamp(kind):
        return TIMESTAMP if kind.tz or column == ROWTIME else pa.timestamp("us")
    if types.is_list(kind) or types.is_large_list(kind):
        item = kind.value_field
        return pa.list_(pa.field("element", _stream_type(item.type, column, depth), item.nullable))
    if types.is_map(kind):
        value = pa.field("value", _stream_type(kind.item_type, column, depth), kind.item_field.nullable)
        return pa.map_(_stream_type(kind.key_type, column, depth), value)
    if types.is_struct(kind):
        _check_fields(kind, column)
        return pa.struct([f.with_type(_stream_type(f.type, column, depth)) for f in kind])
    plain = types.is_boolean(kind) or types.is_signed_integer(kind) or types.is_date32(kind)
    floats = types.is_float32(kind) or types.is_float64(kind)
    decimal = types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision
    if plain or floats or decimal or kind in (pa.string(), pa.binary()):
        return kind
    raise SchemaMismatchError(
        f"Column {column!r} has the type {kind}, whose values Spark cannot keep exactly.",
        column=column,
        type=str(kind),
    )


def _check_fields(kind: pa.StructType, column: str) -> None:
    names = [field.name.lower() for field in kind]
    if not names or len(set(names)) < len(names):
        what = f"a field twice ({names}), as Spark ignores case" if names else "no fields"
        text = f"Column {column!r} is a STRUCT with {what}, which a stream cannot hold. Rename or add a field."
        raise SchemaMismatchError(text, column=column, type=str(kind))


def rows_to_batch(rows: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Converts Python rows (mappings, or sequences in schema order) into one batch of ``schema``.

    The conversion works column by column, and takes all rows or none. A row may leave out columns that were added to
    the stream. Raises SchemaMismatchError with row number, column and value.
    """
    columns = _columns(rows, schema)
    at = schema.get_field_index(ROWTIME)
    columns[at] = [_rowtime(value, i) for i, value in enumerate(columns[at])]
    arrays = [_array(columns[i], field) for i, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _columns(rows: Sequence[Any], schema: pa.Schema) -> list[list[Any]]:
    names, added = schema.names, added_names(schema)
    flat = [_row_values(row, at, names, added) for at, row in enumerate(rows)]
    return [list(column) for column in zip(*flat, strict=True)] if flat else [[] for _ in names]


def _row_values(row: Any, at: int, names: list[str], added: list[str]) -> Sequence[Any]:
    """The values of row number ``at`` in schema order; SchemaMismatchError if its fields are not the schema's."""
    if isinstance(row, Mapping):
        if len(row) == len(names):
            try:
                return [row[name] for name in names]
            except KeyError:
                pass
        if added and row.keys() <= set(names) and all(name in row for name in names if name not in added):
            return [row.get(name) for name in names]
        raise _wrong_fields(row, at, names, added)
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        lacking = len(names) - len(row)
        if 0 <= lacking <= len(added):
            return [*row, *[None] * lacking] if lacking else row
    raise SchemaMismatchError(
        f"Row {at} is {short_repr(row)}; it must be a mapping, or a sequence with the {len(names)} values {names}.",
        row=at,
    )


def _wrong_fields(row: Mapping[Any, Any], at: int, names: list[str], added: list[str]) -> SchemaMismatchError:
    missing = [n for n in names if n not in row and n not in added]
    unknown = sorted(str(k) for k in row if k not in names)
    return SchemaMismatchError(
        f"Row {at} does not fit the stream: missing {missing or 'nothing'}, unknown {unknown or 'nothing'}. "
        f"Its columns are {names}; give None for a value that is absent.",
        row=at,
        missing=missing,
        unknown=unknown,
    )


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    if field.name == ROWTIME:
        return pa.array(values, pa.int64()).cast(TIMESTAMP)
    try:
        array = column(values, field.type)
    except MISFITS as error:
        raise _misfit(values, field, error) from None
    if not field.nullable and array.null_count:
        at = pc.index(array.is_null(), True).as_py()
        raise SchemaMismatchError(
            f"Row {at} has no value for {field.name!r}, which is NOT NULL. Give one, or create a stream in which the "
            "column is not NOT NULL.",
            row=at,
            column=field.name,
        )
    return array


def _misfit(values: list[Any], field: pa.Field, error: Exception) -> SchemaMismatchError:
    at = next((i for i, value in enumerate(values) if not _fits(value, field.type)), 0)
    return SchemaMismatchError(
        f"Row {at}: {field.name}={short_repr(values[at])} does not fit the column's type {field.type} "
        f"({str(error)[:REPR_CHARACTERS]}). Convert the value before it is sent.",
        row=at,
        column=field.name,
        value=short_repr(values[at]),
    )


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        column([value], kind)
    except MISFITS:
        return False
    return True


def _rowtime(value: Any, at: int) -> int:
    try:
        return to_micros(value)
    except InvalidOptionError as error:
        message = f"Row {at}: rowtime is invalid: {error}"
        raise SchemaMismatchError(message, row=at, column=ROWTIME, value=short_repr(value)) from None


def batch_to_schema(data: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Converts Arrow data into one batch of exactly ``schema``.

    Columns are matched by name and cast exactly, and rowtimes are checked. Timestamps without a zone are UTC. Columns
    that were added to the stream may be left out. Raises SchemaMismatchError with column and reason.
    """
    batch = rejected_to_schema(data, schema)
    check_rowtimes(batch.column(ROWTIME))
    return batch


def rejected_to_schema(data: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Does the same for rows that are late: they may have any time, also one that no accepted row has."""
    table = pa.table(data) if isinstance(data, pa.RecordBatch) else data
    if added_names(schema):
        table = _with_added(table, schema)
    _same_columns(table.schema.names, schema.names)
    columns = [_one_chunk(cast_to_field(table.column(field.name), field)) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _with_added(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for name in added_names(schema):
        if name not in table.schema.names:
            table = table.append_column(name, pa.nulls(table.num_rows, schema.field(name).type))
    return table


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


_PANDAS_INDEX = " pa.Table.from_pandas(df, preserve_index=False) leaves the index out."


def _same_columns(given: list[str], wanted: list[str]) -> None:
    if sorted(given) != sorted(wanted):
        twice = sorted({name for name in given if given.count(name) > 1})
        raise SchemaMismatchError(
            f"These rows do not fit the stream: missing {sorted(set(wanted) - set(given)) or 'nothing'}, "
            f"unknown {sorted(set(given) - set(wanted)) or 'nothing'}"
            f"{f', more than once {twice}' if twice else ''}; its columns are {wanted}."
            f"{_PANDAS_INDEX if '__index_level_0__' in given else ''}",
            given=given,
            wanted=wanted,
        )


def cast_to_field(given: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Casts a column exactly to that of a stream; SchemaMismatchError, with column and reason, where this cannot be."""
    try:
        done = cast(given, field.type)
    except (pa.ArrowException, ValueError) as error:
        what = f"is {given.type}, not" if given.type != field.type else "does not hold"
        raise SchemaMismatchError(
            f"Column {field.name!r} {what} {field.type} as in the stream: {str(error)[:REPR_CHARACTERS]}."
            f"{way_to_times(given.type, field.type)}",
            column=field.name,
        ) from None
    if not field.nullable and done.null_count:
        raise SchemaMismatchError(
            f"Column {field.name!r} is NOT NULL, but {done.null_count} of its values are null. Leave these rows out, "
            "or fill the column (coalesce).",
            column=field.name,
        )
    return done


def check_rowtimes(column: pa.Array | pa.ChunkedArray) -> None:
    """Raises SchemaMismatchError if a rowtime lies outside the legal range."""
    ends = pc.min_max(column.cast(pa.int64()))
    for micros in (ends["min"].as_py(), ends["max"].as_py()):
        if micros is not None and not LEAST <= micros <= LARGEST:
            try:
                check_range(micros, f"{micros} microseconds since 1970")
            except InvalidOptionError as error:
                raise SchemaMismatchError(f"rowtime is invalid: {error}", value=micros) from None


def rowtime_micros(rows: pa.RecordBatch) -> pa.Array:
    """The rowtime column as microseconds (int64)."""
    return rows.column(ROWTIME).cast(pa.int64())


def names_in(field: pa.Field) -> list[str]:
    """The name of the field, and those of all fields within its type."""
    inside = [field.type.field(i) for i in range(field.type.num_fields)]
    return [field.name, *(name for child in inside for name in names_in(child))]


def show_schema(schema: pa.Schema) -> str:
    """The columns with their types as readable text, separated by commas."""
    return ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' not null'}" for f in schema)


def is_schema_of(stream: pa.Schema, given: pa.Schema) -> bool:
    """Whether ``given`` is the stream's schema, or the one that it had before columns were added."""
    return lacks_only_added(given.names, stream) and bool(pa.schema(list(stream)[: len(given)]) == given)


def fitting_schema(stream: pa.Schema, output: pa.Schema, path: str) -> pa.Schema:
    """Returns the stream's schema if ``output`` has the same columns and types, in any order.

    Columns that were added to the stream may be missing in ``output``. Raises SchemaMismatchError otherwise. Nulls are
    checked when rows arrive.
    """
    have = {field.name: field.type for field in output}
    want = {field.name: field.type for field in stream}
    if not lacks_only_added(output.names, stream) or any(have[name] != want[name] for name in have):
        raise SchemaMismatchError(
            f"The stream at {path} has the columns {show_schema(stream)}; this output has {show_schema(output)}. "
            "Select the stream's columns with their types, or write to another path.",
            path=path,
        )
    return stream
