"""What an error of the database says is to be done: to call again only where that may help."""

import logging
import socket

import psycopg
import pytest

import spark_rowtime as rt
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.postgres import connection as connection_module
from spark_rowtime.store.postgres.connection import WAIT_SECONDS
from spark_rowtime.store.postgres.database_error import database_error
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.store.streams import SCHEMA, Writer, lock_gate

CONNECTIONS = {
    "a user": ("nobody@127.0.0.1:{port}/shop/s", "Check the user"),
    "a host": ("ann@no.such.host.invalid:{port}/shop/s", "Check the host"),
    "a value": ("rowtime@127.0.0.1:{port}/shop/s?sslmode=bogus", "Check the options"),
    "a number": ("rowtime@127.0.0.1:{port}/shop/s?connect_timeout=soon", "Check the options"),
    "a setting": ("rowtime@127.0.0.1:{port}/rowtime/s?options=-cbogus%3Don", "Check the options"),
    "a standby": ("rowtime@127.0.0.1:{port}/rowtime/s?target_session_attrs=standby", "target_session_attrs"),
    "a reader": ("rowtime@127.0.0.1:{port}/rowtime/s?target_session_attrs=read-only", "target_session_attrs"),
}


@pytest.mark.parametrize("kind", CONNECTIONS)
def test_a_connection_that_no_repetition_makes(postgres: PostgresServer, kind: str) -> None:
    path, advice = CONNECTIONS[kind]
    with pytest.raises(rt.StoreUnavailableError, match=advice) as raised:
        rt.describeStream(f"postgresql://{path.format(port=postgres.port)}")
    assert "Call again" not in str(raised.value)


@pytest.mark.parametrize(
    "harm",
    [
        "ALTER SCHEMA rowtime RENAME TO away",
        "ALTER TABLE rowtime.heads RENAME TO away",
        "ALTER FUNCTION rowtime.commit_plainly RENAME TO away",
    ],
    ids=["the schema", "a table", "a function"],
)
def test_tables_that_somebody_has_taken_away(postgres: PostgresServer, harm: str) -> None:
    database = f"away_{len(harm)}"
    postgres.execute(f"CREATE DATABASE {database}", "postgres")
    path = postgres.url("s", database=database)
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store:
        writer = Writer(store, "a")
        writer.send([1])
        postgres.execute(harm, database)
        with pytest.raises(rt.StoreUnavailableError, match=r"not those that .*schema rowtime") as raised:
            writer.send([2])
    assert not any(words in str(raised.value) for words in ("Call again", "pooler"))


def test_a_call_that_statement_timeout_ends_names_it(postgres: PostgresServer) -> None:
    """It is shorter than a call may wait for a lock."""
    path = postgres.url("advice/timeout")
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path + "?options=-cstatement_timeout%3D100") as store, postgres.connect() as other:
        lock_gate(other, store.number)
        with pytest.raises(rt.StoreUnavailableError, match=f"longer than the {WAIT_SECONDS} seconds"):
            store.attach("a", "holder", "{}")
        other.rollback()


def test_a_lost_connection_is_not_told_by_the_client_library(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The call is repeated on a new one. Other users of the library in this process are told as ever."""
    path = postgres.url("advice/lost")
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store, caplog.at_level(logging.WARNING, "psycopg"):
        (server,) = store._connection.one("SELECT pg_backend_pid()")  # type: ignore[attr-defined]
        postgres.execute(f"SELECT pg_terminate_backend({server}, 60000)")
        assert store.at(0) is not None
        assert store.summary().attached == 0
        assert caplog.messages == []
        with postgres.connect() as other, pytest.raises(Exception, match="terminating"), other.pipeline():
            other.execute("SELECT pg_terminate_backend(pg_backend_pid())").fetchone()
        assert any("error ignored" in message for message in caplog.messages)


FULL = "DO $$ BEGIN RAISE disk_full USING MESSAGE = 'could not extend file: No space left on device'; END $$"
BROKEN = "DO $$ BEGIN RAISE io_error USING MESSAGE = 'could not read block 7'; END $$"


def test_only_who_commits_is_told_of_commits(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader has none that may have landed."""
    path = postgres.url("advice/again")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path, producer="a", linger="1 hour") as sink, rt.openReader(path) as reader:
        sink.sendRow(("2026-01-05T10:00:00Z", 1))
        sink.sendRow(("2026-01-05T10:01:00Z", 2))
        with monkeypatch.context() as broken:
            broken.setattr(connection_module, "SETTINGS", BROKEN)
            said = {}
            for kind, store, call in (("read", reader._store, reader.read), ("commit", sink._store, sink.flush)):
                store._connection._drop()  # type: ignore[attr-defined]
                with pytest.raises(rt.StoreUnavailableError, match=r"could not read block 7\)\. Call again") as raised:
                    call()
                said[kind] = str(raised.value)
        assert "commit" not in said["read"]
        assert "a commit that has landed in spite of this error" in said["commit"]


def test_a_full_disk_is_said(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = postgres.url("advice/full")
    create_store(path, SCHEMA, StreamSettings())
    monkeypatch.setattr(connection_module, "SETTINGS", FULL)
    with pytest.raises(rt.StoreUnavailableError, match=r"The disk of the server of .* is full: could not extend"):
        open_store(path)


def test_a_server_that_takes_no_more_connections(postgres: PostgresServer) -> None:
    path = postgres.url("advice/many")
    create_store(path, SCHEMA, StreamSettings())
    postgres.execute("CREATE ROLE one_too_many LOGIN CONNECTION LIMIT 0")
    with pytest.raises(rt.StoreUnavailableError, match=r"too many connections .*max_connections"):
        open_store(postgres.url("advice/many", user="one_too_many"))


@pytest.mark.parametrize(
    "said",
    [
        "FATAL:  sorry, too many clients already",
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "FATAL:  no more connections allowed (max_client_conn)",
        "FATAL:  could not write init file: No space left on device",
    ],
)
def test_what_a_connection_fails_by_has_an_advice(said: str) -> None:
    """The client library gives these errors no SQLSTATE."""
    advice = str(database_error(psycopg.OperationalError(f"connection failed: {said}"), "postgresql://h/d/s"))
    assert ("Make room" if "space" in said else "max_connections") in advice


def test_a_server_that_does_not_answer_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(rt.StoreUnavailableError) as raised:
        rt.describeStream(f"postgresql://rowtime@127.0.0.1:{silent.getsockname()[1]}/shop/s?connect_timeout=2")
    assert "timeout expired" in str(raised.value)
    assert "no firewall" in str(raised.value)
    assert "connect_timeout" in str(raised.value)
