"""A commit whose connection is lost while the server waits to make it: the server makes it later, or never."""

import socket
from collections.abc import Callable
from threading import Thread
from typing import Any

import spark_rowtime as rt
from spark_rowtime.store import check_store
from spark_rowtime.store.postgres.gate import gate
from tests.postgresserver import PostgresServer

ATTEMPTS = 2
"""How often a call tries to commit."""
_WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_what_a_sink_sends_after_such_a_commit_is_there_once(postgres: PostgresServer) -> None:
    """The next commit has more rows. It must not be taken for a repetition of the lost one, which lands before it."""
    path = postgres.url("lost answers")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    sink = rt.openSink(path, producer="shop", linger="1 hour", lease=None)
    sink.sendRow(("2026-01-05T10:00Z", 1))
    sink.flush()
    store, errors = sink._store, list[Exception | None]()
    with postgres.connect() as other:
        other.execute("SELECT pg_advisory_lock(%s)", (gate(store._id),))
        sink.sendRow(("2026-01-05T11:00Z", 2))
        lost = started(lambda: errors.append(raised(sink.flush)))
        for attempt in range(1, ATTEMPTS + 1):
            until_waiting(other, attempt, lost, errors)
            cut(store)
        lost.join(30)
        last = started(lambda: errors.append(raised(lambda: send_on(sink))))
        until_waiting(other, ATTEMPTS + 1, last, errors)
    last.join(30)
    assert [type(error) for error in errors] == [rt.StoreUnavailableError, type(None)]
    sink.close()
    with rt.openReader(path, order="arrival") as reader:
        assert [n for train in reader for n in train.rows.column("n").to_pylist()] == [1, 2, 3]
    assert rt.describeStream(path).producers[0].accepted == 3
    assert check_store(path).damage == []


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
