"""Converts Spark's DDL and JSON schema forms into Arrow schemas, without PySpark.

Adapters declare their schema in DDL and must not pay for an import of PySpark.
"""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.types.short_repr import REPR_CHARACTERS, short_repr

_SIMPLE = {
    "boolean": pa.bool_(),
    **dict.fromkeys(("tinyint", "byte"), pa.int8()),
    **dict.fromkeys(("smallint", "short"), pa.int16()),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    **dict.fromkeys(("bigint", "long"), pa.int64()),
    **dict.fromkeys(("float", "real"), pa.float32()),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.timestamp("us"),
    **dict.fromkeys(("decimal", "dec", "numeric"), pa.decimal128(10, 0)),
}
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|'((?:[^'\\]|\\.)*)'|([A-Za-z_]\w*)|(\d{1,9})|([<>(),:]))")
_END = re.compile(r"\s*\Z")
NESTING_LEVELS = 100
"""The largest depth of nested types; no reader of such a stream could handle a greater one."""


def from_ddl(text: str) -> pa.Schema:
    """Converts DDL, such as ``"rowtime TIMESTAMP NOT NULL, ticker STRING"``, into an Arrow schema.

    Raises SchemaMismatchError, which names the place that cannot be parsed.
    """
    parser = _Parser(text)
    return pa.schema(parser.fields(end=None))


def from_spark_json(value: dict[str, Any]) -> pa.Schema:
    """Converts the result of ``StructType.jsonValue()`` into an Arrow schema."""
    return pa.schema([_json_field(field) for field in value["fields"]])


def _json_field(field: dict[str, Any], within: str | None = None) -> pa.Field:
    column = within or field["name"]
    if collations := field.get("metadata", {}).get("__COLLATIONS"):
        raise SchemaMismatchError(
            f"Column {column!r} has a collation ({', '.join(collations.values())}), which a stream does not "
            "keep: its strings compare by their bytes. Cast it to STRING COLLATE UTF8_BINARY.",
            column=column,
        )
    return pa.field(field["name"], _json_type(field["type"], column), field["nullable"])


def _json_type(kind: Any, column: str) -> pa.DataType:
    if isinstance(kind, str):
        return _Parser(kind, column).whole_type()
    match kind["type"]:
        case "struct":
            return pa.struct([_json_field(field, column) for field in kind["fields"]])
        case "array":
            element = pa.field("element", _json_type(kind["elementType"], column), kind["containsNull"])
            return pa.list_(element)
        case "map":
            value = pa.field("value", _json_type(kind["valueType"], column), kind["valueContainsNull"])
            return pa.map_(_json_type(kind["keyType"], column), value)
    raise SchemaMismatchError(
        f"Column {column!r} has the type {kind.get('type')!r}, which a stream cannot hold.", column=column
    )


class _Parser:
    """A recursive descent parser over the tokens of one DDL string."""

    def __init__(self, text: str, column: str | None = None) -> None:
        self.text, self.column, self.depth = text, column, 0
        self.tokens = list(self._tokens())
        self.at = 0

    def _tokens(self) -> Iterator[tuple[str, str]]:
        at = 0
        while not _END.match(self.text, at):
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self.error(f"cannot read {self.text[at : at + 20].strip()!r}")
            quoted, literal, word, number, sign = match.groups()
            if quoted is not None:
                yield "name", quoted.replace("``", "`")
            elif literal is not None:
                yield "literal", literal
            else:
                yield ("word", word) if word else ("number", number) if number else ("sign", sign)
            at = match.end()
        yield "end", ""

    def error(self, what: str) -> SchemaMismatchError:
        where = f" at column {short_repr(self.column)}" if self.column else ""
        return SchemaMismatchError(
            f"The schema {short_repr(self.text)} cannot be read{where}: {what}. "
            "Write DDL, such as 'rowtime TIMESTAMP NOT NULL, ticker STRING, price DECIMAL(10,2)'.",
            schema=self.text,
            column=self.column,
        )

    def take(self, *wanted: str) -> str | None:
        """Consumes the next token if it is one of ``wanted`` (in any case); otherwise returns None."""
        kind, value = self.tokens[self.at]
        if kind in ("word", "sign") and value.lower() in wanted:
            self.at += 1
            return value.lower()
        return None

    def need(self, kind: str) -> str:
        found, value = self.tokens[self.at]
        if found != kind and not (kind == "name" and found == "word"):
            raise self.error(f"expected a {kind} instead of {short_repr(value) if value else 'the end'}")
        self.at += 1
        return value

    def sign(self, sign: str) -> None:
        if self.take(sign) is None:
            raise self.error(f"expected {sign!r} instead of {short_repr(self.tokens[self.at][1] or 'the end')}")

    def fields(self, end: str | None) -> list[pa.Field]:
        fields = [self.field()]
        while self.take(","):
            fields.append(self.field())
        if end is None and self.tokens[self.at][0] != "end":
            raise self.error(f"unexpected {short_repr(self.tokens[self.at][1])}")
        if end is not None:
            self.sign(end)
        return fields

    def field(self) -> pa.Field:
        name = self.need("name")
        within = self.column
        self.column = within or name
        self.take(":")
        kind = self.type()
        nullable = True
        while word := self.take("not", "comment"):
            if word == "comment":
                self.need("literal")
            elif self.take("null") is None:
                raise self.error("NOT is not followed by NULL")
            else:
                nullable = False
        if self.tokens[self.at][0] == "word":
            raise self.error(f"unexpected {short_repr(self.tokens[self.at][1])} after its type")
        self.column = within
        return pa.field(name, kind, nullable)

    def whole_type(self) -> pa.DataType:
        kind = self.type()
        self.need("end")
        return kind

    def type(self) -> pa.DataType:
        name = self.need("word").lower()
        if name in ("decimal", "dec", "numeric") and self.take("("):
            precision, scale = int(self.need("number")), 0
            if self.take(","):
                scale = int(self.need("number"))
            self.sign(")")
            return self.decimal(precision, scale)
        if name in _SIMPLE:
            return _SIMPLE[name]
        return self.nested(name)

    def decimal(self, precision: int, scale: int) -> pa.DataType:
        if not 1 <= precision <= 38 or scale > precision:
            raise self.error(f"DECIMAL({precision},{scale}) is outside DECIMAL(1,0) .. DECIMAL(38,38)")
        return pa.decimal128(precision, scale)

    def nested(self, name: str) -> pa.DataType:
        self.depth += 1
        if self.depth > NESTING_LEVELS:
            raise self.error(f"types are nested deeper than {NESTING_LEVELS}")
        kind = self.inside(name)
        self.depth -= 1
        return kind

    def inside(self, name: str) -> pa.DataType:
        if name == "struct" and self.take("<"):
            return pa.struct(self.fields(end=">"))
        if name == "array" and self.take("<"):
            kind = pa.list_(pa.field("element", self.type()))
        elif name == "map" and self.take("<"):
            key = self.type()
            self.sign(",")
            kind = pa.map_(key, self.type())
        else:
            raise self.error(f"the type {name.upper()[:REPR_CHARACTERS]} is not one that a stream can hold")
        self.sign(">")
        return kind
