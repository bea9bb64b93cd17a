"""The loop of a feed's host, with a client of Kafka whose answers the test writes."""

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka import client_failures, consumption, known_topics, partition_reader, quiet
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.inquiry import in_background
from spark_rowtime.kafka.partition_feed import PartitionFeed
from spark_rowtime.kafka.topic_adapter import _topics
from spark_rowtime.kafka.topics import Part, TopicState
from spark_rowtime.kafka.waits import FIRST_PAUSE_SECONDS
from tests.kafka.feeds import SCHEMA, START, numbers
from tests.sparksession import wait_for

confluent = pytest.importorskip("confluent_kafka")
PART = Part("t", 0)
ASSIGNED = "assigned"
"""Among the answers of the client: Kafka gives the partition to this host."""


class Message:
    """A message with the row ``offset``, or an error in its place."""

    def __init__(self, offset: int, error: str | None = None, told: str | None = None) -> None:
        self._offset = offset
        self._error = None if error is None else confluent.KafkaError(getattr(confluent.KafkaError, error), told)

    def topic(self) -> str:
        return PART.topic

    def partition(self) -> int:
        return PART.number

    def offset(self) -> int:
        return self._offset

    def error(self) -> Any:
        return self._error

    def leader_epoch(self) -> None:
        """As of brokers that do not tell it."""


class Client:
    """A consumer: each ``consume`` returns the next of ``answers``; the texts among these are told first."""

    def __init__(self, answers: Iterator[Any], options: dict[str, Any]) -> None:
        self._answers, self._told = answers, options["error_cb"]

    def subscribe(self, _: Any, on_assign: Any, **__: Any) -> None:
        self._assign = on_assign

    def consume(self, *_: Any) -> list[Message]:
        while isinstance(answer := next(self._answers), str):
            if answer == ASSIGNED:
                self._assign(self, [confluent.TopicPartition(*PART)])
            else:
                self._told(confluent.KafkaError(getattr(confluent.KafkaError, answer)))
        return list(answer)

    def incremental_assign(self, _: Any) -> None:
        pass

    incremental_unassign = pause = resume = incremental_assign

    def get_watermark_offsets(self, _: Any, cached: bool) -> tuple[int, int]:
        assert cached, "the brokers are not asked"
        return -1001, -1001

    def commit(self, offsets: Any, asynchronous: bool) -> None:
        pass

    def close(self) -> None:
        pass

    unsubscribe = close


class Brokers:
    """What brokers say of a topic that has the offsets from ``start`` to ``end``."""

    servers = "broker:9092"

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end

    def find(self, name: str) -> TopicState:
        return TopicState(name, "id", 1)

    def found(self, names: list[str]) -> dict[str, TopicState]:
        return {name: self.find(name) for name in names}

    def starts(self, parts: Any) -> dict[Part, int]:
        return dict.fromkeys(parts, self.start)

    def ends(self, parts: Any, *, committed: bool) -> dict[Part, int]:
        return dict.fromkeys(parts, self.end)

    def known_ends(self, parts: Any) -> tuple[dict[Part, int], dict[Part, Exception]]:
        return dict.fromkeys(parts, self.end), {}


class Ended:
    """A partition whose messages were all taken that the client has."""

    part, at_end, may_be_quiet, position, taken_at = PART, True, True, 0, 0.0

    def reaches(self, end: int) -> bool:
        return end <= self.position

    @property
    def sink(self) -> "Ended":
        return self

    def getRowtimeBound(self) -> None:
        return None


def at_once(question: Any) -> Future[Any]:
    """Asks and waits for the answer, so that each look of a test has one."""
    answer = Future[Any]()
    answer.set_result(question())
    return answer


class Clock:
    """A clock that goes on by ``seconds`` when the test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def passes(self, seconds: float) -> list[Message]:
        self.seconds += seconds
        return []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (consumption, client_failures):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(partition_reader, "time", clock)
    return clock


def row(message: Message) -> tuple[Any, int]:
    return START, message.offset()


def read(
    path: Path, brokers: Brokers, answers: Any, monkeypatch: pytest.MonkeyPatch, decode: Any = row, **options: Any
) -> list[int]:
    """Reads what the client answers, until there are no more answers; returns the numbers of the stream's rows."""
    rt.createStream(str(path), SCHEMA)
    with rt.openSink(str(path), producer=PART.producer) as sink:
        sink.flush(checkpoint=Checkpoint("id", 0).text())

    def opened(part: Part) -> PartitionFeed:
        return PartitionFeed(part, lambda: rt.openSink(str(path), producer=part.producer), decode, None)

    monkeypatch.setattr(consumption, "new_client", lambda _, given: Client(iter(answers), given))
    looks = quiet.QuietPartitions(brokers, None, None, at_once)  # type: ignore[arg-type]
    known = {PART.topic: brokers.find(PART.topic)}
    given = {"skips_lost": False, "until_end": False, "ask": at_once, **options}
    loop = consumption.Consumption({}, brokers, known, opened, looks, **given)  # type: ignore[arg-type]
    try:
        loop.run()
    except StopIteration:
        loop._flush(loop._feeds.values())
    return numbers(path)


@pytest.mark.parametrize("skips", [True, False])
def test_messages_that_came_before_an_error_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skips: bool
) -> None:
    """They are there, though retention has removed them meanwhile."""
    answers = [ASSIGNED, [Message(0), Message(1), Message(2, "OFFSET_OUT_OF_RANGE")], [Message(7), Message(8)]]
    if skips:
        assert read(tmp_path / "s", Brokers(7, 9), answers, monkeypatch, skips_lost=True) == [0, 1, 7, 8]
    else:
        with pytest.raises(rt.DataLostError, match="offsets 2 to 6 are no longer there"):
            read(tmp_path / "s", Brokers(7, 9), answers, monkeypatch)
        assert numbers(tmp_path / "s") == [0, 1]


TRUNCATED = (
    "Partition log truncation detected at offset 6 (leader epoch 0): broker end offset is 3 (offset leader epoch 0). "
    "Reset to INVALID.: Local: Partition log truncation detected (broker 1)"
)
"""What the client tells, as it was seen."""


@pytest.mark.parametrize(("told", "on_at"), [(TRUNCATED, 3), (None, 4)])
def test_a_truncated_partition_goes_on_where_others_are_in_the_place_of_what_was_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    told: str | None,
    on_at: int,
) -> None:
    """Without the place of the truncation, at the end that there is now; in either case the log names the offset."""
    answers = [
        ASSIGNED,
        [Message(n) for n in range(6)],
        [Message(-1001, "_AUTO_OFFSET_RESET", told)],
        [Message(n) for n in range(on_at, 8)],
    ]
    with caplog.at_level(logging.WARNING, logger="spark_rowtime.kafka"):
        found = read(tmp_path / "s", Brokers(0, 4), answers, monkeypatch, skips_lost=True)
    assert found == sorted([*range(6), *range(on_at, 8)])
    assert f"The stream goes on at offset {on_at}." in caplog.text


def test_brokers_that_were_away_an_hour_ago_may_be_away_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """Only brokers that go away again and again for 30 seconds end the feed. The error says why."""

    def answers() -> Iterator[Any]:
        yield ASSIGNED
        yield "_ALL_BROKERS_DOWN"
        yield clock.passes(3600)
        yield "_ALL_BROKERS_DOWN"
        yield clock.passes(1)
        yield [Message(0)]
        yield "_BAD_MSG"
        yield "_ALL_BROKERS_DOWN"
        yield clock.passes(20)
        yield "_ALL_BROKERS_DOWN"
        yield clock.passes(20)
        yield "_ALL_BROKERS_DOWN"
        yield []

    monkeypatch.setattr(known_topics, "TOPIC_LOOK_SECONDS", 100.0)
    with pytest.raises(rt.KafkaUnavailableError, match="_BAD_MSG"):
        read(tmp_path / "s", Brokers(0, 1), answers(), monkeypatch)
    assert clock.seconds == 4641


def test_a_message_that_cannot_be_decoded_just_now_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """After a pause that grows. What lies behind it is not taken before, and each message is there once."""
    tries: list[int] = []

    def decode(message: Message) -> Any:
        tries.append(message.offset())
        if tries.count(1) < 4 and message.offset() == 1:
            raise rt.MessageNotReadyError("The service is away.")
        return row(message)

    def answers() -> Iterator[Any]:
        yield ASSIGNED
        yield [Message(0), Message(1), Message(2), Message(3, "_PARTITION_EOF")]
        for seconds in (0.5, 1.0, 2.0):
            yield clock.passes(seconds)
            assert tries.count(1) == len(tries) - 1, "nothing behind it was decoded"
            yield [Message(1), Message(2)]

    assert read(tmp_path / "s", Brokers(0, 3), answers(), monkeypatch, decode) == [0, 1, 2]
    assert tries == [0, 1, 1, 1, 1, 2]
    told = [text.partition(" again in ")[2] for text in caplog.messages if "offset 1 of t-0 cannot be" in text]
    assert told == [f"{seconds} s: The service is away." for seconds in (0.5, 1.0, 2.0)]


def test_what_came_behind_an_end_is_not_taken_before_a_message_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """The client may hand over a message, the end of the partition and a further message in one answer."""
    refused = [rt.MessageNotReadyError("The service is away.")]

    def decode(message: Message) -> Any:
        if message.offset() == 1 and refused:
            raise refused.pop()
        return row(message)

    def answers() -> Iterator[Any]:
        yield ASSIGNED
        yield [Message(0), Message(1), Message(2, "_PARTITION_EOF"), Message(2)]
        yield [Message(3)]
        yield clock.passes(FIRST_PAUSE_SECONDS)
        yield [Message(1), Message(2), Message(3)]

    assert read(tmp_path / "s", Brokers(0, 4), answers(), monkeypatch, decode) == [0, 1, 2, 3]


def test_a_partition_is_taken_back_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """A host may stand still today, and again tomorrow. Twice within two minutes is another consumer group."""
    path = str(tmp_path / "s")

    def answers() -> Iterator[Any]:
        yield ASSIGNED
        for day in range(3):
            rt.openSink(path, producer=PART.producer, lease=None).abandon()
            yield [Message(day)]
            yield clock.passes(1)
            yield clock.passes(consumption.SETTLE_SECONDS + 1)
            yield [Message(day)]
            yield clock.passes(86_400)
        for _ in range(2):
            rt.openSink(path, producer=PART.producer, lease=None).abandon()
            yield [Message(3)]
            yield clock.passes(1)
            yield clock.passes(consumption.SETTLE_SECONDS + 1)

    monkeypatch.setattr(known_topics, "TOPIC_LOOK_SECONDS", 1e9)
    with pytest.raises(rt.ProducerFencedError):
        read(tmp_path / "s", Brokers(0, 9), answers(), monkeypatch)
    assert numbers(path) == [0, 1, 2]


def test_a_host_without_partitions_waits_until_kafka_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """Kafka gives none before the session of a host that died has ended. A feed with ``untilEnd`` had read nothing."""

    def answers() -> Iterator[Any]:
        yield []
        yield clock.passes(45)
        yield ASSIGNED
        yield [Message(0), Message(1)]
        pytest.fail("all was read")

    assert read(tmp_path / "s", Brokers(0, 2), answers(), monkeypatch, until_end=True) == [0, 1]


def test_a_partition_that_goes_on_is_not_said_to_wait_for_a_transaction(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where something comes all the time, there is always more than what was taken when a look is due."""
    clock = Clock()
    monkeypatch.setattr(quiet, "time", clock)
    brokers = Brokers(0, 10)
    looks = quiet.QuietPartitions(brokers, None, None, at_once)  # type: ignore[arg-type]
    feed = Ended()

    def woken(_: Part, action: Any) -> None:
        assert action is PartitionFeed.wake, "the partition is not quiet"

    def look(seconds: float, position: int) -> None:
        clock.passes(seconds)
        feed.position, brokers.end = position, position + 10
        looks.look([feed], woken)  # type: ignore[list-item]

    with caplog.at_level(logging.WARNING, logger="spark_rowtime.kafka"):
        for number in range(100):
            look(30, number)
        assert caplog.messages == []
        for _ in range(4):
            look(30, 99)
    assert [text for text in caplog.messages if "does not go on behind offset 99" in text] == caplog.messages
    assert len(caplog.messages) == 2


def test_a_partition_that_alignment_has_paused_is_not_said_to_wait_for_a_transaction(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its messages are in Kafka, and nobody reads them: none is held by a transaction."""
    for name in ("LOOK_SECONDS", "HANGING_SECONDS"):
        monkeypatch.setattr(quiet, name, 0.0)
    looks = quiet.QuietPartitions(Brokers(0, 7), None, None, at_once)  # type: ignore[arg-type]
    for paused, told in (({PART}, 0), ((), 1)):
        looks.look([Ended()], lambda *_: None, paused)  # type: ignore[list-item]
        assert caplog.text.count("is still open") == told


def test_a_topic_that_the_brokers_no_longer_stamp_says_nothing_of_their_clock(kafka: Any) -> None:
    topic = kafka.topic(message_timestamp_type="LogAppendTime")
    kafka.send(topic, [{"value": "1", "partition": 0}])
    topics = _topics(kafka.bootstrap, {"bootstrap.servers": kafka.bootstrap})
    looks, part = quiet.QuietPartitions(topics, 0, None, at_once, stamped=[topic]), Part(topic, 0)
    wait_for(lambda: [*looks._ends([part]).newest] == [part], "an answer of the leader")
    kafka.configure(topic, message_timestamp_type="CreateTime")
    wait_for(lambda: not looks._ends([part]).newest, "the setting of the topic")
    assert looks._ends([part]).ends == {part: 1}


def test_a_leader_that_does_not_answer_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look for ends goes on in the background; of the partitions that it has no answer for nothing is assumed."""
    clock, asked, other = Clock(), list[tuple[Any, Future[Any]]](), Part("t", 1)
    monkeypatch.setattr(quiet, "time", clock)

    def later(question: Any) -> Future[Any]:
        asked.append((question, Future()))
        return asked[-1][1]

    class Without(Brokers):
        def known_ends(self, parts: Any) -> tuple[dict[Part, int], dict[Part, Exception]]:
            assert parts == [PART, other]
            return {other: 0}, {PART: confluent.KafkaException(confluent.KafkaError(confluent.KafkaError._TIMED_OUT))}

    feeds, rested = [Ended(), Ended()], []
    feeds[1].part = other
    for feed in feeds:
        feed.rest = partial(rested.append, feed.part)
    looks = quiet.QuietPartitions(Without(0, 0), None, 1.0, later)  # type: ignore[arg-type]
    by_part = {feed.part: feed for feed in feeds}
    for _ in range(3):
        looks.look(feeds, lambda part, action: action(by_part[part]))  # type: ignore[arg-type]
        clock.passes(10)
    assert (len(asked), rested) == (1, [])
    question, answer = asked[0]
    answer.set_result(question())
    looks.look(feeds, lambda part, action: action(by_part[part]))  # type: ignore[arg-type]
    assert rested == [other]
    assert [looks.has_answered(feed, 0) for feed in feeds] == [False, True]  # type: ignore[arg-type]


@pytest.mark.parametrize("at_end", [True, False])
def test_a_partition_without_an_answer_is_logged_once_until_it_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at_end: bool
) -> None:
    """Also one whose end was not reached when its leader died."""
    clock, failed = Clock(), [True]
    monkeypatch.setattr(quiet, "time", clock)

    class Leaderless(Brokers):
        def known_ends(self, parts: Any) -> tuple[dict[Part, int], dict[Part, Exception]]:
            error = confluent.KafkaException(confluent.KafkaError(confluent.KafkaError.LEADER_NOT_AVAILABLE))
            return ({}, {PART: error}) if failed[0] else ({PART: 0}, {})

    feed, looks = Ended(), quiet.QuietPartitions(Leaderless(0, 0), None, None, at_once)  # type: ignore[arg-type]
    feed.at_end = feed.may_be_quiet = at_end

    def looks_on() -> int:
        for _ in range(12):
            looks.look([feed], lambda *_: None)  # type: ignore[list-item]
            clock.passes(10)
        return caplog.text.count("Partition 0 of topic t has given no answer for 60 s: LEADER_NOT_AVAILABLE")

    assert [looks_on(), looks_on()] == [1, 1]
    failed[0] = False
    assert looks_on() == 1
    failed[0] = True
    assert looks_on() == 2, "it has answered, and failed anew"


def test_a_question_that_fails_in_the_background_raises_where_its_answer_is_used() -> None:
    def failing() -> int:
        raise rt.KafkaUnavailableError("away")

    answer = in_background(failing)
    with pytest.raises(rt.KafkaUnavailableError, match="away"):
        answer.result(60)
