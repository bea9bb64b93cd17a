"""A copy is the stream as of one moment, also while a process writes to it and another removes its oldest rows."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.bounds.key_floors import KeyChanges
from spark_rowtime.errors import DataLostError, StoreCorruptError, StreamExistsError, StreamNotFoundError
from spark_rowtime.store import check_store, copy_store, create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import LocalStore, create_local, open_local
from spark_rowtime.store.local import copy as copying
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from spark_rowtime.types.alteration import columns_to_add
from tests.store.processes import run, start
from tests.store.streams import SCHEMA, SECOND, NewStream, Writer, infos, names, place, read

COPIES = int(os.environ.get("ROWTIME_COPIES", "25"))
WRITER = """
    stream, n, stop = open_local(path), 0, sys.argv[2]
    while not os.path.exists(stop):
        if n % 50 == 0:
            stream.close()
            stream = open_local(path)
            writer = Writer(stream, "feed")
        writer.send([n, n + 0.25], [n + 0.5], floor=n + 1, late=[n - 1] if n % 7 == 3 else [])
        n += 1
    print(n)
"""
COLLECTOR = """
    stream, stop = open_local(path), sys.argv[2]
    while not os.path.exists(stop):
        stream.gc(age=0, size=20_000)
    print(stream.horizon().seq)
"""


def everything(store: Store) -> Any:
    """What is visible of a stream."""
    producers = [(p.name, p.floor, p.accepted, p.rejected, p.checkpoint, p.disorder) for p in infos(store)]
    readers = [(r.name, r.position) for r in store.snapshot().readers]
    tables = store.bounds().to_pylist(), store.rejected().to_pylist()
    return store.settings, store.schema, store.head(), store.horizon(), producers, readers, tables


@pytest.mark.search
def test_copies_while_others_write_and_remove(tmp_path: Path) -> None:
    """Each passes its check, and is a prefix of what the stream becomes: events, rows, bounds and rejections."""
    path, stop = str(tmp_path / "orders"), tmp_path / "stop"
    create_local(path, SCHEMA, StreamSettings(retainBytes=1 << 20))
    others = [start(script, path, stop) for script in (WRITER, COLLECTOR)]
    copies = [str(tmp_path / f"copy {n}") for n in range(COPIES)]
    try:
        source = open_local(path)
        for n, copy in enumerate(copies):
            assert source.wait(50 * n, 60), [other.poll() for other in others]
            copy_store(path, copy)
        assert source.wait(50 * COPIES, 60)
        while not source.horizon().seq:
            assert others[1].poll() is None, "the collector has ended"
    finally:
        stop.touch()
        written, removed = (int(other.communicate()[0]) for other in others)
    assert written > 0
    assert removed > 0
    final = {row["seq"]: row for row in source.bounds().to_pylist()}
    late = source.rejected().column("n").to_pylist()
    for n, copy in enumerate(copies):
        report = check_store(copy)
        assert (report.damage, report.remarks, report.trains) == ([], [], report.readable_trains)
        one = open_local(copy)
        head, first = one.head(), one.horizon()
        assert head.seq >= 50 * n
        shared = [row for row in one.bounds().to_pylist() if row["seq"] in final and row["seq"] > source.horizon().seq]
        assert all(row == final[row["seq"]] for row in shared)
        rows = read(one, place(first.seq))
        assert len(rows) == head.rows - first.rows
        assert rows == [i + part for i in range(written) for part in (0, 0.25, 0.5)][first.rows : head.rows]
        kept = one.rejected().column("n").to_pylist()
        assert kept == late[: len(kept)]
        again = Writer(one, "feed")
        again.send([written + 1], floor=written + 1)
        assert read(one, place(head.seq)) == [written + 1]
        one.close()
    source.close()


def fill(store: Store) -> Writer:
    """Two producers, one of which stays, with a checkpoint, rejected rows and a reader."""
    gone, stays = Writer(store, "gone"), Writer(store, "stays", lease=30 * SECOND)
    gone.send([1, 2], floor=2, checkpoint="offset 2")
    gone.leave()
    stays.send([3], floor=3, late=[0], checkpoint="x" * 2000)
    store.keep("reader", place(2, 2))
    return stays


def beside(path: str, folder: Path) -> str:
    """A path for a copy in the same kind of store."""
    return f"{path}-copy" if "://" in path else str(folder / "copies" / "copied")


def test_a_copy_has_everything_and_goes_its_own_way(new_stream: NewStream, tmp_path: Path) -> None:
    store = new_stream(retainBytes=1 << 20, maxLag=SECOND)()
    stays = fill(store)
    to = beside(store.path, tmp_path)
    copy_store(store.path, to)
    with pytest.raises(StreamExistsError):
        copy_store(store.path, to)
    copy = open_store(to)
    assert everything(copy) == everything(store)
    assert copy.stream != store.stream
    assert copy.ancestors == {store.stream: store.head().seq}
    stays.send([4], floor=4)
    Writer(copy, "stays").send([5], floor=5)
    assert (read(store), read(copy)) == ([1, 2, 3, 4], [1, 2, 3, 5])
    copy.close()


@pytest.fixture
def folder_and_database(tmp_path: Path, postgres: Any) -> list[str]:
    """Where streams of either kind are."""
    return [str(tmp_path), postgres.url(f"copies/{tmp_path.name}")]


@pytest.mark.parametrize("first", [0, 1])
def test_a_copy_to_another_kind_of_store_and_back_is_the_same_stream(
    folder_and_database: list[str], first: int
) -> None:
    """With a log whose beginning was removed, columns that were added, key floors, and a commit that is retried."""
    here, there = folder_and_database[first], folder_and_database[1 - first]
    create_store(f"{here}/a", SCHEMA, StreamSettings(retainBytes=1 << 20, maxLag=SECOND, idleTimeout=99 * SECOND))
    with open_store(f"{here}/a") as store:
        stays = fill(store)
        stays.send([4], floor=4, keys=KeyChanges(True, b"key floors"))
        store.keep("reader", place(4))
        assert store.gc(age=0).rows == 2
        store.alter(columns_to_add("coupon STRING"))
        store.detach("stays")
        commit = stays.commit([2, 9], floor=9)
        assert store.commit(commit).rejected
    for source, to in (("a", f"{there}/b"), ("b", f"{here}/c")):
        copy_store(f"{here}/a" if source == "a" else f"{there}/b", to)
    with open_store(f"{here}/a") as store, open_store(f"{there}/b") as other, open_store(f"{here}/c") as back:
        for copy in (other, back):
            assert everything(copy) == everything(store)
            assert infos(copy) == infos(store)
            assert (copy.snapshot().logged_clock, copy.summary(), copy.keys("stays")) == (
                store.snapshot().logged_clock,
                store.summary(),
                [b"key floors"],
            )
            assert copy.ancestors[store.stream] == store.head().seq
            assert read(copy, place(copy.horizon().seq)) == read(store, place(store.horizon().seq))
            assert copy.commit(commit) == store.commit(commit)
            assert check_store(copy.path).damage == []
        assert back.ancestors[other.stream] == store.head().seq
        stays.store = other
        stays.send([10], floor=10)
        assert read(other, place(store.head().seq)) == [10]


def test_a_lease_stands_still_in_a_copy_of_another_kind(folder_and_database: list[str]) -> None:
    """A producer that was attached has its lease to come back, however long the copy was only kept."""
    here, there = folder_and_database
    time = [0]
    create_store(f"{here}/a", SCHEMA, StreamSettings())
    paths = [f"{here}/a", f"{there}/b", f"{here}/c"]
    for n, path in enumerate(paths):
        if n:
            copy_store(paths[n - 1], path)
        with open_store(path) as store:
            store.now, store.steady = (lambda: 0), lambda: Reading("boot", time[0])
            if not n:
                Writer(store, "quiet", lease=30 * SECOND).send([10], floor=10)
            time[0] += 7 * 24 * 3600 * SECOND * bool(n)
            assert not store.snapshot().due
            store.expire()
            time[0] += 5 * SECOND
            assert not store.expire()
    with open_store(paths[-1]) as store:
        store.now, store.steady = (lambda: 0), lambda: Reading("boot", time[0])
        time[0] += 30 * SECOND
        assert store.expire()


def test_an_altered_stream(new_stream: NewStream, tmp_path: Path) -> None:
    store = new_stream()()
    Writer(store, "a").send([1])
    store.alter(columns_to_add("coupon STRING"))
    to = beside(store.path, tmp_path)
    copy_store(store.path, to)
    copy = open_store(to)
    assert copy.schema.names == ["rowtime", "n", "coupon"]
    assert read(copy) == [1]
    copy.close()


def test_nothing_to_copy(tmp_path: Path) -> None:
    with pytest.raises(StreamNotFoundError):
        copy_store(str(tmp_path / "nothing"), str(tmp_path / "copy"))
    assert names(tmp_path) == []


Open = Callable[..., LocalStore]


def test_the_uptime_of_a_copy_stands_still_until_it_is_opened(
    local_path: str, tmp_path: Path, open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer that was attached has its lease to come back, also a week later on the same machine."""
    time = [0]

    def steady() -> Reading:
        return Reading("boot", time[0])

    monkeypatch.setattr(copying, "machine_reading", steady)
    store = open_here(steady=steady, now=lambda: 0)
    quiet = Writer(store, "quiet", lease=30 * SECOND)
    quiet.send([10], floor=10)
    time[0] = 10 * SECOND
    copy_store(local_path, str(tmp_path / "copy"))
    time[0] += 7 * 24 * 3600 * SECOND
    copy = open_local(str(tmp_path / "copy"), steady=steady, now=lambda: 0)
    assert not copy.snapshot().due
    copy.expire()
    time[0] += 20 * SECOND
    assert not copy.expire(), "ten seconds before the copy, and twenty now"
    time[0] += 1
    assert copy.expire()
    assert store.snapshot().due, "the stream's own lease has ended long ago"
    copy.close()


def test_bytes_that_are_not_committed_are_not_copied(local_path: str, tmp_path: Path, open_here: Open) -> None:
    """A sink that is about to commit, and rows that a task of a query has staged."""
    store = open_here()
    writer = Writer(store, "a")
    writer.send([1])
    pending = writer.commit([2])
    copy_store(local_path, str(tmp_path / "copy"))
    (segment,) = names(tmp_path / "copy" / "segments")
    assert names(tmp_path / "copy" / "free") == [segment]
    store.commit(pending)
    copy = open_local(str(tmp_path / "copy"))
    Writer(copy, "a").send([3])
    assert (read(copy), read(store)) == ([1, 3], [1, 2])
    copy.close()
    assert check_store(str(tmp_path / "copy")).damage == []


def test_a_stream_that_is_not_whole_is_not_copied(local_path: str, tmp_path: Path, open_here: Open) -> None:
    store = open_here()
    Writer(store, "a").send([1])
    store.close()
    (segment,) = (Path(local_path) / "segments").iterdir()
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-1])
    with pytest.raises(StoreCorruptError, match=f"ends after {len(whole) - 1} bytes"):
        copy_store(local_path, str(tmp_path / "copy"))
    segment.unlink()
    with pytest.raises(StoreCorruptError, match="the file is gone"):
        copy_store(local_path, str(tmp_path / "copy"))
    assert names(tmp_path) == ["orders.rowtime"]


def test_a_catalog_that_names_a_file_elsewhere_is_not_copied(local_path: str, tmp_path: Path, open_here: Open) -> None:
    store = open_here()
    Writer(store, "a").send([1])
    store._catalog.execute("UPDATE events SET segment = '../../../elsewhere' WHERE segment IS NOT NULL")
    (tmp_path / "elsewhere").write_bytes(b"x" * 100_000)
    with pytest.raises(StoreCorruptError, match="no name of a segment"):
        copy_store(local_path, str(tmp_path / "a" / "copy"))
    assert names(tmp_path / "a") == []


KILLED = """
    from spark_rowtime.store.local import copy as copying
    done, count = copying._Copy._extended, [0]
    def extended(self, name, end):
        count[0] += 1
        if count[0] > int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return done(self, name, end)
    copying._Copy._extended = extended
    copying.copy_local(path, sys.argv[2])
"""


@pytest.mark.parametrize("segments", [0, 2])
def test_a_copy_that_was_killed_is_no_stream(local_path: str, tmp_path: Path, open_here: Open, segments: int) -> None:
    stores = [open_here() for _ in range(4)]
    for n, store in enumerate(stores):
        Writer(store, f"p{n}").send([n])
    to = str(tmp_path / "copy")
    run(KILLED, local_path, to, segments, code=-9)
    (left,) = (name for name in names(tmp_path) if name != "orders.rowtime")
    assert left.startswith(".copy.")
    for path in (to, str(tmp_path / left)):
        with pytest.raises(StreamNotFoundError):
            open_local(path)
    copy_store(local_path, to)
    assert read(open_store(to)) == [0, 1, 2, 3]


def test_who_had_the_stream_open_is_told_when_a_copy_takes_its_place(
    local_path: str, tmp_path: Path, open_here: Open
) -> None:
    store, other = open_here(), open_here()
    writer = Writer(store, "a")
    writer.send([1])
    copy_store(local_path, str(tmp_path / "copy"))
    writer.send([2])
    Path(local_path).rename(tmp_path / "damaged")
    (tmp_path / "copy").rename(local_path)
    for call in (lambda: writer.send([3]), other.head, lambda: other.keep("reader", place(1))):
        with pytest.raises(DataLostError, match="deleted and created again"):
            call()
    restored = open_here()
    Writer(restored, "a").send([2.5])
    assert read(restored) == [1, 2.5]
