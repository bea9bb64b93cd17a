"""A copy into a database may take long: its location may be slow. It keeps nobody waiting, and does not expire."""

from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.errors import StreamExistsError
from spark_rowtime.store import (
    check_store,
    copy_store,
    create_store,
    delete_store,
    list_stores,
    open_store,
    rename_store,
)
from spark_rowtime.store.base import StreamSettings
from spark_rowtime.store.location import to_location
from spark_rowtime.store.postgres import connection
from spark_rowtime.store.postgres.objects import Objects
from tests.postgresserver import PostgresServer
from tests.store.streams import SCHEMA, Writer, read

ROWS = range(5000)
"""Enough for an object."""
_IDLE = (
    "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND state_change < now() - interval '{}'"
)


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = str(tmp_path / "source")
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store:
        Writer(store, "a").send(ROWS)
    return path


@pytest.fixture
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    name = f"copies{abs(hash(request.node.name))}"
    postgres.execute(f"CREATE DATABASE {name}", database="postgres")
    return name


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls that are made while a copy writes its object."""
    calls: list[Any] = []
    write = Objects.write

    def slow(*arguments: Any) -> Any:
        for call in calls:
            call()
        return write(*arguments)

    monkeypatch.setattr(Objects, "write", slow)
    return calls


def test_others_create_rename_and_delete_streams_meanwhile(
    postgres: PostgresServer, database: str, source: str, tmp_path: Path, meanwhile: list[Any]
) -> None:
    other, to = postgres.url("other", database=database), postgres.url("copy", database=database)
    meanwhile += [
        lambda: create_store(other, SCHEMA, StreamSettings()),
        lambda: rename_store(other, other + "2"),
        lambda: delete_store(other + "2", force=False),
    ]
    copy_store(source, to, location=to_location(str(tmp_path / "objects")))
    assert list_stores(postgres.url(database=database)) == [to]
    assert check_store(to).damage == []


def test_a_location_that_is_slower_than_the_limit_of_a_transaction(
    postgres: PostgresServer,
    database: str,
    source: str,
    tmp_path: Path,
    meanwhile: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = "idle_in_transaction_session_timeout = '{}'"
    settings = connection.SETTINGS.replace(limit.format("10s"), limit.format("500ms"))
    monkeypatch.setattr(connection, "SETTINGS", settings)
    idle = _IDLE.format("600 ms")
    meanwhile.append(lambda: until(lambda: postgres.execute(f"{idle} AND datname = '{database}'") == [(1,)]))
    to = postgres.url("copy", database=database)
    copy_store(source, to, location=to_location(str(tmp_path / "objects")))
    with open_store(to) as copy:
        assert read(copy) == list(ROWS)


def until(found: Any) -> None:
    assert any(found() for _ in range(10_000))


def test_a_stream_of_that_name_that_is_created_meanwhile_waits_for_the_copy(
    postgres: PostgresServer, database: str, source: str, tmp_path: Path, meanwhile: list[Any]
) -> None:
    """The name belongs to the copy from its beginning; both are refused where the other one was first."""
    to = postgres.url("copy", database=database)
    with postgres.connect(database=database) as beside:
        beside.execute("SET lock_timeout = '50ms'")

        def create() -> None:
            with pytest.raises(Exception, match="lock timeout"):
                beside.execute(
                    "INSERT INTO rowtime.streams (name, uuid, schema, settings, ancestors) "
                    "VALUES ('copy', '', '', '', '')"
                )

        meanwhile.append(create)
        copy_store(source, to, location=to_location(str(tmp_path / "objects")))
    for again in (lambda: copy_store(source, to), lambda: create_store(to, SCHEMA, StreamSettings())):
        with pytest.raises(StreamExistsError):
            again()
    assert check_store(to).damage == []


def test_retention_leaves_a_copy_and_a_check_what_they_read(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They read the stream as of one moment. What they kept back is removed afterwards."""
    path, to = postgres.url("copies/kept"), str(tmp_path / "copy")
    create_store(path, SCHEMA, StreamSettings(location=to_location(str(tmp_path / "objects"))))
    with open_store(path) as store, open_store(path) as collector:
        writer, there = Writer(store, "a"), store.objects.sizes
        for start in (0, 5000, 10_000):
            writer.send([start + row for row in ROWS], floor=start + 5000)
        read_object, removed = Objects.read, list[int]()

        def read_late(*arguments: Any) -> Any:
            done = collector.gc(age=0, force=True)
            removed.append(done.rows)
            assert done.held == "a copy or a check of the stream goes on"
            return read_object(*arguments)

        monkeypatch.setattr(Objects, "read", read_late)
        copy_store(path, to)
        assert (removed, len(there())) == ([0, 0, 0], 3)
        assert store.gc(age=0).rows == 15_000
        assert len(there()) == 0
        writer.send([15_000 + row for row in ROWS], floor=20_000)
        assert check_store(path).damage == []
        assert (removed[3:], len(there())) == ([0], 1)
        store.gc(age=0)
        assert len(there()) == 0
    with open_store(to) as copy:
        assert read(copy) == list(range(15_000))
