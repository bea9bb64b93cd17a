"""Creating and opening: what is at a path, and what is wrong with it."""

import pickle
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from spark_rowtime.errors import (
    DataLostError,
    InvalidOptionError,
    RowtimeError,
    SinkClosedError,
    StoreCorruptError,
    StoreUnavailableError,
    StreamExistsError,
    StreamNotFoundError,
)
from spark_rowtime.store.local import LocalStore, create_local, open_local
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from tests.store.processes import run
from tests.store.streams import EMPTY, SCHEMA, WHOLE, Writer, at, batch, infos, names, read

Open = Callable[..., LocalStore]


def test_reopening_gives_everything_back(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    how = StreamSettings(boundsBeforeRows=False, maxLag=5, idleTimeout=6, maxAhead=7)
    create_local(path, SCHEMA, how)
    store = open_local(path)
    writer = Writer(store, "a")
    writer.send([1, 2], floor=2, checkpoint="c", disorder="d", late=[1])
    seen = [store.stream, store.head(), store.snapshot().logged_clock, infos(store), store.bounds(), store.rejected()]
    store.close()

    again = open_local(path)
    assert again.schema == SCHEMA
    assert again.settings == how
    assert [
        again.stream,
        again.head(),
        again.snapshot().logged_clock,
        infos(again),
        again.bounds(),
        again.rejected(),
    ] == seen
    assert names(path) == ["catalog.db", "catalog.db-shm", "catalog.db-wal", "free", "segments"]
    again.close()


@pytest.mark.parametrize("name", ["a b", "it's", 'say "x"', "größe-漢字-🚂", "100%20?mode=ro#x", "-x", ".s"])
def test_paths_of_any_kind(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "deep er" / name)
    create_local(path, SCHEMA, StreamSettings())
    store = open_local(path)
    Writer(store, name).send([1], floor=1)
    store.close()
    again = open_local(path)
    assert read(again) == [1]
    assert infos(again)[0].name == name
    again.close()
    assert names(tmp_path / "deep er") == [name]


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    create_local("s", SCHEMA, StreamSettings())
    store = open_local("s")
    monkeypatch.chdir("/")
    Writer(store, "a").send([1])
    assert read(store) == [1]
    store.close()


def test_something_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    create_local(str(tmp_path / "stream"), SCHEMA, StreamSettings())
    before = names(tmp_path)
    for name, what in [
        ("file", "a file"),
        ("folder", "a directory that is not a stream"),
        ("link", "a file"),
        ("stream", "a stream"),
    ]:
        with pytest.raises(StreamExistsError, match=f"There is {what} at"):
            create_local(str(tmp_path / name), SCHEMA, StreamSettings())
    assert names(tmp_path) == before


def test_nothing_there_that_is_a_stream(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for name, what in [
        ("none", "nothing at .*createStream"),
        ("file", "a file at .*Give the path of a stream"),
        ("folder", "a directory that is not a stream at .*Give the path of a stream"),
        ("file/below", "nothing at .*createStream"),
    ]:
        with pytest.raises(StreamNotFoundError, match=f"There is {what}"):
            open_local(str(tmp_path / name))
    assert names(tmp_path) == ["file", "folder"]


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailableError, match="cannot be reached or written"):
        create_local(str(tmp_path / "file" / "s"), SCHEMA, StreamSettings())


@pytest.mark.parametrize("damage", ["text", "empty", "foreign", "page"])
def test_a_damaged_catalog(local_path: str, damage: str) -> None:
    file = Path(local_path) / "catalog.db"
    if damage == "text":
        file.write_text("this was never SQLite" * 500)
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "foreign":
        file.unlink()
        db = sqlite3.connect(file)
        db.execute("CREATE TABLE t (x)")
        db.close()
    else:
        whole = file.read_bytes()
        file.write_bytes(whole[:100] + b"\x00" * 300 + whole[400:])
    with pytest.raises(StoreCorruptError, match="Restore the directory"):
        infos(open_local(local_path))


def test_a_catalog_without_its_meta(local_path: str) -> None:
    with sqlite3.connect(Path(local_path) / "catalog.db") as db:
        db.execute("DELETE FROM meta WHERE name = 'schema'")
    db.close()
    with pytest.raises(StoreCorruptError, match="damaged"):
        open_local(local_path)


def test_a_newer_format(local_path: str) -> None:
    with sqlite3.connect(Path(local_path) / "catalog.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreUnavailableError, match=r"format 99.*Upgrade"):
        open_local(local_path)


def test_a_locked_catalog(open_here: Open, local_path: str) -> None:
    store = open_here(busy_timeout=0.01)
    writer = Writer(store, "a")
    commit = writer.commit([1], floor=1)
    db = sqlite3.connect(Path(local_path) / "catalog.db", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="locked"):
        store.commit(commit)
    assert store.head().seq == 1
    db.execute("ROLLBACK")
    db.close()
    assert store.commit(commit).seq == 2


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may look into. pytest closes its own to others whenever a session begins."""
    with TemporaryDirectory(prefix="rowtime-shared-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_user_without_rights(shared: Path) -> None:
    """As root, the test's other process becomes nobody."""
    path = shared / "s"
    create_local(str(path), SCHEMA, StreamSettings())
    for folder in (path, *path.rglob("*")):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    shared.chmod(0o555)
    printed = run(
        """
        import encodings.idna
        from spark_rowtime.errors import StoreUnavailableError
        if os.getuid() == 0:
            os.setuid(65534)
        store = open_local(path)
        for call in (lambda: Writer(store, "a"), lambda: create_local(path + "2", SCHEMA, StreamSettings())):
            try:
                call()
                print("no error")
            except StoreUnavailableError as error:
                print(error)
        """,
        str(path),
    )
    for folder in (shared, path, *(path / name for name in ("segments", "free"))):
        folder.chmod(0o755)
    assert printed.count("Nothing of this call was committed") == 2, printed


def test_a_folder_into_which_this_user_may_not_look(shared: Path) -> None:
    """Such as lost+found: the streams beside it are there. As root, the test's other process becomes nobody."""
    create_local(str(shared / "s"), SCHEMA, StreamSettings())
    (shared / "private").mkdir(mode=0)
    printed = run(
        """
        import encodings.idna
        from spark_rowtime.errors import StreamExistsError, StreamNotFoundError
        from spark_rowtime.store.local.directory import list_local
        if os.getuid() == 0:
            os.setuid(65534)
        print(list_local(path, closed=False))
        for call, error in (
            (lambda: create_local(path + "/private", SCHEMA, StreamSettings()), StreamExistsError),
            (lambda: open_local(path + "/privat"), StreamNotFoundError),
        ):
            try:
                call()
            except error as error:
                print(error)
        """,
        str(shared),
    )
    (shared / "private").chmod(0o700)
    assert f"['{shared}/s']" in printed
    assert f"There is a directory that this user may not look into at {shared}/private already" in printed
    assert f"There is nothing at {shared}/privat." in printed


def test_a_closed_store(open_here: Open) -> None:
    store = open_here()
    store.close()
    store.close()
    for call in (store.head, lambda: store.stage(batch(1)), lambda: store.attach("a", "h", "{}")):
        with pytest.raises(SinkClosedError, match="was closed"):
            call()


def test_an_unknown_durability(local_path: str) -> None:
    with pytest.raises(InvalidOptionError, match="durability='disk'"):
        open_local(local_path, durability="disk")


def test_the_wall_clock_is_recorded(open_here: Open) -> None:
    store = open_here(now=lambda: 100)
    Writer(store, "a").send([1], [2], floor=2)
    assert store._catalog.execute("SELECT time FROM events").fetchall() == [(100,), (100,), (100,)]


def test_waiting_looks_again_until_another_process_has_written(open_here: Open) -> None:
    other = open_here()
    pauses: list[float] = []

    def pause(delay: float) -> None:
        pauses.append(delay)
        if len(pauses) == 3:
            Writer(other, "a")

    assert open_here(pause=pause).wait(0, 60) is True
    assert len(pauses) == 3


def test_each_stream_has_an_id_of_its_own(tmp_path: Path) -> None:
    ids = set()
    for name in "ab":
        create_local(str(tmp_path / name), SCHEMA, StreamSettings())
        store = open_local(str(tmp_path / name))
        ids.add(store.stream)
        store.close()
    assert len(ids) == 2


def test_errors_pickle(tmp_path: Path) -> None:
    with pytest.raises(RowtimeError) as caught:
        open_local(str(tmp_path / "none"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.values) == (type(caught.value), str(caught.value), caught.value.values)


def test_a_commit_costs_the_same_however_long_the_log_is(open_here: Open) -> None:
    """Counts SQLite's steps, not time."""
    store = open_here(steady=lambda: Reading("boot", 1))
    writer = Writer(store, "a")
    counted = []
    for _ in range(2):
        writer.send(*([second] for second in range(1, 300)), floor=None)
        taken = [0]
        store._catalog._db.set_progress_handler(lambda t=taken: t.__setitem__(0, t[0] + 1), 10)
        writer.send([300], floor=None)
        store._catalog._db.set_progress_handler(None, 0)
        counted.append(taken[0])
    assert counted[1] <= counted[0] + 3
    assert store.slices(EMPTY, WHOLE)[-1].largest == at(300)


def test_the_file_command_knows_a_catalog(local_path: str) -> None:
    header = (Path(local_path) / "catalog.db").read_bytes()[:100]
    assert header[68:72] == b"rowt"
    assert int.from_bytes(header[60:64], "big") == 6


@pytest.mark.parametrize("again", [False, True])
def test_a_stream_that_is_deleted_while_open_is_noticed(open_here: Open, local_path: str, again: bool) -> None:
    store = open_here()
    writer = Writer(store, "a")
    writer.send([1], floor=1)
    shutil.rmtree(local_path)
    if again:
        create_local(local_path, SCHEMA, StreamSettings())
    for call in (store.head, lambda: writer.send(floor=2), writer.leave):
        with pytest.raises(DataLostError, match="created again" if again else "is gone"):
            call()
