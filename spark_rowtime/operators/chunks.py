"""Chunks: many rows as the bytes of one Arrow IPC stream.

With chunks, a Python state function gets few rows, and every type is preserved. Spark passes rows to such
a function one by one through pandas: whole numbers with nulls become floats, NaN becomes null, and times
lose an hour in autumn.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import SchemaMismatchError

Whole = npt.NDArray[np.int64]
BUCKET, CHUNK = "bucket", "chunk"
_ROWS = 65_536
_NO_TIME = -(1 << 62)


def to_bytes(rows: pa.Table) -> bytes:
    """Returns the rows as one chunk."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def from_bytes(chunk: bytes) -> pa.Table:
    """Returns the rows of a chunk, in uniform types.

    A session in another time zone may have made it, or the query before it was changed.
    """
    with pa.ipc.open_stream(chunk) as reader:
        return uniform(reader.read_all())


def uniform(rows: pa.Table) -> pa.Table:
    """Returns the rows with all times in UTC, and all columns nullable, whatever session and plan say of them."""
    fields = [field.with_type(_type_in_utc(field.type)).with_nullable(True) for field in rows.schema]
    wanted = pa.schema(fields, rows.schema.metadata)
    return rows if rows.schema == wanted else rows.cast(wanted)


def together(tables: list[pa.Table]) -> pa.Table:
    """Returns the rows of tables, with the columns of the last one, by name.

    The query before it was changed may have kept the others: with its columns in another order, or with more of them.
    """
    return pa.concat_tables([of_columns(table, tables[-1].schema) for table in tables])


def of_columns(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Returns these columns of rows.

    Raises SchemaMismatchError if the rows are of a query that had not all of them, or had them in another type.
    """
    for field in wanted:
        if field.name not in rows.column_names:
            has = f"only {rows.column_names}"
        elif _same(found := rows.schema.field(field.name).type, field.type):
            continue
        else:
            has = f"it as {found}, and not as {field.type}"
        raise SchemaMismatchError(
            f"The query has the column {field.name!r}, but rows in its state have {has}: they came before the query "
            "was changed. Start it with a new checkpoint, or without that column.",
            column=field.name,
        )
    return rows if rows.column_names == wanted.names else rows.select(wanted.names)


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Returns whether values are of the same type. Those of nested types are compared where they are read."""
    if pa.types.is_nested(one) or pa.types.is_nested(other):
        return bool(one.id == other.id)
    return bool(_LARGE.get(one, one) == _LARGE.get(other, other))


_LARGE = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def _type_in_utc(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_type_in_utc(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_type_in_utc(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(*(field.with_type(_type_in_utc(field.type)) for field in (kind.key_field, kind.item_field)))
    return kind


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packs rows into one chunk per bucket, without their last column ``bucket``. For mapInArrow."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        buckets = rows.column(BUCKET).to_numpy()
        found, parts = split(rows.drop_columns([BUCKET]), buckets)
        chunks = pa.array([to_bytes(part) for part in parts], pa.binary())
        yield pa.record_batch([pa.array(found, pa.int32()), chunks], names=[BUCKET, CHUNK])


def unpacker(
    wanted: pa.Schema, rowtime: str, following: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function for mapInArrow that unpacks chunks.

    Their rows have the ``wanted`` columns: Spark would take values of another type for those of the type that it
    expects. ``rowtime`` is moved ``following`` microseconds later.
    """

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column(CHUNK):
                rows = of_columns(from_bytes(chunk.as_py()), wanted)
                yield from _moved(rows, rowtime, following).to_batches()

    return unpack


def _moved(rows: pa.Table, column: str, by: int) -> pa.Table:
    if not by:
        return rows
    later = pc.add(rows.column(column), pa.scalar(by, pa.duration("us")))
    return rows.set_column(rows.column_names.index(column), column, later)


def split(rows: pa.Table, by: Whole) -> tuple[list[int], list[pa.Table]]:
    """Splits the rows by a whole number that each has. Returns the numbers, ascending, and the rows of each."""
    order = np.argsort(by, kind="stable")
    found, starts = np.unique(by[order], return_index=True)
    sorted_rows = rows.take(pa.array(order)) if len(found) > 1 else rows
    ends = np.append(starts, len(by))[1:]
    parts = [sorted_rows.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
    return found.tolist(), parts


def pieces(rows: pa.Table) -> Iterator[bytes]:
    """Yields the rows as chunks of limited size, so that each fits into memory on its way."""
    for start in range(0, rows.num_rows, _ROWS):
        yield to_bytes(rows.slice(start, _ROWS))


def micros(rows: pa.Table, column: str) -> Whole:
    """Returns a timestamp column as microseconds since the epoch. Raises SchemaMismatchError if a time is null."""
    if rows.column(column).null_count:
        raise SchemaMismatchError(
            f"A row has no time: {column!r} is null, so it is not known which rows come before it. Leave such rows out "
            f'below the operator, by where("`{column}` IS NOT NULL"), and start the query again with its checkpoint.',
            column=column,
        )
    found: Whole = pc.cast(rows.column(column), pa.int64()).to_numpy()
    return found


def nullable_micros(rows: pa.Table, column: str) -> Whole:
    """Returns the same; a null is before every time, and further from it than any interval."""
    found: Whole = pc.fill_null(pc.cast(rows.column(column), pa.int64()), _NO_TIME).to_numpy()
    return found
