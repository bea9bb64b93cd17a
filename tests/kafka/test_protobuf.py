"""Protobuf and JSON Schema in the wire format of a schema registry, which a small server of the test stands for."""

import base64
import json
import struct
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka import avro, protobuf
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.protobuf import ProtobufRecords
from spark_rowtime.kafka.records import json_schema_record
from tests.kafka.feeds import START, message, numbers, read, rows

pb = pytest.importorskip("google.protobuf.descriptor_pb2")
OPTIONAL, REPEATED = pb.FieldDescriptorProto.LABEL_OPTIONAL, pb.FieldDescriptorProto.LABEL_REPEATED
_KINDS = {"int64": 3, "int32": 5, "double": 1, "string": 9, "bytes": 12, "bool": 8, "message": 11, "enum": 14}


def field(name: str, number: int, kind: str, of: str = "", label: int = OPTIONAL) -> Any:
    return pb.FieldDescriptorProto(name=name, number=number, type=_KINDS[kind], type_name=of or None, label=label)


def place_file() -> Any:
    """A file that another one imports."""
    place = pb.DescriptorProto(name="Place", field=[field("city", 1, "string")])
    return pb.FileDescriptorProto(name="place.proto", package="shop", syntax="proto3", message_type=[place])


def order_file() -> Any:
    """Two messages; the second one has one within it, with each kind of field."""
    entry = pb.DescriptorProto(name="CountsEntry", field=[field("key", 1, "string"), field("value", 2, "int64")])
    entry.options.map_entry = True
    fields = [
        field("n", 1, "int64"),
        field("at", 2, "message", ".google.protobuf.Timestamp"),
        field("place", 3, "message", ".shop.Place"),
        field("tags", 4, "string", label=REPEATED),
        field("counts", 5, "message", ".shop.Outer.Order.CountsEntry", REPEATED),
        field("kind", 6, "enum", ".shop.Kind"),
        field("note", 7, "message", ".google.protobuf.StringValue"),
        field("raw", 8, "bytes"),
        field("many", 9, "message", ".shop.Place", REPEATED),
    ]
    order = pb.DescriptorProto(name="Order", field=fields, nested_type=[entry])
    kind = pb.EnumDescriptorProto(
        name="Kind", value=[pb.EnumValueDescriptorProto(name=n, number=i) for i, n in enumerate(("NEW", "OLD"))]
    )
    names = ["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto", "place.proto", "confluent/meta.proto"]
    first = pb.DescriptorProto(name="First", field=[field("n", 1, "int64")])
    outer = pb.DescriptorProto(name="Outer", nested_type=[order])
    return pb.FileDescriptorProto(
        name="order.proto",
        package="shop",
        syntax="proto3",
        dependency=names,
        message_type=[first, outer],
        enum_type=[kind],
    )


class Registry(BaseHTTPRequestHandler):
    """Has the schema 7, and under the subject ``place`` what it imports, as descriptors."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        files = {"/schemas/ids/7": order_file, "/subjects/place/versions/2": place_file}
        made = files.get(self.path.partition("?")[0])
        said: dict[str, Any] = {"error_code": 40403, "message": "Schema not found"}
        if made is not None:
            assert "format=serialized" in self.path
            text = base64.b64encode(made().SerializeToString()).decode()
            said = {"schema": text, "schemaType": "PROTOBUF", "id": 3}
            if made is place_file:
                said |= {"subject": "place", "version": 2}
            said |= {
                "references": [{"name": "place.proto", "subject": "place", "version": 2}] if made is order_file else []
            }
        body = json.dumps(said).encode()
        self.send_response(200 if made else 404)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    """The address of a registry."""
    Registry.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def order_class() -> Any:
    """The class of Outer.Order, as a producer has it."""
    descriptor_pool, message_factory, timestamp_pb2, wrappers_pb2 = (
        import_module(f"google.protobuf.{name}")
        for name in ("descriptor_pool", "message_factory", "timestamp_pb2", "wrappers_pb2")
    )
    pool = descriptor_pool.DescriptorPool()
    others = ("google.protobuf.descriptor_pb2", "confluent_kafka.schema_registry.confluent.meta_pb2")
    for known in (timestamp_pb2, wrappers_pb2, *map(import_module, others)):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for made in (place_file(), order_file()):
        pool.AddSerializedFile(made.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Outer.Order"))


def encoded(order: Any, path: bytes = b"\x04\x02\x00", schema: int = 7) -> bytes:
    """A message in Confluent's wire format; the path is that of the second message, and the first within it."""
    return struct.pack(">bI", 0, schema) + path + bytes(order.SerializeToString())


def order(n: int, **more: Any) -> Any:
    made = order_class()(n=n, **more)
    made.at.FromDatetime(START.replace(second=n, microsecond=123456))
    return made


def test_protobuf_records_are_rows(kafka: Any, tmp_path: Path, registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "TRY_SECONDS", 0.0)
    path, topic, kept = str(tmp_path / "s"), kafka.topic(partitions=1), str(tmp_path / "malformed")
    columns = (
        "n BIGINT, place STRUCT<city: STRING>, tags ARRAY<STRING>, counts MAP<STRING, BIGINT>, kind STRING, note STRING"
    )
    rt.createStream(path, f"rowtime TIMESTAMP NOT NULL, {columns}, raw BINARY, many ARRAY<STRUCT<city: STRING>>")
    full = order(1, tags=["a", "b"], counts={"x": 3}, kind=1, raw=b"\xff", place={"city": "Oslo"})
    full.note.value = ""
    full.many.add(city="Rom")
    values = [
        encoded(full),
        encoded(order(2)),
        b"{}",
        encoded(order(3), schema=9),
        encoded(order(4), b"\x04\x02\x63"),
        encoded(order(5)),
    ]
    kafka.send(topic, [{"value": value, "partition": 0} for value in values])
    how = {"decoder": "protobuf", "rowtime": "at", "registry.url": registry, "malformed": kept}
    assert read(kafka, path, topic, **how) == [1, 2, 5]
    first, second, _ = rows(path).to_pylist()
    assert first["rowtime"] == datetime(2026, 1, 5, 14, 0, 1, 123456, UTC)
    assert (first["place"], first["tags"], first["kind"], first["note"]) == ({"city": "Oslo"}, ["a", "b"], "OLD", "")
    assert (dict(first["counts"]), first["raw"], first["many"]) == ({"x": 3}, b"\xff", [{"city": "Rom"}])
    assert (second["place"], second["tags"], second["kind"], second["note"]) == (None, [], "NEW", None)
    causes = rows(kept).column("cause").to_pylist()
    assert len(causes) == 3
    assert "the schema registry has no schema of its id, 9" in causes[1]


def test_a_schema_is_asked_for_once_and_what_is_broken_is_malformed(registry: str) -> None:
    records = ProtobufRecords({"url": registry})

    def read_one(value: bytes) -> Any:
        return records(SimpleNamespace(topic=lambda: "t", value=lambda: value))

    assert [read_one(encoded(order(n)))["n"] for n in (1, 2, 3)] == [1, 2, 3]
    assert len(Registry.asked) == 2
    assert read_one(struct.pack(">bI", 0, 7) + b"\x00\x08\x05") == {"n": 5}, "a single 0 is the first message"
    for value in (
        b"",
        b"\x00",
        encoded(order(1))[:-1],
        struct.pack(">bI", 0, 7),
        struct.pack(">bI", 0, 7) + b"\xff" * 3,
        encoded(order(1), b"\x04\x01\x00"),  # -1 is no index
        struct.pack(">bI", 0, 7) + b"\xff" * 1_000_000,
        struct.pack(">bI", 0, 7) + b"\x02" + b"\x80" * 5 + b"\x02\x08\x05",
    ):
        with pytest.raises(MalformedError):
            read_one(value)


def test_short_records_with_many_fields_are_limited(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes of a message make a record with all its fields: 1 MB of them filled the memory."""
    monkeypatch.setattr(protobuf, "MOST_FIELDS", 1000)
    records = ProtobufRecords({"url": registry})
    for count in (900, 1000):
        value = encoded(order_class()()) + b"\x4a\x00" * count
        message = SimpleNamespace(topic=lambda: "t", value=lambda value=value: value)
        if count == 900:
            assert records(message)["many"] == [{"city": ""}] * 900
        else:
            with pytest.raises(MalformedError, match="its records have more than 1000 fields"):
                records(message)


def test_json_schema_is_json_behind_an_id() -> None:
    whole = SimpleNamespace(value=lambda: struct.pack(">bI", 0, 7) + b'{"n": 1}')
    assert json_schema_record(whole) == {"n": 1}
    for value in (b'{"n": 1}', b"", struct.pack(">bI", 0, 7) + b"{"):
        with pytest.raises(MalformedError):
            json_schema_record(SimpleNamespace(value=lambda value=value: value))


@pytest.mark.long
def test_a_topic_with_json_schema(kafka: Any, tmp_path: Path) -> None:
    path, topic = tmp_path / "s", kafka.topic(partitions=1)
    sent = [message(n) for n in range(3)]
    kafka.send(topic, [{**one, "value": struct.pack(">bI", 0, 7) + one["value"].encode()} for one in sent])
    read(kafka, path, topic, decoder="json-schema")
    assert numbers(path) == [0, 1, 2]
