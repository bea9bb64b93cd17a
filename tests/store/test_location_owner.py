"""A location belongs to one database: a clone of it, such as a restored backup, removes and adds no objects there."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_rowtime.cli import main
from spark_rowtime.errors import InvalidOptionError, StoreUnavailableError
from spark_rowtime.store import adopt_location, check_store, create_store, delete_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.location import to_location
from spark_rowtime.store.postgres.objects import OWNER_OBJECT, Objects
from spark_rowtime.store.postgres.owner import Database, Mark
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from tests.postgresserver import PostgresServer
from tests.replica import PRIMARY, Replica
from tests.store.streams import SCHEMA, Writer, place, read

LARGE = 5000
"""Rows of a train that is an object."""
DAY = 86_400_000_000
MARKS = "SELECT * FROM rowtime.unnamed_objects WHERE state = 'owner'"


def large(start: int) -> range:
    return range(start, start + LARGE)


class Place:
    """A stream with two objects, the first of which may be removed, in a database of its own."""

    def __init__(self, server: PostgresServer, database: str, folder: Path) -> None:
        self.server, self.database, self.folder = server, database, folder
        server.execute(f"CREATE DATABASE {database}", database="postgres")
        self.path = server.url("orders", database=database)
        create_store(self.path, SCHEMA, StreamSettings(location=to_location(str(folder))))
        with open_store(self.path) as store:
            Writer(store, "a").send(large(10), large(10_000), floor=10 + LARGE)

    def clone(self) -> str:
        """The path of the stream in a copy of the database, as ``pg_restore`` makes it."""
        name = f"{self.database}_clone"
        self.server.copy(self.database, name)
        return self.server.url("orders", database=name)

    def files(self) -> set[Path]:
        """All objects in the folder."""
        return {file for file in self.folder.rglob("*.arrow") if file.name != "schema.arrow"}


def test_a_mark_that_a_stranger_has_written_is_none() -> None:
    assert Mark.of(b"[" * 100_000) is None
    assert Mark.of(Mark(Database("1", 1, 1, "d"), "s", "\0").content()) is None


@pytest.fixture
def original(postgres: PostgresServer, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(postgres, f"owner{abs(hash(request.node.name))}", tmp_path / "objects")


def later(store: Store, days: int) -> None:
    """Puts the clock of a store forward."""
    store.now, store.steady = lambda: (10_000 + days) * DAY, lambda: Reading("boot", (10_000 + days) * DAY)


def test_gc_of_a_clone_removes_nothing_that_the_original_needs(original: Place) -> None:
    clone, before = original.clone(), original.files()
    with open_store(original.path) as store:
        Writer(store, "b").send(large(20_000))  # for the clone an object that no commit names
        for day in (0, 2):
            with open_store(clone) as cloned, pytest.raises(StoreUnavailableError) as caught:
                later(cloned, day)
                cloned.gc(age=0, force=True)
            assert caught.value.values["lacks"] == "location"
            assert cloned.stream == store.stream
            for said in (original.database, f"{original.database}_clone", "No object was removed", "rowtime adopt"):
                assert said in str(caught.value)
        assert before < original.files()
        assert read(store) == [*large(10), *large(10_000), *large(20_000)]
        assert store.gc(age=0).files == 1
    assert check_store(original.path).damage == []


def test_a_clone_adds_no_objects_that_the_original_would_remove(original: Place) -> None:
    clone, before = original.clone(), original.files()
    with open_store(clone) as cloned:
        writer = Writer(cloned, "b")
        writer.send([1])  # a small train is in the database
        with pytest.raises(StoreUnavailableError, match=r"No object was written"):
            writer.send(large(20_000))
    assert original.files() == before


def test_retention_of_a_clone_leaves_the_objects(original: Place, caplog: pytest.LogCaptureFixture) -> None:
    settings = json.dumps({"location": f"file://{original.folder}", "retainBytes": 0})
    merge = f"UPDATE rowtime.streams SET settings = (settings::jsonb || '{settings}'::jsonb)::text"
    original.server.execute(merge, database=original.database)
    clone, before = original.clone(), original.files()
    with open_store(clone) as cloned:
        Writer(cloned, "b").send([99_999], floor=99_999)
        cloned.detach("a")
        Writer(cloned, "c").send([100_000], floor=100_000)
    assert original.files() == before
    assert "do not belong to the database" in caplog.text


def test_deleting_the_stream_of_a_clone_leaves_the_objects(original: Place, caplog: pytest.LogCaptureFixture) -> None:
    clone, before = original.clone(), original.files()
    with caplog.at_level(logging.WARNING):
        delete_store(clone, None)
    assert original.files() == before
    assert "belong to another database" in caplog.text
    delete_store(original.path, None)
    assert original.files() == set()


def test_a_clone_gets_a_location_of_its_own(original: Place, tmp_path: Path) -> None:
    """The steps of the guide on PostgreSQL."""
    clone, before, own = original.clone(), original.files(), tmp_path / "test"
    commands = (
        ["copy", clone, f"{clone}-own", "--location", str(own)],
        ["delete", clone, "--force"],
        ["detach", f"{clone}-own", "a"],
        ["rename", f"{clone}-own", clone],
        ["gc", clone, "--age", "0 s"],
    )
    for command in commands:
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
    assert original.files() == before
    with open_store(clone) as cloned, open_store(original.path) as store:
        assert read(cloned, place(cloned.horizon().seq)) == list(large(10_000))
        Writer(cloned, "b").send(large(30_000))
        assert read(store) == [*large(10), *large(10_000)]


def test_a_database_that_has_moved_adopts_the_location(original: Place) -> None:
    """From then on the former owner is refused."""
    clone = original.clone()
    done = CliRunner().invoke(main, ["adopt", clone])
    assert done.exit_code == 0, done.output
    with open_store(clone) as moved:
        Writer(moved, "b").send(large(20_000))
        assert moved.gc(age=0).files == 1
        assert read(moved, place(moved.horizon().seq)) == [*large(10_000), *large(20_000)]
    with open_store(original.path) as store, pytest.raises(StoreUnavailableError, match="do not belong"):
        store.gc(age=0)
    with pytest.raises(InvalidOptionError, match="nothing to adopt"):
        adopt_location("memory://owner")


def test_a_mark_that_a_client_writes_late_is_known(original: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped before it wrote its mark, or whose request was delayed, locks nobody out."""
    with open_store(original.path) as slow, open_store(original.path) as store:
        write = Objects.write_mark

        def late(objects: Objects, content: bytes) -> None:
            monkeypatch.setattr(Objects, "write_mark", write)
            for _ in range(25):
                store.gc()
            write(objects, content)

        monkeypatch.setattr(Objects, "write_mark", late)
        slow.gc()
        assert store.gc(age=0).files == 1
        with open_store(original.path) as new:
            Writer(new, "b").send(large(20_000))


def test_marks_are_forgotten_after_a_week_but_the_one_in_the_location(
    original: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known() -> int:
        return len(original.server.execute(MARKS, database=original.database))

    with open_store(original.path) as store:
        for day, count in ((0, 2), (1, 3), (6, 4), (7, 4), (9, 3), (90, 2), (91, 2)):
            later(store, day)
            store.gc()
            assert known() == count, day
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            later(store, 180)
            patched.setattr(store.objects, "write_mark", interrupted)
            store.gc()
        later(store, 360)
        store.gc()


def interrupted(_: Any) -> None:
    raise KeyboardInterrupt


def test_a_copy_of_the_server_is_recognised_by_what_it_does_not_know(original: Place) -> None:
    """A copy of a disk has every name of the original. The original marks the location again with each gc."""
    with open_store(original.path) as store:
        (before,) = original.server.execute(MARKS, database=original.database)
        store.gc()
        store._connection.rows(("DELETE FROM rowtime.unnamed_objects WHERE state = 'owner'", ()))
        store._connection.rows(("INSERT INTO rowtime.unnamed_objects VALUES (%s, %s, %s, %s)", before))
        with pytest.raises(StoreUnavailableError, match="has written it since this copy of the database was made"):
            store.gc(age=0)
    assert len(original.files()) == 2


def test_a_location_without_its_mark(original: Place) -> None:
    """One that was restored without it is adopted by hand; one of an older version is marked by the first gc."""
    (mark,) = original.folder.rglob(OWNER_OBJECT)
    mark.unlink()
    with open_store(original.path) as store:
        with pytest.raises(StoreUnavailableError, match="the mark there is gone"):
            store.gc(age=0)
        store._connection.rows(("DELETE FROM rowtime.unnamed_objects WHERE state = 'owner'", ()))
        assert store.gc(age=0).files == 1
        assert mark.exists()
        mark.write_text("{")
        with pytest.raises(StoreUnavailableError, match="do not belong"):
            store.gc(age=0)


def test_a_restored_server_and_a_standby_that_has_taken_over(postgres: PostgresServer, tmp_path: Path) -> None:
    """They begin a timeline of their own. A standby's sinks go on; its objects are removed once it has adopted them."""
    primary = PostgresServer(postgres._programs)
    try:
        primary.stop()
        primary.start(**{**PRIMARY, "synchronous_standby_names": ""})
        original = Place(primary, "shop", tmp_path / "objects")
        restored = Replica(postgres._programs, primary)
        try:
            restored.start(**{**PRIMARY, "synchronous_standby_names": ""})
            primary.execute("CREATE TABLE changed AS SELECT n, repeat('x', 500) FROM generate_series(1, 20000) n")
            while not restored.execute("SELECT to_regclass('changed') IS NOT NULL")[0][0]:
                pass  # so that its next checkpoint takes long, and the last one is of the old timeline
            restored.promote()
            path = restored.url("orders", database="shop")
            with open_store(path) as store:
                with pytest.raises(StoreUnavailableError, match=r"timeline 1, and this is .* timeline 2"):
                    store.gc(age=0)
                assert len(original.files()) == 2
                Writer(store, "b").send(large(20_000))
                store.adopt()
                assert store.gc(age=0).files == 1
            restored.execute("DELETE FROM rowtime.unnamed_objects WHERE state = 'owner'", database="shop")
            with open_store(path) as store, pytest.raises(StoreUnavailableError, match="No object was written"):
                Writer(store, "c").send(large(30_000))
        finally:
            restored.remove()
    finally:
        primary.remove()
