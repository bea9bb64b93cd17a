"""The bytes of the rows: readable by others, checked, in files of a limited size."""

import errno
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from spark_rowtime.errors import StoreCorruptError, StoreUnavailableError
from spark_rowtime.store import copy_store
from spark_rowtime.store.commits import Commit
from spark_rowtime.store.local import LocalStore, create_local, open_local, segment
from spark_rowtime.store.local.segment import SegmentWriter
from spark_rowtime.store.local.segment_reader import SegmentReader
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.until import Limit
from spark_rowtime.types.schema import stream_schema
from tests.store.streams import EMPTY, SCHEMA, WHOLE, Writer, batch, read

Open = Callable[..., LocalStore]
FOLDER = -1


def segments(path: str) -> list[Path]:
    return sorted((Path(path) / "segments").iterdir())


def test_any_arrow_tool_reads_a_segment(open_here: Open, local_path: str) -> None:
    writer = Writer(open_here(), "a")
    writer.send([1, 2], [3], floor=3)
    writer.send([4], floor=4)
    (file,) = segments(local_path)
    with pa.ipc.open_stream(file) as stream:
        assert stream.schema == SCHEMA
        assert list(stream) == [batch(1, 2), batch(3), batch(4)]


@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_damaged_segment_is_named(open_here: Open, local_path: str, damage: str) -> None:
    writer = Writer(open_here(), "a")
    writer.send([1, 2], floor=2)
    writer.send([3, 4], floor=4)
    (file,) = segments(local_path)
    whole = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(whole[:-1] if damage == "cut" else whole[:-12] + b"\x55" + whole[-11:])
    store = open_here()
    first, second = store.slices(EMPTY, WHOLE)
    with pytest.raises(StoreCorruptError, match=rf"{file.name}, offset {second.location.offset}: .*train 3 of 'a'"):
        store.read(second)
    if damage != "gone":
        assert store.read(first) == batch(1, 2)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the segments that were synced, at that time; FOLDER for that of their names."""
    found, data, names = [], os.fdatasync, os.fsync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (found.append(os.fstat(fd).st_size), data(fd)))
    monkeypatch.setattr(os, "fsync", lambda fd: (found.append(FOLDER), names(fd)))
    return found


def test_a_commit_syncs_its_trains_at_once(open_here: Open, local_path: str, synced: list[int]) -> None:
    store = open_syncing(open_here)
    writer, other = Writer(store, "a"), Writer(store, "other")
    writer.send([1])
    synced.clear()
    writer.send([2], [3], [4], floor=3)
    assert synced == [segments(local_path)[0].stat().st_size]
    other.commit([5])
    writer.send(floor=6)
    assert len(synced) == 1, "a bound alone waits for nobody's rows"


def open_syncing(open_here: Open) -> LocalStore:
    """A store with durability power whose trains are all too large for the catalog."""
    store = open_here(durability="power")
    store._writer._most_unsynced = 0
    return store


def test_rows_that_another_has_staged_are_synced(open_here: Open, local_path: str, synced: list[int]) -> None:
    staged = open_here().stage(batch(1))
    store = open_here(durability="power")
    writer = Writer(store, "a")
    store.commit(replace(writer.commit(), trains=(staged,)))
    assert synced == [segments(local_path)[0].stat().st_size, FOLDER]


def test_a_free_segment_is_on_the_disk_before_it_grows(open_here: Open, local_path: str, synced: list[int]) -> None:
    """A process that has not synced it may have left it."""
    before = open_here()
    Writer(before, "a").send([1])
    before.close()
    [file] = segments(local_path)
    size = file.stat().st_size
    open_here(durability="power").stage(batch(2))
    assert synced == [FOLDER, size]
    assert [file] == segments(local_path)


def test_a_signals_handler_neither_stages_nor_commits_rows_in_the_middle_of_either(
    open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sync would count for bytes that are not yet written, and it might wait for a thread that waits for this."""
    store, sync, write = open_syncing(open_here), os.fdatasync, segment.write_at
    writer, other = (Writer(store, name) for name in ("a", "other"))
    writer.send([1])
    staged, refused = other.commit([2]), []

    def handle() -> None:
        for call in (lambda: store.stage(batch(3)), lambda: store.commit(staged)):
            with pytest.raises(StoreUnavailableError, match="by a signal's handler"):
                call()
        refused.append(True)

    with monkeypatch.context() as handled:
        handled.setattr(segment, "write_at", lambda *given: (handle(), write(*given))[1])
        handled.setattr(os, "fdatasync", lambda fd: (handle(), sync(fd)))
        writer.send([4])
    assert len(refused) == 2, "when it was staged, and when it was synced"
    store.commit(staged)
    assert read(open_here()) == [1, 4, 2]


def test_a_failed_sync_of_what_others_have_written_is_remembered(
    open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system tells of it once. A file that is opened later knows nothing."""
    staged = open_here().stage(batch(1))
    store = open_here(durability="power")
    commit = replace(Writer(store, "a").commit(), number=1, trains=(staged,))
    with monkeypatch.context() as failing, pytest.raises(StoreUnavailableError, match="No space left"):
        failing.setattr(os, "fdatasync", no_room)
        store.commit(commit)
    with pytest.raises(StoreUnavailableError, match="may not be on its disk"):
        store.commit(commit)


def test_a_copy_is_on_the_disk_before_it_has_its_name(
    open_here: Open, local_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is written anew, as one of a database or of a part of the log is: each segment is synced once."""
    writer, sync, found, copy = Writer(open_here(), "a"), os.fdatasync, [], tmp_path / "copy"
    writer.send([1], [2], [3], floor=3)
    monkeypatch.setattr(os, "fdatasync", lambda fd: (found.append((os.fstat(fd).st_size, copy.exists())), sync(fd)))
    monkeypatch.setattr("spark_rowtime.store.local.history.full_segment", lambda _: 1)  # a train fills one
    copy_store(local_path, str(copy), until=Limit(seq=4))
    sizes = [file.stat().st_size for file in segments(str(copy))]
    assert len(sizes) == 3
    whole = [(size, False) for size in sizes]
    assert [one for one in found if one in whole] == whole


@pytest.mark.parametrize("how", ["fails", "interrupted", "fails as a segment is full"])
def test_what_a_sync_that_failed_may_have_dropped_is_not_committed(
    open_here: Open, local_path: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Neither the rows of the commit that failed, nor what another producer has staged beside them."""
    store = open_syncing(open_here)
    one, other = Writer(store, "one"), Writer(store, "other")
    one.send([1])
    staged = other.commit([2])
    with monkeypatch.context() as failing:
        failing.setattr(os, "fdatasync", interrupt if how == "interrupted" else no_room)
        failing.setattr(store._writer, "_full", 1 if "full" in how else 1 << 20)
        for _ in range(10):
            with pytest.raises(KeyboardInterrupt if how == "interrupted" else StoreUnavailableError):
                one.send([3])
    with pytest.raises(StoreUnavailableError, match="may not be on its disk: a sync of them has failed, or was inter"):
        store.commit(staged)
    other.number -= 1
    other.send([4])
    one.send([3], floor=5)
    other.send([2])
    assert read(open_here()) == [1, 4, 3, 2]
    assert len(segments(local_path)) <= 2


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_another_trains_bytes_are_not_taken_for_these(open_here: Open) -> None:
    writer = Writer(open_here(), "a")
    writer.send([1, 2], [3, 4], floor=None)
    store = open_here()
    first, second = store.slices(EMPTY, WHOLE)
    swapped = first.location._replace(offset=second.location.offset)
    with pytest.raises(StoreCorruptError, match="checksum"):
        store.read(type(first)(1, "a", 2, 0, 0, 0, swapped))
    with pytest.raises(StoreCorruptError, match="2 rows instead of 3"):
        store.read(type(first)(1, "a", 3, 0, 0, 0, first.location))


def test_a_full_segment_is_followed_by_another(tmp_path: Path) -> None:
    for folder in ("segments", "free"):
        (tmp_path / folder).mkdir()
    writer, reader = SegmentWriter(tmp_path, SCHEMA, full=1000), SegmentReader(tmp_path, SCHEMA)
    places = [writer.append(batch(second)) for second in range(1, 20)]
    assert len({place.segment for place in places}) > 2
    assert all(reader.read(place, 1, "") == batch(second) for second, place in enumerate(places, 1))
    writer.close()
    assert len(list((tmp_path / "free").iterdir())) <= 1
    reader.close()


@pytest.mark.parametrize("room", [True, False])
def test_a_large_train_reserves_room_which_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: bool
) -> None:
    """Where there is none to be had, or the file system has no such thing, the rows go down all the same."""
    for folder in ("segments", "free"):
        (tmp_path / folder).mkdir()
    if not room:
        monkeypatch.setattr(os, "posix_fallocate", no_room)
    writer, reader = SegmentWriter(tmp_path, SCHEMA), SegmentReader(tmp_path, SCHEMA)
    rows = batch(*range(1, 100_001))
    places = [writer.append(rows) for _ in range(30)]
    (file,) = (tmp_path / "segments").iterdir()
    end = places[-1].offset + places[-1].length
    assert (file.stat().st_size > end) == (room and sys.platform == "linux")
    assert file.stat().st_size in (end, writer._reserved)
    assert all(reader.read(place, 100_000, "") == rows for place in places)
    writer.close()
    assert file.stat().st_size == end
    assert [rows.num_rows for rows in pa.ipc.open_stream(file)] == [100_000] * 30
    reader.close()


def no_room(*_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_more_segments_than_open_files(tmp_path: Path) -> None:
    for folder in ("segments", "free"):
        (tmp_path / folder).mkdir()
    writer, reader = SegmentWriter(tmp_path, SCHEMA, full=1), SegmentReader(tmp_path, SCHEMA)
    places = [writer.append(batch(second)) for second in range(1, 200)]
    for _ in range(2):
        assert all(reader.read(place, 1, "") == batch(second) for second, place in enumerate(places, 1))
    assert len(reader._fds) < 100
    writer.close()
    reader.close()


def test_rows_of_every_type_come_back(tmp_path: Path) -> None:
    schema = stream_schema(
        "rowtime TIMESTAMP NOT NULL, b BOOLEAN, t TINYINT, l BIGINT, f FLOAT, d DECIMAL(38,10), s STRING NOT NULL, "
        "x BINARY, dt DATE, n TIMESTAMP_NTZ, a ARRAY<STRUCT<p: INT, q: MAP<STRING, DOUBLE>>>"
    )
    create_local(str(tmp_path / "s"), schema, StreamSettings())
    rows = pa.RecordBatch.from_pylist(
        [{"rowtime": 1, "s": "", "a": [{"p": 1, "q": [("k", 0.5)]}, None]}, {"rowtime": 2, "s": "é" * 99}], schema
    )
    store = open_local(str(tmp_path / "s"))
    store.attach("a", "h", "{}")
    store.commit(Commit("a", 1, 1, (store.stage(rows), store.stage(rows.slice(1)))))
    first, second = store.slices(EMPTY, WHOLE)
    assert store.read(first) == rows
    assert store.read(second) == rows.slice(1)
    assert second.size < first.size
    store.close()


def test_reading_while_the_file_grows(open_here: Open) -> None:
    writer, reader = Writer(open_here(), "a"), open_here()
    for second in range(1, 50):
        writer.send([second], floor=second)
        assert read(reader)[-1] == second


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is reserved elsewhere")
@pytest.mark.parametrize("plenty", [True, False])
def test_what_was_reserved_in_part_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plenty: bool) -> None:
    """A disk that is full in the middle of it has room for the rows all the same; one that is nearly full is let be."""
    for folder in ("segments", "free"):
        (tmp_path / folder).mkdir()
    asked = []

    def half(fd: int, offset: int, length: int) -> None:
        asked.append(length)
        os.truncate(fd, offset + length // 2)
        no_room()

    monkeypatch.setattr(os, "posix_fallocate", half)
    if not plenty:
        monkeypatch.setattr(segment, "PLENTY", 1 << 60)
    writer = SegmentWriter(tmp_path, SCHEMA)
    place = writer.append(batch(*range(1, 100_001)))
    (file,) = (tmp_path / "segments").iterdir()
    assert file.stat().st_size == place.offset + place.length
    assert bool(asked) == plenty
    writer.close()


def test_a_train_that_the_system_gives_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux reads 2 GiB in a call, at most."""
    for folder in ("segments", "free"):
        (tmp_path / folder).mkdir()
    writer, reader = SegmentWriter(tmp_path, SCHEMA), SegmentReader(tmp_path, SCHEMA)
    rows = batch(*range(1, 101))
    place = writer.append(rows)
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: preadv(fd, [buffers[0][:1000]], offset))
    assert reader.read(place, 100, "") == rows
    with pytest.raises(StoreCorruptError, match="the file ends after"):
        reader.read(place._replace(length=place.length + 1), 100, "")
    writer.close()
    reader.close()


def test_a_train_whose_file_is_gone_is_not_committed(open_here: Open, local_path: str) -> None:
    """Whatever file the writer has open now."""
    store, other = open_here(), open_here()
    gone = other.stage(batch(1))
    other.close()
    (Path(local_path) / "segments" / gone.location.segment).unlink()
    (Path(local_path) / "free" / gone.location.segment).unlink(missing_ok=True)
    writer = Writer(store, "a")
    with pytest.raises(StoreUnavailableError, match="Nothing of this commit was stored"):
        store.commit(replace(writer.commit([2], floor=2), trains=(gone,)))
    assert store.head().rows == 0


def test_a_commit_looks_at_each_file_no_more_often_than_it_has_to(
    open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the segment before it is written to, and before the rows are acknowledged; at the catalog and its log."""
    writer, looked = Writer(open_here(), "a"), list[str]()
    writer.send([1])
    stat, fstat = os.stat, os.fstat
    monkeypatch.setattr(os, "stat", lambda file, **how: (looked.append(Path(file).name), stat(file, **how))[1])
    monkeypatch.setattr(os, "fstat", lambda fd: (looked.append("descriptor"), fstat(fd))[1])
    writer.send([2])
    monkeypatch.undo()
    assert len(looked) == 4, looked
    assert looked.count("catalog.db") == looked.count("catalog.db-wal") == 1
