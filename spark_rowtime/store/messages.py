"""Reads record batches that were written under an older or newer schema of the stream, maybe by a stranger.

A message does not contain its schema, but the number of its field nodes, one for each column and each column nested in
it. Columns are only ever added at the end, so this number says which columns the message has.
"""

import struct

import pyarrow as pa

from spark_rowtime.types.added_columns import added_names, with_columns, without_added
from spark_rowtime.types.checks import is_valid

_PREFIX_BYTES = 8
"""A message begins with a continuation mark and the length of its metadata, in four bytes each."""
_HEADER, _NODES, _COMPRESSION = 2, 1, 3
"""The numbers of fields in Arrow's flatbuffers: ``header`` of a message, ``nodes`` and ``compression`` of a batch."""
_CONTINUATION = 0xFFFFFFFF


def read_batch(message: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the rows in ``message`` as rows of ``schema``.

    Columns that were added after the message was written are null. Columns that ``schema`` does not have yet are left
    out. Raises ArrowException if the message fits neither ``schema`` nor an older one.

    Law (*trains that lie*): whatever the bytes are, the rows are whole values, which lie in these bytes and take no
    more memory than they have; or ArrowException is raised.
    """
    _require_plain(message)
    rows = _read(message, schema)
    if not is_valid(rows):
        raise pa.ArrowInvalid("its bytes are not what its columns need")  # Arrow's own text may name a value
    return rows


def _require_plain(message: pa.Buffer) -> None:
    """Refuses rows that would take more memory than the message: compressed ones, and values without any bytes."""
    try:
        metadata, header = _record_batch(message)
        if _field(metadata, header, _COMPRESSION) is not None:
            raise pa.ArrowInvalid("it is compressed, as no train is")
        if max(_node_lengths(metadata, header), default=0) > 8 * message.size:
            raise pa.ArrowInvalid("it names more values than its bytes can hold")
    except struct.error as error:
        raise _damaged(error) from None


def _read(message: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
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
        metadata, header = _record_batch(message)
        return len(_node_lengths(metadata, header))
    except struct.error as error:
        raise _damaged(error) from None


def _record_batch(message: pa.Buffer) -> tuple[memoryview, int]:
    """Returns the metadata of a message, and the position of the table ``RecordBatch`` in it."""
    if len(message) < _PREFIX_BYTES or _uint32(memoryview(message), 0) != _CONTINUATION:
        raise pa.ArrowInvalid("it does not begin as a message does")
    metadata = memoryview(message)[_PREFIX_BYTES:]
    header = _field(metadata, _uint32(metadata, 0), _HEADER)
    if header is None:
        raise pa.ArrowInvalid("it has no header")
    return metadata, _pointed(metadata, header)


def _node_lengths(metadata: memoryview, header: int) -> tuple[int, ...]:
    """Returns how many values each field node has."""
    nodes = _field(metadata, header, _NODES)
    if nodes is None:
        return ()
    at = _pointed(metadata, nodes)
    return struct.unpack_from(f"<{2 * _uint32(metadata, at)}q", metadata, at + 4)[::2]


def _field(metadata: memoryview, table: int, number: int) -> int | None:
    """Returns the position of a field of the flatbuffers table at ``table``; None if the table does not have it."""
    entries, entry = table - int(struct.unpack_from("<i", metadata, table)[0]), 4 + 2 * number
    if entry >= _uint16(metadata, entries):  # the size of the list of fields
        return None
    found = _uint16(metadata, entries + entry)
    return table + found if found else None


def _pointed(metadata: memoryview, at: int) -> int:
    """Returns the position to which the offset at ``at`` points."""
    return at + _uint32(metadata, at)


def _uint32(metadata: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", metadata, at)[0])


def _uint16(metadata: memoryview, at: int) -> int:
    return int(struct.unpack_from("<H", metadata, at)[0])


def _damaged(error: struct.error) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"the metadata is damaged ({error})")
