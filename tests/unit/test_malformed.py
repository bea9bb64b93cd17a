"""Messages that are no rows, in a stream of their own: each once, and none is late there."""

from types import SimpleNamespace
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka import malformed
from spark_rowtime.kafka.malformed import MalformedMessages
from spark_rowtime.kafka.records import records_of

HOUR = 3_600_000_000


def message(offset: int, value: bytes) -> Any:
    return SimpleNamespace(
        topic=lambda: "orders",
        partition=lambda: 0,
        offset=lambda: offset,
        timestamp=lambda: (1, 1_000),
        key=lambda: None,
        value=lambda: value,
    )


def kept(path: str) -> list[tuple[int, bytes]]:
    with rt.openReader(path, order="arrival") as reader:
        rows = [row for train in reader for row in train.rows.to_pylist()]
    return [(row["offset"], row["value"]) for row in rows]


def test_another_message_at_a_known_offset_is_kept() -> None:
    """As of a partition that was truncated; the same ones are there already."""
    path = "memory://malformed-truncated"
    messages = MalformedMessages(path, "orders/0", "id")
    for value in (b"one", b"two"):
        messages.keep(message(90, value), "why")
    messages.keep(message(50, b"three"), "why")
    messages.keep(message(50, b"three"), "why")
    messages.close()
    again = MalformedMessages(path, "orders/0", "id")
    for offset, value in ((50, b"three"), (90, b"two"), (91, b"four")):
        again.keep(message(offset, value), "why")
    again.close()
    assert kept(path) == [(90, b"one"), (90, b"two"), (50, b"three"), (91, b"four")]


def test_none_is_late_where_the_clock_of_another_host_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """When that one ends, the bound of the stream is at its last message."""
    path, clock = "memory://malformed-clock", malformed.wall_clock
    monkeypatch.setattr(malformed, "wall_clock", lambda: clock() + HOUR)
    ahead = MalformedMessages(path, "orders/0", "id")
    ahead.keep(message(1, b"one"), "why")
    ahead.close()
    monkeypatch.setattr(malformed, "wall_clock", clock)
    behind = MalformedMessages(path, "orders/1", "id")
    behind.keep(message(2, b"two"), "why")
    behind.close()
    assert kept(path) == [(1, b"one"), (2, b"two")]
    assert rt.describeStream(path).rejected == 0


def test_of_a_large_message_the_beginning_is_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers limit the compressed size alone: a value of 1 GB may come."""
    path = "memory://malformed-large"
    monkeypatch.setattr(malformed, "KEPT_BYTES", 8)
    for _ in range(2):
        messages = MalformedMessages(path, "orders/0", "id")
        messages.keep(message(1, b"0123456789"), "why")
        messages.keep(message(2, b"01234567"), "why")
        messages.close()
    assert kept(path) == [(1, b"01234567"), (2, b"01234567")]
    with rt.openReader(path, order="arrival") as reader:
        causes = [row["cause"] for train in reader for row in train.rows.to_pylist()]
    assert causes == ["why (Of the 10 bytes of its value, the first 8 are kept.)", "why"]


def test_a_large_message_that_an_earlier_version_has_kept_whole_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "memory://malformed-whole"
    messages = MalformedMessages(path, "orders/0", "id")
    messages.keep(message(1, b"0123456789"), "why")
    monkeypatch.setattr(malformed, "KEPT_BYTES", 8)
    messages.keep(message(1, b"0123456789"), "why")
    messages.close()
    assert kept(path) == [(1, b"0123456789")]


@pytest.mark.parametrize("decoder", ["json", "json-schema", "avro", "protobuf"])
def test_a_value_that_is_too_large_is_not_decoded(decoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malformed, "LARGEST_BYTES", 8)
    read = records_of(decoder, {"url": "http://localhost:1"})
    with pytest.raises(malformed.MalformedError, match="its value has 17 bytes, and those above 8 are not decoded"):
        read(message(1, bytes(5) + b'{"n": 12345}'))
