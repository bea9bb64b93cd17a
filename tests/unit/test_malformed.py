"""Messages that are no rows, in a stream of their own: each once, and none is late there."""

from types import SimpleNamespace
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka import malformed
from spark_rowtime.kafka.malformed import MalformedMessages

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
