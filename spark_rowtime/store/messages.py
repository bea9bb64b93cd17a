"""Reads record batches that were written under an older or newer schema of the stream.

A message does not contain its schema, but the number of its field nodes, one for each column and each column nested in
it. Columns are only ever added at the end, so this number says which columns the message has.
"""

import struct

import pyarrow as pa

from spark_rowtime.types.added_columns import added_names, with_columns, without_added

_PREFIX_BYTES = 8
"""A message begins with a continuation mark and the length of its metadata, in four bytes each."""
_HEADER, _NODES = 2, 1
"""The numbers of two fields in Arrow's flatbuffers: ``Message.header`` and ``RecordBatch.nodes``."""


def read_batch(message: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the rows in ``message`` as rows of ``schema``.

    Columns that were added after the message was written are null. Columns that ``schema`` does not have yet are left
    out. Raises ArrowException if the message fits neither ``schema`` nor an older one.
    """
    added = added_names(schema)
    if not added:  # the message has at least the columns of schema, and Arrow does not read further ones
        return pa.ipc.read_record_batch(message, schema)
    nodes = _node_count(message)
    for columns in range(len(schema), len(schema) - len(added) - 1, -1):
        older = without_added(schema, columns)
        if sum(_nodes(field.type) for field in older) <= nodes:
            return with_columns(pa.ipc.read_record_batch(message, older), schema)
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


def _node_count(message: pa.Buffer) -> int:
    """Returns the number of field nodes that the metadata of ``message`` names."""
    try:
        metadata = memoryview(message)[_PREFIX_BYTES:]
        header = _table(metadata, _field(metadata, _uint32(metadata, 0), _HEADER))
        return _uint32(metadata, _table(metadata, _field(metadata, header, _NODES)))
    except struct.error as error:
        raise pa.ArrowInvalid(f"the metadata is damaged ({error})") from None


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Returns the position of a field of the flatbuffers table at ``table``."""
    entries = table - int(struct.unpack_from("<i", metadata, table)[0])
    return table + int(struct.unpack_from("<H", metadata, entries + 4 + 2 * number)[0])


def _table(metadata: memoryview, at: int) -> int:
    """Returns the position to which the offset at ``at`` points."""
    return at + _uint32(metadata, at)


def _uint32(metadata: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", metadata, at)[0])
