"""Avro in the wire format of a schema registry, which a small server of the test stands for."""

import io
import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.kafka import avro
from spark_rowtime.kafka.avro import AvroRecords
from spark_rowtime.kafka.decoding import record_decoder
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.types.schema import stream_schema
from tests.kafka.feeds import bound, message, moment, read, rows

PLACE = [{"name": "city", "type": "string"}, {"name": "zip", "type": "string"}]
AVRO = {
    "type": "record",
    "name": "Change",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "n", "type": ["null", "long"]},
        {"name": "other", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "place", "type": {"type": "record", "name": "Place", "fields": PLACE}},
    ],
}
ID = "00000000-0000-0000-0000-000000000007"

NO_SCHEMA = json.dumps({"error_code": 40403, "message": "Schema not found"}).encode()
PAGE = b"<html>Please log in</html>"
PROTOBUF = {"schema": 'syntax = "proto3"; message Order { int64 n = 1; }', "schemaType": "PROTOBUF"}
SCHEMAS = {"7": json.dumps({"schema": json.dumps(AVRO)}).encode(), "8": json.dumps(PROTOBUF).encode()}


class Registry(BaseHTTPRequestHandler):
    """Answers ``GET /schemas/ids/7``, and 8, one of Protobuf; before that with ``before``, each a status and a body."""

    before: ClassVar[list[tuple[int, bytes]]] = []

    def do_GET(self) -> None:
        number = self.path.partition("?")[0].rpartition("/")[2]
        status, body = (200, SCHEMAS[number]) if number in SCHEMAS else (404, NO_SCHEMA)
        if self.before:
            status, body = self.before.pop(0)
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def registry() -> Iterator[str]:
    """The address of a registry that runs in this block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def encoded(n: int, schema: int = 7) -> dict[str, Any]:
    """A message in Confluent's wire format."""
    fastavro = pytest.importorskip("fastavro")
    body = io.BytesIO()
    record = {"at": 1767621600_000 + n * 1000, "n": n, "other": ID, "place": {"city": "Oslo", "zip": "0150"}}
    fastavro.schemaless_writer(body, fastavro.parse_schema(AVRO), record)
    return {"value": struct.pack(">bI", 0, schema) + body.getvalue(), "partition": 0}


def test_avro_records_are_rows(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "TRY_SECONDS", 0.0)
    topic, kept = kafka.topic(partitions=1), str(tmp_path / "malformed")
    kafka.send(topic, [encoded(0), encoded(1), message(2), encoded(3, schema=9), encoded(4)])
    with registry() as url:
        how = {"decoder": "avro", "rowtime": "at", "registry.url": url, "malformed": kept}
        assert read(kafka, tmp_path / "s", topic, **how) == [0, 1, 4]
    assert bound(tmp_path / "s") == moment(4)
    assert rows(kept).column("cause").to_pylist()[1].startswith("the schema registry")


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (struct.pack(">bI", 0, 8) + b"\x08\x01", "its schema, 8, is one of PROTOBUF"),
        (b"\x01" + bytes(16) + b"\x00", "does not begin with the id of a schema"),
        (struct.pack(">bI", 0, 1 << 31) + b"\x00", "does not begin with the id of a schema"),
        (struct.pack(">bI", 0, 7), "does not begin with the id of a schema"),
        (struct.pack(">bI", 0, 7) + b"\x00", "it is not Avro"),
    ],
    ids=["another format", "a GUID", "no id", "no record", "a part"],
)
def test_a_message_that_anybody_may_send_is_malformed_and_stops_nobody(value: bytes, cause: str) -> None:
    with registry() as url:
        records = AvroRecords({"url": url, "max.retries": "0"})
        with pytest.raises(MalformedError, match=cause):
            records(SimpleNamespace(value=lambda: value, topic=lambda: "orders"))


def test_the_watch_command_takes_the_settings_of_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No broker is asked, since the registry's client refuses one of them."""
    config, path = tmp_path / "client.properties", str(tmp_path / "bounds")
    config.write_text("security.protocol=PLAINTEXT\nregistry.url={env:REGISTRY}\n")
    given = ["watch", "kafka://localhost:1/t", path, "--decoder", "avro", "--config", str(config), "--restarts", "0"]
    unset = CliRunner().invoke(main, given)
    assert "environment variable 'REGISTRY', which is not set" in unset.output
    monkeypatch.setenv("REGISTRY", "http://localhost:1")
    secret = CliRunner().invoke(main, [*given, "--set", "registry.basic.auth.user.info=me:pw"])
    assert "is a secret" in secret.output
    assert "pw" not in secret.output
    refused = CliRunner().invoke(main, [*given, "--set", "registry.nonsense=1"])
    assert "refuses one of the options ['nonsense', 'url']" in refused.output


def test_a_schema_that_has_changed() -> None:
    """Fields that a column does not have are left out, those that are missing are NULL, also within a STRUCT."""
    columns = (
        "rowtime TIMESTAMP NOT NULL, n BIGINT, gone STRING, other STRING, place STRUCT<city: STRING, road: STRING>"
    )
    message = SimpleNamespace(value=lambda: encoded(1)["value"], topic=lambda: "orders")
    with registry() as url:
        row = record_decoder(stream_schema(columns), AvroRecords({"url": url}), "at")(message)
    assert {name: value for name, value in row.items() if name != "rowtime"} == {
        "n": 1,
        "gone": None,
        "other": ID,
        "place": {"city": "Oslo", "road": None},
    }


def decode(url: str, message: dict[str, Any]) -> Any:
    """The row of a message, read with a registry that does not try again."""
    records = AvroRecords({"url": url, "max.retries": "0", "timeout": "240"})
    given = SimpleNamespace(value=lambda: message["value"], topic=lambda: "orders")
    return record_decoder(stream_schema("rowtime TIMESTAMP NOT NULL, n BIGINT"), records, "at")(given)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, PAGE),
        (404, b'{"error_code": 404, "message": "No such page"}'),
        (200, PAGE),
        (200, b'["not a schema"]'),
        (302, b""),
        (401, b'{"error_code": 40101, "message": "Unauthorized"}'),
        (503, b""),
    ],
)
def test_what_a_proxy_answers_says_nothing_of_a_message(
    status: int, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Registry, "before", [(status, body)] * 9)
    with registry() as url, pytest.raises(rt.KafkaUnavailableError, match="has not answered"):
        decode(url, encoded(1))


def test_a_schema_that_a_node_of_the_registry_does_not_know_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "TRY_SECONDS", 0.0)
    monkeypatch.setattr(Registry, "before", [(404, NO_SCHEMA)] * 3)
    with registry() as url:
        assert decode(url, encoded(1))["n"] == 1


def test_many_ids_that_the_registry_never_gave_hold_a_host_for_seconds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(avro.time, "sleep", pauses.append)
    with registry() as url:
        records = AvroRecords({"url": url, "max.retries": "0"})
        for schema in range(100, 150):
            value = struct.pack(">bI", 0, schema) + b"x"
            with pytest.raises(MalformedError, match="has no schema of its id"):
                records(SimpleNamespace(value=lambda value=value: value, topic=lambda: "orders"))
    assert sum(pauses) <= 6


def test_a_registry_that_does_not_answer(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [encoded(0)])
    how = {"decoder": "avro", "rowtime": "at", "registry.url": "http://user:ge/heim@127.0.0.1:1"}
    with pytest.raises(rt.InvalidOptionError, match="not shown") as refused:
        read(kafka, tmp_path / "s", topic, **how)
    assert "ge" not in str(refused.value.__context__ or "")
    how["registry.url"] = "http://user:geheim@127.0.0.1:1"
    with pytest.raises(rt.KafkaUnavailableError, match=r"registry http://127.0.0.1:1 has not answered") as failed:
        read(kafka, tmp_path / "s", topic, **how, **{"registry.max.retries": "0"})
    assert "geheim" not in str(failed.value)
