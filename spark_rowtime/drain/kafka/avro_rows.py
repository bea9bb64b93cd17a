"""Rows as Avro records."""

import io
import json
from typing import Any

import pyarrow as pa

from spark_rowtime.drain.kafka.encoders import RowFormat
from spark_rowtime.drain.kafka.row_formats import dicts_of, require_names, unsupported
from spark_rowtime.kafka.client import library

_types = pa.types
_PLAIN: list[tuple[Any, Any]] = [
    (_types.is_boolean, "boolean"),
    (_types.is_int64, "long"),
    (_types.is_integer, "int"),
    (_types.is_float32, "float"),
    (_types.is_float64, "double"),
    (_types.is_string, "string"),
    (_types.is_binary, "bytes"),
    (_types.is_date32, {"type": "int", "logicalType": "date"}),
]
"""The types of Avro for plain ones of Arrow; the first that fits."""


class AvroRows(RowFormat):
    """Rows as Avro records. A column that may be NULL is a union with null, whose default is null."""

    kind = "AVRO"

    def __init__(self, schema: pa.Schema) -> None:
        require_names(schema, "Avro")
        self._record = {
            "type": "record",
            "name": "Row",
            "fields": [_field(field, "Row", field.name) for field in schema],
        }
        avro = library("fastavro")
        self._parsed, self._write = avro.parse_schema(self._record), avro.schemaless_writer

    @property
    def text(self) -> str:
        return json.dumps(self._record)

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        return [self._written(row) for row in dicts_of(rows)]

    def _written(self, row: dict[str, Any]) -> bytes:
        body = io.BytesIO()
        self._write(body, self._parsed, row)
        return body.getvalue()


def _field(field: pa.Field, within: str, column: str) -> dict[str, Any]:
    kind = _type(field, f"{within}.{field.name}", column)
    return {"name": field.name, "type": kind, **({"default": None} if field.nullable else {})}


def _type(field: pa.Field, name: str, column: str) -> Any:
    """The type of a field. ``name``: that of a record in its place, which no other has, since no column has a point."""
    found = _not_null(field.type, name, column)
    return ["null", found] if field.nullable else found


def _not_null(kind: pa.DataType, name: str, column: str) -> Any:
    for fits, plain in _PLAIN:
        if fits(kind):
            return plain
    if _types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if _types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if _types.is_list(kind):
        return {"type": "array", "items": _type(kind.value_field, f"{name}.element", column)}
    if _types.is_struct(kind):
        return {"type": "record", "name": name, "fields": [_field(part, name, column) for part in kind]}
    if _types.is_map(kind) and _types.is_string(kind.key_type):
        return {"type": "map", "values": _type(kind.item_field, f"{name}.value", column)}
    raise unsupported(column, kind, "the keys of a map in Avro are texts")
