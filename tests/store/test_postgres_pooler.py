"""A connection pooler between a client and the server: what it holds up has an end, and what it mixes is refused."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

import spark_rowtime as rt
from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.postgres import connection
from spark_rowtime.store.postgres.address import address
from spark_rowtime.store.postgres.connection import Connection
from spark_rowtime.store.postgres.store import PostgresStore
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.store.standstill import Standstill
from tests.store.streams import SCHEMA, SECOND, Writer, read

MINUTE = 60 * SECOND
PREPARES = 30
"""So many commits until all that they send is prepared, whatever the sizes of the numbers in it."""
TEST_SECONDS = 60.0
"""How long a call may take that gives up at once, on a machine under load."""


@pytest.mark.parametrize("seconds", [None, 0.0], ids=["any call", "a read with a timeout"])
def test_a_pooler_without_a_free_session_keeps_nobody_waiting(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    """It accepts the login at once, and holds the first statement until another client leaves it a session."""
    path = f"pooled {seconds}"
    create_store(postgres.url(path), SCHEMA, StreamSettings())
    with (
        ThreadPoolExecutor(1) as thread,
        closing(Standstill(postgres.port)) as pooler,
        open_store(postgres.url(path, port=pooler.port) + Standstill.OPTIONS) as store,
    ):
        _end_session(store)
        monkeypatch.setattr(connection, "WAIT_SECONDS", 0.0)
        monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.0)
        pooler.watch(within=b"SET quote_all_identifiers")
        with pytest.raises(StoreUnavailableError, match="has not answered in time"):
            thread.submit(_look, store, seconds).result(TEST_SECONDS)
        monkeypatch.undo()
        pooler.go_on()
        assert store.head().seq == 0


def test_a_flush_behind_a_pooler_without_a_free_session_waits_once(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once to see whether the stream waits for its producer, and once for the commit."""
    path, waited = postgres.url("flushed"), list[Connection]()
    create_store(path, SCHEMA, StreamSettings())
    monkeypatch.setattr(PostgresStore, "contact_micros", 0)

    def wait(made: Connection) -> None:
        waited.append(made)
        raise psycopg.OperationalError("the server has not answered in time")

    with rt.openSink(path, producer="a", linger="1 hour", lease=None) as sink:
        sink.sendRows([("2026-01-01T00:00:00Z", 1)])  # is committed at once
        sink.sendRows([("2026-01-01T00:00:00Z", 2)])
        with monkeypatch.context() as full:
            full.setattr(Connection, "_new", wait)
            sink._store._connection._drop()
            for flushes in (1, 2):
                with pytest.raises(StoreUnavailableError, match="has not answered in time"):
                    sink.flush()
                assert len(waited) == flushes
    with open_store(path) as store:
        assert store.head().rows == 2


def _look(store: Any, seconds: float | None) -> None:
    if seconds is None:
        store.head()
        return
    with store.answering(seconds):
        store.head()


def _end_session(store: Any) -> None:
    with pytest.raises(StoreUnavailableError):
        store._connection.call(
            lambda made: made.execute("SELECT pg_terminate_backend(pg_backend_pid())"), repeats=False
        )


@pytest.mark.parametrize("of", ["reads", "commits"])
def test_no_two_connections_have_statements_of_one_name(postgres: PostgresServer, of: str) -> None:
    """Or a pooler that mixes sessions would have one client run what another one has prepared."""
    path, names = postgres.url(f"named/{of}"), list[str]()
    create_store(path, SCHEMA, StreamSettings(maxLag=MINUTE) if of == "commits" else StreamSettings())
    for producer in ("a", "b"):
        with open_store(path) as store:
            writer = Writer(store, producer)
            for second in range(1, PREPARES):
                writer.send([second])
                store.head()
            names += [name for (name,) in store._connection.rows(("SELECT name FROM pg_prepared_statements", ()))[0]]
    assert len(names) >= 4
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("one_trip", [True, False], ids=["one trip", "a transaction"])
def test_a_session_without_the_statements_of_its_client_names_the_pooler(
    postgres: PostgresServer, one_trip: bool
) -> None:
    """Each transaction of this client has another session of the server."""
    path = postgres.url(f"mixed/{one_trip}")
    create_store(path, SCHEMA, StreamSettings(maxLag=None if one_trip else MINUTE))
    with open_store(path) as store:
        writer = Writer(store, "a")
        for second in range(1, PREPARES):
            writer.send([second])
        store._connection._connected().pgconn.exec_(b"DEALLOCATE ALL")
        commit = writer.commit([PREPARES])
        with pytest.raises(StoreUnavailableError, match=r"lost its session: .*does not exist.*pool_mode = session"):
            store.commit(commit)
        store.commit(commit)
        assert read(store) == [*range(1, PREPARES + 1)]


def test_a_check_whose_lock_is_another_sessions_says_so(postgres: PostgresServer) -> None:
    """It found trains that retention had removed meanwhile, and told them as damage."""
    path = postgres.url("mixed/check")
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store, pytest.raises(StoreUnavailableError, match=r"lost its session: .*pool_mode"):
        store.kept_call(lambda made: made.execute("SELECT pg_advisory_unlock_all()"))


@pytest.mark.parametrize("raised", ["duplicate_prepared_statement", "protocol_violation"])
def test_what_a_pooler_that_mixes_sessions_causes_names_it(postgres: PostgresServer, raised: str) -> None:
    """A statement of that name is there already, or has other parameters."""
    made = Connection(address(postgres.url("mixed/raised")))
    with closing(made), pytest.raises(StoreUnavailableError, match=r"lost its session: .*pool_mode"):
        made.one(f"DO $$ BEGIN RAISE {raised}; END $$")
