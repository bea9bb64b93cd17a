"""A copy into a database may take long: its location may be slow. It keeps nobody waiting, and may be killed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.errors import StreamBusyError, StreamExistsError
from spark_rowtime.store import (
    check_store,
    copy_store,
    create_store,
    delete_store,
    list_stores,
    open_store,
    rename_store,
)
from spark_rowtime.store.location import to_location
from spark_rowtime.store.postgres.objects import Objects
from spark_rowtime.store.postgres.tables import HISTORY
from spark_rowtime.store.settings import StreamSettings
from tests.crash.victims import KILLED, Victim
from tests.postgresserver import PostgresServer
from tests.store.interrupted_copy import copied_until
from tests.store.streams import SCHEMA, Writer, names, read

ROWS = range(5000)
"""Enough for an object."""
_OPEN = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend' AND state <> 'idle'"
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
        lambda: delete_store(other + "2", None),
    ]
    copy_store(source, to, location=to_location(str(tmp_path / "objects")))
    assert list_stores(postgres.url(database=database)) == [to]
    assert check_store(to).damage == []


def test_a_copy_keeps_no_transaction_open(
    postgres: PostgresServer, database: str, source: str, tmp_path: Path, meanwhile: list[Any]
) -> None:
    """However slow its location is. Until its end nobody sees it."""
    open_ones: list[Any] = []
    to = postgres.url("copy", database=database)

    def look() -> None:
        open_ones.extend(postgres.execute(_OPEN.format(database)))
        assert list_stores(postgres.url(database=database)) == []

    meanwhile.append(look)
    copy_store(source, to, location=to_location(str(tmp_path / "objects")))
    assert open_ones == [(0,)]
    with open_store(to) as copy:
        assert read(copy) == list(ROWS)


def test_a_stream_of_that_name_that_is_created_meanwhile_stays(
    postgres: PostgresServer, database: str, source: str, tmp_path: Path, meanwhile: list[Any]
) -> None:
    """The copy is refused at its end, and leaves nothing."""
    to, folder = postgres.url("copy", database=database), tmp_path / "objects"
    meanwhile.append(lambda: create_store(to, SCHEMA, StreamSettings()))
    with pytest.raises(StreamExistsError):
        copy_store(source, to, location=to_location(str(folder)))
    with open_store(to) as store:
        assert store.head().rows == 0
    assert rows_of_copies(postgres, database) == 0
    assert list(folder.iterdir()) == []
    with pytest.raises(StreamExistsError):
        copy_store(source, to)


KILLED_AT = {"gc": [3, 20, 1000], "copy": [1, 8, 30]}
"""Before so many steps of the copy: in the log, behind it, and before the stream is made."""


@pytest.mark.parametrize("way", KILLED_AT)
def test_a_copy_that_is_killed_is_no_stream_and_what_it_left_is_removed(
    postgres: PostgresServer, database: str, tmp_path: Path, way: str
) -> None:
    source, folder = str(tmp_path / "source"), tmp_path / "objects"
    create_store(source, SCHEMA, StreamSettings())
    with open_store(source) as store:
        writer = Writer(store, "a")
        for start in range(3):
            writer.send([start], late=[0.5])
            writer.send([start * 10_000 + row for row in ROWS])
        rows = sorted(read(store))
    other, to = (postgres.url(name, database=database) for name in ("other", "copy"))
    create_store(other, SCHEMA, StreamSettings())
    for count in KILLED_AT[way]:
        heard, code = Victim(copied_until, source, to, str(folder), count).end()
        assert (heard, code) == ([], KILLED)
        assert list_stores(postgres.url(database=database)) == [other]
        assert rows_of_copies(postgres, database)
        postgres.until_alone(database)
        if way == "gc":
            with open_store(other) as store:
                store.gc()
            assert (rows_of_copies(postgres, database), list(folder.iterdir())) == (0, [])
    copy_store(source, to, location=to_location(str(folder)))
    with open_store(to) as copy:
        assert sorted(read(copy)) == rows
    assert check_store(to).damage == []
    assert len(list(folder.iterdir())) == 1
    delete_store(to, None)
    assert (rows_of_copies(postgres, database), list(folder.iterdir())) == (0, [])


def test_a_copy_that_goes_on_is_left_alone(
    postgres: PostgresServer, database: str, source: str, tmp_path: Path, meanwhile: list[Any]
) -> None:
    """Neither ``gc`` nor another copy takes it for one that was interrupted."""
    other, to = (postgres.url(name, database=database) for name in ("other", "copy"))
    create_store(other, SCHEMA, StreamSettings())

    def disturb() -> None:
        meanwhile.clear()
        with open_store(other) as store:
            store.gc()
        copy_store(source, to + "2")

    meanwhile.append(disturb)
    copy_store(source, to, location=to_location(str(tmp_path / "objects")))
    for path in (to, to + "2"):
        assert check_store(path).damage == []
        with open_store(path) as copy:
            assert read(copy) == list(ROWS)


def test_a_deletion_that_is_killed_before_its_objects_are_gone_is_finished_by_gc(
    postgres: PostgresServer, database: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (orders, other), folder = (
        (postgres.url(name, database=database) for name in ("orders", "other")),
        tmp_path / "objects",
    )
    for path in (orders, other):
        copy_store(source, path, location=to_location(str(folder)))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Objects, "remove_all", killed)
        delete_store(orders, None)
    assert list_stores(postgres.url(database=database)) == [other]
    assert len(list(folder.iterdir())) == 2
    with open_store(other) as store:
        store.gc()
        assert (rows_of_copies(postgres, database), names(folder)) == (0, [store.stream])
        assert read(store) == list(ROWS)


def killed(_: Any) -> None:
    raise KeyboardInterrupt


def test_a_stream_that_gets_the_name_meanwhile_is_not_deleted(
    postgres: PostgresServer, database: str, source: str, tmp_path: Path
) -> None:
    """Two are renamed while a deletion waits for the lock: neither loses rows or objects."""
    orders, new = (postgres.url(name, database=database) for name in ("orders", "orders-new"))
    for path in (orders, new):
        copy_store(source, path, location=to_location(str(tmp_path / "objects")))
    with ThreadPoolExecutor() as threads, postgres.connect(database=database) as other:
        with other.transaction():
            other.execute("LOCK TABLE rowtime.streams IN SHARE UPDATE EXCLUSIVE MODE")
            deletion = threads.submit(delete_store, orders, None)
            while not other.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                pass
            for old, now in (("orders", "old"), ("orders-new", "orders")):
                for table in ("streams", "heads"):
                    other.execute(f"UPDATE rowtime.{table} SET name = %s WHERE name = %s", (now, old))
        with pytest.raises(StreamBusyError, match="Another stream has got the name"):
            deletion.result()
    for path in (orders, postgres.url("old", database=database)):
        with open_store(path) as store:
            assert read(store) == list(ROWS)


def rows_of_copies(postgres: PostgresServer, database: str) -> int:
    """How many rows there are of copies that are no streams."""
    of_none = "SELECT count(*) FROM rowtime.{} WHERE stream NOT IN (SELECT id FROM rowtime.streams)"
    return sum(postgres.execute(of_none.format(table), database)[0][0] for table in HISTORY)


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
            assert done.kept_for == "a copy or a check of the stream goes on"
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
