"""What is stored of how far topics were read or written: checkpoints of a feed, positions of drains."""

import itertools
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.drain.kafka import positions
from spark_rowtime.drain.kafka.cluster import Cluster
from spark_rowtime.drain.kafka.positions import KeptPosition, Positions
from spark_rowtime.kafka.checkpoint import Checkpoint, replaced
from spark_rowtime.kafka.topics import Part, TopicState

PART = Part("orders", 1)
EOF, NO_GROUP, OTHER = -191, 30, 7
CODES = SimpleNamespace(_PARTITION_EOF=EOF, GROUP_AUTHORIZATION_FAILED=NO_GROUP)


@pytest.mark.parametrize("watched", [False, True])
def test_a_checkpoint_is_read_as_it_was_written(watched: bool) -> None:
    written = Checkpoint("abc", 7, watched=watched)
    assert Checkpoint.read(written.text(), PART.producer) == written


@pytest.mark.parametrize(
    "text",
    [
        *("", "7", "[]", "[" * 100_000, '{"offset": 7}', '{"topicId": "abc"}', '{"topicId": 1, "offset": "x"}'),
        *('{"topicId": "abc", "offset": 1e999}', '{"topicId": "abc", "offset": 7, "end": 1e999}'),
    ],
)
def test_a_checkpoint_of_another_program_is_refused(text: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match=r"'orders-1'.*is not one of KafkaFeed"):
        Checkpoint.read(text, PART.producer)


def test_a_checkpoint_is_of_one_topic() -> None:
    Checkpoint("abc", 7).require_of(TopicState("orders", "abc", 2), PART)
    with pytest.raises(rt.KafkaTopicError, match="partition 1 up to offset 7 of the topic with the id abc") as failed:
        Checkpoint("abc", 7).require_of(TopicState("orders", "new", 2), PART)
    assert "the topic of that name has the id new now" in str(failed.value)


def test_the_error_for_a_topic_that_is_gone_and_was_not_read_here() -> None:
    said = str(replaced(PART, "abc", None, None))
    assert "the stream has the topic with the id abc, and there is no topic of that name now" in said


class Brokers:
    """The cluster of one topic with positions: its offsets from 0 on; None: a marker of a transaction, no message.

    Its client has one consumer, which gives ``read`` items in each call, and then the end of what can be read.
    """

    def __init__(
        self, *log: tuple[str, str] | None, policy: str | None = "compact", readable: int | None = None
    ) -> None:
        self.log, self.policy, self.made, self.closed = log, policy, [], False
        self.readable = len(log) if readable is None else readable
        self.topics = SimpleNamespace(
            find=lambda _: self.policy and TopicState("kept", "id", 1),
            setting=lambda *_: self.policy,
            ends=lambda parts, committed: {parts[0]: len(log) if not committed else self.readable},
        )
        self.library = SimpleNamespace(Consumer=None, TopicPartition=lambda *at: at, KafkaError=CODES)
        self.errors: list[int] = []
        self.at = -1

    def make(self, name: str, partitions: int, settings: Any) -> None:
        self.made.append((name, partitions, settings["cleanup.policy"]))
        self.policy = "compact"

    is_end = Cluster.is_end

    def reader(self) -> Any:
        return self

    def assign(self, parts: list[Any]) -> None:
        [(_, _, self.at)] = parts

    def consume(self, *_: Any) -> list[Any]:
        if self.errors:
            return [_failed(self.errors.pop(), 0)]
        if self.at < self.readable:
            found, self.at = self.log[self.at], self.at + 1
            return [] if found is None else [_message(self.at - 1, *found)]
        return [_failed(EOF, self.at)]

    def close(self) -> None:
        self.closed = True

    def failure(self, error: Any) -> Exception:
        return rt.KafkaUnavailableError(f"code {error.code()}")

    def unavailable(self, what: str) -> Exception:
        return rt.KafkaUnavailableError(what)


def _message(offset: int, key: str, value: str) -> Any:
    return SimpleNamespace(error=lambda: None, offset=lambda: offset, key=key.encode, value=value.encode)


def _failed(code: int, offset: int) -> Any:
    return SimpleNamespace(error=lambda: SimpleNamespace(code=lambda: code), offset=lambda: offset)


def kept(n: int, topic: str = "orders") -> tuple[str, str]:
    return topic, json.dumps({"topic": topic, "topicId": "abc", "partitions": 3, "position": str(n)})


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """``seconds(n)``: each look at the clock is so many seconds later than the one before."""

    def step(each: float) -> None:
        times = itertools.count(1000.0, each)
        monkeypatch.setattr(positions, "time", SimpleNamespace(monotonic=lambda: next(times)))

    step(0.0)
    return step


def test_the_topic_of_positions_is_made_where_there_is_none() -> None:
    brokers = Brokers(policy=None)
    Positions(brokers, "kept")
    assert brokers.made == [("kept", 1, "compact")]
    Positions(brokers, "kept")
    assert len(brokers.made) == 1


def test_a_topic_that_would_forget_positions_is_refused() -> None:
    with pytest.raises(rt.InvalidOptionError, match=r"cleanup\.policy=delete"):
        Positions(Brokers(policy="delete"), "kept")


@pytest.mark.usefixtures("seconds")
def test_the_position_is_the_last_message_of_the_topics_key() -> None:
    brokers = Brokers(kept(1), kept(9, "others"), kept(2), None, kept(8, "others"), None)
    found = Positions(brokers, "kept").read("orders")
    assert found == KeptPosition(TopicState("orders", "abc", 3), {"position": "2"})
    assert brokers.closed
    key, value = Positions(brokers, "kept").message("orders", found)
    assert Positions(Brokers((key.decode(), value.decode())), "kept").read("orders") == found


@pytest.mark.usefixtures("seconds")
def test_there_is_no_position_before_the_first_drain() -> None:
    assert Positions(Brokers(), "kept").read("orders") is None
    assert Positions(Brokers(kept(9, "others")), "kept").read("orders") is None


@pytest.mark.usefixtures("seconds")
@pytest.mark.parametrize("value", ["no JSON", "7", "{}", '{"topic": "orders", "topicId": "abc"}'])
def test_a_message_of_another_program_is_no_position(value: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match="'orders' is not the position of a drain"):
        Positions(Brokers(kept(1), ("orders", value)), "kept").read("orders")


@pytest.mark.usefixtures("seconds")
def test_only_the_error_about_a_group_is_passed_over() -> None:
    brokers = Brokers(kept(1))
    brokers.errors = [NO_GROUP]
    assert Positions(brokers, "kept").read("orders") is not None
    brokers.errors = [OTHER]
    with pytest.raises(rt.KafkaUnavailableError, match="code 7"):
        Positions(brokers, "kept").read("orders")
    assert brokers.closed


def test_a_hanging_transaction_of_another_drain_is_logged_once_and_refused(
    seconds: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    seconds(1.0)
    with pytest.raises(rt.KafkaUnavailableError, match="can be read up to offset 1, not up to 3"):
        Positions(Brokers(kept(1), kept(2), kept(3), readable=1), "kept").read("orders")
    assert [record.message[:17] for record in caplog.records] == ["This drain waits."]


def test_a_slow_topic_is_no_hanging_transaction(
    seconds: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    """The wait begins again with each message."""
    seconds(1.0)
    assert Positions(Brokers(*map(kept, range(100))), "kept").read("orders") is not None
    assert not caplog.records
