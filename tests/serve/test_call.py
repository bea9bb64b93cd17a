"""Streams that do not answer: they hold one thread each, and nobody else waits for them."""

import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import spark_rowtime as rt
from spark_rowtime.serve import call as module
from spark_rowtime.serve.call import Call, SharedCalls, begun
from tests.postgresserver import PostgresServer, required_programs
from tests.serve.conftest import SCHEMA, Server


class Standing:
    """A function whose calls wait until they are let go."""

    def __init__(self) -> None:
        self.calls, self.goes = list[str](), threading.Event()

    def __call__(self, what: str) -> str:
        self.calls.append(what)
        self.goes.wait(60)
        if what == "wrong":
            raise ValueError(what)
        return what


@pytest.fixture
def standing() -> Iterator[Standing]:
    made = Standing()
    yield made
    made.goes.set()


def test_one_at_a_time(standing: Standing) -> None:
    shared = SharedCalls(standing)
    first, again, other = (shared.begin(what) for what in ("a", "a", "b"))
    assert first is again is not other
    assert not first.done_within(0.01)
    standing.goes.set()
    assert (first.result(), other.result(), shared("a")) == ("a", "b", "a")
    assert sorted(standing.calls) == ["a", "a", "b"], "what is asked later is read anew"


def test_what_takes_too_long_is_an_error_and_goes_on(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)
    shared = SharedCalls(standing)
    for _ in range(3):
        with pytest.raises(rt.StoreUnavailableError, match="has not answered"):
            shared("a")
    assert standing.calls == ["a"]
    call = shared.begin("a")
    assert call.lasts(0)
    standing.goes.set()
    assert call.done_within(60)
    assert not call.lasts(0)
    assert call.result() == "a"


def test_an_error_is_that_of_the_call(standing: Standing) -> None:
    standing.goes.set()
    shared = SharedCalls(standing)
    for _ in range(2):
        with pytest.raises(ValueError, match="wrong"):
            shared("wrong")
    assert len(standing.calls) == 2


def test_no_more_calls_than_may_hold_a_thread(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CALLS", 3)
    shared = SharedCalls(standing)
    calls = [shared.begin(str(n)) for n in range(3)]
    with pytest.raises(rt.StoreUnavailableError, match="3 calls have not been answered"):
        shared.begin("more")
    assert shared.begin("0") is calls[0]
    standing.goes.set()
    assert [call.result() for call in calls] == ["0", "1", "2"]


def test_those_that_do_not_answer_are_waited_for_together(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    shared = SharedCalls(lambda what: standing(what) if what.startswith("still") else what)
    names = [f"still {n}" if n % 2 else f"well {n}" for n in range(40)]
    began = time.monotonic()
    found = begun(names, shared.begin)
    assert time.monotonic() - began < 40 * 0.05, "each batch of them once"
    assert [name for name, _ in found] == names
    assert {name for name, call in found if call is not None and call.lasts(0)} == {n for n in names if "still" in n}
    again = begun(names, shared.begin)
    assert [call for name, call in again if "still" in name] == [call for name, call in found if "still" in name]


def test_a_call_counts_its_own_processor_time() -> None:
    call = Call(lambda: sum(range(3_000_000)))
    assert call.done_within(60)
    assert 0 < call.cpu_seconds < 60


@pytest.mark.long
def test_a_database_that_stands_still_hides_no_other_stream(orders: str, serve: Callable[..., Server]) -> None:
    """Neither in the metrics, nor on the page, nor for questions. Once it goes on, it is shown again."""
    database = PostgresServer(required_programs())
    try:
        still = database.url("still")
        rt.createStream(still, SCHEMA)
        server = serve(orders, still)
        with urllib.request.urlopen(f"{server.url}api/live", timeout=120) as live:
            assert {one["stream"]: one["error"] for one in (told(live), told(live))} == {orders: None, still: None}
            assert up(server) == {orders: 1, still: 1}
            os.kill(database.pid, signal.SIGSTOP)
            try:
                for _ in range(45):  # more than there are threads for answers
                    with suppress(OSError):
                        urllib.request.urlopen(f"{server.url}metrics", timeout=0.02).close()
                assert up(server) == {orders: 1, still: 0}
                until(live, lambda one: one["stream"] == still and one["error"])
                with rt.openSink(orders, producer="Berlin") as sink:
                    sink.sendRow(("2026-01-05T10:00:00Z", 1))
                    sink.flush()
                    until(live, lambda one: one["stream"] == orders and one["facts"]["rows"] == 1)
            finally:
                os.kill(database.pid, signal.SIGCONT)
            assert until(live, lambda one: one["stream"] == still and not one["error"])["full"]
        while up(server)[still] == 0:
            pass
    finally:
        database.remove()


def up(server: Server) -> dict[str, float]:
    """Which streams can be read, as Prometheus sees it."""
    with urllib.request.urlopen(f"{server.url}metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {
        sample.labels["stream"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "rowtime_stream_up"
    }


def told(live: Any) -> Any:
    """The next change."""
    while not (line := live.readline()).startswith(b"data: "):
        pass
    return json.loads(line.removeprefix(b"data: "))


def until(live: Any, fits: Callable[[Any], Any]) -> Any:
    """The next change that fits."""
    while not fits(one := told(live)):
        pass
    return one
