"""The files that gc removes, and what a death in the midst of it leaves."""

import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spark_rowtime.errors import DataLostError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.reader.release import Release
from spark_rowtime.store.local import LocalStore, create_local, open_local
from spark_rowtime.store.retention import STAGED_RETENTION_MICROS
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.timestamps import wall_clock
from tests.store.processes import run, start
from tests.store.streams import END, SCHEMA, SECOND, Writer, batch, infos, names, place, read

Open = Callable[..., LocalStore]
KILLED = -signal.SIGKILL
DAY = 86_400 * SECOND


def segments(path: str) -> list[str]:
    return names(f"{path}/segments")


def left(store: LocalStore) -> list[float]:
    return read(store, Release("arrival").earliest(store))


def filled(open_here: Open, name: str = "a", *seconds: float) -> LocalStore:
    """A store that has sent a row a second, each in a commit of its own, and was closed."""
    store = open_here()
    writer = Writer(store, name)
    for second in seconds or (1, 2, 3):
        writer.send([second], floor=second)
    store.close()
    return open_here()


def test_a_file_goes_when_all_its_trains_are_gone(open_here: Open, local_path: str) -> None:
    store = filled(open_here)
    store.keep("reader", place(3))
    assert (store.gc(age=0).files, len(segments(local_path))) == (0, 1)
    (size,) = [file.stat().st_size for file in (Path(local_path) / "segments").iterdir()]
    store.forget("reader")
    collected = store.gc(age=0)
    assert (collected.rows, collected.files, collected.size) == (1, 1, size)
    assert segments(local_path) == names(f"{local_path}/free") == []
    again = filled(open_here, "b", 4, 5)
    assert left(again) == [4, 5]
    assert again.gc().files == 0


def test_a_file_whose_writer_has_just_created_it_stays(open_here: Open, local_path: str) -> None:
    """It has neither the schema nor a lock yet."""
    store = filled(open_here)
    for name, content in ((f"{0:016x}", b""), (f"{1:016x}", b"\xff\xff\xff\xff")):
        (Path(local_path) / "segments" / f"{name}.arrow").write_bytes(content)
    assert store.gc(age=0).files == 1
    assert segments(local_path) == [f"{0:016x}.arrow", f"{1:016x}.arrow"]


def test_the_file_of_a_writer_that_goes_on_stays(open_here: Open, local_path: str) -> None:
    writer = Writer(open_here(), "a")
    writer.send([1], floor=1)
    collector = open_here()
    assert (collector.gc(age=0).files, writer.store.gc(age=0).files) == (0, 0)
    writer.send([2], floor=2)
    assert left(open_here()) == [2]
    writer.store.close()
    assert len(segments(local_path)) == 1
    assert collector.gc(age=0).files == 1


def test_rows_that_another_process_has_yet_to_commit_stay(open_here: Open, local_path: str) -> None:
    """A task of Spark puts rows down and is gone when the driver commits them."""
    task = open_here()
    staged = task.stage(batch(4))
    task.close()
    store = filled(open_here)
    assert len(segments(local_path)) == 1, "the same file"
    assert (store.gc(age=0).rows, len(segments(local_path))) == (3, 1)
    writer = Writer(store, "b")
    store.commit(replace(writer.commit(floor=4), trains=(staged,)))
    assert left(open_here()) == [4]


def test_after_a_day_they_are_nobodys(open_here: Open, local_path: str) -> None:
    task = open_here()
    staged = task.stage(batch(4))
    task.close()
    store = open_here()
    writer = Writer(store, "b")
    assert store.gc().files == 0
    now = store.now
    store.now = lambda: now() + DAY + SECOND
    assert store.gc().files == 1
    with pytest.raises(StoreUnavailableError, match=r"never committed.*send its rows again"):
        store.commit(replace(writer.commit(floor=4), trains=(staged,)))
    assert infos(store)[0].number == 0


def test_an_open_reader_meets_the_right_rows_or_an_error(open_here: Open, local_path: str) -> None:
    store = filled(open_here)
    reader, stranger = open_here(), open_here()
    first, *rest = reader.slices(place(0), place(END))
    assert reader.read(first) == batch(1)
    assert store.gc(age=0).files == 1
    assert [reader.read(piece) for piece in rest] == [batch(2), batch(3)], "the file is open"
    with pytest.raises(DataLostError, match="train 2 of 'a'"):
        stranger.read(first)


@pytest.mark.parametrize("at", ["log", "between", "file", "end"])
def test_law_8_a_death_in_gc(open_here: Open, local_path: str, at: str) -> None:
    store = filled(open_here)
    before = store.head(), infos(store), store.snapshot().logged_clock
    store.close()
    run(
        """
        from pathlib import Path
        store, at = open_local(path), sys.argv[2]
        die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        execute, unlink, commits, begun = store._catalog.execute, os.unlink, [], [""]
        def dying(sql, values=()):
            if sql.startswith("BEGIN"):
                begun[0] = sql
            if sql == "COMMIT" and begun[0] == "BEGIN IMMEDIATE":
                commits.append(sql)
            points = {("COMMIT", 1): "log", ("BEGIN IMMEDIATE", 1): "between", ("COMMIT", 2): "end"}
            if points.get((sql, len(commits))) == at:
                die()
            return execute(sql, values)
        store._catalog.execute = dying
        if at == "file":
            segments = Path(path, "segments").stat()
            def removing(file, dir_fd):
                return die() if os.path.samestat(segments, os.fstat(dir_fd)) else unlink(file, dir_fd=dir_fd)
            os.unlink = removing
        store.gc(age=0)
        """,
        local_path,
        at,
        code=KILLED,
    )
    again = open_here()
    assert left(again) == ([1, 2, 3] if at == "log" else [])
    assert (again.head(), infos(again), again.snapshot().logged_clock) == before
    writer = Writer(again, "b")
    writer.send([4], floor=4)
    assert left(again)[-1] == 4
    again.keep("reader", place(again.head().seq - 1))
    again.close()
    assert (open_here().gc(age=0).kept_for, left(open_here())) == ("reader 'reader' needs it", [4])
    assert len(segments(local_path)) == 1


def test_a_death_in_gc_leaves_no_file_for_good(open_here: Open, local_path: str) -> None:
    filled(open_here).close()
    run(
        """
        os.unlink = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        open_local(path).gc(age=0)
        """,
        local_path,
        code=KILLED,
    )
    store = open_here()
    assert (left(store), len(segments(local_path))) == ([], 1)
    assert store.gc().files == 1
    assert segments(local_path) == []
    assert store._catalog.execute("SELECT * FROM removed").fetchall() == []


def test_writers_a_reader_and_a_collector_at_once(tmp_path: Path) -> None:
    """Writers that come and go, with small files: what a registered reader needs is there, all else is removed."""
    path = str(tmp_path / "s")
    create_local(path, SCHEMA, StreamSettings(retainBytes=8_000))
    write = """
    for number in range(20):
        store = open_local(path)
        writer = Writer(store, sys.argv[2], session=str(number))
        for second in range(5):
            writer.send([number * 5 + second], floor=number * 5 + second)
        store.close()
    """
    follow = """
    from spark_rowtime.errors import StoreUnavailableError

    def keep(at):  # a reader does not wait for long: it registers later
        while True:
            try:
                return store.keep("follower", at)
            except StoreUnavailableError:
                pass

    store, at, count = open_local(path), EMPTY, 0
    keep(at)
    print("ready", flush=True)
    while count + sum(p.rejected for p in infos(store)) < 200:
        head = store.head()
        to = place(head.seq)
        count += len(read(store, at, to))
        at = to
        keep(at)
        store.gc(size=0)
    print(store.gc(size=0).kept_for, store.snapshot().readers[0].position == place(store.head().seq))
    """
    follower = start(follow, path)
    assert follower.stdout is not None
    assert follower.stdout.readline() == "ready\n"
    outputs = [process.communicate() for process in (start(write, path, "a"), start(write, path, "b"), follower)]
    assert [errors for _, errors in outputs] == ["", "", ""]
    assert outputs[2][0].startswith("None")
    store = open_local(
        path, now=lambda: wall_clock() + 2 * STAGED_RETENTION_MICROS
    )  # what was rejected at a commit stays for a day
    assert store.head().rows + sum(p.rejected for p in infos(store)) == 200
    store.gc(size=0)
    assert segments(path) == names(f"{path}/free") == []
    store.close()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_reader_does_not_keep_removed_files_open(open_here: Open, local_path: str) -> None:
    """The disk has their room again only when nobody has them open."""
    store, reader = filled(open_here), open_here()
    read(reader)
    assert held_open(local_path) == 1
    store.gc(age=0)
    reader._looked_at = -1e9
    reader.expire()
    assert held_open(local_path) == 0


def held_open(path: str) -> int:
    """How many segments this process has open, removed ones, too."""
    links = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return sum(link.startswith(f"{path}/segments/") for link in links)


def test_a_link_in_the_place_of_a_segment_is_not_followed(open_here: Open, local_path: str, tmp_path: Path) -> None:
    filled(open_here).close()
    (segment,) = (Path(local_path) / "segments").iterdir()
    segment.rename(tmp_path / "elsewhere")
    segment.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreCorruptError, match="the file is gone"):
        read(open_here())
