"""KafkaWatch: bounds that nobody sends, with the offsets that they follow."""

import json
import logging
import re
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.kafka import KafkaWatch
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.kafka.watch import create_watched
from spark_rowtime.store import open_store
from tests.crash.tally import Tally
from tests.crash.victims import how_many
from tests.kafka.feeds import PATIENT, Host, bound, hosts, message, moment, with_open_transaction
from tests.sparksession import wait_for

KILLS = how_many(2)
"""How many hosts are killed."""
OF_CLIENT = re.compile(r"Kafka's client: |[A-Z0-9]+ \[rdkafka#")
"""What an error that the client tells begins with, and a line that it logs."""


def watch(kafka: Any, path: Path, topic: str, **arguments: Any) -> None:
    """Follows what the topic has now, in this process."""
    create_watched(str(path))
    given = {"servers": kafka.bootstrap, "topics": topic, "untilEnd": True, "every": "1 hour", **PATIENT, **arguments}
    rt.runAdapter(KafkaWatch, str(path), arguments=given, producer="watch", restarts=0)


def floor_at(path: Path | str, topic: str, *ends: int) -> str | None:
    """The bound of a query that has read the partitions up to these offsets."""
    with open_store(str(path)) as store:
        floor = CutFloors(store).floorAt(store.head().seq, {topic: dict(enumerate(ends))})
    return None if floor is None else rt.RowtimeBound.fromFloor(floor).time.isoformat()


def without_client(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, but for what Kafka's client says of a broker that is slow just now."""
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("spark_rowtime")]
    return [text for text in ours if not OF_CLIENT.match(text)]


def test_bounds_follow_the_offsets_of_the_messages_that_imply_them(kafka: Any, tmp_path: Path) -> None:
    topic, path = kafka.topic(partitions=2), tmp_path / "bounds"
    kafka.send(topic, [message(0, 100), message(1, 70), message(2, 500, partition=1)])
    watch(kafka, path, topic, lateness="1 minute")
    assert floor_at(path, topic, 2, 1) == moment(40) == bound(path)
    assert floor_at(path, topic, 1, 1) is None, "the message at offset 1 is still to come"
    kafka.send(topic, [message(3, 300), message(4, 600, partition=1)])
    watch(kafka, path, topic, lateness="1 minute")
    assert (floor_at(path, topic, 3, 2), floor_at(path, topic, 2, 2)) == (moment(240), moment(40))
    assert floor_at(path, topic, 3, 1) == moment(240), "partition 1 had promised more"
    assert rt.describeStream(str(path)).rows == 0


def test_a_partition_where_nothing_comes_goes_on_by_its_delay(kafka: Any, tmp_path: Path) -> None:
    """Also one that has never had a message; but not behind an open transaction."""
    topic, path = kafka.topic(partitions=3), str(tmp_path / "bounds")
    kafka.send(topic, [message(0, 100)])
    create_watched(path)
    began = datetime.now(UTC)
    producer = with_open_transaction(kafka, topic, message(1, partition=1))
    with hosts(Watcher(kafka, path, topic, "one", "delay=1 hour", "every=0 s")):
        wait_for(lambda: len(past(path, began - timedelta(hours=1))) == 2, "the quiet partitions")
        assert past(path, began - timedelta(hours=1)) == {f"{topic}-0", f"{topic}-2"}
        producer.commit_transaction()
        wait_for(lambda: len(past(path, began - timedelta(hours=1))) == 3, "the partition of the transaction")
    assert floor_at(path, topic, 1, 0, 0) is None, "the message of the transaction is still to come"


def test_an_idle_partition_holds_a_query_until_it_has_read_its_messages(kafka: Any, tmp_path: Path) -> None:
    """Its last message raises no bound, and lies below that of the partition that goes on."""
    topic, path, sent = kafka.topic(partitions=2), tmp_path / "bounds", [3]
    kafka.send(topic, [message(0, 600), message(1, 7200, partition=1)])
    watch(kafka, path, topic, lateness="5 minutes")
    kafka.send(topic, [message(2, 480)])

    def goes_on() -> bool:
        kafka.send(topic, [message(sent[-1], 7200 + sent[-1], partition=1)])
        sent.append(sent[-1] + 1)
        return bound(path) > moment(6900)

    with hosts(Watcher(kafka, path, topic, "one", "lateness=5 minutes", "idle=1 second", "every=0 s")):
        wait_for(goes_on, "the partition that goes on")
        floor_before, floor_behind = (floor_at(path, topic, end, 1_000_000) for end in (1, 2))
    assert floor_before == moment(300)
    assert floor_behind is not None
    assert floor_behind > moment(6900)


def test_a_watch_that_ends_has_what_the_delay_promises(kafka: Any, tmp_path: Path) -> None:
    """Of a partition that was read to its end, and of one that has never had a message."""
    topic, path = kafka.topic(partitions=2), tmp_path / "bounds"
    kafka.send(topic, [message(0, 100)])
    began = datetime.now(UTC)
    watch(kafka, path, topic, delay="1 hour")
    assert past(str(path), began - timedelta(hours=1)) == {f"{topic}-0", f"{topic}-1"}


@pytest.mark.night
def test_a_watch_that_ends_waits_for_the_partitions_of_other_hosts(kafka: Any, tmp_path: Path) -> None:
    """The other one commits now and then only. So a query with AvailableNow closes what the topic allows."""
    topic, path = kafka.topic(partitions=1), str(tmp_path / "bounds")
    create_watched(path)
    with hosts(Watcher(kafka, path, topic, "one", "every=20 seconds", "kafka.session.timeout.ms=60000")) as running:
        kafka.send(topic, [message(0, 100)])
        wait_for(lambda: bound(path) == moment(100), "the first bound")
        kafka.send(topic, [message(1, 200)])
        watch(kafka, path, topic)
        assert bound(path) == moment(200)
        with pytest.raises(rt.InvalidOptionError, match="lateness=None; this one has lateness='1 minute'"):
            watch(kafka, path, topic, lateness="1 minute")
        running[0].end()  # it leaves its group
    watch(kafka, path, topic, lateness="1 minute", delay="1 day")


def test_append_time_reads_no_message(kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The messages are none that could be read."""
    topic, path = kafka.topic(partitions=2), tmp_path / "bounds"
    kafka.send(topic, [{"value": b"\xff", "partition": 0}] * 3)
    with pytest.raises(rt.InvalidOptionError, match="delay='5 minutes'"):
        watch(kafka, path, topic, bounds="append-time")
    before = datetime.now(UTC)
    watch(kafka, path, topic, bounds="append-time", delay="5 minutes")
    after = datetime.now(UTC)
    found = rt.describeStream(str(path)).bound
    assert before - timedelta(minutes=5) <= found.time <= after - timedelta(minutes=5)
    assert floor_at(path, topic, 3, 0) == found.time.isoformat()
    assert floor_at(path, topic, 2, 0) is None
    assert without_client(caplog) == []


@pytest.mark.long
def test_the_brokers_stamps_need_no_delay_to_be_given(kafka: Any, tmp_path: Path) -> None:
    topic, path = kafka.topic(partitions=1, message_timestamp_type="LogAppendTime"), tmp_path / "bounds"
    kafka.send(topic, [message(0)])
    watch(kafka, path, topic, bounds="append-time")
    assert floor_at(path, topic, 1) is not None


def test_messages_that_promise_nothing(kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One without a time, and one of the year 9999, which would make all later ones late."""
    topic, path = kafka.topic(partitions=1), tmp_path / "bounds"
    far = {"value": json.dumps({"rowtime": "9999-01-01T00:00:00Z"}), "partition": 0}
    kafka.send(topic, [message(0, 5), {"value": b"{", "partition": 0}, far, {"value": None, "partition": 0}])
    with caplog.at_level(logging.WARNING, logger="spark_rowtime.kafka"):
        watch(kafka, path, topic)
    assert floor_at(path, topic, 4) == moment(5)
    [said] = without_client(caplog)
    assert "offset 1" in said
    assert "it is not JSON" in said


def test_messages_that_are_bounds(kafka: Any, tmp_path: Path) -> None:
    topic, path = kafka.topic(partitions=1), tmp_path / "bounds"
    resolved = {"value": json.dumps({"resolved": "1767621610000000000.0000000000"}), "partition": 0}
    kafka.send(topic, [message(0, 100), resolved, message(1, 5)])
    watch(kafka, path, topic, bounds="resolved")
    assert bound(path) == moment(10)
    with pytest.raises(rt.InvalidOptionError, match="lateness is for bounds='rows'"):
        KafkaWatch(servers="b:9092", topics="t", bounds="resolved", lateness="1 s")
    with pytest.raises(rt.UnknownOptionError, match="KafkaWatch has no argument 'row'"):
        KafkaWatch(servers="b:9092", topics="t", row="after")


def test_the_command_creates_the_stream_and_follows_the_topic(kafka: Any, tmp_path: Path) -> None:
    topic, path = kafka.topic(partitions=1), str(tmp_path / "bounds")
    kafka.send(topic, [{"value": json.dumps({"at": 1767621600000}), "partition": 0}])
    given = ["watch", f"kafka://{kafka.bootstrap}/{topic}", path, "--until-end", "--rowtime", "at"]
    done = CliRunner().invoke(main, [*given, "--time-unit", "weeks"])
    assert (done.exit_code, "timeUnit" in done.output) == (1, True), done.output
    assert not Path(path).exists()
    done = CliRunner().invoke(main, [*given, "--time-unit", "ms", "--every", "1 s", "--lateness", "1 minute"])
    assert done.exit_code == 0, done.output
    assert bound(path) == moment(-60)


def test_hosts_die_and_no_bound_passes_a_message(kafka: Any, tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """Two hosts share three partitions; one gets kill -9, another starts. Bounds and offsets go on, in step."""
    line = tally("kill -9 of one of two hosts of KafkaWatch")
    topic, path, sent = kafka.topic(), str(tmp_path / "bounds"), 0
    create_watched(path)
    settings = ("every=0 s", "kafka.session.timeout.ms=2000", "kafka.heartbeat.interval.ms=300")
    with hosts(*(Watcher(kafka, path, topic, f"host-{n}", *settings) for n in range(2))) as running:
        for kill in range(KILLS + 1):
            kafka.send(topic, [message(n, partition=n % 3) for n in range(sent, sent + 600)])
            sent += 600
            half = moment(sent - 300)
            wait_for(lambda half=half: bound(path) >= half and bound(path) != "None", "half of them")
            if kill < KILLS:
                running.pop(0).end(signal.SIGKILL)
                line.fault()
                running.append(Watcher(kafka, path, topic, f"again-{kill}", *settings))
        wait_for(lambda: bound(path) == moment(sent - 3), "the last bound")
        for host in running:
            assert host.lives(), host.output
    check_offsets(path, topic, sent)


def check_offsets(path: str, topic: str, sent: int) -> None:
    """At any offsets the bound is that of the messages below them: message n of a partition has the time 3n + p."""
    with open_store(path) as store:
        floors, last = CutFloors(store), store.head().seq
        for end in range(0, sent // 3 + 1, 20):
            floor = floors.floorAt(last, {topic: dict.fromkeys(range(3), end)}) or 0
            assert floor <= rt.RowtimeBound(moment(3 * end)).floor, end
        whole = floors.floorAt(last, {topic: dict.fromkeys(range(3), sent // 3)})
    assert whole == rt.RowtimeBound(moment(sent - 3)).floor


class Watcher(Host):
    """``rowtime run`` of a KafkaWatch in a process of its own."""

    adapter = "spark_rowtime.kafka:KafkaWatch"


def past(path: str, time: datetime) -> set[str]:
    """The producers whose bound is after a time."""
    found = {p.name: p.bound and p.bound.time for p in rt.describeStream(path).producers}
    return {name for name, bound in found.items() if bound and bound > time}
