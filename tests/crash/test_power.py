"""durability="power": what a commit has made visible is on the disk, whatever the system still had in its memory."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.store import check_store
from spark_rowtime.store.local import create_local, open_local
from spark_rowtime.store.local.store import LocalStore
from spark_rowtime.store.settings import StreamSettings
from tests.crash import outage
from tests.crash.tally import Tally
from tests.crash.victims import Victim
from tests.store.streams import SCHEMA, Writer, place, read


def test_a_loss_of_power_at_or_after_a_commit(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """Bytes and file names that nobody has synced are taken away; all rows that were committed until then are there.

    All that came after the first writer's, which had durability="process".
    """
    path, line = tmp_path / "s", tally("loss of power (files as they were synced)")
    create_local(str(path), SCHEMA, StreamSettings())
    heard, code = Victim(outage.tell, str(path)).end()
    assert (len(heard), code) == (16, 0)
    whole = open_local(str(path), durability="power")
    assert whole._catalog.execute("PRAGMA synchronous").fetchone() == (2,), "SQLite syncs at each commit"
    first = place(heard[0][0])
    for before, seq, is_whole, copies in heard:
        assert len(copies) == (2 if is_whole else 3)
        for copy, upto in zip(copies, [*[before] * (len(copies) - 1), seq], strict=True):
            store, expected = open_local(copy), read(whole, first, place(upto))
            line.fault()
            line.account(read(store, first), expected, expected)
            assert not redo_rows(store)
            store.close()
    assert len(expected) > 40_000


def test_a_loss_of_power_beside_threads_that_commit_at_once(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    path, line = tmp_path / "s", tally("loss of power beside threads (files as they were synced)")
    create_local(str(path), SCHEMA, StreamSettings())
    heard, code = Victim(outage.tell_of_threads, str(path)).end()
    assert (len(heard), code) == (20, 0)
    whole = open_local(str(path))
    sent = read(whole)
    for copy, acknowledged in heard:
        store = open_local(copy)
        line.fault()
        line.account(read(store), acknowledged, sent)
        assert not redo_rows(store)
        store.close()
        assert not check_store(copy).damage


def redo_rows(store: LocalStore) -> int:
    """How many trains the catalog has, because their segment may not be synced."""
    (count,) = store._catalog.execute("SELECT COUNT(*) FROM redo").fetchone()
    return int(count)


def test_gc_removes_rows_once_the_log_without_them_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, done = tmp_path / "s", list[str]()
    create_local(str(path), SCHEMA, StreamSettings())
    store = open_local(str(path))
    store._writer._full = 1
    writer = Writer(store, "a")
    for second in range(1, 6):
        writer.send([float(second)], floor=second)
    sync, unlink = os.fsync, os.unlink

    def synced(fd: int) -> None:
        done.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        sync(fd)

    def removed(name: str, **more: Any) -> None:
        done.append("removed")
        unlink(name, **more)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "unlink", removed)
    assert store.gc(age=0).rows == 5
    assert (done[0], done.count("removed") > 1) == ("catalog.db-wal", True)
