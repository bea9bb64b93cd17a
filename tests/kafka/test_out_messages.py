"""What a drain refuses before it writes, and what the messages of rows and bounds are. No broker is needed."""

import json
from datetime import date, datetime
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.drain.kafka.encoders import FunctionEncoder, JsonEncoder, resolved_message
from spark_rowtime.drain.kafka.json_rows import json_rows
from spark_rowtime.drain.kafka.messages import RowMessages, key_bytes
from spark_rowtime.drain.kafka.sink import openTopicSink
from spark_rowtime.kafka.address import topic_address
from spark_rowtime.kafka.client import client_options
from spark_rowtime.kafka.settings import redacted, require_no_secrets, settings_in_file
from spark_rowtime.types.schema import rows_to_batch, stream_schema

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"
AT = "2026-01-05T14:30:00Z"


def written(kind: str, value: Any) -> str:
    """What stands for a value of a column of that type."""
    schema = stream_schema(f"rowtime TIMESTAMP NOT NULL, c {kind}")
    (text,) = json_rows(rows_to_batch([(AT, value)], schema))
    begin = f'{{"rowtime":"{AT}","c":'
    assert text.decode().startswith(begin)
    assert text.decode().endswith("}")
    json.loads(text)
    return text.decode()[len(begin) : -1]


VALUES: list[tuple[str, Any, str]] = [
    ("BOOLEAN", True, "true"),
    ("BIGINT", -(1 << 63), "-9223372036854775808"),
    ("FLOAT", 0.1, "0.1"),
    ("DOUBLE", 0.1, "0.1"),
    ("DOUBLE", -0.0, "-0"),
    ("DOUBLE", 1e300, "1e+300"),
    ("DOUBLE", float("nan"), '"NaN"'),
    ("FLOAT", float("-inf"), '"-Infinity"'),
    ("DECIMAL(10,2)", Decimal("12.50"), '"12.50"'),
    ("DECIMAL(38,20)", Decimal("-0.00000000000000000001"), '"-0.00000000000000000001"'),
    ("STRING", 'é "\\\n\x00 \u2028 😀', '"é \\"\\\\\\n\\u0000 \u2028 😀"'),
    ("STRING", "nan", '"nan"'),
    ("STRING", None, "null"),
    ("BINARY", b"\x00\xff", '"AP8="'),
    ("DATE", date(1, 1, 1), '"0001-01-01"'),
    ("TIMESTAMP", "2026-01-05T14:30:00.120000Z", '"2026-01-05T14:30:00.12Z"'),
    ("TIMESTAMP", "1969-12-31T23:59:50.000001Z", '"1969-12-31T23:59:50.000001Z"'),
    ("TIMESTAMP_NTZ", datetime(2026, 1, 5, 10, 0), '"2026-01-05T10:00:00"'),
    ("ARRAY<DECIMAL(5,1)>", [Decimal("1.0"), None], '["1.0",null]'),
    ("ARRAY<DOUBLE>", [float("inf"), 2.5], '["Infinity",2.5]'),
    ("STRUCT<a: TIMESTAMP, b: BINARY>", (AT, b"x"), f'{{"a":"{AT}","b":"eA=="}}'),
    ("MAP<STRING, INT>", {"a": 1}, '{"a":1}'),
    ("MAP<DATE, INT>", {date(2026, 1, 5): 1}, '{"2026-01-05":1}'),
    ("MAP<BOOLEAN, INT>", {True: None}, '{"true":null}'),
]
"""A type, a value of it, and what stands for it in JSON."""


@pytest.mark.parametrize(("kind", "value", "text"), VALUES)
def test_a_value_in_json(kind: str, value: Any, text: str) -> None:
    assert written(kind, value) == text


def test_rows_of_all_kinds_in_one_batch() -> None:
    """Nulls, texts that need escapes beside others, and small decimals beside others."""
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, s STRING, d DECIMAL(20,10), f DOUBLE")
    rows = [(AT, 'a"b', Decimal("1.5"), 1.0), (AT, None, None, None), (AT, "c", Decimal("1E-10"), float("nan"))]
    found = [json.loads(text) for text in json_rows(rows_to_batch(rows, schema))]
    assert [(row["s"], row["d"], row["f"]) for row in found] == [
        ('a"b', "1.5000000000", 1.0),
        (None, None, None),
        ("c", "0.0000000001", "NaN"),
    ]


def test_the_escapes_of_each_slice_of_a_batch() -> None:
    """A slice shares its memory with rows that it does not have."""
    texts = ["plain", 'a"b', "", "c\\d", "e\x1f", "é", None, "\n"]
    whole = rows_to_batch([(AT, text) for text in texts], stream_schema("rowtime TIMESTAMP NOT NULL, s STRING"))
    for start, end in combinations(range(len(texts) + 1), 2):
        found = json_rows(whole.slice(start, end - start))
        assert [json.loads(text)["s"] for text in found] == texts[start:end]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (f"{SCHEMA}, resolved STRING", "would make a row look like the message of a bound"),
        (f"{SCHEMA}, c MAP<STRUCT<a: INT>, INT>", "a map whose keys are structs"),
        (f"{SCHEMA}, c ARRAY<STRUCT<a: MAP<ARRAY<INT>, INT>>>", "a map whose keys are structs"),
    ],
)
def test_a_column_that_json_cannot_have_is_refused_by_name(schema: str, why: str) -> None:
    with pytest.raises(rt.SchemaMismatchError, match=why) as caught:
        JsonEncoder(stream_schema(schema))
    assert caught.value.values["column"] in ("c", "resolved")
    FunctionEncoder(str)


def test_a_map_with_one_key_twice_is_refused() -> None:
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, c MAP<STRING, INT>")
    with pytest.raises(rt.SchemaMismatchError, match="one key twice"):
        json_rows(pa.RecordBatch.from_pylist([{"rowtime": 1, "c": [("a", 1), ("a", 2)]}], schema))


@pytest.mark.parametrize(
    ("array", "keys"),
    [
        (pa.array(['a"b', None]), [b'a"b', None]),
        (pa.array([b"\x00", b"\xff"]), [b"\x00", b"\xff"]),
        (pa.array([12, -1]), [b"12", b"-1"]),
        (pa.array([True]), [b"true"]),
        (pa.array([1_767_623_400_000_000], pa.timestamp("us", "UTC")), [AT.encode()]),
        (pa.array([Decimal("1.50")]), [b"1.50"]),
    ],
)
def test_a_key_is_the_text_of_its_value(array: pa.Array, keys: list[bytes | None]) -> None:
    assert key_bytes(array) == keys


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "ARRAY<INT>", "STRUCT<a: INT>"])
def test_a_key_without_one_text_is_refused(kind: str) -> None:
    with pytest.raises(rt.SchemaMismatchError, match="no one text for equal values"):
        RowMessages(stream_schema(f"{SCHEMA}, c {kind}"), "c", FunctionEncoder(str))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"key": "m"}, "key='m' is not a column"),
        ({"value": 7}, "value=7 cannot be called"),
        ({"every": "soon"}, "every"),
        ({"maxRows": 0}, "maxRows"),
        ({"partitions": 0}, "partitions"),
        ({"anew": "yes"}, "anew"),
        ({"options": {"bootstrap.server": "x"}}, "client refuses the option 'bootstrap.server'"),
        ({"options": {"transactional.id": "x"}}, "'transactional.id' cannot be set: by it a drain fences"),
        ({"options": {"sasl.password": "{env:ROWTIME_NOT_SET}"}}, "'ROWTIME_NOT_SET', which is not set"),
    ],
)
def test_an_argument_that_cannot_be_used_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match=why):
        openTopicSink("kafka://127.0.0.1:1/orders", stream_schema(SCHEMA), **options)


def test_a_function_must_return_bytes_or_text() -> None:
    rows = pa.Table.from_batches([rows_to_batch([(AT, 1)], stream_schema(SCHEMA))])
    for value, said in ((None, "None, a NoneType"), ("\ud800", r"'\\ud800', a str")):
        with pytest.raises(rt.InvalidOptionError, match=f"has returned {said}"):
            list(RowMessages(rows.schema, None, FunctionEncoder(lambda _, value=value: value)).of(rows))


@pytest.mark.parametrize(
    ("bound", "nanos"),
    [
        (rt.RowtimeBound(AT), 1_767_623_400_000_000_000),
        (rt.RowtimeBound(AT, strict=True), 1_767_623_400_000_001_000),
        (rt.RowtimeBound("2262-04-11T23:47:16.854775Z"), 9_223_372_036_854_775_000),
        (rt.RowtimeBound("2300-01-01T00:00:00Z"), (1 << 63) - 1),
        (rt.RowtimeBound.END, (1 << 63) - 1),
    ],
)
def test_a_bound_is_resolved_in_nanoseconds(bound: rt.RowtimeBound, nanos: int) -> None:
    assert resolved_message(bound) == b'{"resolved":"%d.0000000000"}' % nanos


@pytest.mark.parametrize("target", ["kafka://a/t", "kafka://a:9092,b.example:9092/t.u_v-w", "kafka://[::1]:9092/t"])
def test_an_address(target: str) -> None:
    assert str(topic_address(target)) == target


@pytest.mark.parametrize(
    "target",
    ["kafka://a:9092", "kafka:///t", "kafka://a:x/t", "kafka://a/t/u", "kafka://a/..", "kafka://a/t?acks=1", 7],
)
def test_what_is_no_address_is_refused(target: Any) -> None:
    with pytest.raises(rt.InvalidOptionError, match="does not name a topic"):
        topic_address(target)


SECRET = "hunter2"
PASSPHRASE = "sasl.oauthbearer.assertion.private.key.passphrase"


@pytest.mark.parametrize("user", [f"ann:{SECRET}@", f":{SECRET}@", f"ann:{SECRET}/x@"])
def test_a_password_in_the_address_is_refused_and_not_shown(user: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match="must not contain secrets") as caught:
        topic_address(f"kafka://{user}broker:9092/orders")
    assert SECRET not in str(caught.value) + str(caught.value.values)


def test_settings_come_from_a_file_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# of the team\n\nsecurity.protocol = SASL_SSL\nsasl.password={env:KAFKA_PASSWORD}\nclient.id=a=b\n"
    )
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    found = client_options(settings_in_file(str(file)), {})
    assert found == {"security.protocol": "SASL_SSL", "sasl.password": SECRET, "client.id": "a=b"}
    assert redacted(f"refused: {SECRET}.", found) == "refused: ***."


@pytest.mark.parametrize("line", [SECRET, f"={SECRET}", f"sasl.password={SECRET}"])
def test_a_line_of_the_file_is_not_shown(tmp_path: Path, line: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.password=x\n{line}\n")
    with pytest.raises(rt.InvalidOptionError, match=r"Line 2 of .* \(It is not shown") as caught:
        settings_in_file(str(file))
    assert SECRET not in str(caught.value)


URL = "--set=registry.url=http://"


@pytest.mark.parametrize(
    ("arguments", "why", "code"),
    [
        (["kafka://a/t", "--set", f"sasl.password={SECRET}"], "The value of sasl.password is a secret", 1),
        (["kafka://a/t", "--set", f"{PASSPHRASE}={SECRET}"], f"The value of {PASSPHRASE} is a secret", 1),
        (["kafka://a/t", f"{URL}me:{SECRET}@host:8081"], "registry.url has a user", 1),
        (["kafka://a/t", f"{URL}a,http://{SECRET}@host"], "registry.url has a user", 1),
        (["kafka://a/t", f"{URL}me:a/{SECRET}@host"], "registry.url has a user", 1),
        (["kafka://a/t", "--config", "/nowhere"], "/nowhere with the settings of Kafka's client cannot be read", 1),
        ([f"kafka://u:{SECRET}@a/t"], "must not contain secrets", 1),
        (["delta:x", "--key", "n"], "are for topics of Kafka", 2),
        (["delta:x", "--config", "client.properties"], "--config is for Kafka's client, and delta:x is no topic", 2),
        (["m:C", "--every", "1 s"], "are for tables and topics", 2),
    ],
)
def test_the_command_refuses(tmp_path: Path, arguments: list[str], why: str, code: int) -> None:
    rt.createStream(str(tmp_path / "s"), SCHEMA)
    done = CliRunner().invoke(main, ["drain", str(tmp_path / "s"), *arguments])
    assert done.exit_code == code
    assert why in " ".join(done.output.split())
    assert SECRET not in done.output


@pytest.mark.parametrize("url", ["http://host:8081/a?b=c", "{env:URL}", "http://{env:USER}:{env:PASSWORD}@host", "a@b"])
def test_a_url_without_a_secret_is_taken(url: str) -> None:
    require_no_secrets({"registry.url": url})


def test_the_extra_is_named_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(rt.ExtraNotInstalledError, match=r"pip install 'spark-rowtime\[kafka\]'"):
        openTopicSink("kafka://a/t", stream_schema(SCHEMA))
