"""A connection pooler between a client and the server: what it holds up has an end, and what it mixes is refused."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.postgres import connection
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.store.standstill import Standstill
from tests.store.streams import SCHEMA

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
