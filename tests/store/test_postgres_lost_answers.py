"""A transaction whose connection is lost while the server waits to make it: the server makes it later, or never."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.postgres.check import check
from spark_rowtime.store.postgres.transaction import Transaction
from tests.landed import landed
from tests.postgresserver import PostgresServer
from tests.store.gate import OPEN, Gate
from tests.store.streams import lock_gate

pytestmark = pytest.mark.usefixtures("patient")
ATTEMPTS = 2
"""How often a call tries to commit."""
_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def test_what_a_sink_sends_after_such_a_commit_is_there_once(postgres: PostgresServer) -> None:
    """The next commit has more rows. It must not be taken for a repetition of the lost one, which lands before it."""
    path = postgres.url("lost answers")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    sink = rt.openSink(path, producer="shop", linger="1 hour", lease=None)
    sink.sendRow(("2026-01-05T10:00Z", 1))
    sink.flush()
    store, errors = sink._store, list[Exception | None]()
    with postgres.connect() as other:
        lock_gate(other, store.number)
        sink.sendRow(("2026-01-05T11:00Z", 2))
        lost = started(lambda: errors.append(raised(sink.flush)))
        for attempt in range(1, ATTEMPTS + 1):
            until_waiting(other, attempt, lost, errors)
            cut(store)
        lost.join(300)
        last = started(lambda: errors.append(raised(lambda: send_on(sink))))
        until_waiting(other, ATTEMPTS + 1, last, errors)
    last.join(300)
    assert [type(error) for error in errors] == [rt.StoreUnavailableError, type(None)]
    sink.close()
    assert landed(path) == [1, 2, 3]
    assert rt.describeStream(path).producers[0].accepted == 3
    assert check_store(path).damage == []


SLOW_COMMIT = (
    """CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END'""",
    """CREATE CONSTRAINT TRIGGER slow AFTER INSERT OR UPDATE ON rowtime.streams DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION public.slow()""",
)
"""Makes the server wait at COMMIT for a lock."""


@pytest.fixture
def far(postgres: PostgresServer) -> Iterator[Gate]:
    """A gate before a server whose commits of new and altered streams are slow, in the database ``slow``."""
    postgres.execute("CREATE DATABASE slow", database="postgres")
    rt.createStream(postgres.url("orders", database="slow"), "rowtime TIMESTAMP NOT NULL, n INT")
    for statement in SLOW_COMMIT:
        postgres.execute(statement, database="slow")
    far = Gate(postgres.port)
    yield far
    far.close()
    postgres.execute("DROP DATABASE slow WITH (FORCE)", database="postgres")


@pytest.mark.parametrize("call", ["copy", "alter"])
def test_a_copy_and_a_new_column_that_landed_are_there(
    postgres: PostgresServer, far: Gate, tmp_path: Path, call: str
) -> None:
    """The objects of the copy are not removed, and the column is not taken for one that was there before."""
    source, folder = str(tmp_path / "source"), str(tmp_path / "objects")
    rt.createStream(source, "rowtime TIMESTAMP NOT NULL, text STRING")
    with rt.openSink(source, producer="shop") as sink:
        sink.sendRow(("2026-01-05T10:00Z", "x" * 100_000))
    path = postgres.url(call if call == "copy" else "orders", database="slow", port=far.port)
    errors = list[Exception | None]()
    calls: dict[str, Callable[[], Any]] = {
        "copy": lambda: rt.copyStream(source, path, location=folder),
        "alter": lambda: rt.alterStream(path, add="coupon STRING"),
    }
    with postgres.connect(database="slow") as other:
        other.execute("SELECT pg_advisory_lock(4711)")
        thread = started(lambda: errors.append(raised(calls[call])))
        until_waiting(other, 1, thread, errors)
        far.turn(OPEN)  # ends the connections
        until_waiting(other, 2, thread, errors)
    thread.join(300)
    assert errors == [None]
    assert check_store(path).damage == []
    assert rt.describeStream(path).rows == (call == "copy")
    assert ("coupon" in str(rt.describeStream(path).schema)) == (call == "alter")


def started(function: Callable[[], Any]) -> Thread:
    thread = Thread(target=function)
    thread.start()
    return thread


def send_on(sink: Any) -> None:
    """A sink looks what became of its producer before it takes more, so this may already wait."""
    sink.sendRow(("2026-01-05T12:00Z", 3))
    sink.flush()


def raised(function: Callable[[], Any]) -> Exception | None:
    try:
        function()
    except Exception as error:
        return error
    return None


def until_waiting(connection: Any, clients: int, thread: Thread, errors: list[Exception | None]) -> None:
    while connection.execute(_WAITING).fetchone() != (clients,):
        assert thread.is_alive(), errors


def cut(store: Any) -> None:
    """Cuts the connection at the client. The server does not notice while it waits."""
    with socket.socket(fileno=socket.dup(store._connection._connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def test_a_check_whose_connection_is_lost_counts_once(postgres: PostgresServer) -> None:
    """It is repeated from its beginning."""
    path = postgres.url("lost check")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path, producer="shop") as sink:
        for n in range(3):
            sink.sendRow((f"2026-01-05T1{n}:00Z", n))
            sink.flush()
    with open_store(path) as store:
        look, cuts = store.carried.read, [store]

        def cutting(piece: Any) -> Any:
            if piece.seq == 3 and cuts:
                cut(cuts.pop())
            return look(piece)

        store.carried.read = cutting
        report = check(store)
    assert (cuts, report.trains, report.readable_rows, report.damage) == ([], 3, 3, [])


@pytest.mark.parametrize("landed", [False, True])
def test_a_removal_whose_connection_is_lost_counts_once(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    """In its commit, which has landed or not; the portions behind it go too."""
    path = postgres.url(f"lost removal {landed}")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path, producer="shop") as sink:
        for n in range(9):
            sink.sendRow((f"2026-01-05T1{n}:00Z", n))
            sink.flush()
    monkeypatch.setattr("spark_rowtime.store.retention.PORTION_EVENTS", 4)
    finish = Transaction.finish
    with open_store(path) as store:
        cuts = [store]

        def cutting(self: Any) -> None:
            removes = any("DELETE FROM rowtime.trains" in sql for sql, _ in self._later)
            if landed and removes and cuts:
                finish(self)
            if removes and cuts:
                cut(cuts.pop())
            finish(self)

        monkeypatch.setattr(Transaction, "finish", cutting)
        before = store._transact(lambda t, _: t.head.train_bytes)
        done = store.gc(age=0)
        left = store._transact(lambda t, _: t.head.train_bytes)
        assert (cuts, done.rows, done.size, store.horizon().rows) == ([], 9, before - left, 9)
    assert check_store(path).damage == []
