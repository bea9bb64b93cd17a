"""A machine that vanishes: packets to it and from it are dropped. The other side notices, and goes on or says so."""

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.postgres.connection import ANSWER_SECONDS, SERVER_GONE_SECONDS, WAIT_SECONDS
from spark_rowtime.store.settings import StreamSettings
from tests.cluster.machines import Machine, Network
from tests.postgresserver import PostgresServer, required_programs
from tests.store.streams import SCHEMA, Writer

CLIENT = """
import sys, threading, time
import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.postgres.stream_locks import lock_stream

def timed(name, function):
    started = time.monotonic()
    try:
        function()
    except rt.StoreUnavailableError:
        print(name, time.monotonic() - started, flush=True)

def within_a_transaction(path):
    store = open_store(path)  # a part of a pipeline: the server has the lock, and waits without a time limit
    made = store._connection._connected().pgconn
    made.enter_pipeline_mode()
    for sql in (b"BEGIN", (lock_stream(0)[0] % store.number).encode()):
        made.send_query_params(sql, None)
    made.send_flush_request()
    made.flush()
    return store

path = sys.argv[1]
sink, reader = rt.openSink(path, producer="far", linger="1 hour"), rt.openReader(path, order="arrival")
for n in range(2):
    sink.sendRow(("2026-01-05T10:00Z", n))
    sink.flush()
assert len(list(reader)) >= 1
kept = within_a_transaction(path)
print("ready", flush=True)
open("unplugged").read()
sink.sendRow(("2026-01-05T10:00Z", 2))
threads = [
    threading.Thread(target=timed, args=("flush", sink.flush)),
    threading.Thread(target=timed, args=("read", lambda: reader.read(timeout=3))),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", flush=True)
"""
START_SECONDS = 240
TOOK = re.compile(r"^(flush|read) ([0-9.]+)$", re.MULTILINE)
"""What the client prints, beside what it logs of its lease."""
LOAD_SECONDS = 60
"""How much later than promised a call may end on a machine under load."""


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as network:
        if not network.apart:
            pytest.skip("no networks can be made here")
        yield network


@pytest.fixture
def server(network: Network) -> Iterator[PostgresServer]:
    """A server that other machines reach."""
    server = PostgresServer(required_programs())
    server.stop()
    rules = server.data / "pg_hba.conf"
    rules.write_text(rules.read_text() + "host all all 10.0.0.0/8 trust\n")
    server.start(listen_addresses="*")
    yield server
    server.remove()


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_a_server_and_a_client_that_lose_each_other(network: Network, server: PostgresServer, tmp_path: Path) -> None:
    """The client is within a commit, and flushes, and reads with a timeout."""
    create_store(server.url("far"), SCHEMA, StreamSettings())
    with open_store(server.url("far")) as store:
        other = Writer(store, "other")
        machine = network.machine(tmp_path / "client", [])
        os.mkfifo(machine.folder / "unplugged")
        path = server.url("far").replace("127.0.0.1", network.address)
        machine.start([sys.executable, "-c", CLIENT, path], lambda: said(machine, "ready"), START_SECONDS)
        try:
            machine.unplug()
            with (machine.folder / "unplugged").open("w"):
                started = time.monotonic()
            other.send([1])
            assert time.monotonic() - started < WAIT_SECONDS + LOAD_SECONDS
            until(machine, "done")
            log = machine.log()
            took = {name: float(seconds) for name, seconds in TOOK.findall(log)}
        finally:
            machine.kill()
    assert took.keys() == {"read", "flush"}, log
    assert took["read"] < ANSWER_SECONDS + LOAD_SECONDS
    assert took["flush"] < SERVER_GONE_SECONDS + WAIT_SECONDS + LOAD_SECONDS
    assert check_store(server.url("far")).damage == []


def said(machine: Machine, line: str) -> bool:
    return line in machine.log().splitlines()


def until(machine: Machine, line: str) -> None:
    """Waits until the machine has printed the line."""
    deadline = time.monotonic() + 300
    while not said(machine, line):
        assert time.monotonic() < deadline, machine.log()
