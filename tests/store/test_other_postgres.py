"""PostgreSQL 14, the oldest server that is supported, and 18: what the store does there is what it does in memory.

All tests of the store run there with ``ROWTIME_POSTGRES=$(python -m tests.otherpostgres 18) pytest tests/store``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from spark_rowtime.store import check_store, copy_store, create_store, list_stores, open_store, rename_store
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.postgres import ahead, inline
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.alteration import columns_to_add
from tests.crash.writers import story
from tests.otherpostgres import VERSIONS, server_of
from tests.postgresserver import PostgresServer
from tests.store.streams import SCHEMA, Writer
from tests.store.visible import visible

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    yield from server_of(request.param)


@pytest.mark.parametrize("located", [False, True])
def test_a_story_is_the_same_on_another_server(
    server: PostgresServer, tmp_path: Path, located: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two producers, a reader, a lease, rejections and ``gc``; with ``located``, each train is an object."""
    monkeypatch.setattr(inline, "OBJECT_BYTES", 0)
    settings = StreamSettings(location=f"file://{tmp_path}/rows" if located else None)
    path, model = server.url(f"story/{located}"), MemoryStore("memory://story", SCHEMA, StreamSettings(), now=lambda: 0)
    create_store(path, SCHEMA, settings)
    store = open_store(path)
    store.now = lambda: 0
    with open_store(path) as other:
        other.now = lambda: 0
        for _ in zip(story(model), story(store), strict=True):
            assert visible(other) == visible(model)
        other.alter(columns_to_add("coupon STRING"))
    assert check_store(path).damage == []


def test_copies_names_and_the_list_on_another_server(server: PostgresServer, tmp_path: Path) -> None:
    path = server.url("names/one")
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store:
        writer = Writer(store, "a")
        for second in range(1, 5):
            writer.send([second], floor=second, late=[second - 1])
        writer.leave()
        shown = visible(store)
    rename_store(path, server.url("names/two"))
    copy_store(server.url("names/two"), str(tmp_path / "here"))
    copy_store(str(tmp_path / "here"), server.url("names/three"))
    assert list_stores(server.url("names/")) == [server.url("names/three"), server.url("names/two")]
    with open_store(server.url("names/three")) as copy:
        assert visible(copy) == shown


def test_each_portion_of_a_large_commit_has_its_own_time(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 17 on, the server ends a transaction that takes too long."""
    monkeypatch.setattr(ahead, "SENDING_SECONDS", 2)
    monkeypatch.setattr(ahead, "PORTION_ROWS", 1)
    monkeypatch.setattr(ahead, "SMALL_BYTES", 0)
    path = server.url("large/one")
    create_store(path, SCHEMA, StreamSettings())
    execute = psycopg.Connection.execute

    def slow(connection: psycopg.Connection[Any], query: Any, *more: Any, **options: Any) -> Any:
        if "INSERT INTO rowtime.trains" in str(query):
            execute(connection, "SELECT pg_sleep(0.8)")
        return execute(connection, query, *more, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", slow)
    with open_store(path) as store:
        writer = Writer(store, "a")
        assert writer.send(*([second] for second in range(1, 6)), floor=5).rejected == ()
    assert check_store(path).damage == []
