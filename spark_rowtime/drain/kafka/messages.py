"""The messages of a drain: those of rows, and the one behind them that says the bound."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.drain.kafka.json_rows import json_rows, plain_texts, require_json
from spark_rowtime.drain.properties import BOUND, FIRST, LAST, STRICT
from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.types.short_repr import short_repr

Message = tuple[bytes | None, bytes]
"""Key and value."""
Value = Callable[[dict[str, Any]], bytes | str]
BATCH_ROWS, BATCH_BYTES = 8192, 1 << 26
"""The rows that are written as messages at a time: at most so many, and about so many bytes in Arrow."""
_NANOS_OF_MICRO = 1000
_LARGEST_NANOS = (1 << 63) - 1
"""The largest time that readers of ``resolved`` can keep, in nanoseconds: in the year 2262."""
_types = pa.types


class RowMessages:
    """Makes rows into messages. ``key``: the column whose value is the key; ``value``: what a row's value is."""

    def __init__(self, schema: pa.Schema, key: str | None, value: Value | None) -> None:
        if key is not None:
            _require_key(schema, key)
        if value is None:
            require_json(schema)
        elif not callable(value):
            raise InvalidOptionError(
                f"value={short_repr(value)} cannot be called. Give a function that takes a row as a dict and returns "
                "bytes or a text; or leave it out for JSON.",
                option="value",
            )
        self._key, self._value = key, value

    def of(self, rows: pa.Table) -> Iterator[Message]:
        """The messages of rows, in their order."""
        for batch in rows.to_batches():
            step = max(1, min(BATCH_ROWS, BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1)))
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                yield from zip(self._keys(part), self._values(part), strict=True)

    def _keys(self, rows: pa.RecordBatch) -> list[bytes | None]:
        return [None] * rows.num_rows if self._key is None else key_bytes(rows.column(self._key))

    def _values(self, rows: pa.RecordBatch) -> list[bytes]:
        if self._value is None:
            return json_rows(rows)
        return [_encoded(self._value(row)) for row in rows.to_pylist()]


def key_bytes(column: pa.Array) -> list[bytes | None]:
    """The values of a column as keys: bytes as they are, others as the text that JSON has, without quotation marks."""
    binary = column if _types.is_binary(column.type) else plain_texts(column)
    return list(binary.cast(pa.large_binary()).to_pylist())


def resolved_message(bound: RowtimeBound) -> bytes:
    """The message of a bound, as CockroachDB's changefeeds write it: nanoseconds, a point, and a logical clock of 0.

    The time is the least that a later row may have. That of the end of time is the largest which readers can keep.
    """
    nanos = min(bound.floor * _NANOS_OF_MICRO, _LARGEST_NANOS)
    return json.dumps({"resolved": f"{nanos}.0000000000"}, separators=(",", ":")).encode()


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


def _encoded(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        with suppress(UnicodeEncodeError):  # half of a surrogate pair is no character
            return value.encode()
    raise InvalidOptionError(
        f"value= has returned {short_repr(value)}, a {type(value).__name__}, for a row. It must return bytes, "
        "or a text in Unicode.",
        option="value",
    )
