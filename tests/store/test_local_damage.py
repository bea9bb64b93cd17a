"""Flipped bytes, in any file of a stream: the right rows, or an error that says where; never other data.

    ROWTIME_FLIPS=20000 pytest tests/store/test_local_damage.py

flips that many bits of the catalog, drawn at random; without it, few of them.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.cli import main
from spark_rowtime.errors import StoreCorruptError, StoreUnavailableError
from spark_rowtime.store.local import check_local, create_local, open_local
from spark_rowtime.store.local.segment_reader import SegmentReader
from spark_rowtime.store.settings import StreamSettings
from tests.store.streams import EMPTY, SCHEMA, WHOLE, Writer, infos, place, read

FLIPS = int(os.environ.get("ROWTIME_FLIPS", "300"))
PAGE = 4096
USER_VERSION = range(60, 64)
"""Where SQLite has the format's number: any other is the format of some version to come."""


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small stream with something in each table."""
    path = tmp_path_factory.mktemp("damage") / "orders.rowtime"
    create_local(str(path), SCHEMA, StreamSettings())
    store = open_local(str(path))
    one, two = Writer(store, "one"), Writer(store, "two")
    for second in range(1, 40):
        late = [0] if second == 7 else ()
        one.send([second], [second, second + 2], floor=second, checkpoint=str(second), late=late)
        if second % 3 == 0:
            two.send([second, second + 1], floor=second)
    for second in range(50, 80):
        two.promise((second, TopicCut({"orders": {0: second, 1: 100}})))
    two.leave()
    store.keep("reader", place(5, 3))
    store.close()
    return path


@pytest.fixture
def damaged(stream: Path) -> Iterator[Any]:
    """``damaged(file, at, bit)`` flips one bit; all is put back at the end, and before the next."""
    whole: dict[Path, bytes] = {}

    def restore() -> None:
        for file, content in whole.items():
            file.write_bytes(content)
        for name in ("catalog.db-wal", "catalog.db-shm"):
            (stream / name).unlink(missing_ok=True)

    def flip(name: str, at: int, bit: int = 1) -> None:
        restore()
        content = bytearray(whole.setdefault(stream / name, (stream / name).read_bytes()))
        content[at] ^= bit
        (stream / name).write_bytes(content)

    yield flip
    restore()


def everything(path: Path) -> list[Any]:
    """All that can be asked of a stream."""
    store = open_local(str(path))
    try:
        head = store.head()
        rows = [read(store), read(store, place(3, 5), place(head.seq, 20)), read(store, place(40, 15), place(60, 30))]
        readers = [(reader.name, reader.position) for reader in store.snapshot().readers]
        state = [store.stream, store.schema, store.settings, head, store.snapshot().logged_clock, infos(store), readers]
        tables = [store.rejected(), store.bounds(), store.horizon(), list(store.cuts()), store.last_cuts("two")]
        return [*state, store.summary(), store.snapshot().rejected_removed, *tables, *rows]
    finally:
        store.close()


@pytest.mark.search
def test_a_flip_in_the_catalog(stream: Path, damaged: Any) -> None:
    """Half of them where it hurts most, at the head of a page; whatever could be seen is reported by check, too."""
    whole, size, draw = everything(stream), (stream / "catalog.db").stat().st_size, random.Random(FLIPS)
    named = 0
    for number in range(FLIPS):
        at = draw.randrange(size) if number % 2 else draw.randrange(size // PAGE) * PAGE + draw.randrange(64)
        damaged("catalog.db", at, 1 << draw.randrange(8))
        try:
            assert everything(stream) == whole, at
        except StoreCorruptError as error:
            named += 1
            assert "catalog.db" in str(error), at
            assert check_local(str(stream)).damage, at
        except StoreUnavailableError as error:
            assert "written by a newer spark-rowtime" in str(error), at
            assert at in USER_VERSION
    assert named > FLIPS / 10


SEALED = [
    "meta",
    "producers",
    "producer_totals",
    "readers",
    "cut_ends",
    "topic_cuts",
    "events",
    "rejected",
    "rejected_totals",
    "uptime",
]


def test_the_second_checksum_of_a_producer_is_checked(stream: Path, tmp_path: Path) -> None:
    """Reads for leases and the clock use it alone; `check` did not look at it."""
    copy = tmp_path / stream.name
    shutil.copytree(stream, copy)
    with closing(sqlite3.connect(copy / "catalog.db", isolation_level=None)) as db:
        db.execute("UPDATE producers SET ticking = ticking + 1 WHERE name = 'one'")
    with pytest.raises(StoreCorruptError, match="row 'one' of the table producers"):
        everything(copy)
    assert "row 'one' of the table producers" in "".join(check_local(str(copy)).damage)


@pytest.mark.parametrize("table", SEALED)
def test_a_row_that_is_not_what_was_written(stream: Path, tmp_path: Path, table: str) -> None:
    """As the disk changes it under a catalog that is otherwise whole."""
    copy = tmp_path / stream.name
    shutil.copytree(stream, copy)
    with closing(sqlite3.connect(copy / "catalog.db", isolation_level=None)) as db:
        assert db.execute(f"UPDATE {table} SET seal = seal + 1").rowcount
    with pytest.raises(StoreCorruptError, match=table):
        everything(copy)
    assert check_local(str(copy)).damage


@pytest.mark.search
def test_a_flip_in_a_segment(stream: Path, damaged: Any) -> None:
    """Each byte in turn. The first message, the schema, is read by other tools only."""
    (segment,) = (stream / "segments").iterdir()
    store = open_local(str(stream))
    pieces = store.slices(EMPTY, WHOLE)[:2]
    end = pieces[-1].location.offset + pieces[-1].location.length
    whole = [store.read(piece) for piece in pieces]
    store.close()
    for at in range(end):
        damaged(f"segments/{segment.name}", at)
        reader = SegmentReader(stream, SCHEMA)
        for piece, rows in zip(pieces, whole, strict=True):
            offset = piece.location.offset
            if offset <= at < offset + piece.location.length:
                named = rf"{segment.name}, offset {offset}: .*; so train {piece.seq}"
                with pytest.raises(StoreCorruptError, match=named):
                    reader.read(piece.location, piece.rows, f"train {piece.seq}")
            else:
                assert reader.read(piece.location, piece.rows, "") == rows
        reader.close()


def rowtime_check(path: Path) -> tuple[int, list[str]]:
    result = CliRunner().invoke(main, ["check", str(path)])
    return result.exit_code, result.stdout.splitlines()


def test_check_says_that_a_stream_is_whole(stream: Path) -> None:
    code, lines = rowtime_check(stream)
    assert (code, lines) == (0, ["readable  143 of 143 rows, 91 of 91 trains", f"{stream} is whole"])


def test_check_names_file_and_train_and_what_is_left(stream: Path, damaged: Any) -> None:
    (segment,) = (stream / "segments").iterdir()
    damaged(f"segments/{segment.name}", segment.stat().st_size - 30)
    code, (damage, readable, verdict) = rowtime_check(stream)
    assert code == 1
    assert damage.startswith("damage    ")
    assert f"{segment.name}, offset " in damage
    assert "the checksum does not match; so train 93 of 'two' (2 rows) cannot be read" in damage
    assert readable == "readable  141 of 143 rows, 90 of 91 trains"
    assert verdict == f"{stream} is damaged"


def test_check_of_a_catalog_that_cannot_be_opened(stream: Path, damaged: Any) -> None:
    damaged("catalog.db", 0)
    code, lines = rowtime_check(stream)
    assert code == 1
    assert "catalog.db, is damaged (file is not a database)" in lines[0]
    assert lines[1] == "readable  0 of 0 rows, 0 of 0 trains"


def test_check_of_missing_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "s"
    create_local(str(path), SCHEMA, StreamSettings())
    store = open_local(str(path))
    Writer(store, "a").send([1], floor=1)
    (segment,) = (path / "segments").iterdir()
    (path / "notes.txt").touch()
    for name in ("stray.arrow", f"{7:016x}.arrow"):
        (path / "segments" / name).touch()
    code, lines = rowtime_check(path)
    assert code == 0
    assert lines[:3] == [
        "remark    notes.txt does not belong to the stream",
        "remark    segments/stray.arrow does not belong to the stream",
        "remark    segments/0000000000000007.arrow has no committed rows; gc removes it once no process owns it",
    ]
    segment.unlink()
    code, lines = rowtime_check(path)
    assert code == 1
    assert f"{segment.name}, offset " in lines[3]
    assert "the file is gone; so train 2 of 'a' (1 rows) cannot be read" in lines[3]
    store.close()


def test_check_sees_a_damaged_uptime(tmp_path: Path) -> None:
    path = tmp_path / "s"
    create_local(str(path), SCHEMA, StreamSettings())
    store = open_local(str(path))
    Writer(store, "a").send([1], floor=1)
    store._catalog.execute("UPDATE uptime SET ahead = ahead + 1")
    store.close()
    assert "uptime" in check_local(str(path)).damage[0]


def test_check_sees_what_does_not_follow(tmp_path: Path) -> None:
    """Rows with a fitting checksum that cannot have been written so."""
    path = tmp_path / "s"
    create_local(str(path), SCHEMA, StreamSettings())
    store = open_local(str(path))
    writer = Writer(store, "a")
    for second in range(1, 5):
        writer.send([second], floor=second)
    other = Writer(store, "b")
    other.send([5], floor=5)
    store._catalog.execute("DELETE FROM events WHERE seq = 3")
    assert "seq 3 to 3 are missing from the log" in check_local(str(path)).damage[0]
    with pytest.raises(StoreCorruptError, match="events between seq 0 and 1099511627776 are missing from the log"):
        read(store)
    with pytest.raises(StoreCorruptError, match="event 3 is missing"):
        store.at(3)
    store._catalog.execute("DELETE FROM events WHERE seq >= 5")
    store.close()
    with pytest.raises(StoreCorruptError, match="ends at seq 4 with 3 rows, but producers have sent 5, up to seq 7"):
        open_local(str(path))
