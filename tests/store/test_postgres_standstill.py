"""A client that stands still, at whatever message, keeps the others waiting for a few seconds, and loses nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.commits import Rejected
from spark_rowtime.store.postgres import connection
from spark_rowtime.store.postgres.check import check
from spark_rowtime.store.record import Held
from spark_rowtime.store.settings import StreamSettings
from tests.landed import landed
from tests.postgresserver import PostgresServer
from tests.sparksession import wait_for
from tests.store.standstill import EXECUTE, QUERY, SYNC, Standstill, Stop
from tests.store.streams import SCHEMA, Writer, batch, place

pytestmark = pytest.mark.usefixtures("patient")
WAIT_SECONDS = 120
"""The server ends a transaction that stands still after five seconds; a busy machine needs longer."""
YEAR = 31_536_000_000_000
LARGE = range(11, 5000)
"""The times of a train that is too large for a message with the lock."""
AT_ONCE = 32
"""So many stand still at once. More keep the machine busy: then the others are late for that reason."""
PREPARED = 8
"""So many flushes until the client library sends the same messages for each."""
ATTEMPTS = 3
"""A call sends fewer messages where a commit before it has prepared their statements: one for which one trip was not
enough, as if the server's clock is behind in one of its processes. Then the client is stopped in another stream.
"""
SENDER = """
import sys
import spark_rowtime as rt
sink = rt.openSink(sys.argv[1], producer="still", linger="1 hour", lease=None)
for line in sys.stdin:
    sink.sendRow(("2026-01-05T10:00Z", "a"))
    sink.flush()
    print("flushed", flush=True)
"""


@dataclass
class Client:
    """A process with a sink, whose messages pass a proxy."""

    process: subprocess.Popen[str]
    proxy: Standstill

    def flush(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("flush\n")
        self.process.stdin.flush()

    def flushed(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@pytest.fixture
def client(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Client]]:
    made: list[Client] = []

    def make(name: str) -> Client:
        proxy = Standstill(postgres.port, lambda: os.kill(made[0].process.pid, signal.SIGSTOP))
        path = postgres.url(name, port=proxy.port) + Standstill.OPTIONS
        command = [sys.executable, "-c", SENDER, path]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        made.append(Client(process, proxy))
        return made[0]

    yield make
    for one in made:
        with one.process:
            one.process.kill()
        one.proxy.close()


def test_a_process_that_is_stopped_between_its_two_round_trips(
    postgres: PostgresServer, client: Callable[[str], Client]
) -> None:
    """Its transaction holds the stream's lock. The server ends it, and the process goes on where it was."""
    path = postgres.url("stopped")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, k STRING", maxLag="1 day")
    other, still = rt.openSink(path, producer="other", linger="1 hour"), client("stopped")
    for _ in range(PREPARED):
        still.proxy.watch()
        still.flush()
        assert still.flushed() == "flushed\n"
    assert still.proxy.seen[-2:] == [QUERY, QUERY]
    still.proxy.watch((len(still.proxy.seen) - 1, False))
    still.flush()
    assert still.proxy.stopped.wait(WAIT_SECONDS)
    started = time.monotonic()
    other.sendRow(("2026-01-05T11:00Z", "b"))
    other.flush()
    assert time.monotonic() - started < WAIT_SECONDS
    os.kill(still.process.pid, signal.SIGCONT)
    still.proxy.go_on()
    assert still.flushed() == "flushed\n"
    other.close()
    assert landed(path, "k") == ["a"] * PREPARED + ["b", "a"]
    assert check_store(path).damage == []


class Stalled:
    """Two producers of a stream; a proxy may let the client of one stand still. Each is at the time 10."""

    def __init__(self, postgres: PostgresServer, name: str, location: str | None = None) -> None:
        self.proxy = Standstill(postgres.port)
        self.path = postgres.url(name)
        create_store(self.path, SCHEMA, StreamSettings(idleTimeout=YEAR, location=location))
        self.direct = open_store(self.path)
        self.store = open_store(postgres.url(name, port=self.proxy.port) + Standstill.OPTIONS)
        self.other, self.writer = Writer(self.direct, "other"), Writer(self.store, "a")
        self.other.send([10], floor=10)
        self.writer.send([10], floor=10)

    def messages(self, call: "Call") -> list[str]:
        """What a call sends."""
        self.proxy.watch()
        call(self)
        return self.proxy.seen

    def seconds_of_the_other(self, call: "Call", stop: Stop) -> float | None:
        """How long another producer's commit takes while the client stands still; None: the call came to its end."""
        self.proxy.watch(stop)
        with ThreadPoolExecutor(1) as thread:
            made = thread.submit(call, self)
            wait_for(lambda: self.proxy.stopped.is_set() or made.done(), "the client")
            if not self.proxy.stopped.is_set():
                made.result()
                return None
            started = time.monotonic()
            try:
                self.other.send([100], floor=100)
                return time.monotonic() - started
            finally:
                self.proxy.go_on()
                made.result()

    def close(self) -> None:
        self.store.close()
        self.direct.close()
        self.proxy.close()


Call = Callable[[Stalled], Any]
CALLS: dict[str, Call] = {
    "attach": lambda it: it.store.attach("third", "third", "{}", YEAR),
    "take over": lambda it: it.store.attach("a", "another", "{}"),
    "commit in one trip": lambda it: it.writer.send([20]),
    "commit of two trains": lambda it: it.writer.send([20], [21]),
    "commit of large trains": lambda it: it.writer.send(LARGE, LARGE),
    "commit of late rows": lambda it: it.writer.send([1, 20]),
    "commit of rejected rows": lambda it: it.writer.send(late=LARGE),
    "bound": lambda it: it.writer.send(floor=30),
    "rejected rows": lambda it: it.store.reject("late", 1, (Rejected("late", None, batch(*LARGE)),), "d"),
    "renew": lambda it: it.store.renew("a", it.writer.epoch),
    "renew all": lambda it: it.store.renew_all([Held("a", it.writer.epoch)]),
    "leave": lambda it: it.writer.leave(),
    "detach": lambda it: it.store.detach("a"),
    "keep": lambda it: it.store.keep("reader", place(1)),
    "gc": lambda it: it.store.gc(age=0),
}


def stops(messages: list[str]) -> Iterator[Stop]:
    """Where a client may stop: behind each message, and within it.

    One statement outside of a transaction is several messages, which the client library sends at once. So no client
    stops between the last two of them.
    """
    for number, kind in enumerate(messages, 1):
        if kind != SYNC:
            yield number, True
        if kind != EXECUTE:
            yield number, False


COMMITS = [name for name in CALLS if "commit" in name or name == "bound"]
GROUPS = {"commits": COMMITS, "gc": ["gc"], "others": [name for name in CALLS if name not in (*COMMITS, "gc")]}
"""Each call stops at all of its messages in streams of their own; the server takes 200 connections."""


@pytest.mark.parametrize("group", ["commits", "gc", pytest.param("others", marks=pytest.mark.long)])
def test_wherever_a_client_stands_still_another_goes_on(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    """Many at once, as each takes some seconds."""
    monkeypatch.setattr(connection, "_ATTEMPTS", 20)  # on a busy machine more stand still than the test stops
    tried = {name: Stalled(postgres, f"still/{name}") for name in GROUPS[group]}
    places = [(name, stop) for name, one in tried.items() for stop in stops(one.messages(CALLS[name]))]

    def stalled(name: str, stop: Stop) -> Stalled:
        for attempt in range(ATTEMPTS):
            one = Stalled(postgres, f"still/{name}/{stop}/{attempt}")
            took = one.seconds_of_the_other(CALLS[name], stop)
            if took is not None:
                assert took < WAIT_SECONDS, (name, stop)
                return one
            one.close()
        raise AssertionError((name, stop, one.proxy.seen))

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for (name, stop), one in zip(places, threads.map(lambda at: stalled(*at), places), strict=True):
            assert check(one.direct).damage == []
            assert one.direct.head().rows == tried[name].direct.head().rows + 1, (name, stop)
            one.close()
    for one in tried.values():
        one.close()
