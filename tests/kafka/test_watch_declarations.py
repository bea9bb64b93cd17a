"""All hosts of a watch have declared the same, also if two with other declarations start at once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka import KafkaWatch, declaration, topics
from spark_rowtime.kafka.consumption import Consumption
from spark_rowtime.kafka.declaration import Declaration
from spark_rowtime.kafka.topics import Topics
from spark_rowtime.kafka.watch import create_watched
from tests.kafka.feeds import PATIENT, bound, eventually, hosts, message, moment
from tests.kafka.test_watch import Watcher, watch
from tests.sparksession import wait_for

REFUSED = "Another host of a watch runs, or starts just now"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers say who runs, also if they are slow."""
    monkeypatch.setattr(topics, "SOON_SECONDS", 240.0)


@pytest.mark.long
def test_of_two_hosts_that_start_at_once_one_is_refused(kafka: Any, tmp_path: Path) -> None:
    """The other one goes on with what it has declared."""
    topic, path = kafka.topic(partitions=2), str(tmp_path / "bounds")
    create_watched(path)
    started = {n: Watcher(kafka, path, topic, f"host-{n}", f"lateness={n} minutes", "every=0 s") for n in (1, 2)}
    with hosts(*started.values()):
        wait_for(lambda: not all(host.lives() for host in started.values()), "the end of one of them")
        kafka.send(topic, [message(n, 100, partition=n) for n in range(2)])
        [(minutes, host)] = [(n, host) for n, host in started.items() if host.lives()]
        eventually(lambda: bound(path), moment(100 - 60 * minutes))
        assert host.lives()
        refused = started[3 - minutes]
        refused.end()
        assert REFUSED in "".join(refused.output)


@pytest.mark.each
@pytest.mark.parametrize("before", [None, "3 minutes"], ids=["a new topic", "a topic with another declaration"])
def test_the_stores_order_decides_which_one_it_is(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """Both have seen that nobody runs, and what the stream had, before one of them writes."""
    topic, path = kafka.topic(partitions=1), str(tmp_path / "bounds")
    create_watched(path)
    if before is not None:
        watch(kafka, Path(path), topic, lateness=before)
    kafka.send(topic, [message(0, 100)])
    look, both = Declaration.look, threading.Barrier(2)

    def looks(self: Declaration, topics: Any) -> None:
        look(self, topics)
        both.wait(240)

    monkeypatch.setattr(Declaration, "look", looks)
    with ThreadPoolExecutor(2) as pool:
        started = {n: pool.submit(one, kafka, path, topic, n) for n in (1, 2)}
    errors = {n: future.exception() for n, future in started.items()}
    [minutes] = [n for n, error in errors.items() if error is None]
    assert REFUSED in str(errors[3 - minutes])
    assert bound(path) == moment(100 - 60 * minutes)


@pytest.mark.night
def test_one_that_has_declared_and_is_about_to_join_counts_as_one_that_runs(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, path = kafka.topic(partitions=1), str(tmp_path / "bounds")
    create_watched(path)
    with ThreadPoolExecutor(1) as pool, held_up(monkeypatch) as joins:
        first = pool.submit(one, kafka, path, topic, 1)
        wait_for(lambda: declared(path, topic), "the declaration of the first one")
        has_members = Topics.has_members

        def asked(topics: Topics, group: str, names: list[str]) -> bool:
            joins.set()
            wait_for(lambda: has_members(topics, group, names), "the first one to join")
            return True

        monkeypatch.setattr(Topics, "has_members", asked)
        with pytest.raises(rt.InvalidOptionError, match="lateness='1 minutes'; this one has lateness='2 minutes'"):
            one(kafka, path, topic, 2)
        assert not first.done()


def test_the_one_whose_declaration_was_written_over_ends(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has taken so long to join that it counted as one that had died."""
    topic, path = kafka.topic(partitions=1), str(tmp_path / "bounds")
    create_watched(path)
    monkeypatch.setattr(declaration, "GONE_SECONDS", 0.0)
    with ThreadPoolExecutor(1) as pool, held_up(monkeypatch) as joins:
        first = pool.submit(one, kafka, path, topic, 1)
        wait_for(lambda: declared(path, topic), "the declaration of the first one")
        kafka.send(topic, [message(0, 100)])
        one(kafka, path, topic, 2)
        joins.set()
        assert REFUSED in str(first.exception(240))
    assert bound(path) == moment(-20)


def test_brokers_that_do_not_say_who_runs(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another declaration is not taken then. The same one is."""
    topic, path = kafka.topic(partitions=1), str(tmp_path / "bounds")
    create_watched(path)
    one(kafka, path, topic, 1)

    def unknown(topics: Topics, group: str, _: list[str]) -> bool:
        raise topics._failed(TimeoutError(), f"Asking for the members of the consumer group {group!r}")

    monkeypatch.setattr(Topics, "has_members", unknown)
    monkeypatch.setattr(declaration, "GONE_SECONDS", 0.0)
    with pytest.raises(rt.RowtimeError) as failed:
        one(kafka, path, topic, 2)
    assert isinstance(failed.value.__cause__, rt.KafkaUnavailableError)
    assert "the members of the consumer group 'rowtime-" in str(failed.value)
    one(kafka, path, topic, 1)


def test_a_host_of_another_topic_is_none_of_these(kafka: Any, tmp_path: Path) -> None:
    """Two frames of one topic each may share a stream; then their hosts are one consumer group."""
    topic, other, path = kafka.topic(partitions=1), kafka.topic(partitions=1), str(tmp_path / "bounds")
    create_watched(path)
    one(kafka, path, topic, 1)
    with hosts(Watcher(kafka, path, other, "host-3", "every=0 s")) as [running]:
        kafka.send(other, [message(0, 100)])
        wait_for(lambda: bounds(path).get(f"{other}-0"), "the other topic's host")
        one(kafka, path, topic, 2)
        assert running.lives(), running.output


def one(kafka: Any, path: str, topic: str, minutes: int) -> None:
    """A host in this thread, up to what the topic has now."""
    given = {"servers": kafka.bootstrap, "topics": topic, "untilEnd": True, "lateness": f"{minutes} minutes"} | PATIENT
    rt.runAdapter(KafkaWatch, path, arguments=given, producer=f"host-{minutes}", restarts=0)


def bounds(path: str) -> dict[str, Any]:
    """The bound of each producer."""
    return {producer.name: producer.bound for producer in rt.describeStream(path).producers}


def declared(path: str, topic: str) -> bool:
    """Whether a host has written its declaration."""
    checkpoints = {p.name: p.checkpoint or "" for p in rt.describeStream(path).producers}
    return "declared" in checkpoints.get(f"{topic}-0", "")


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The first host joins when the event is set, and stays until the block ends."""
    joins, ends, run = threading.Event(), threading.Event(), Consumption.run
    held: list[Consumption] = []

    def runs(consumption: Consumption) -> None:
        if not held:
            held.append(consumption)
            assert joins.wait(240)
        run(consumption)

    monkeypatch.setattr(Consumption, "run", runs)
    ended = Consumption._ended
    monkeypatch.setattr(Consumption, "_ended", lambda self: ends.is_set() if self in held else ended(self))
    try:
        yield joins
    finally:
        joins.set()
        ends.set()
