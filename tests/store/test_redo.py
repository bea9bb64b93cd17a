"""Redo rows: one sync for a commit of small trains, and segments that are whole again before anybody reads them."""

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.errors import StoreCorruptError, StoreUnavailableError
from spark_rowtime.store import check_store, copy_store, open_store
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.local import LocalStore, open_local
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.folders import folder
from spark_rowtime.store.local.segment import UNSYNCED_BYTES
from tests.store.streams import EMPTY, WHOLE, Writer, batch, read

Open = Callable[..., LocalStore]


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the files that were synced, at that time. SQLite's own syncs are not among them."""
    found, data = list[int](), os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (found.append(os.fstat(fd).st_size), data(fd))[1])
    return found


def rows_of(store: LocalStore) -> list[tuple[str, int]]:
    """The segments and offsets of the redo rows."""
    return store._catalog.execute("SELECT segment, offset FROM redo ORDER BY id").fetchall()


def segment(path: str | Path) -> Path:
    (found,) = (Path(path) / "segments").iterdir()
    return found


def without_power(path: str, to: Path, size: int) -> str:
    """A copy of the stream as a loss of power leaves it that takes all of the segment behind ``size`` bytes."""
    shutil.copytree(path, to)
    os.truncate(segment(to), size)
    return str(to)


@pytest.fixture
def lost(open_here: Open, local_path: str, tmp_path: Path) -> str:
    """A stream with three commits, of whose trains a loss of power has left nothing but the catalog's redo rows."""
    store = open_here(durability="power")
    writer = Writer(store, "a")
    for second in (1, 2, 3):
        writer.send([second], [second], floor=second)
    return without_power(local_path, tmp_path / "lost", rows_of(store)[0][1])


def test_small_trains_need_no_sync_of_their_segment(open_here: Open, syncs: list[int]) -> None:
    store = open_here(durability="power")
    writer = Writer(store, "a")
    writer.send([0], floor=0)
    syncs.clear()
    for second in range(1, 20):
        writer.send([second], [second], floor=second)
    assert not syncs
    assert len(rows_of(store)) == 39


def test_many_small_trains_are_synced_together_and_their_rows_removed(open_here: Open, syncs: list[int]) -> None:
    store, most = open_here(durability="power"), 0
    writer = Writer(store, "a")
    writer.send([0], floor=0)
    syncs.clear()
    length = store._writer._end - store._writer._synced
    for second in range(1, 3 * UNSYNCED_BYTES // length):
        writer.send([second], floor=second)
        most = max(most, len(rows_of(store)))
    assert len(syncs) in (2, 3)
    assert most * length <= UNSYNCED_BYTES < (most + 1) * length
    assert len(rows_of(store)) < most


def test_rows_go_also_where_another_thread_writes_all_the_time(open_here: Open, syncs: list[int]) -> None:
    """Then there are always bytes that are not synced."""
    store, most = open_here(durability="power"), 0
    writer = Writer(store, "a")
    prepare = store._redo.prepare

    def write_more(trains: Any) -> None:
        prepare(trains)
        with store._writer_guard:
            store._writer.append(batch(9))

    store._redo.prepare = write_more  # type: ignore[method-assign]
    store._writer._most_unsynced //= 4
    for second in range(1, 300):
        writer.send([second], floor=second)
        most = max(most, len(rows_of(store)))
    assert len(syncs) > 4
    assert most < 100
    store.close()


def test_a_sync_that_fails_in_another_thread_takes_the_commit_with_it(
    open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when that thread has filled the segment, between the check of the trains and their rows in the catalog."""
    store = open_here(durability="power")
    writer, ledger = Writer(store, "a"), Ledger.commit
    writer.send([1])

    def failing(self: Ledger, *given: Any) -> Any:
        made = ledger(self, *given)
        with monkeypatch.context() as full, pytest.raises(OSError, match="No space"):
            full.setattr(os, "fdatasync", no_room)
            store._writer.sync()
        return made

    with monkeypatch.context() as meanwhile, pytest.raises(StoreUnavailableError, match="may not be on its disk"):
        meanwhile.setattr(Ledger, "commit", failing)
        writer.send([2])
    assert read(store) == [1]
    writer.send([2])
    assert read(store) == [1, 2]


def test_a_full_segment_leaves_no_rows(open_here: Open) -> None:
    store = open_here(durability="power")
    writer = Writer(store, "a")
    store._writer._full = 1
    for second in range(10):
        writer.send([second], floor=second)
        assert len(rows_of(store)) == 1
    assert len({name for name, _ in rows_of(store)}) == 1


def test_without_the_durability_there_are_none(open_here: Open, syncs: list[int]) -> None:
    store = open_here()
    Writer(store, "a").send([1])
    assert not rows_of(store)
    assert not syncs


@pytest.mark.parametrize("first", ["open", "check", "copy"])
def test_lost_trains_are_written_again_before_anybody_reads(lost: str, tmp_path: Path, first: str) -> None:
    if first == "check":
        assert not check_store(lost).damage
    if first == "copy":
        copy_store(lost, str(tmp_path / "copy"))
        with closing(open_store(str(tmp_path / "copy"))) as store:
            assert read(store) == [1, 1, 2, 2, 3, 3]
    with closing(open_store(lost)) as store:
        assert read(store) == [1, 1, 2, 2, 3, 3]
        assert not rows_of(store)
        Writer(store, "b").send([4])
        assert read(store) == [1, 1, 2, 2, 3, 3, 4]
    assert not check_store(lost).damage


def test_it_may_end_anywhere_and_begin_again(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("pwrite", "fdatasync", "fsync"):
        with monkeypatch.context() as failing, pytest.raises(KeyboardInterrupt):
            failing.setattr(os, call, interrupt)
            open_store(lost)
    with closing(open_store(lost)) as store:
        assert read(store) == [1, 1, 2, 2, 3, 3]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_segment_that_is_open_is_left_alone(open_here: Open, local_path: str) -> None:
    store = open_here(durability="power")
    writer = Writer(store, "a")
    writer.send([1])
    with closing(open_store(local_path, durability="power")) as other:
        assert len(rows_of(other)) == 1
        Writer(other, "b").send([2])
        assert len(rows_of(other)) == 2
    writer.send([3])
    assert read(store) == [1, 2, 3]


def test_a_segment_with_another_name_elsewhere_is_not_written(lost: str, tmp_path: Path) -> None:
    """Nor does anybody append to it once it has none."""
    elsewhere, short = tmp_path / "elsewhere", segment(lost)
    (Path(lost) / "free" / short.name).touch()
    os.link(short, elsewhere)
    before = elsewhere.read_bytes()
    with closing(open_store(lost, durability="power")) as store:
        assert len(rows_of(store)) == 6
        with pytest.raises(StoreCorruptError, match="the file ends"):
            read(store)
        assert elsewhere.read_bytes() == before
        elsewhere.unlink()
        Writer(store, "b").send([9])
    with closing(open_store(lost)) as store:
        assert read(store) == [1, 1, 2, 2, 3, 3, 9]


SLOW = """
import sys, time
from spark_rowtime.store import open_store
from spark_rowtime.store.local import redo
write = redo.write_at
def slow(*given):
    print("within", flush=True)
    sys.stdin.read()
    return write(*given)
redo.write_at = slow
open_store(sys.argv[1]).close()
"""


@pytest.mark.parametrize("first", ["goes on", "is killed"])
def test_who_opens_the_stream_beside_a_process_that_does_waits(lost: str, tmp_path: Path, first: str) -> None:
    (Path(lost) / "free" / segment(lost).name).touch()
    command, pipe = [sys.executable, "-c", SLOW, lost], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process, ThreadPoolExecutor(2) as threads:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "within\n"
        copied = threads.submit(copy_store, lost, str(tmp_path / "copy"))
        opened = threads.submit(open_store, lost, durability="power")
        assert not wait([copied, opened], 0.3).done
        if first == "is killed":
            process.kill()
        process.stdin.close()
        store = opened.result(60)
        copied.result(60)
    Writer(store, "b").send([9])
    assert read(store) == [1, 1, 2, 2, 3, 3, 9]
    store.close()
    for path in (lost, str(tmp_path / "copy")):
        assert not check_store(path).damage
        with closing(open_store(path)) as again:
            assert read(again)[:6] == [1, 1, 2, 2, 3, 3]


def test_behind_one_that_hangs_the_error_says_so(lost: str) -> None:
    with folder(Path(lost), "segments") as segments:
        fcntl.flock(segments, fcntl.LOCK_EX)
        with pytest.raises(StoreUnavailableError, match="has not ended within 0 s"):
            open_local(lost, busy_timeout=0)
    open_local(lost, busy_timeout=0).close()


def test_trains_that_are_committed_in_another_order_leave_no_row(open_here: Open) -> None:
    store = open_here(durability="power")
    writers = [Writer(store, name) for name in ("a", "b", "c")]
    for commit in reversed([writer.commit([1]) for writer in writers]):
        store.commit(commit)
    assert [offset for _, offset in rows_of(store)] == sorted((o for _, o in rows_of(store)), reverse=True)
    store._writer.sync()
    writers[0].send([2])
    assert len(rows_of(store)) == 1


def test_an_id_that_is_used_again_takes_no_row_with_it(open_here: Open, local_path: str, tmp_path: Path) -> None:
    """As after an interrupt between a commit and its note."""
    one, two = open_here(durability="power"), open_here(durability="power")
    writer, other = Writer(one, "a"), Writer(two, "b")
    for which in (writer, other, writer, writer):
        which.send([1])
    one._writer.sync()
    landed, commit = one._redo.landed, writer.commit([2])
    one._redo.landed = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        one.commit(commit)
    one._redo.landed = landed  # type: ignore[method-assign]
    assert one.commit(commit).seq
    writer.send([3])
    name, offset = commit.trains[0].location[:2]
    assert (name, offset) in rows_of(one)
    shutil.copytree(local_path, tmp_path / "lost")
    os.truncate(tmp_path / "lost" / "segments" / name, offset)
    with closing(open_store(str(tmp_path / "lost"))) as store:
        assert sorted(read(store)) == [1, 1, 1, 1, 2, 3]


def test_what_cannot_be_written_but_is_there_keeps_nobody_from_opening(
    open_here: Open, local_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_here(durability="power")
    Writer(store, "a").send([1])
    store.close()
    with monkeypatch.context() as full:
        full.setattr("spark_rowtime.store.local.redo.write_at", no_room)
        with closing(open_store(local_path)) as other:
            assert (read(other), len(rows_of(other))) == ([1], 1)
    with closing(open_store(local_path)) as other:
        assert not rows_of(other)


def test_rows_of_a_removed_segment_go_with_it(lost: str) -> None:
    segment(lost).unlink()
    with closing(open_store(lost)) as store:
        assert not rows_of(store)


def test_gc_removes_the_rows_of_what_it_removes(open_here: Open, local_path: str) -> None:
    store = open_here(durability="power")
    store._writer._full = 1
    writer = Writer(store, "a")
    for second in range(1, 6):
        writer.send([second], floor=second)
    first = store.slices(EMPTY, WHOLE)[0].location.segment
    store._catalog.execute("INSERT INTO redo VALUES (99, ?, 0, 0, x'00')", (first,))
    assert store.gc(age=0).rows == 5
    assert first not in [name for name, _ in rows_of(store)]
    store.close()
    with closing(open_store(local_path)) as other:
        assert not rows_of(other)


def test_a_damaged_row_is_damage(lost: str) -> None:
    with closing(sqlite3.connect(Path(lost) / "catalog.db")) as db, db:
        db.execute("UPDATE redo SET content = x'00' WHERE id = 2")
    with pytest.raises(StoreCorruptError, match="redo does not match its checksum"):
        open_store(lost)
    assert "redo does not match its checksum" in check_store(lost).damage[0]


@pytest.mark.parametrize("again", [0, 1])
def test_rows_of_a_segment_whose_sync_has_failed_stay(
    open_here: Open, local_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: int
) -> None:
    """The system may have dropped their bytes, and says so once: a later sync that succeeds brings nothing of them."""
    store = open_here(durability="power")
    writer = Writer(store, "a")
    writer.send([1], floor=1)
    with monkeypatch.context() as failing, pytest.raises(StoreUnavailableError):
        failing.setattr(os, "fdatasync", no_room)
        failing.setattr(store._writer, "_most_unsynced", 0)
        writer.send([2], floor=2)
    for second in range(3, 3 + again):
        with monkeypatch.context() as syncing:
            syncing.setattr(store._writer, "_most_unsynced", 0)
            writer.send([second], floor=second)
    [(_, offset)] = rows_of(store)
    shutil.copytree(local_path, tmp_path / "lost")
    with segment(tmp_path / "lost").open("r+b") as file:
        file.seek(offset)
        file.write(bytes(8))
    with closing(open_store(str(tmp_path / "lost"))) as after:
        assert read(after) == [1, 3][: 1 + again]


def no_room(*_: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("whose", ["left", "open"])
def test_a_locked_catalog_keeps_nobody_from_opening_but_where_segments_are_left(
    open_here: Open, local_path: str, lost: str, whose: str
) -> None:
    path = lost if whose == "left" else local_path
    store = open_here(durability="power")
    Writer(store, "c").send([1])
    with closing(sqlite3.connect(Path(path) / "catalog.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        if whose == "open":
            open_local(path, busy_timeout=0).close()
            return
        with pytest.raises(StoreUnavailableError, match="keeps the catalog"):
            open_local(path, busy_timeout=0)


def test_on_a_full_disk_the_rows_stay(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The segment is whole all the same."""

    class Full(Catalog):
        def _open(self, patience: float) -> None:
            super()._open(patience)
            execute = self.execute

            def failing(sql: str, *values: Any) -> Any:
                if sql.startswith("DELETE FROM redo"):
                    raise sqlite3.OperationalError("database or disk is full")
                return execute(sql, *values)

            self.execute = failing

    monkeypatch.setattr("spark_rowtime.store.local.store.Catalog", Full)
    with closing(open_store(lost)) as store:
        assert read(store) == [1, 1, 2, 2, 3, 3]
        assert len(rows_of(store)) == 6


def test_who_may_only_read_changes_nothing_and_is_told_who_can(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other, closing(reading(lost, other)) as store:
        assert len(rows_of(store)) == 6
        with pytest.raises(
            StoreUnavailableError, match=r"loss of power has taken train 2 of 'a'.* Nothing is lost: open"
        ):
            read(store)
    open_store(lost).close()
    with closing(reading(lost, monkeypatch)) as store:
        assert read(store) == [1, 1, 2, 2, 3, 3]


def test_who_may_only_read_reads_what_is_not_synced(
    open_here: Open, local_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(open_here(durability="power"), "a")
    writer.send([1], floor=1)
    with closing(reading(local_path, monkeypatch)) as store:
        assert rows_of(store)
        assert read(store) == [1]


def reading(path: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stream as a user opens it who may only read it."""
    monkeypatch.setattr("spark_rowtime.store.local.catalog.may_write", lambda _: False)
    return open_store(path)
