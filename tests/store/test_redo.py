"""With durability="power" small trains are in the catalog, too, until their segment is synced; see also tests/crash."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store import check_store, copy_store
from spark_rowtime.store.base import StreamSettings
from spark_rowtime.store.local import LocalStore, create_local, open_local, segment
from tests.store.streams import EMPTY, SCHEMA, WHOLE, Writer, read


@pytest.fixture
def path(tmp_path: Path) -> str:
    create_local(str(tmp_path / "s"), SCHEMA, StreamSettings())
    return str(tmp_path / "s")


@pytest.fixture
def store(path: str) -> Iterator[LocalStore]:
    with closing(open_local(path, durability="power")) as store:
        yield store


def kept(store: LocalStore) -> list[int]:
    """The seqs of the trains that are in the catalog."""
    return [seq for (seq,) in store._catalog.execute("SELECT seq FROM redo ORDER BY seq")]


def copied(path: str, name: str) -> str:
    """The directory as it is. Another process copies it: SQLite's files lose their locks where this one closes them."""
    subprocess.run(["cp", "-r", path, f"{path}-{name}"], check=True)
    return f"{path}-{name}"


def after_power_loss(path: str, name: str) -> str:
    """What is left: the catalog, and of each segment the schema."""
    left = copied(path, name)
    for file in (Path(left) / "segments").iterdir():
        os.truncate(file, SCHEMA.serialize().size)
    return left


def test_what_was_lost_is_there_for_whoever_opens_the_stream(store: LocalStore, path: str) -> None:
    writer = Writer(store, "a")
    for n in range(3):
        writer.send([n], [n + 0.5])
    expected = [0, 0.5, 1, 1.5, 2, 2.5]
    assert read(store) == expected
    with closing(open_local(after_power_loss(path, "opened"))) as opened:
        assert read(opened) == expected
        assert kept(opened) == []
    assert check_store(after_power_loss(path, "checked")).damage == []
    copy_store(after_power_loss(path, "source"), f"{path}-copy")
    with closing(open_local(f"{path}-copy")) as copy:
        assert read(copy) == expected
        assert kept(copy) == []


def test_a_segment_that_a_process_writes_is_left_as_it_is(store: LocalStore, path: str) -> None:
    Writer(store, "a").send([1])
    with closing(open_local(path)) as other:
        assert read(other) == [1]
        assert len(kept(other)) == 1
    store.close()
    with closing(open_local(path)) as other:
        assert kept(other) == []


def test_the_catalog_keeps_no_more_than_the_tail(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "TAIL", 2000)
    writer, most = Writer(store, "a"), 0
    for n in range(40):
        writer.send([n])
        most = max(most, len(kept(store)))
    assert 1 < most < 10
    writer.send(range(40, 5000))
    assert kept(store) == [], "a train that is not small is synced, and all before it"


def test_without_it_nothing_is_kept(path: str) -> None:
    with closing(open_local(path)) as store:
        Writer(store, "a").send([1])
        assert kept(store) == []


def test_after_a_sync_that_failed_the_next_rows_are_in_another_file(
    store: LocalStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system forgets what it could not write, so a later sync of that file proves nothing."""
    writer = Writer(store, "a")
    writer.send([1])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", _fails)
        with pytest.raises(StoreUnavailableError, match="Input/output error"):
            writer.send(range(2, 5000))
    writer.send(range(2, 5000))
    writer.send([5000])
    assert len(list((Path(path) / "segments").iterdir())) == 2
    first = kept(store)[0]
    assert store.slices(EMPTY, WHOLE)[0].seq == first, "the first train stays in the catalog"


def _fails(_: int) -> None:
    raise OSError(5, "Input/output error")


def test_rows_of_a_writer_elsewhere_are_synced_by_the_commit(store: LocalStore, path: str) -> None:
    """As those that tasks of a query write."""
    synced: list[str] = []
    with closing(open_local(path, durability="power")) as other, pytest.MonkeyPatch.context() as patch:
        staged = Writer(other, "b").commit([1])
        whole = os.fdatasync
        patch.setattr(
            os, "fdatasync", lambda fd: (synced.append(Path(f"/proc/self/fd/{fd}").resolve().name), whole(fd))
        )
        store.commit(staged)
    assert staged.trains[0].location.segment in synced


@pytest.mark.parametrize("change", ["zeroblob(length(bytes))", "'text'"])
def test_bytes_in_the_catalog_that_were_changed_are_not_written(store: LocalStore, path: str, change: str) -> None:
    Writer(store, "a").send([1], [2])
    store._catalog.execute(f"UPDATE redo SET bytes = {change} WHERE seq = (SELECT MIN(seq) FROM redo)")
    with closing(open_local(copied(path, "whole"))) as whole:
        assert read(whole) == [1, 2]
    [damage] = check_store(after_power_loss(path, "lost")).damage
    assert "cannot be read" in damage


@pytest.mark.parametrize("offset", ["offset + 1", "-1", "'text'", "1 << 40"])
def test_a_place_in_the_catalog_that_was_changed_is_not_written(store: LocalStore, path: str, offset: str) -> None:
    Writer(store, "a").send([1], [2])
    store._catalog.execute(f"UPDATE events SET offset = {offset} WHERE seq = (SELECT MIN(seq) FROM redo)")
    sizes = {file.name: file.stat().st_size for file in (Path(path) / "segments").iterdir()}
    left = copied(path, "left")
    assert any("does not match its checksum" in damage for damage in check_store(left).damage)
    assert {file.name: file.stat().st_size for file in (Path(left) / "segments").iterdir()} == sizes
