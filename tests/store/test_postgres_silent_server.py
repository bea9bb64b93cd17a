"""A server that stands still, with its connections open, keeps no call for ever. Nothing is lost, and nothing twice."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.postgres import connection
from tests.postgresserver import PostgresServer
from tests.sparksession import wait_for

PREPARED = 8
"""So many flushes until a commit is one message."""
STOPPED_SECONDS = connection.SILENT_SECONDS + connection.WAIT_SECONDS + 60
"""How long a call may take that a silent server keeps, on a machine under load."""


@contextmanager
def still(postgres: PostgresServer, name: str) -> Iterator[None]:
    """Stops the server's processes of the clients whose application has the name."""
    where = f"FROM pg_stat_activity WHERE application_name = '{name}'"
    pids = [pid for (pid,) in postgres.execute(f"SELECT pid {where}")]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    gone = f"SELECT pid FROM pg_stat_activity WHERE pid IN ({', '.join(map(str, pids))})"
    wait_for(lambda: not postgres.execute(gone), "the end of the processes that stood still")


def test_a_silent_server_keeps_no_call(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server was told before it stood still, it does when it goes on: a commit lands once all the same."""
    name = "silent calls"
    path = postgres.url(name) + f"?application_name={name.replace(' ', '_')}"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path, producer="p", linger="1 hour", lease=None) as sink, rt.openReader(path) as reader:
        for n in range(PREPARED):
            sink.sendRow(("2026-01-05T10:00Z", n))
            sink.flush()
        sink.sendRow(("2026-01-05T10:00Z", PREPARED))
        monkeypatch.setattr(connection, "SILENT_SECONDS", 0.2)
        with still(postgres, name.replace(" ", "_")):
            with pytest.raises(rt.StoreUnavailableError, match="has not answered in time"):
                sink.flush()
            with pytest.raises(rt.StoreUnavailableError, match="has not answered in time"):
                reader.read()
            monkeypatch.undo()
            sink.flush()
        sink.sendRowtimeBound("2026-01-05T11:00Z")
        sink.flush()
        assert [n for train in reader for n in train.rows.column("n").to_pylist()] == [*range(PREPARED + 1)]
    assert check_store(path).damage == []


def test_who_deletes_waits_as_long_as_it_takes(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream's rows are deleted by one statement, within which the server says nothing."""
    path = postgres.url("silent delete")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    postgres.execute(
        "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_sleep(1); RETURN OLD; END'; "
        "CREATE TRIGGER slowly BEFORE DELETE ON rowtime.streams FOR EACH ROW EXECUTE FUNCTION slowly()"
    )
    monkeypatch.setattr(connection, "SILENT_SECONDS", 0.2)
    try:
        rt.deleteStream(path)
    finally:
        postgres.execute("DROP TRIGGER slowly ON rowtime.streams; DROP FUNCTION slowly()")
    with pytest.raises(rt.StreamNotFoundError):
        open_store(path)
