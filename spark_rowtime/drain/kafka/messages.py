"""The messages of a drain: those of rows, and the one behind them that says the bound."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.drain.kafka.encoders import Encoder
from spark_rowtime.drain.kafka.json_rows import plain_texts
from spark_rowtime.drain.properties import BOUND, FIRST, LAST, STRICT
from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.types.short_repr import short_repr

Message = tuple[bytes | None, bytes]
"""Key and value."""
BATCH_ROWS, BATCH_BYTES = 8192, 1 << 26
"""The rows that are written as messages at a time: at most so many, and about so many bytes in Arrow."""
_types = pa.types


class RowMessages:
    """Makes rows into messages. ``key``: the column whose value is the key; ``encoder`` makes their values."""

    def __init__(self, schema: pa.Schema, key: str | None, encoder: Encoder) -> None:
        if key is not None:
            _require_key(schema, key)
        self._key, self._encoder = key, encoder

    def of(self, rows: pa.Table) -> Iterator[Message]:
        """The messages of rows, in their order."""
        for batch in rows.to_batches():
            step = max(1, min(BATCH_ROWS, BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1)))
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                yield from zip(self._keys(part), self._encoder.rows(part), strict=True)

    def bound(self, bound: RowtimeBound) -> Message:
        """The message of a bound, which has no key."""
        return None, self._encoder.bound(bound)

    def _keys(self, rows: pa.RecordBatch) -> list[bytes | None]:
        return [None] * rows.num_rows if self._key is None else key_bytes(rows.column(self._key))


def key_bytes(column: pa.Array) -> list[bytes | None]:
    """The values of a column as keys: bytes as they are, others as the text that JSON has, without quotation marks."""
    binary = column if _types.is_binary(column.type) else plain_texts(column)
    return list(binary.cast(pa.large_binary()).to_pylist())


def bound_headers(properties: Mapping[str, str]) -> list[tuple[str, bytes]]:
    """The headers of that message: the bound exactly, and the first and the last rowtime of the rows.

    By them the message is known, whatever the values of rows are.
    """
    return [(name, properties[name].encode()) for name in (BOUND, STRICT, FIRST, LAST) if name in properties]


def _require_key(schema: pa.Schema, key: str) -> None:
    if key not in schema.names:
        raise InvalidOptionError(
            f"key={short_repr(key)} is not a column of the stream. Its columns are {schema.names}.",
            option="key",
            value=short_repr(key),
        )
    kind = schema.field(key).type
    if _types.is_nested(kind) or _types.is_floating(kind):
        raise SchemaMismatchError(
            f"Column {key!r} is {kind}, which has no one text for equal values, so rows of one key might come into "
            "different partitions. Choose another column as the key, or add one in the stream's query.",
            column=key,
            type=str(kind),
        )
