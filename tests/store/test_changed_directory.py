"""Somebody who may write into the directory of a stream puts other things there: no file elsewhere comes to harm."""

import os
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.adapter.host_lock import only_host
from spark_rowtime.cli import main
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.local.seal import seal
from tests.otheruser import run, shared

__all__ = ["shared"]

DDL = "rowtime TIMESTAMP NOT NULL, n BIGINT"
JOURNAL = bytes.fromhex("d9d505f920a163d7")
NAME = f"{7:016x}.arrow"


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    rt.createStream(str(tmp_path / "s"), DDL)
    send(tmp_path / "s")
    return tmp_path / "s"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder that the users of the stream may write into; a file there even has the name of a segment."""
    folder = tmp_path / "victim"
    folder.mkdir()
    for name in (NAME, "letter.txt"):
        (folder / name).write_text("precious")
        os.utime(folder / name, (0, 0))
    return folder


def send(stream: Path) -> None:
    with rt.openSink(str(stream)) as sink:
        sink.sendRow(("2026-01-05T14:30:00Z", 1))


def collect(stream: Path) -> None:
    with closing(open_store(str(stream))) as store:
        store.gc(age=0, force=True)


def use(stream: Path) -> list[str]:
    """All that a writer, a reader and an operator do; returns the errors of the project's tree, others pass through."""
    said = []
    copy = str(stream.with_name("copy"))
    calls: list[Callable[[], object]] = [
        *(lambda: send(stream), lambda: collect(stream), lambda: list(rt.openReader(str(stream), order="arrival"))),
        *(lambda: rt.copyStream(str(stream), copy), lambda: check_store(str(stream))),
    ]
    for call in calls:
        try:
            call()
        except rt.RowtimeError as error:
            said.append(str(error))
    return said


def state(folder: Path) -> list[tuple[str, bytes, float]]:
    return [(file.name, file.read_bytes(), file.stat().st_mtime) for file in sorted(folder.iterdir())]


@pytest.mark.parametrize("name", ["segments", "free"])
def test_a_folder_that_is_a_link(stream: Path, victim: Path, name: str) -> None:
    before = state(victim)
    (stream / name).rename(stream / "away")
    (stream / name).symlink_to(victim)
    said = use(stream)
    assert state(victim) == before
    assert any("somebody has changed the directory" in error for error in said), said


REPLACES = """
import os, sys
stream, victim, name = sys.argv[1:]
os.rename(f"{stream}/{name}", f"{stream}/away")
os.symlink(victim, f"{stream}/{name}")
"""


def test_another_user_who_may_write_into_the_directory(shared: Path) -> None:
    """It is a user of this machine, who puts links to a folder there that only the others may write into."""
    stream, folder = shared / "s", shared / "victim"
    for name in ("segments", "free"):
        rt.createStream(str(stream), DDL)
        send(stream)
        folder.mkdir()
        (folder / NAME).write_text("precious")
        before = state(folder)
        for place in (stream, stream / "segments", stream / "free"):
            place.chmod(0o777)
        run("-c", REPLACES, str(stream), str(folder), name)
        assert (stream / name).is_symlink()
        said = use(stream)
        assert any("somebody has changed the directory" in error for error in said), said
        assert state(folder) == before
        shutil.rmtree(stream)
        shutil.rmtree(folder)
        shutil.rmtree(stream.with_name("copy"), ignore_errors=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("name", ["segments", "free"])
def test_a_folder_of_another_user(stream: Path, victim: Path, name: str) -> None:
    """As one who may rename it, in a folder that a group shares, could move it to this place."""
    before = state(victim)
    (stream / name).rename(stream / "away")
    os.chown(victim, 65534, -1)
    victim.rename(stream / name)
    said = use(stream)
    assert state(stream / name) == before
    assert any("belongs to the user 65534" in error for error in said), said


@pytest.mark.parametrize("how", ["link", "hard link", "pipe", "folder"])
def test_a_segment_that_is_none(stream: Path, victim: Path, how: str) -> None:
    """It has the schema of the stream, and a mark that says that it may be written to."""
    (segment,) = (stream / "segments").iterdir()
    target = victim / "rows.arrow"
    target.write_bytes(segment.read_bytes())
    before, place = state(victim), stream / "segments" / NAME
    for mark in (stream / "free").iterdir():
        mark.unlink()
    (stream / "free" / NAME).touch()
    put: dict[str, Callable[[], None]] = {
        "link": lambda: place.symlink_to(target),
        "hard link": lambda: place.hardlink_to(target),
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
    }
    put[how]()
    said = use(stream)
    assert state(victim) == before
    assert not said, said


@pytest.mark.parametrize("how", ["link", "hard link"])
def test_a_lock_of_a_host_that_is_a_link(stream: Path, victim: Path, how: str) -> None:
    before = state(victim)
    with only_host(str(stream), "p", 0, lambda _: None):
        (lock,) = stream.glob("host-*.lock")
    lock.unlink()
    if how == "link":
        lock.symlink_to(victim / "letter.txt")
    else:
        lock.hardlink_to(victim / "letter.txt")
    with pytest.raises(rt.StoreUnavailableError, match="cannot be used"), only_host(str(stream), "p", 0, print):
        pass
    assert state(victim) == before


@pytest.mark.parametrize("folder", ["segments", "free"])
def test_files_with_other_names_stay(stream: Path, folder: str) -> None:
    kept = stream / folder / "letter.arrow"
    kept.write_text("precious")
    os.utime(kept, (0, 0))
    assert not use(stream)
    assert kept.read_text() == "precious"


@pytest.mark.parametrize("name", ["catalog.db", "catalog.db-wal", "catalog.db-shm"])
def test_a_catalog_that_is_a_link(stream: Path, victim: Path, name: str) -> None:
    before = state(victim)
    with suppress(FileNotFoundError):
        (stream / name).rename(stream / "away")
    (stream / name).symlink_to(victim / "letter.txt")
    said = use(stream)
    assert state(victim) == before
    assert all("is not a file of a stream" in error for error in said), said
    assert len(said) >= 4


def journal_that_names(file: Path) -> bytes:
    """A journal of SQLite without any page, of a transaction over several databases, which the file lists."""
    name = str(file).encode()
    header = JOURNAL + struct.pack(">5I", 0, 0, 1, 512, 4096)
    ends = struct.pack(">2I", len(name), sum(name)) + JOURNAL
    return header.ljust(512, b"\0") + struct.pack(">I", (1 << 30) // 4096 + 1) + name + ends


def test_a_journal_that_makes_sqlite_remove_a_file(stream: Path, victim: Path) -> None:
    before = state(victim)
    (stream / "catalog.db-journal").write_bytes(journal_that_names(victim / "letter.txt"))
    said = use(stream)
    assert state(victim) == before
    assert len(said) >= 4, said
    with closing(sqlite3.connect(stream / "catalog.db")) as db, suppress(sqlite3.Error):
        db.execute("SELECT * FROM events").fetchall()
    assert not (victim / "letter.txt").exists(), "SQLite alone removes it"


def test_a_catalog_that_names_files_elsewhere(stream: Path, victim: Path) -> None:
    before = state(victim)
    with closing(sqlite3.connect(stream / "catalog.db")) as db:
        cursor = db.execute("SELECT * FROM events WHERE width IS NOT NULL LIMIT 1")
        row = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
        row["segment"] = f"../../victim/{NAME}"
        row["seal"] = seal(tuple(row.values())[:-1])
        db.execute(f"REPLACE INTO events VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
        db.execute("INSERT INTO removed VALUES (?, 8)", ("../../victim/letter.txt",))
        db.commit()
    found = CliRunner().invoke(main, ["check", str(stream)])
    assert found.exit_code == 1
    use(stream)
    assert state(victim) == before
