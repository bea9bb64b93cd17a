"""Which Avro schemas are read: those whose messages make no more values than a program can hold."""

from collections.abc import Callable
from typing import Any, NamedTuple

from spark_rowtime.kafka.client import library
from spark_rowtime.types.short_repr import short_repr

MOST_DEEP = 100
"""How deep a schema may go. The reader calls itself on each level, and ends the process if there are too many."""
MOST_PARTS = 20_000
"""How many types a schema may have, where each name stands for all that it names."""
DECIMAL_BYTES = 1000
"""How long a decimal may be. The time to read one grows with the square: minutes for 1 MB. A column has 16 bytes."""
_SHORT_DECIMAL = "rowtime-decimal"
_WITH_BYTES = {"boolean", "int", "long", "float", "double", "bytes", "string", "enum"}
"""Types whose values take a byte at least, and have no other types in them."""


class _Size(NamedTuple):
    """What a type makes of a message. ``free``: whether it has a value that takes no byte, except as a union's part."""

    deep: int
    parts: int
    free: bool


_PLAIN, _FREE = _Size(1, 1, free=False), _Size(1, 1, free=True)


def require_bounded(schema: Any) -> None:
    """Raises ValueError for a schema, as fastavro has parsed it, of which a short message may fill the memory.

    So are types in themselves, and arrays and maps whose items have values that take no byte.
    """
    _of(schema, {}, 0)


def _of(schema: Any, known: dict[str, _Size | None], level: int) -> _Size:
    """The size of a type. ``known``: those of names; None while a name's own type is looked at."""
    if level > MOST_DEEP:
        raise ValueError(f"its schema is more than {MOST_DEEP} types deep")
    if isinstance(schema, list):
        return _of_union([_of(one, known, level + 1) for one in schema])
    kind = schema["type"] if isinstance(schema, dict) else schema
    if not isinstance(kind, str):
        return _of(kind, known, level + 1)
    if kind in ("record", "error"):
        return _of_record(schema, known, level)
    if kind in ("array", "map"):
        return _of_items(_of(schema["items" if kind == "array" else "values"], known, level + 1))
    return _of_leaf(schema, kind, known)


def _of_leaf(schema: Any, kind: str, known: dict[str, _Size | None]) -> _Size:
    """The size of a type that has no other ones in it, or of a name."""
    if kind == "null":
        return _FREE
    if kind == "fixed":
        return _noted(schema, known, _PLAIN if schema["size"] > 0 else _FREE)
    return _noted(schema, known, _PLAIN) if kind in _WITH_BYTES else _of_name(kind, known)


def _noted(schema: Any, known: dict[str, _Size | None], size: _Size) -> _Size:
    """Notes the size of a type that has a name."""
    if isinstance(schema, dict) and "name" in schema:
        known[schema["name"]] = size
    return size


def _of_name(name: str, known: dict[str, _Size | None]) -> _Size:
    found = known.get(name)
    if found is not None:
        return found
    if name in known:
        raise ValueError(f"its schema has a type in itself, {short_repr(name)}, which no column can have")
    raise ValueError(f"its schema has an unknown type, {short_repr(name)}")


def _of_record(schema: dict[str, Any], known: dict[str, _Size | None], level: int) -> _Size:
    known[schema["name"]] = None
    fields = [_of(field["type"], known, level + 1) for field in schema["fields"]]
    return _noted(schema, known, _around(fields, free=not fields or any(field.free for field in fields)))


def _of_union(parts: list[_Size]) -> _Size:
    """The part's number takes a byte, and stands for a value of no more than one part."""
    return _around(parts, free=any(part.free and part.parts > 1 for part in parts))


def _of_items(item: _Size) -> _Size:
    if item.free:
        raise ValueError("its schema has an array or a map with values that take no byte, of which any number may come")
    return _around([item], free=False)


def _around(inner: list[_Size], *, free: bool) -> _Size:
    """The size of a type with others in it."""
    deep, parts = 1 + max((one.deep for one in inner), default=0), 1 + sum(one.parts for one in inner)
    if deep > MOST_DEEP or parts > MOST_PARTS:
        raise ValueError(f"its schema is more than {MOST_DEEP} types deep, or has more than {MOST_PARTS} types")
    return _Size(deep, parts, free=free)


def limit_decimals(schema: Any) -> None:
    """Lets the decimals of a schema, as fastavro has parsed it, be read up to ``DECIMAL_BYTES`` only."""
    readers = library("fastavro.read").LOGICAL_READERS
    for kind in ("bytes", "fixed"):
        readers.setdefault(f"{kind}-{_SHORT_DECIMAL}", _short_reader(readers[f"{kind}-decimal"]))
    _rename_decimals(schema)


def _short_reader(read: Callable[..., Any]) -> Callable[..., Any]:
    def reader(data: bytes, *schemas: Any) -> Any:
        if len(data) > DECIMAL_BYTES:
            raise ValueError(f"a decimal has {len(data)} bytes, more than {DECIMAL_BYTES}")
        return read(data, *schemas)

    return reader


def _rename_decimals(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("logicalType") == "decimal":
            schema["logicalType"] = _SHORT_DECIMAL
        schema = [*schema.values()]
    if isinstance(schema, list):
        for part in schema:
            _rename_decimals(part)
