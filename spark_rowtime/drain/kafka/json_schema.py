"""Rows as JSON, with the JSON Schema that says what stands for the values of each column."""

import json
from typing import Any

import pyarrow as pa

from spark_rowtime.drain.kafka.encoders import RowFormat
from spark_rowtime.drain.kafka.json_rows import json_rows, require_json

_types = pa.types
_TEXT = {"type": "string"}
_PLAIN: list[tuple[Any, dict[str, Any]]] = [
    (_types.is_boolean, {"type": "boolean"}),
    (_types.is_integer, {"type": "integer"}),
    (_types.is_floating, {"anyOf": [{"type": "number"}, {**_TEXT, "enum": ["NaN", "Infinity", "-Infinity"]}]}),
    (_types.is_date, {**_TEXT, "format": "date"}),
    (_types.is_binary, {**_TEXT, "contentEncoding": "base64"}),
]
"""What stands for values of plain types; others are texts."""


class JsonSchemaRows(RowFormat):
    """Rows as the drain writes them without a registry."""

    kind = "JSON"

    def __init__(self, schema: pa.Schema) -> None:
        require_json(schema)
        self._schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Row", **_object([*schema])}

    @property
    def text(self) -> str:
        return json.dumps(self._schema)

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        return json_rows(rows)


def _object(fields: list[pa.Field]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field.name: _value(field) for field in fields},
        "required": [field.name for field in fields if not field.nullable],
    }


def _value(field: pa.Field) -> dict[str, Any]:
    found = _not_null(field.type)
    return {"anyOf": [{"type": "null"}, found]} if field.nullable else found


def _not_null(kind: pa.DataType) -> dict[str, Any]:
    if _types.is_list(kind):
        return {"type": "array", "items": _value(kind.value_field)}
    if _types.is_struct(kind):
        return _object([*kind])
    if _types.is_map(kind):
        return {"type": "object", "additionalProperties": _value(kind.item_field)}
    if _types.is_timestamp(kind) and kind.tz:
        return {**_TEXT, "format": "date-time"}
    return next((plain for fits, plain in _PLAIN if fits(kind)), _TEXT)
