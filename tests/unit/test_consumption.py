"""Consumption: each message of a partition is taken once, whatever Kafka assigns, takes away and loses."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import kafka_support
import pytest
from kafka_support import LIBRARY, P0, P1, Broker, error, failed, part_of
from unit_support import new_stream, row

import spark_rowtime as rt
from spark_rowtime.kafka import client, client_failures, consumption, group_offsets, partition_feed
from spark_rowtime.kafka.checkpoint import Checkpoint, LastRead
from spark_rowtime.kafka.client_failures import DOWN_SECONDS, PASSING_READS
from spark_rowtime.kafka.consumption import SETTLE_SECONDS, Consumption
from spark_rowtime.kafka.group_wait import GROUP_TOLD_SECONDS
from spark_rowtime.kafka.group_wait import POLL_SECONDS as GROUP_POLL_SECONDS
from spark_rowtime.kafka.known_topics import TOPIC_LOOK_SECONDS
from spark_rowtime.kafka.partition_feed import PartitionFeed
from spark_rowtime.kafka.partition_watch import UnreadPartition
from spark_rowtime.kafka.topics import Part, TopicState
from spark_rowtime.store import open_store
from tests.landed import landed

MINE = {"group.id": "rowtime-orders"}


def at_once(question: Callable[[], Any]) -> Future[Any]:
    answer = Future[Any]()
    answer.set_result(question())
    return answer


class Host:
    """A host of a feed over a stream in memory."""

    def __init__(
        self, broker: Broker, path: str, *, skips_lost: bool = False, until_end: bool = True, options: Any = MINE
    ) -> None:
        self.broker, self.path = broker, path
        quiet: Any = SimpleNamespace(look=lambda *_: None, promises=False)
        self.loop = Consumption(
            options, broker, {"orders": TopicState("orders", "abc", 2)}, self.open, quiet, skips_lost=skips_lost,
            until_end=until_end, ask=at_once,
        )  # fmt: skip

    def open(self, part: Part) -> PartitionFeed:
        return PartitionFeed(part, lambda: sink(self.path, part), lambda found: row("12:00", found.value()), None)

    def read(self, *steps: Any) -> list[str]:
        """Runs with these steps first, and returns all rows of the stream."""
        self.broker.steps = list(steps)
        try:
            self.loop.run()
        finally:
            assert self.broker.closed
        return stored(self.path)

    def step(self, *steps: Any) -> None:
        self.broker.steps = list(steps)
        for _ in range(max(1, len(steps))):
            self.loop._step()


def sink(path: str, part: Part) -> rt.StreamSink:
    return rt.openSink(path, producer=part.producer, lease=None, linger="1 hour")


def stored(path: str) -> list[str]:
    return sorted(landed(path, "ticker"))


def checkpoint(path: str, part: Part = P0) -> int:
    found = open_store(path).producer(part.producer)
    return json.loads(found.checkpoint)["offset"]


def take_over(path: str, part: Part = P0) -> Callable[[], None]:
    """Another host opens the partition's producer, and reads on up to where it is."""
    return lambda: sink(path, part).abandon()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    for module in (consumption, client_failures):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("spark_rowtime.kafka.partition_reader.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def broker(now: list[float], monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker(now)
    monkeypatch.setattr(consumption, "library", lambda: LIBRARY)
    for module in (client, client_failures, group_offsets):
        monkeypatch.setattr(module, "library", lambda: LIBRARY)
    monkeypatch.setattr(consumption, "new_client", lambda *_: broker)
    broker.log[P0] = ["a", "b", "c"]
    return broker


@pytest.fixture
def path() -> str:
    path = new_stream()
    for part in (P0, P1):
        with sink(path, part) as starts:
            starts.flush(checkpoint=Checkpoint("abc", 0).text())
            starts.abandon()
    return path


@pytest.fixture
def host(broker: Broker, path: str) -> Host:
    """A host that has both partitions, and reads until it is stopped."""
    host = Host(broker, path, until_end=False)
    broker.subscribe([], on_assign=host.loop._assign, on_revoke=host.loop._revoke, on_lost=host.loop._lose)
    broker.assign(P0, P1)
    return host


def test_all_that_was_there_is_read_and_a_second_run_reads_nothing_twice(broker: Broker, path: str) -> None:
    broker.log[P1], broker.gives = ["x"], 1
    assert Host(broker, path).read(lambda: broker.assign(P0, P1)) == ["a", "b", "c", "x"]
    assert (checkpoint(path, P0), checkpoint(path, P1)) == (3, 1)
    broker.log[P0] += ["d"]
    broker.at.clear()
    assert Host(broker, path).read(lambda: broker.assign(P0, P1)) == ["a", "b", "c", "d", "x"]


def test_a_run_until_the_end_ends_where_other_hosts_have_all(broker: Broker, path: str, now: list[float]) -> None:
    began = now[0]
    assert Host(broker, path).read(broker.assign) == []
    assert now[0] - began > SETTLE_SECONDS


def test_rows_are_committed_after_a_while_or_when_there_are_many(
    host: Host, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_feed, "FULL_ROWS", 100)
    host.step()
    assert (stored(host.path), host.loop._feeds[P0].next) == ([], 3)
    now[0] += 1
    host.step()
    assert (stored(host.path), checkpoint(host.path)) == (["a", "b", "c"], 3)
    host.broker.log[P0] += ["x"] * 100
    host.broker.gives = 100
    host.step()
    assert checkpoint(host.path) == 103


def test_what_was_taken_is_committed_before_another_host_gets_the_partition(host: Host) -> None:
    host.step()
    host.broker.revoke(P0)
    assert (stored(host.path), checkpoint(host.path)) == (["a", "b", "c"], 3)
    assert host.loop._feeds.keys() == {P1}


def test_a_partition_that_was_lost_is_dropped_as_another_host_reads_it(host: Host) -> None:
    host.step()
    host.loop._lose(None, [part_of(P0)])
    assert (stored(host.path), host.loop._feeds.keys()) == ([], {P1})


def test_a_run_until_the_end_does_not_end_because_its_partitions_were_lost(
    broker: Broker, path: str, now: list[float]
) -> None:
    """It stood still for longer than its session lasts. It gets them back, some time later."""
    host = Host(broker, path)

    def stands_still() -> None:
        now[0] += SETTLE_SECONDS + 1
        host.loop._lose(None, [part_of(P0)])

    again = lambda: broker.assign(P0)  # noqa: E731
    assert host.read(lambda: broker.assign(P0), stands_still, lambda: None, again) == ["a", "b", "c"]


def test_a_host_that_kafka_assigns_nothing_warns_and_ends(
    host: Host, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """As where the coordinator of its group is gone: nobody says so, and all partitions are lost."""
    now[0] += 3600
    host.step()
    assert caplog.messages == [], "it has partitions"
    host.loop._client_failures(error("_TRANSPORT"))
    for _ in range(2):
        caplog.clear()
        host.loop._lose(None, [part_of(P0), part_of(P1)])
        for seconds in (GROUP_TOLD_SECONDS - 1, 1, GROUP_POLL_SECONDS - 1):
            now[0] += seconds
            host.step()
        assert len(caplog.messages) == 1
        assert "consumer group 'rowtime-orders' at Kafka's brokers brokers:9092" in caplog.text
        assert "The client's last error: _TRANSPORT" in caplog.text
        host.broker.assign(P0, P1)
        host.step()
    host.loop._lose(None, [part_of(P0), part_of(P1)])
    now[0] += GROUP_POLL_SECONDS + GROUP_TOLD_SECONDS + 1
    with pytest.raises(rt.KafkaUnavailableError, match=r"'rowtime-orders' .* no partitions for 331 s"):
        host.step()


def test_a_host_waits_longer_for_its_group_where_members_may_stand_still_longer(
    broker: Broker, path: str, now: list[float]
) -> None:
    host = Host(broker, path, options={"group.id": "own", "max.poll.interval.ms": "900000"})
    now[0] += 929
    host.step(lambda: None)
    now[0] += 2
    with pytest.raises(rt.KafkaUnavailableError, match=r"'own' .* The client's last error: none"):
        host.step(lambda: None)


def test_a_host_that_was_fenced_lets_go_and_takes_back_what_kafka_leaves_it(host: Host, now: list[float]) -> None:
    host.step()
    take_over(host.path)()
    now[0] += 1
    host.step()
    assert (host.loop._feeds.keys(), stored(host.path)) == ({P1}, [])
    now[0] += SETTLE_SECONDS / 2
    host.step()
    assert host.loop._feeds.keys() == {P1}, "Kafka may take it away yet"
    now[0] += SETTLE_SECONDS
    host.step()
    host.step()
    now[0] += 1
    host.step()
    assert (stored(host.path), checkpoint(host.path)) == (["a", "b", "c"], 3)
    take_over(host.path)()
    host.broker.log[P0] += ["d"]

    def go_on() -> None:
        host.step()
        now[0] += 1
        host.step()

    with pytest.raises(
        rt.ProducerFencedError
    ):  # a second consumer group; the sink looks now and then, or the commit does
        go_on()


def test_a_run_until_the_end_waits_for_what_was_fenced(broker: Broker, path: str) -> None:
    host = Host(broker, path)
    assert host.read(lambda: broker.assign(P0), take_over(path)) == ["a", "b", "c"]


def test_an_error_of_an_assignment_ends_the_run_and_commits_nothing_more(broker: Broker, path: str) -> None:
    with rt.openSink(path, producer=P1.producer, lease=None) as other:
        other.flush(checkpoint=Checkpoint("old", 7).text())
        other.abandon()
    with pytest.raises(rt.KafkaTopicError, match="up to offset 7 of the topic with the id old"):
        Host(broker, path).read(lambda: broker.assign(P0), lambda: broker.assign(P1))


@pytest.mark.parametrize("code", ["UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"])
@pytest.mark.parametrize("found", [None, "new"])
def test_a_topic_that_is_gone_or_new_ends_the_run(host: Host, code: str, found: str | None) -> None:
    host.step()
    host.step(failed(P0, code))
    host.broker.id = found
    with pytest.raises(rt.KafkaTopicError, match="partition 0 up to offset 3 of the topic with the id abc"):
        host.step(failed(P0, code))


def test_topics_are_looked_at_now_and_then(host: Host, now: list[float]) -> None:
    host.step()
    host.broker.id = "new"
    host.step()
    now[0] += TOPIC_LOOK_SECONDS
    with pytest.raises(rt.KafkaTopicError):
        host.step()


def test_partitions_that_were_added_are_attached_before_they_are_assigned(host: Host, now: list[float]) -> None:
    """Kafka's client notices them later; until then the others would go on past their rows."""
    attached: list[dict[str, TopicState]] = []
    host.loop._attach = attached.append
    host.step()
    host.broker.partitions = 3
    host.step()
    assert attached == []
    for _ in range(2):
        now[0] += TOPIC_LOOK_SECONDS
        host.step()
    assert attached == [{"orders": TopicState("orders", "abc", 3)}]


def test_a_topic_that_was_created_again_names_where_it_was_surely_the_old_one(host: Host, now: list[float]) -> None:
    """What was read after the last look at its id may be of the new topic."""
    host.step()
    now[0] += TOPIC_LOOK_SECONDS
    host.step()
    host.broker.id = "new"
    host.broker.log[P0] += ["x", "y"]
    host.step()
    with pytest.raises(rt.KafkaTopicError) as failed:
        host.step(kafka_support.failed(P0, "UNKNOWN_TOPIC_OR_PART"))
    said = str(failed.value)
    assert "partition 0 up to offset 5" in said
    assert "At the last look at the id it was offset 3: rows from there on may be of the new topic" in said
    assert "another topic name" not in said


def test_offsets_that_retention_has_removed_are_an_error(host: Host) -> None:
    host.broker.first[P0], host.broker.log[P0] = 2, ["c"]
    with pytest.raises(rt.DataLostError, match="offsets 0 to 1 are no longer there") as lost:
        host.step()
    assert lost.value.values == {"asked": 0, "horizon": 2, "last": 3}


def test_lost_offsets_are_skipped_where_the_user_says_so(broker: Broker, path: str) -> None:
    broker.first[P0], broker.log[P0] = 2, ["c"]
    assert Host(broker, path, skips_lost=True).read(lambda: broker.assign(P0)) == ["c"]
    assert checkpoint(path) == 3


def test_a_partition_that_has_become_shorter_goes_on_at_its_end(broker: Broker, path: str) -> None:
    with sink(path, P0) as read:
        read.flush(checkpoint=Checkpoint("abc", 9).text())
        read.abandon()
    broker.log[P1] = ["x"]
    assert Host(broker, path, skips_lost=True).read(lambda: broker.assign(P0, P1)) == ["x"]
    assert checkpoint(path) == 3


def test_partitions_that_are_not_read_are_not_checked_either(broker: Broker, path: str) -> None:
    """Their checkpoints may name a last message, of a run that has read them."""
    with sink(path, P0) as read:
        read.flush(checkpoint=Checkpoint("abc", 2, LastRead(2, 5)).text())
        read.abandon()
    unread = UnreadPartition(P0, lambda: sink(path, P0), lambda _: None, 1.0, lambda: None)
    quiet: Any = SimpleNamespace(look=lambda feeds, *_: [feed.reaches(3) for feed in feeds], promises=False)
    topics = {"orders": TopicState("orders", "abc", 2)}
    loop = Consumption(
        {}, broker, topics, lambda _: unread, quiet, skips_lost=False, until_end=True, reads=False
    )  # fmt: skip
    broker.steps = [lambda: broker.assign(P0), list, list, lambda: pytest.fail("it does not end")]
    loop.run()
    assert checkpoint(path) == 3


@pytest.mark.parametrize("skips", [True, False])
def test_a_partition_that_is_not_read_and_has_become_shorter_has_lost_messages(
    broker: Broker, path: str, skips: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """If the brokers say so again: an answer may have been that of a leader that was deposed."""
    unread = UnreadPartition(P0, lambda: sink(path, P0), lambda _: None, 1.0, lambda: None)
    ends, topics = [3, 9, 2, 3], {"orders": TopicState("orders", "abc", 2)}
    quiet: Any = SimpleNamespace(look=lambda feeds, *_: [f.reaches(ends.pop(0)) for f in feeds if ends], promises=True)
    loop = Consumption({}, broker, topics, lambda _: unread, quiet, skips_lost=skips, until_end=False, reads=False)
    broker.subscribe([], on_assign=loop._assign, on_revoke=loop._revoke, on_lost=loop._lose)
    broker.assign(P0)
    broker.log[P0] = ["x"] * 9
    for _ in range(2):
        loop._step()
    broker.steps = [list] * 3
    loop._step()
    assert (unread.next, unread.shorter, caplog.messages) == (9, False, [])
    broker.log[P0] = ["x"] * 3
    if skips:
        loop._step()
        assert (unread.next, unread.shorter) == (3, False)
        assert "The stream goes on at offset 3." in caplog.text
    else:
        with pytest.raises(rt.DataLostError, match="it ends at offset 3 now"):
            loop._step()
        broker.id = "new"
        with pytest.raises(rt.KafkaTopicError):
            loop._step()


@pytest.mark.parametrize("code", PASSING_READS)
def test_errors_that_pass_end_nothing(host: Host, now: list[float], code: str) -> None:
    host.step(failed(P0, code))
    for _ in range(2):
        host.loop._client_failures(error(code))
        now[0] += 0 if code == "_ALL_BROKERS_DOWN" else DOWN_SECONDS + 1
    host.step()
    assert host.loop._feeds[P0].next == 3


def test_another_error_ends_the_run(host: Host) -> None:
    with pytest.raises(
        rt.KafkaUnavailableError, match="Reading orders-0 failed at Kafka's brokers brokers:9092: OTHER"
    ):
        host.step(failed(P0, "OTHER"))


@pytest.mark.parametrize(("code", "lacks"), [("OTHER", False), ("GROUP_AUTHORIZATION_FAILED", True)])
def test_an_error_of_the_group_names_it(host: Host, code: str, lacks: bool) -> None:
    no_part: Any = SimpleNamespace(topic=None, number=0)
    with pytest.raises(rt.KafkaUnavailableError, match=r"group 'rowtime-orders' failed") as caught:
        host.step(failed(no_part, code))
    assert ("right Read on this group." in str(caught.value)) == lacks


@pytest.mark.parametrize("told", [error("_AUTHENTICATION"), error("_SSL"), error("OTHER", fatal=True)])
def test_an_error_of_the_connection_that_does_not_pass(host: Host, told: Any) -> None:
    host.loop._client_failures(told)
    with pytest.raises(rt.KafkaUnavailableError, match="The connection"):
        host.step()


def test_brokers_may_be_away_for_a_while(host: Host, now: list[float]) -> None:
    down = error("_ALL_BROKERS_DOWN")
    host.loop._client_failures(down)
    now[0] += DOWN_SECONDS - 1
    host.loop._client_failures(down)
    host.step()  # messages come again
    now[0] += 2
    host.loop._client_failures(down)
    now[0] += DOWN_SECONDS + 1  # another time
    host.loop._client_failures(down)
    host.step(lambda: None)
    for _ in range(2):
        now[0] += DOWN_SECONDS - 1
        host.loop._client_failures(down)
    with pytest.raises(rt.KafkaUnavailableError, match="Reading"):
        host.step()
