"""durability="power": what a commit has made visible is on the disk, whatever the system still had in its memory."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.store.local import create_local, open_local
from spark_rowtime.store.settings import StreamSettings
from tests.crash import outage
from tests.crash.tally import Tally
from tests.crash.victims import Victim
from tests.store.streams import SCHEMA, Writer, place, read


def test_a_loss_of_power_at_or_after_a_commit(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """Bytes and file names that nobody has synced are taken away; the rows of the commit, and those before, are there.

    All that came after the first writer's, which had durability="process".
    """
    path, copy, line = tmp_path / "s", tmp_path / "copy", tally("loss of power (files as they were synced)")
    create_local(str(path), SCHEMA, StreamSettings())
    heard, code = Victim(outage.tell, str(path)).end()
    assert (len(heard), code) == (16, 0)
    whole = open_local(str(path), durability="power")
    assert whole._catalog.execute("PRAGMA synchronous").fetchone() == (2,), "SQLite syncs at each commit"
    first = place(heard[0][0] - 1)
    for seq, is_whole, (*looked, before, after) in heard:
        expected = read(whole, first, place(seq))
        assert len(looked) == (0 if is_whole else 1)
        assert expected
        for left, names in (before, after):
            shutil.copytree(path, copy)
            outage.cut(str(copy), left, names)
            store = open_local(str(copy))
            line.fault()
            line.account(read(store, first, place(seq)), expected, expected)
            store.close()
            shutil.rmtree(copy)


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
