"""Streams with a location: large trains are objects there, on every way of a train through the store."""

import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_rowtime.errors import DataLostError, InvalidOptionError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.store import check_store, copy_store, create_store, delete_store, open_carried, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.location import to_location
from spark_rowtime.store.postgres.file_system import file_system
from spark_rowtime.store.postgres.objects import OBJECT_BYTES, SCHEMA_OBJECT, InObject
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from tests.conftest import set_s3_environment
from tests.postgresserver import PostgresServer
from tests.store.streams import EMPTY, SCHEMA, WHOLE, Writer, batch, place, read, seconds

LARGE = 5000
"""Rows of a train that is an object: 16 bytes each."""
DAY = 86_400_000_000


@pytest.fixture
def path(postgres: PostgresServer, request: pytest.FixtureRequest, location: str) -> str:
    """An empty stream with that location."""
    path = postgres.url(f"objects/{request.node.name}")
    create_store(path, SCHEMA, StreamSettings(location=to_location(location)))
    return path


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    with open_store(path) as store:
        yield store


def large(start: int) -> range:
    return range(start, start + LARGE)


def objects(store: Store) -> list[str]:
    """The names of the objects with rows that are there."""
    return list(store.objects.sizes())


def opened(store: Store, name: str) -> pa.Table:
    """An object as any tool reads it."""
    system, folder = file_system(store.objects.location)
    with system.open_input_stream(f"{folder}/{store.stream}/{name}") as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


def damage(store: Store, name: str, change: Callable[[bytes], bytes]) -> None:
    system, folder = file_system(store.objects.location)
    file = f"{folder}/{store.stream}/{name}"
    with system.open_input_stream(file) as old:
        content = old.read()
    with system.open_output_stream(file) as new:
        new.write(change(content))


def test_large_trains_are_objects_that_any_tool_reads(store: Store, path: str) -> None:
    writer = Writer(store, "a")
    assert objects(store) == []
    assert opened(store, SCHEMA_OBJECT).schema.equals(SCHEMA)
    writer.send([1], large(10), [20_000], floor=20_000)
    writer.send(large(30_000), floor=40_000)
    assert read(store) == [1, *large(10), 20_000, *large(30_000)]
    found = sorted(seconds(opened(store, name)) for name in objects(store))
    assert found == [list(large(10)), list(large(30_000))]
    assert store.stage(batch(*range(4000))).location.length < OBJECT_BYTES, "the limit is between these sizes"
    report = check_store(path)
    assert (report.damage, report.readable_rows, report.readable_trains) == ([], 2 + 2 * LARGE, 4)


def test_a_process_without_the_database_reads_and_writes(store: Store) -> None:
    """As a Spark task does: what it needs is pickled."""
    writer = Writer(store, "a")
    writer.send([1], large(10), floor=20_000)
    pieces = pickle.loads(pickle.dumps(store.carry(store.slices(EMPTY, WHOLE))))
    carried = pickle.loads(pickle.dumps(store.objects))
    with open_carried(store.path, SCHEMA, carried) as trains:
        assert [seconds(trains.read(piece)) for piece in pieces] == [[1], list(large(10))]
        staged = [trains.stage(batch(*rows)) for rows in ([30_000], large(30_001))]
    assert [isinstance(train.location, InObject) for train in staged] == [False, True]
    commit = writer.commit(floor=50_000)
    store.commit(replace(commit, trains=tuple(staged)))
    assert read(store, place(3)) == [30_000, *large(30_001)]


def test_gc_removes_the_objects_of_removed_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(store, "a")
    for start in (10, 10_000, 20_000):
        writer.send(large(start), floor=start + LARGE)
    with open_store(store.path) as reader:
        old = reader.slices(EMPTY, WHOLE)[0]
        reader.keep("r", place(3))
        kept = objects(store)
        done = store.gc(age=0)
        assert (done.rows, done.files, len(objects(store))) == (2 * LARGE, 2, 1)
        assert set(objects(store)) < set(kept)
        with pytest.raises(DataLostError, match="no longer has train 2"):
            reader.read(old)
    assert read(store, place(3)) == list(large(20_000))
    assert check_store(store.path).damage == []


class RefusesMark:
    """A file system that removes a file; then, as S3's does, it writes an object for the folder, which is refused."""

    def __init__(self, location: str) -> None:
        self._system, self.folder = file_system(location)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    def delete_file(self, path: str) -> None:
        self._system.delete_file(path)
        raise OSError("AWS Error SLOW_DOWN during PutObject operation")


def test_an_object_is_removed_though_the_mark_of_its_folder_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(store, "a")
    for start in (10, 10_000, 20_000):
        writer.send(large(start), floor=start + LARGE)
    system = RefusesMark(store.objects.location)
    with monkeypatch.context() as patched:
        patched.setattr("spark_rowtime.store.postgres.objects.file_system", lambda _: (system, system.folder))
        assert store.gc(age=0).files == 3
    assert objects(store) == []


def killed(_: Any) -> None:
    raise KeyboardInterrupt


def test_gc_that_was_killed_between_the_log_and_the_objects_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(store, "a")
    for start in (10, 10_000):
        writer.send(large(start), floor=start + LARGE)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(store.objects, "remove", killed)
        store.gc(age=0)
    assert (store.horizon().seq, len(objects(store))) == (3, 2)
    with open_store(store.path) as other:
        assert other.gc(age=0).files == 2
        assert objects(other) == []


DIES = """
import os, signal, sys
from spark_rowtime.store import open_store
from tests.store.test_objects import large
from tests.store.streams import batch
with open_store(sys.argv[1]) as store:
    print(store.stage(batch(*large(10))).location.object, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_object_of_a_writer_that_was_killed_before_the_commit(store: Store) -> None:
    """``gc`` removes it a day after it has first seen it, and a later commit of it is refused."""
    died = subprocess.run([sys.executable, "-c", DIES, store.path], capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    (orphan,) = died.stdout.split()
    now = [7 * DAY]
    store.now, store.steady = lambda: now[0], lambda: Reading("boot", now[0])
    writer = Writer(store, "a")
    late = writer.commit(large(30_000), floor=40_000)
    writer.number -= 1
    writer.send(large(10_000), floor=20_000)
    assert read(store) == list(large(10_000))
    assert len(objects(store)) == 3
    assert store.gc().files == 0
    now[0] += DAY - 1
    assert store.gc().files == 0
    now[0] += 1
    done = store.gc()
    assert (done.files, done.size > 2 * OBJECT_BYTES) == (2, True)
    assert orphan not in objects(store)
    writer.number = 2
    with pytest.raises(StoreUnavailableError, match="never committed"):
        store.commit(replace(late, number=2))
    assert (read(store), store.gc().files) == (list(large(10_000)), 0)
    assert check_store(store.path).damage == []


def test_what_became_of_an_object_is_said_with_its_name(store: Store, path: str) -> None:
    Writer(store, "a").send(large(10), [20_000], floor=20_000)
    (name,) = objects(store)
    (piece, _) = store.carry(store.slices(EMPTY, WHOLE))
    damage(store, name, lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    with pytest.raises(StoreCorruptError, match=f"{name}, offset .*: the checksum does not match; so train 2 of 'a'"):
        store.read(piece)
    damage(store, name, lambda content: content[:70_000])
    with pytest.raises(StoreCorruptError, match="the object ends after 70000 bytes"):
        store.read(piece)
    store.objects.remove([name])
    with pytest.raises(DataLostError, match=f"The object .*{name} is gone, although a commit names it") as caught:
        store.read(piece)
    assert str(caught.value.values["object"]).endswith(name)
    report = check_store(path)
    assert (len(report.damage), report.readable_rows) == (1, 1)
    store.objects.remove_all()
    with pytest.raises(StoreUnavailableError, match="is not there"):
        store.read(piece)


def test_a_shared_folder_that_is_not_mounted_takes_no_rows(postgres: PostgresServer, tmp_path: Path) -> None:
    """Written under the mount point, they would be on this machine alone, although their commit is acknowledged."""
    path, mount = postgres.url("objects/unmounted"), tmp_path / "mnt"
    create_store(path, SCHEMA, StreamSettings(location=to_location(f"{mount}/rowtime")))
    with open_store(path) as store:
        writer = Writer(store, "a")
        mount.rename(tmp_path / "away")
        mount.mkdir()
        with pytest.raises(StoreUnavailableError, match="mount it on this machine"):
            writer.send(large(10), floor=20_000)
        mount.rmdir()
        (tmp_path / "away").rename(mount)
        writer.send(large(10), floor=20_000)
        assert read(store) == list(large(10))
        delete_store(path, None)
        with pytest.raises(DataLostError, match="was deleted or renamed"):
            store.stage(batch(*large(10)))


def test_deleting_a_stream_removes_its_objects_alone(store: Store, path: str, location: str) -> None:
    create_store(f"{path}-other", SCHEMA, StreamSettings(location=to_location(location)))
    with open_store(f"{path}-other") as other:
        Writer(other, "a").send(large(10), floor=20_000)
        Writer(store, "a").send(large(10), floor=20_000)
        delete_store(path, None)
        assert (objects(store), len(objects(other)), read(other)) == ([], 1, list(large(10)))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_copies(store: Store, path: str, tmp_path: Path, location: str, elsewhere: bool) -> None:
    """Into a directory and back, and within the database: the same rows at the same positions."""
    Writer(store, "a").send([1], large(10), [20_000], floor=20_000)
    copy_store(path, str(tmp_path / "moved"))
    to = f"{location}-2" if elsewhere else location
    copy_store(str(tmp_path / "moved"), f"{path}-back", location=to_location(to))
    copy_store(path, f"{path}-beside", location=to_location(to) if elsewhere else None)
    for copied in (str(tmp_path / "moved"), f"{path}-back", f"{path}-beside"):
        assert check_store(copied).damage == []
        with open_store(copied) as copy:
            assert [(p.seq, p.rows) for p in copy.slices(EMPTY, WHOLE)] == [(2, 1), (3, LARGE), (4, 1)]
            assert read(copy) == read(store)
            if copied.startswith("postgresql"):
                assert (len(objects(copy)), copy.settings.location) == (1, to)
                assert objects(copy) != objects(store)
            else:
                assert copy.settings.location is None


def test_a_copy_that_fails_leaves_no_objects(store: Store, path: str, location: str) -> None:
    Writer(store, "a").send(large(10), large(10_000), floor=20_000)
    damage(store, store.carry(store.slices(EMPTY, WHOLE))[1].location.object, lambda content: content[:9])
    with pytest.raises(StoreCorruptError):
        copy_store(path, f"{path}-copy", location=to_location(f"{location}/copies"))
    system, folder = file_system(f"{location}/copies")
    from pyarrow import fs

    left = system.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True))
    assert [info.path for info in left if info.type == fs.FileType.File] == []


def test_only_a_location_without_secrets_is_taken(postgres: PostgresServer, tmp_path: Path) -> None:
    wrong = {
        "s3://AKIA123:s3cret@bucket/x": "has a user, a key",
        "s3://bucket/x?access_key=AKIA&secret_key=s3cret": "allowed are: region.",
        "abfss://c:s3cret@account.dfs.core.windows.net/x": "has a user, a key",
        "gs://bucket/x#s3cret": "has a user, a key",
        "ftp://u:s3cret@host/x": "has the scheme 'ftp'",
        "rows": "is no URL and no absolute path",
        "file://host/x": "is no absolute path",
        "s3:///x": "names no bucket",
        "s3://bucket/x?endpoint_override=evil.example.com": "AWS_ENDPOINT_URL",
        "gs://bucket/x?scheme=http": "AWS_ENDPOINT_URL",
        "s3://bucket:443/x": "where a bucket",
        "s3://evil.example.com\\\\/x": "where a bucket",
        "s3://bucket/x?region=evil.example.com/": "has a region that is none",
        "abfss://c@evil.example.com/x": "where a bucket",
        "file:///a%20b": "has a path with",
        "": "is no URL",
    }
    for given, what in wrong.items():
        with pytest.raises(InvalidOptionError, match=re.escape(what)) as caught:
            to_location(given)
        assert "s3cret" not in str(caught.value) + str(caught.value.values)
        assert "AKIA" not in str(caught.value)
    assert to_location("/mnt/rows/") == "file:///mnt/rows"
    assert to_location("s3://b/p?region=eu-1") == "s3://b/p?region=eu-1"
    for path in (str(tmp_path / "s"), "memory://location"):
        with pytest.raises(InvalidOptionError, match="only streams in PostgreSQL"):
            create_store(path, SCHEMA, StreamSettings(location="s3://b/p"))
    with pytest.raises(InvalidOptionError, match="only streams in PostgreSQL"):
        copy_store(postgres.url("none"), str(tmp_path / "s"), location="s3://b/p")


def test_a_location_that_cannot_be_written_is_refused_at_once(
    postgres: PostgresServer, s3: Any, monkeypatch: Any
) -> None:
    set_s3_environment(monkeypatch)
    path = postgres.url("objects/unwritable")
    for where in ("s3://no-such-bucket/x", "file:///proc/rowtime"):
        with pytest.raises(StoreUnavailableError, match=r"where the stream at .* keeps rows, cannot be used"):
            create_store(path, SCHEMA, StreamSettings(location=where))
    with pytest.raises(Exception, match="There is no stream"):
        open_store(path)
