"""A drain whose messages are in a format of a schema registry: who reads them with that registry gets the rows back."""

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.drain.kafka.avro_rows import AvroRows
from spark_rowtime.drain.kafka.encoders import RowFormat
from spark_rowtime.drain.kafka.protobuf_rows import ProtobufRows
from spark_rowtime.kafka import KafkaFeed
from spark_rowtime.kafka.avro import HEADER
from spark_rowtime.types.schema import rows_to_batch, stream_schema
from tests.kafka.feeds import PATIENT
from tests.kafka.registry import SchemaRegistry, schema_registry
from tests.kafka.topics import ended, messages, opened

ENCODERS = ("avro", "protobuf", "json-schema")
COLUMNS = (
    "rowtime TIMESTAMP NOT NULL, n BIGINT NOT NULL, small TINYINT, b BOOLEAN, f FLOAT, d DOUBLE, s STRING, raw BINARY, "
    "price DECIMAL(20,4), day DATE, local TIMESTAMP_NTZ, place STRUCT<city: STRING, at: TIMESTAMP>, "
    "many ARRAY<STRING>, counts MAP<STRING, BIGINT>"
)
AT = "2026-01-05T14:30:00.000001Z"
FULL = (
    AT,
    1,
    -3,
    True,
    0.5,
    -0.0,
    'é "',
    b"\x00\xff",
    Decimal("12.5000"),
    date(1, 1, 1),
    datetime(2026, 1, 5, 10, 0, 1),
)
ROWS = [
    (*FULL, ("Oslo", AT), ["a", "b"], {"x": 1}),
    (AT, 2, *[None] * 9, (None, None), [], {}),
    (AT, 3, 0, False, float("inf"), 0.0, "", b"", Decimal("-0.0001"), date(9999, 12, 31), None, None, ["c"], {}),
]


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A registry that has nothing."""
    with schema_registry() as found:
        yield found


@pytest.fixture
def stream(tmp_path: Path) -> str:
    """The rows, and a bound behind them."""
    path = str(tmp_path / "stream.rowtime")
    rt.createStream(path, COLUMNS)
    with rt.openSink(path, producer="shop", rowsImplyBounds=False) as sink:
        sink.sendRows(ROWS)
        sink.sendRowtimeBound("2026-01-05T15:00:00Z", strict=True)
        sink.abandon()
    return path


def rows_of(path: str) -> list[dict[str, Any]]:
    with rt.openReader(path, order="arrival") as reader:
        return sorted((row for train in reader for row in train.rows.to_pylist()), key=lambda row: row["n"])


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_feed_reads_what_a_drain_has_sent(
    kafka: Any, registry: SchemaRegistry, stream: str, tmp_path: Path, encoder: str
) -> None:
    """Rows and the bound, each value, with the same words on both sides."""
    topic, copy = kafka.topic(partitions=1), str(tmp_path / "copy.rowtime")
    config = tmp_path / "client.properties"
    config.write_text(f"registry.url={registry.url}\n")
    target = f"kafka://{kafka.bootstrap}/{topic}"
    done = CliRunner().invoke(main, ["drain", stream, target, "--encoder", encoder, "--config", str(config)])
    assert done.exit_code == 0, done.output
    assert sorted(registry.subjects) == [f"{topic}-resolved", f"{topic}-value"]
    rt.createStream(copy, COLUMNS)
    given = {"servers": kafka.bootstrap, "topics": topic, "decoder": encoder, "config": str(config)}
    given |= {"bounds": "resolved", "untilEnd": True, **PATIENT}
    ended(kafka.bootstrap, topic, of=1)
    rt.runAdapter(KafkaFeed, copy, arguments=given, producer="feed", restarts=0)
    assert rows_of(copy) == rows_of(stream)
    assert rt.describeStream(copy).bound == rt.describeStream(stream).bound


def test_the_registered_schema_is_that_of_the_messages(kafka: Any, registry: SchemaRegistry, stream: str) -> None:
    """By a client that knows nothing of this project, and by the JSON Schema itself."""
    avro = pytest.importorskip("confluent_kafka.schema_registry.avro")
    client = pytest.importorskip("confluent_kafka.schema_registry").SchemaRegistryClient({"url": registry.url})
    validate = pytest.importorskip("jsonschema").validate
    values = {}
    for encoder in ("avro", "json-schema"):
        topic = kafka.topic(partitions=1)
        with rt.openReader(stream) as reader:
            options = {"registry.url": registry.url}
            with opened(kafka.bootstrap, topic, reader.schema, encoder=encoder, options=options) as sink:
                reader.drainTo(sink)
        [values[encoder]] = [[message.value for message in found] for found in messages(kafka.bootstrap, topic, 1)]
    read = avro.AvroDeserializer(client)
    *rows, bound = [read(value, None) for value in values["avro"]]
    assert [row["n"] for row in rows] == [1, 2, 3]
    assert bound == {"resolved": "1767625200000001000.0000000000"}
    for value in values["json-schema"]:
        schema = registry.schemas[HEADER.unpack_from(value)[1] - 1]["schema"]
        validate(json.loads(value[HEADER.size :]), json.loads(schema))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_schema_that_the_registry_refuses_ends_the_drain(registry: SchemaRegistry, stream: str, encoder: str) -> None:
    """Before a broker is asked; one that is registered needs no right to write."""
    registry.refuses = 409
    schema = stream_schema(COLUMNS)
    with pytest.raises(rt.SchemaMismatchError, match="does not take the schema of the stream's columns"):
        opened("localhost:1", "t", schema, encoder=encoder, options={"registry.url": registry.url})
    registry.refuses = 503
    with pytest.raises(rt.KafkaUnavailableError, match="has not answered: status 503"):
        opened("localhost:1", "t", schema, encoder=encoder, options={"registry.url": registry.url, **ONCE})
    with pytest.raises(rt.InvalidOptionError, match="needs the address of the schema registry"):
        opened("localhost:1", "t", schema, encoder=encoder)


ONCE = {"registry.max.retries": "0"}


@pytest.mark.parametrize(
    ("encoder", "column", "why"),
    [
        ("avro", "`a-b` INT", "Avro has letters, digits and _ in names"),
        ("avro", "c MAP<INT, INT>", "the keys of a map in Avro are texts"),
        ("protobuf", "c STRUCT<`x y`: INT>", "Protobuf has letters, digits and _ in names"),
        ("protobuf", "c ARRAY<ARRAY<INT>>", "no arrays and maps in arrays and maps"),
        ("protobuf", "c MAP<DATE, INT>", "the keys of a map in Protobuf"),
        ("protobuf", "c STRUCT<a_b: INT, aB: INT>", "cannot tell these names of columns.*aB"),
        ("protobuf", "_c INT, c INT", "cannot tell these names of columns.*_c"),
        ("json-schema", "c MAP<STRUCT<a: INT>, INT>", "a map whose keys are structs"),
        *[(encoder, "resolved STRING", "look like the message of a bound") for encoder in ENCODERS],
    ],
)
def test_a_column_that_a_format_cannot_have_is_refused_by_name(
    registry: SchemaRegistry, encoder: str, column: str, why: str
) -> None:
    schema = stream_schema(f"rowtime TIMESTAMP NOT NULL, {column}")
    with pytest.raises(rt.SchemaMismatchError, match=why) as caught:
        opened("localhost:1", "t", schema, encoder=encoder, options={"registry.url": registry.url})
    assert caught.value.values.get("column", "c") in ("a-b", "c", "resolved")
    assert registry.schemas == []


ODD_NAMES = (
    "rowtime TIMESTAMP NOT NULL, a STRUCT<b: STRUCT<x: INT>>, a_b STRUCT<x: INT>, "
    "c ARRAY<STRUCT<value: INT>>, c_element STRUCT<x: INT>, myMap MAP<STRING, STRUCT<x: INT>>, DESCRIPTOR INT, "
    "SerializeToString INT, s STRUCT<SetInParent: INT>"
)
"""Names that are alike, and those of what messages of Protobuf have in Python; all are allowed."""


@pytest.mark.parametrize("encoder", ["avro", "protobuf"])
def test_names_of_types_do_not_meet(kafka: Any, registry: SchemaRegistry, tmp_path: Path, encoder: str) -> None:
    """Types that have no name in the stream get one each, whatever the columns are called."""
    path, copy, topic = str(tmp_path / "odd.rowtime"), str(tmp_path / "copy.rowtime"), kafka.topic(partitions=1)
    rt.createStream(path, ODD_NAMES)
    with rt.openSink(path, producer="shop") as sink:
        sink.sendRow((AT, ((1,),), (2,), [(3,)], (4,), {"k": (5,)}, 6, 7, (8,)))
    options = {"registry.url": registry.url}
    with (
        rt.openReader(path) as reader,
        opened(kafka.bootstrap, topic, reader.schema, encoder=encoder, options=options) as to,
    ):
        reader.drainTo(to)
    rt.createStream(copy, ODD_NAMES)
    given = {"servers": kafka.bootstrap, "topics": topic, "decoder": encoder, "bounds": "resolved", "untilEnd": True}
    ended(kafka.bootstrap, topic, of=1)
    rt.runAdapter(KafkaFeed, copy, arguments={**given, **options, **PATIENT}, producer="feed", restarts=0)
    with rt.openReader(path) as sent, rt.openReader(copy) as read:
        assert [train.rows.to_pylist() for train in read] == [train.rows.to_pylist() for train in sent] != []


@pytest.mark.parametrize("kind", [AvroRows, ProtobufRows])
def test_a_map_with_one_key_twice_is_refused(kind: type[RowFormat]) -> None:
    """A stream can have one, from Arrow."""
    rows = pa.RecordBatch.from_pydict(
        {"c": [[("k", 1), ("k", 2)]]}, pa.schema([("c", pa.map_(pa.string(), pa.int32()))])
    )
    with pytest.raises(rt.SchemaMismatchError, match="Column 'c' has a map with one key twice"):
        kind(rows.schema).encode(rows)


@pytest.mark.parametrize(
    ("kind", "value"), [("ARRAY<INT>", None), ("ARRAY<INT>", [None]), ("MAP<INT, INT>", {1: None})]
)
def test_protobuf_has_no_null_in_arrays_and_maps(kind: str, value: Any) -> None:
    schema = stream_schema(f"rowtime TIMESTAMP NOT NULL, c {kind}")
    rows: RowFormat = ProtobufRows(schema)
    with pytest.raises(rt.SchemaMismatchError, match="no NULL for an array or a map"):
        rows.encode(rows_to_batch([(AT, value)], schema))
