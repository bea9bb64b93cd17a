"""The schema of a stream, the rules of its rowtime column, and rows of that schema as Arrow."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from numbers import Number
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.ddl import from_ddl, from_spark_json
from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.timestamps import LARGEST, LEAST, check_range, to_micros
from spark_rowtime.train import ROWTIME

TIMESTAMP = pa.timestamp("us", "UTC")
_WIDER = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def stream_schema(schema: Any) -> pa.Schema:
    """A DDL string, a Spark StructType or a pyarrow schema as the Arrow schema of a stream.

    It has one column ``rowtime``, TIMESTAMP NOT NULL; types are those that go through Spark and back
    exactly. Raises SchemaMismatchError, which names the column, for anything else.
    """
    arrow = _as_arrow(schema)
    names = [field.name.lower() for field in arrow]
    for name in names:
        if names.count(name) > 1:
            raise SchemaMismatchError(f"The column {name!r} is there twice; Spark ignores case.", column=name)
    if ROWTIME not in arrow.names:
        raise SchemaMismatchError(
            f"A stream needs a column 'rowtime TIMESTAMP NOT NULL', but there are only {arrow.names}. "
            "Rename the event time column, or add one and fill it with openSink(..., rowtime='column').",
            columns=arrow.names,
        )
    return pa.schema([_stream_field(field) for field in arrow])


def _as_arrow(schema: Any) -> pa.Schema:
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, str):
        return from_ddl(schema)
    if hasattr(schema, "jsonValue") and hasattr(schema, "fields"):
        return from_spark_json(schema.jsonValue())
    raise SchemaMismatchError(
        f"{type(schema).__name__} is no schema. Give a DDL string, a StructType or a pyarrow schema."
    )


def _stream_field(field: pa.Field) -> pa.Field:
    kind = _stream_type(field.type, field.name)
    if field.name == ROWTIME:
        if not pa.types.is_timestamp(field.type):
            raise SchemaMismatchError(f"rowtime must be a TIMESTAMP, but is {field.type}.", type=str(field.type))
        return pa.field(ROWTIME, TIMESTAMP, nullable=False)
    return pa.field(field.name, kind, field.nullable)


def _stream_type(kind: pa.DataType, column: str) -> pa.DataType:
    types = pa.types
    if kind in _WIDER:
        return _WIDER[kind]
    if types.is_timestamp(kind):
        return TIMESTAMP if kind.tz or column == ROWTIME else pa.timestamp("us")
    if types.is_list(kind) or types.is_large_list(kind):
        item = kind.value_field
        return pa.list_(pa.field("element", _stream_type(item.type, column), item.nullable))
    if types.is_map(kind):
        value = pa.field("value", _stream_type(kind.item_type, column), kind.item_field.nullable)
        return pa.map_(_stream_type(kind.key_type, column), value)
    if types.is_struct(kind):
        return pa.struct([f.with_type(_stream_type(f.type, column)) for f in kind])
    plain = types.is_boolean(kind) or types.is_signed_integer(kind) or types.is_date32(kind)
    floats = types.is_float32(kind) or types.is_float64(kind)
    decimal = types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision
    if plain or floats or decimal or kind in (pa.string(), pa.binary()):
        return kind
    raise SchemaMismatchError(
        f"Column {column!r} has the type {kind}, which does not go through Spark exactly.",
        column=column,
        type=str(kind),
    )


def rows_to_batch(rows: Sequence[Any], schema: pa.Schema, rowtimes: list[int] | None = None) -> pa.RecordBatch:
    """Python rows (mappings, or sequences in schema order) as one batch of ``schema``.

    Column by column; all or nothing. ``rowtimes``: in microseconds, where they are known already.
    Raises SchemaMismatchError with row number, column and value.
    """
    names = schema.names
    columns = _columns(rows, names)
    at = schema.get_field_index(ROWTIME)
    columns[at] = [_rowtime(value, i) for i, value in enumerate(columns[at])] if rowtimes is None else rowtimes
    arrays = [_array(columns[i], field) for i, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _columns(rows: Sequence[Any], names: list[str]) -> list[list[Any]]:
    flat = [row_values(row, at, names) for at, row in enumerate(rows)]
    return [list(column) for column in zip(*flat, strict=True)] if flat else [[] for _ in names]


def row_values(row: Any, at: int, names: list[str]) -> Sequence[Any]:
    """The values of row number ``at`` in schema order; SchemaMismatchError where its fields are not those."""
    if isinstance(row, Mapping):
        if len(row) == len(names):
            try:
                return [row[name] for name in names]
            except KeyError:
                pass
        raise _wrong_fields(row, at, names)
    if isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == len(names):
        return row
    raise SchemaMismatchError(
        f"Row {at} is {row!r}; it must be a mapping, or a sequence with the {len(names)} values {names}.", row=at
    )


def _wrong_fields(row: Mapping[Any, Any], at: int, names: list[str]) -> SchemaMismatchError:
    missing, unknown = [n for n in names if n not in row], sorted(str(k) for k in row if k not in names)
    return SchemaMismatchError(
        f"Row {at} does not fit the stream: missing {missing or 'nothing'}, unknown {unknown or 'nothing'}. "
        f"Its columns are {names}; say None for a value that is not there.",
        row=at,
        missing=missing,
        unknown=unknown,
    )


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    if field.name == ROWTIME:
        return pa.array(values, pa.int64()).cast(TIMESTAMP)
    try:
        array = _convert(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _misfit(values, field, error) from None
    if not field.nullable and array.null_count:
        raise SchemaMismatchError(
            f"Row {values.index(None)} has no {field.name!r}, which is NOT NULL.", column=field.name
        )
    return array


def _convert(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        values = [datetime.fromisoformat(value) if isinstance(value, str) else value for value in values]
    array = pa.array(values, kind)
    _refuse_fractions(values, kind)
    return array


def _refuse_fractions(values: Sequence[Any], kind: pa.DataType) -> None:
    """Arrow would cut 1.5 to 1 in an integer column without a word."""
    if not (pa.types.is_integer(kind) or pa.types.is_nested(kind)):
        return
    there = [value for value in values if value is not None]
    if pa.types.is_integer(kind):
        for value in there if set(map(type, there)) - {int} else ():
            if isinstance(value, Number) and value % 1:  # type: ignore[operator]
                raise pa.ArrowInvalid(f"{value!r} is no whole number")
    elif pa.types.is_list(kind):
        _refuse_fractions([item for value in there for item in value], kind.value_type)
    elif pa.types.is_map(kind):
        pairs = [pair for value in there for pair in (value.items() if isinstance(value, Mapping) else value)]
        _refuse_fractions([pair[0] for pair in pairs], kind.key_type)
        _refuse_fractions([pair[1] for pair in pairs], kind.item_type)
    elif pa.types.is_struct(kind):
        for at, field in enumerate(kind):
            inner = [value.get(field.name) if isinstance(value, Mapping) else value[at] for value in there]
            _refuse_fractions(inner, field.type)


def _misfit(values: list[Any], field: pa.Field, error: Exception) -> SchemaMismatchError:
    at = next((i for i, value in enumerate(values) if not _fits(value, field.type)), 0)
    return SchemaMismatchError(
        f"Row {at}: {field.name}={values[at]!r} does not fit the column's type {field.type} ({error}).",
        row=at,
        column=field.name,
        value=repr(values[at]),
    )


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        _convert([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _rowtime(value: Any, at: int) -> int:
    try:
        return to_micros(value)
    except InvalidOptionError as error:
        raise SchemaMismatchError(f"Row {at}: rowtime is unusable: {error}", row=at, value=repr(value)) from None


def batch_to_schema(data: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Arrow data as one batch of exactly ``schema``: columns by name, safe casts, rowtime checked.

    Zone-less timestamps are UTC. Raises SchemaMismatchError with column and reason.
    """
    table = pa.table(data) if isinstance(data, pa.RecordBatch) else data
    _same_columns(table.schema.names, schema.names)
    columns = [_one_chunk(_cast(table.column(field.name), field)) for field in schema]
    check_rowtimes(columns[schema.get_field_index(ROWTIME)])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _same_columns(given: list[str], wanted: list[str]) -> None:
    if sorted(given) != sorted(wanted):
        raise SchemaMismatchError(
            f"These rows do not fit the stream: missing {sorted(set(wanted) - set(given)) or 'nothing'}, "
            f"unknown {sorted(set(given) - set(wanted)) or 'nothing'}; its columns are {wanted}.",
            given=given,
            wanted=wanted,
        )


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    kind = column.type
    try:
        if column.type != field.type:
            if pa.types.is_timestamp(field.type) and not pa.types.is_timestamp(kind):
                raise pa.ArrowInvalid(f"{kind} is no timestamp")
            column = column.cast(field.type, safe=not _cuts_digits(kind))
    except pa.ArrowException as error:
        raise SchemaMismatchError(
            f"Column {field.name!r} is {kind}, not {field.type} as in the stream: {error}.", column=field.name
        ) from None
    if not field.nullable and column.null_count:
        raise SchemaMismatchError(
            f"Column {field.name!r} is NOT NULL, but {column.null_count} of its values are null.", column=field.name
        )
    return column


def _cuts_digits(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.unit == "ns"


def check_rowtimes(column: pa.Array | pa.ChunkedArray) -> None:
    """Raises SchemaMismatchError if a rowtime lies outside the legal range."""
    ends = pc.min_max(column.cast(pa.int64()))
    for micros in (ends["min"].as_py(), ends["max"].as_py()):
        if micros is not None and not LEAST <= micros <= LARGEST:
            try:
                check_range(micros, f"{micros} microseconds since 1970")
            except InvalidOptionError as error:
                raise SchemaMismatchError(f"rowtime is unusable: {error}", value=micros) from None


def rowtime_micros(rows: pa.RecordBatch) -> pa.Array:
    """The rowtime column as microseconds (int64)."""
    return rows.column(ROWTIME).cast(pa.int64())


def show_schema(schema: pa.Schema) -> str:
    """One line per column, for people."""
    return ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' not null'}" for f in schema)


def same_schema(one: pa.Schema, other: pa.Schema) -> bool:
    """Whether two stream schemas hold the same columns, in order, metadata aside."""
    return bool(one.remove_metadata().equals(other.remove_metadata()))


def fitting_schema(stream: pa.Schema, output: pa.Schema, path: str) -> pa.Schema:
    """The stream's schema, if rows of ``output`` go into it: the same columns and types, in any order.

    Whether a value may be null is seen when rows come.
    """
    have = {field.name: field.type for field in output}
    want = {field.name: field.type for field in stream}
    if have != want:
        raise SchemaMismatchError(
            f"The stream at {path} has the columns {show_schema(stream)}; this output has {show_schema(output)}. "
            "Select the stream's columns with their types, or write to another path.",
            path=path,
        )
    return stream
