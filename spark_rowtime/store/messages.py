"""Reads record batches that were written under an older or newer schema of the stream, maybe by a stranger.

A message does not contain its schema, but the number of its field nodes, one for each column and each column nested in
it. Columns are only ever added at the end, so this number says which columns the message has.
"""

import struct

import pyarrow as pa

from spark_rowtime.types.added_columns import added_names, has_added, with_columns, without_added
from spark_rowtime.types.checks import is_valid

_PREFIX_BYTES = 8
"""A message begins with a continuation mark and the length of its metadata, in four bytes each."""
_HEADER, _NODES, _COMPRESSION = 2, 1, 3
"""The numbers of fields in Arrow's flatbuffers: ``header`` of a message, ``nodes`` and ``compression`` of a batch."""
_CONTINUATION = 0xFFFFFFFF
_START, _INT32 = struct.Struct("<IiI"), struct.Struct("<i")
_UINT16, _UINT32 = struct.Struct("<H"), struct.Struct("<I")


def read_batch(message: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the rows in ``message`` as rows of ``schema``.

    Columns that were added after the message was written are null. Columns that ``schema`` does not have yet are left
    out. Raises ArrowException if the message fits neither ``schema`` nor an older one.

    Law (*trains that lie*): whatever the bytes are, the rows are whole values, which lie in these bytes and take no
    more memory than they have; or ArrowException is raised.
    """
    _require_plain(message)
    try:
        rows = _read(message, schema)
    except OSError as error:  # Arrow reads a buffer as a file, which may end too early
        raise pa.ArrowInvalid(str(error)) from None
    if not is_valid(rows):
        raise pa.ArrowInvalid("its bytes are not what its columns need")  # Arrow's own text may name a value
    return with_columns(rows, schema)  # only now: nulls take memory for as many rows as there are


def _require_plain(message: pa.Buffer) -> None:
    """Refuses rows that would take more memory than the message: compressed ones, and values without any bytes."""
    lengths, compressed = _described(message)
    if compressed:
        raise pa.ArrowInvalid("it is compressed, as no train is")
    if max(lengths, default=0) > 8 * message.size:
        raise pa.ArrowInvalid("it names more values than its bytes can hold")


def _read(message: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the rows with those columns of ``schema`` that the message has."""
    if not has_added(schema):  # the message has at least the columns of schema, and Arrow does not read further ones
        return pa.ipc.read_record_batch(message, schema)
    nodes = len(_described(message)[0])
    for columns in range(len(schema), len(schema) - len(added_names(schema)) - 1, -1):
        older = without_added(schema, columns)
        if sum(_nodes(field.type) for field in older) <= nodes:
            return pa.ipc.read_record_batch(message, older)
    raise pa.ArrowInvalid(f"{nodes} field nodes are less than the stream ever had")


def header_bytes(first: bytes) -> int | None:
    """Returns how many bytes of a segment its schema takes; None if its writer has not written it yet.

    ``first`` are the first bytes of the segment.
    """
    if len(first) < _PREFIX_BYTES:
        return None
    return _PREFIX_BYTES + int(struct.unpack_from("<i", first, 4)[0])


def _nodes(kind: pa.DataType) -> int:
    """Returns the number of field nodes of a column."""
    if pa.types.is_struct(kind):
        return 1 + sum(_nodes(field.type) for field in kind)
    if pa.types.is_list(kind):
        return 1 + _nodes(kind.value_type)
    if pa.types.is_map(kind):  # the column, its entries, and what they consist of
        return 2 + _nodes(kind.key_type) + _nodes(kind.item_type)
    return 1


def _described(message: pa.Buffer) -> tuple[tuple[int, ...], bool]:
    """Returns how many values each field node has that the metadata names, and whether they are compressed."""
    metadata = memoryview(message)
    try:
        mark, _, root = _START.unpack_from(metadata)
        if mark != _CONTINUATION:
            raise pa.ArrowInvalid("it does not begin as a message does")
        header = _pointed(metadata, _field(metadata, _PREFIX_BYTES + root, _HEADER))
        nodes = _pointed(metadata, _field(metadata, header, _NODES))
        (count,) = _UINT32.unpack_from(metadata, nodes)
        lengths = struct.unpack_from(f"<{2 * count}q", metadata, nodes + 4)[::2]
        return lengths, bool(_field(metadata, header, _COMPRESSION))
    except struct.error as error:
        raise pa.ArrowInvalid(f"the metadata is damaged ({error})") from None


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Returns the position of a field of the flatbuffers table at ``table``; 0 if the table does not have it."""
    entries, entry = table - _INT32.unpack_from(metadata, table)[0], 4 + 2 * number
    if entry >= _UINT16.unpack_from(metadata, entries)[0]:
        return 0
    place: int = _UINT16.unpack_from(metadata, entries + entry)[0]
    return table + place if place else 0


def _pointed(metadata: memoryview, at: int) -> int:
    """Returns the position to which the offset in a field points."""
    if not at:
        raise pa.ArrowInvalid("the metadata lacks a field")
    return at + int(_UINT32.unpack_from(metadata, at)[0])
