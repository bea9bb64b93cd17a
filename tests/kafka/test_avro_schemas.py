"""Avro schemas of which a short message would end the process, or fill its memory: such a message is malformed."""

import json
import struct
import subprocess
import sys
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from spark_rowtime.kafka.avro import AvroRecords
from spark_rowtime.kafka.malformed import MalformedError
from tests.kafka.registry import schema_registry

NOTHING = {"type": "record", "name": "Nothing", "fields": []}


def record(name: str, *types: Any) -> dict[str, Any]:
    """A record with fields of these types."""
    return {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": one} for n, one in enumerate(types)]}


def chain(count: int, *, twice: bool = False) -> list[Any]:
    """The types of fields, each a record with the one before, once or twice."""
    found: list[Any] = [record("R0", "int")]
    return found + [record(f"R{n}", *[f"R{n - 1}"] * (1 + twice)) for n in range(1, count)]


def decoded(schema: Any, body: bytes) -> Any:
    """What a message with this schema gives; the registry has it by its id."""
    with schema_registry() as registry:
        registry.schemas = [{"schema": json.dumps(schema)}]
        records = AvroRecords({"url": registry.url, "max.retries": "0"})
        value = struct.pack(">bI", 0, 1) + body
        return records(SimpleNamespace(value=lambda: value, topic=lambda: "orders"))


REFUSED = {
    "in itself": (record("R", ["null", "R"]), "a type in itself, 'R'"),
    "in itself, with a namespace": ({**record("R", ["null", "x.R"]), "namespace": "x"}, "a type in itself, 'x.R'"),
    "in itself by another": (record("A", record("B", {"type": "array", "items": "A"})), "a type in itself, 'A'"),
    "nulls": (record("R", {"type": "array", "items": "null"}), "take no byte"),
    "nulls in a map": (record("R", {"type": "map", "values": "null"}), "take no byte"),
    "empty records": (record("R", {"type": "array", "items": NOTHING}), "take no byte"),
    "empty records by name": (record("R", NOTHING, {"type": "array", "items": "Nothing"}), "take no byte"),
    "fixed": (record("R", {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}), "take no byte"),
    "many nulls for one byte": (record("R", {"type": "array", "items": record("S", "int", "null")}), "take no byte"),
    "many nulls in a union": (
        record("R", {"type": "array", "items": ["int", record("S", *["null"] * 9)]}),
        "take no byte",
    ),
    "deep by names": (record("R", *chain(5000)), "100 types deep"),
    "deep": (json.loads('{"type":"array","items":' * 150 + '"int"' + "}" * 150), "100 types deep"),
    "doubled": (record("R", *chain(60, twice=True)), "more than 20000 types"),
}


@pytest.mark.parametrize(("schema", "why"), REFUSED.values(), ids=REFUSED)
def test_a_schema_that_is_refused(schema: Any, why: str) -> None:
    with pytest.raises(MalformedError, match=why):
        decoded(schema, b"\x02" * 100 + b"\x00")


def test_no_message_ends_the_process() -> None:
    """In a process of its own, which the reader would end."""
    program = (
        "from tests.kafka.test_avro_schemas import *\n"
        "try: decoded(record('R', ['null', 'R']), b'\\x02' * 5000 + b'\\x00')\n"
        "except MalformedError as error: print('malformed:', error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout[:10]) == (0, "malformed:"), run.stderr[-300:]


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
FIXED = {**DECIMAL, "type": "fixed", "size": 2000, "name": "F"}


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (record("R", DECIMAL), b"\xa0\x9c\x01" + b"\x55" * 10_000),
        (record("R", record("S", FIXED), "S"), bytes(4000)),
        (record("R", ["null", record("S", "int", DECIMAL)], "S"), b"\0\x02\xa0\x9c\x01" + b"\x55" * 10_000),
    ],
)
def test_a_long_decimal_takes_no_time(schema: Any, body: bytes) -> None:
    """One of 1 MB took two minutes."""
    with pytest.raises(MalformedError, match=r"a decimal has (10000|2000) bytes, more than 1000"):
        decoded(schema, body)


TAKEN = {
    "a null": (record("R", "null", "int"), b"\x06", {"f0": None, "f1": 3}),
    "an empty record": (record("R", NOTHING, "int"), b"\x06", {"f0": {}, "f1": 3}),
    "optional items": (record("R", {"type": "array", "items": ["null", NOTHING]}), b"\x04\0\x02\0", {"f0": [None, {}]}),
    "a name twice": (
        record("R", record("S", {"type": "enum", "name": "E", "symbols": ["a", "b"]}), "S", "E"),
        b"\0\x02\0",
        {"f0": {"f0": "a"}, "f1": {"f0": "b"}, "f2": "a"},
    ),
    "a logical type": (
        record("R", {"type": "array", "items": {"type": "string", "logicalType": "other"}}),
        b"\x02\x02a\0",
        {"f0": ["a"]},
    ),
    "decimals": (
        record("R", DECIMAL, ["null", {**FIXED, "size": 2, "precision": 4}], "F"),
        b"\x04\x01\x02\x02\x00\x05\x00\x07",
        {"f0": Decimal("2.58"), "f1": Decimal("0.05"), "f2": Decimal("0.07")},
    ),
    "a chain": (record("R", *chain(90)), b"\x02" * 90, None),
}


@pytest.mark.parametrize(("schema", "body", "found"), TAKEN.values(), ids=TAKEN)
def test_a_schema_that_is_taken(schema: Any, body: bytes, found: Any) -> None:
    assert found in (None, decoded(schema, body))
