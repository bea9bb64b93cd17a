"""A topic of Kafka in memory, and the one client that reads it: for tests without a broker."""

from types import SimpleNamespace
from typing import Any

from spark_rowtime.kafka import client_failures
from spark_rowtime.kafka.topics import Part, TopicState

P0, P1 = Part("orders", 0), Part("orders", 1)
NAMES = (
    "_PARTITION_EOF", "OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC",
    "_UNKNOWN_PARTITION", "GROUP_AUTHORIZATION_FAILED", "_AUTHENTICATION", "_SSL", "_ALL_BROKERS_DOWN", "OTHER",
    *client_failures.PASSING_READS,
)  # fmt: skip
CODES = SimpleNamespace(**{name: name for name in NAMES})
LIBRARY = SimpleNamespace(
    KafkaError=CODES, TopicPartition=lambda *at: at, KafkaException=type("KafkaException", (), {})
)


def error(code: str, *, fatal: bool = False) -> Any:
    return SimpleNamespace(code=lambda: code, fatal=lambda: fatal, name=lambda: code, str=lambda: code)


class Broker:
    """A topic of Kafka with two partitions, and the one client that reads it. ``steps``: what happens, one each step.

    A step is an action, after which the client gives nothing, or an error in the place of a message. When there are
    none, the client gives the messages behind the offsets from which it was told to read.
    """

    def __init__(self, now: list[float]) -> None:
        self.log: dict[Part, list[str]] = {P0: [], P1: []}
        self.first = {P0: 0, P1: 0}
        self.id: str | None = "abc"
        self.partitions = 2
        self.servers, self.at, self.closed = "brokers:9092", dict[Part, int](), False
        self.left = False
        self.steps: list[Any] = []
        self.now = now
        self.calls: Any = None
        self.gives = 100
        self.stopped = set[Part]()
        """An error stops a partition until it is assigned again."""

    def find(self, name: str) -> TopicState | None:
        return None if self.id is None else TopicState(name, self.id, self.partitions)

    def found(self, names: list[str]) -> dict[str, TopicState | None]:
        return {name: self.find(name) for name in names}

    def ends(self, parts: Any, *, committed: bool) -> dict[Part, int]:
        return {part: self.first[part] + len(self.log[part]) for part in parts}

    def starts(self, parts: Any) -> dict[Part, int]:
        return {part: self.first[part] for part in parts}

    def subscribe(self, _: Any, **calls: Any) -> None:
        self.calls = SimpleNamespace(**calls)

    def assign(self, *parts: Part) -> None:
        self.calls.on_assign(self, [part_of(part) for part in parts])

    def revoke(self, *parts: Part) -> None:
        self.calls.on_revoke(self, [part_of(part) for part in parts])
        for part in parts:
            self.at.pop(part, None)

    def incremental_assign(self, starts: list[Any]) -> None:
        self.at |= {Part(topic, number): offset for topic, number, offset in starts}

    def incremental_unassign(self, parts: list[Any]) -> None:
        for part in parts:
            del self.at[Part(*part)]
            self.stopped.discard(Part(*part))

    def pause(self, parts: list[Any]) -> None:
        self.stopped |= {Part(topic, number) for topic, number, *_ in parts}

    def get_watermark_offsets(self, part: Any, cached: bool) -> tuple[int, int]:
        assert cached, "the brokers are not asked"
        at = Part(*part[:2])
        return self.first[at], self.first[at] + len(self.log[at])

    def commit(self, offsets: list[Any], asynchronous: bool) -> None:
        """As a group that takes all offsets."""

    def consume(self, *_: Any) -> list[Any]:
        self.now[0] += 0.01
        if self.steps:
            step = self.steps.pop(0)
            found = step() if callable(step) else step
            return [found] if isinstance(found, SimpleNamespace) else []
        return [message for part in self.at.keys() - self.stopped for message in self._messages(part)]

    def _messages(self, part: Part) -> list[Any]:
        start, end = self.at[part], self.first[part] + len(self.log[part])
        if start < self.first[part] or start > end:
            self.stopped.add(part)
            return [failed(part, "OFFSET_OUT_OF_RANGE")]
        self.at[part] = upto = min(end, start + self.gives)
        found = [message(part, n, self.log[part][n - self.first[part]]) for n in range(start, upto)]
        return found or [failed(part, "_PARTITION_EOF", end)]

    def unsubscribe(self) -> None:
        self.left = True

    def close(self) -> None:
        assert self.left, "a client without partitions would stay in its group"
        self.closed = True


def part_of(part: Part) -> Any:
    return SimpleNamespace(topic=part.topic, partition=part.number)


def message(part: Part, offset: int, ticker: str) -> Any:
    return SimpleNamespace(
        topic=lambda: part.topic, partition=lambda: part.number, error=lambda: None, offset=lambda: offset,
        value=lambda: ticker, leader_epoch=lambda: None,
    )  # fmt: skip


def failed(part: Part, code: str, offset: int = 0) -> Any:
    return SimpleNamespace(
        topic=lambda: part.topic, partition=lambda: part.number, error=lambda: error(code), offset=lambda: offset
    )
