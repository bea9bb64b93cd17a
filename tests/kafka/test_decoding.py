"""What decoders make of single messages: numbers of JSON, functions of the user, bounds of messages with rows."""

import json
import logging
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.decoding import called, json_record, record_decoder, with_bounds
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.partition_feed import PartitionFeed
from spark_rowtime.kafka.topics import Part
from spark_rowtime.types.schema import stream_schema
from tests.kafka.feeds import bound
from tests.landed import landed

TIME = "2026-01-05T14:00:00Z"
EXACT = {
    ("DECIMAL(10,2)", "12.10"): Decimal("12.10"),
    ("DECIMAL(10,2)", "-1e2"): Decimal("-100.00"),
    ("DECIMAL(38,10)", "1234567890123456789.0123456789"): Decimal("1234567890123456789.0123456789"),
    ("BIGINT", "9007199254740993.0"): 9007199254740993,
    ("BIGINT", "1e3"): 1000,
    ("DOUBLE", "0.1"): 0.1,
    ("DOUBLE", "1e-400"): 0.0,
    ("ARRAY<DECIMAL(5,2)>", "[1.10, 2]"): [Decimal("1.10"), Decimal("2.00")],
    ("STRUCT<a: DOUBLE, b: BIGINT>", '{"a": 1.5, "b": 3.0}'): {"a": 1.5, "b": 3},
    ("MAP<STRING, DECIMAL(5,2)>", '{"a": 1.5}'): [("a", Decimal("1.50"))],
}
REFUSED = {
    "DECIMAL(10,2)": "12.105",
    "BIGINT": "1e1000000",
    "INT": "1.5",
    "ARRAY<BIGINT>": "[1e-2000000]",
    "DOUBLE": "-1e400",
    "FLOAT": "1e39",
    "STRUCT<a: DOUBLE>": '{"a": 1e400}',
    "MAP<DOUBLE, STRING>": '{"1e400": "x"}',
    "STRING": "1.5",
    "TIMESTAMP": "1.5",
}


@pytest.fixture
def sent(request: pytest.FixtureRequest) -> Any:
    """A function that decodes a message with this number, and returns what a stream keeps of it."""
    path = f"memory://{request.node.name}"

    def send(kind: str, number: str) -> Any:
        columns = f"rowtime TIMESTAMP NOT NULL, v {kind}"
        rt.createStream(path, columns)
        decode = record_decoder(stream_schema(columns), json_record)
        with rt.openSink(path) as sink:
            sink.sendRows([decode(message(f'{{"rowtime": "{TIME}", "v": {number}}}'))])
        return landed(path, "v")

    return send


def message(text: str, offset: int = 0) -> Any:
    """A message with this value."""
    place = {"offset": lambda: offset, "topic": lambda: "t", "partition": lambda: 0}
    return SimpleNamespace(value=text.encode, key=lambda: None, leader_epoch=lambda: None, **place)


@pytest.mark.parametrize(("kind", "number"), EXACT)
def test_a_number_is_kept_as_its_text_says(sent: Any, kind: str, number: str) -> None:
    assert sent(kind, number) == [EXACT[kind, number]]


@pytest.mark.parametrize("kind", REFUSED)
def test_a_number_that_its_column_cannot_hold_is_refused(sent: Any, kind: str) -> None:
    with pytest.raises(rt.SchemaMismatchError):
        sent(kind, REFUSED[kind])


DIGITS = "9" * 30
CUT = [
    *(("s", "1767621600.000001"), ("ns", "1767621600000001999.0")),
    *(
        ("s", f"1767621600.000001{DIGITS}"),
        ("ms", f"1767621600000.001{DIGITS}"),
        ("hlc", f'"1767621600000001999.{DIGITS}"'),
    ),
]


@pytest.mark.parametrize(("unit", "number"), CUT)
def test_times_that_are_numbers_are_cut_not_rounded(unit: str, number: str) -> None:
    decode = record_decoder(stream_schema("rowtime TIMESTAMP NOT NULL"), json_record, unit=unit)
    assert decode(message(f'{{"rowtime": {number}}}'))["rowtime"].microsecond == 1
    for beyond in ("1e400", "1e1000000", "1e99999999999999999999", '"1_7.0"', '"+17.0"', '"17.x"'):
        with pytest.raises(MalformedError):
            decode(message(f'{{"rowtime": {beyond}}}'))


@pytest.mark.parametrize(
    "error",
    [ConnectionError("away"), TimeoutError(), rt.KafkaUnavailableError("away"), rt.MessageNotReadyError("not yet")],
)
def test_what_says_nothing_of_the_message_passes(error: Exception) -> None:
    def failing(_: Any) -> Any:
        raise error

    with pytest.raises(type(error)):
        called(failing)(message(""))
    with pytest.raises(type(error)):
        with_bounds(failing, called(failing))(message(""))


@pytest.mark.parametrize("error", [ValueError("no row"), KeyError("ts"), rt.InvalidOptionError("no time")])
def test_other_errors_of_a_decoder_are_about_its_message(error: Exception) -> None:
    def failing(_: Any) -> Any:
        raise error

    with pytest.raises(MalformedError, match=type(error).__name__):
        called(failing)(message(""))


def test_a_message_with_a_bound_keeps_its_row(caplog: pytest.LogCaptureFixture) -> None:
    """The bound follows the row. A message that is no row is a bound alone, and the first one is told."""
    path, part = "memory://bounds-with-rows", Part("t", 0)
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    order = {"rowsImplyBounds": False, "onLate": "reject"}
    with rt.openSink(path, producer=part.producer, **order) as sink:  # type: ignore[arg-type]
        sink.flush(Checkpoint("id", 0).text())
    rows = record_decoder(stream_schema("rowtime TIMESTAMP NOT NULL, n BIGINT"), json_record)
    decode = with_bounds(lambda found: json.loads(found.value()).get("complete"), rows)
    feed = PartitionFeed(part, lambda: rt.openSink(path, producer=part.producer, **order), decode, None)  # type: ignore[arg-type]
    texts = [
        '{"rowtime": "2026-01-05T14:00:00Z", "n": 0, "complete": "2026-01-05T14:30:00Z"}',
        '{"rowtime": "2026-01-05T14:29:00Z", "n": 1}',
        '{"complete": "2026-01-05T15:00:00Z"}',
        '{"complete": "2026-01-05T15:30:00Z"}',
        '{"rowtime": "2026-01-05T15:40:00Z", "n": 2}',
    ]
    with caplog.at_level(logging.WARNING, logger="spark_rowtime.kafka"):
        feed.take([message(text, offset) for offset, text in enumerate(texts)])
    feed.flush()
    feed.drop()
    assert landed(path) == [0, 2]
    assert rt.rejectedRows(path).column("n").to_pylist() == [1]
    assert bound(path) == "2026-01-05T15:30:00+00:00"
    assert [text.partition(":")[0] for text in caplog.messages if "no row" in text] == [
        "The message at offset 2 of partition 0 of topic t is a bound, and no row"
    ]


def test_a_number_with_an_underscore_is_no_number_of_json() -> None:
    """Python would take 1_0 for 10."""
    columns = "rowtime TIMESTAMP NOT NULL, d DECIMAL(10,2), m MAP<BIGINT, INT>"
    decode = record_decoder(stream_schema(columns), json_record)
    value = json.dumps({"rowtime": "2026-01-05T14:00:00Z", "d": "1_0", "m": {"1_0": 5}}).encode()
    row = decode(SimpleNamespace(value=lambda: value))
    assert (row["d"], row["m"]) == ("1_0", [("1_0", 5)])
