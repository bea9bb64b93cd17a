"""Somebody changes the files of a stream under a live sink: it acknowledges nothing from then on."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store
from tests.crash.feeds import DDL, QUIET, moment
from tests.landed import landed

Change = Callable[[Path, Path], object]


def copied_over(stream: Path, backup: Path) -> None:
    subprocess.run(["cp", "-r", f"{backup}/.", stream], check=True)


def replaced(stream: Path, backup: Path) -> None:
    """As rsync does: each file that differs gets another inode; the catalog itself does not differ."""
    for file in [*backup.glob("segments/*"), *backup.glob("catalog.db-*")]:
        there = stream / file.relative_to(backup)
        shutil.copy2(file, new := there.with_suffix(".new"))
        new.replace(there)


def moved_in(stream: Path, backup: Path) -> None:
    shutil.rmtree(stream)
    backup.rename(stream)


def segments_replaced(stream: Path, backup: Path) -> None:
    for file in backup.glob("segments/*"):
        (stream / "segments" / file.name).unlink()
        shutil.copy2(file, stream / "segments")


def segments_removed(stream: Path, _backup: Path) -> None:
    for file in stream.glob("segments/*"):
        file.unlink()


def segments_cut(stream: Path, backup: Path) -> None:
    for file in backup.glob("segments/*"):
        os.truncate(stream / "segments" / file.name, file.stat().st_size)


CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (copied_over, replaced, moved_in, segments_replaced, segments_removed, segments_cut)
}


@pytest.mark.parametrize("closed", [False, True], ids=["in-use", "closed"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_live_sink_notices_it_before_it_acknowledges_a_row(tmp_path: Path, change: Change, closed: bool) -> None:
    """``closed``: the backup was made while nobody had the stream open, so it has no write-ahead log."""
    stream, backup = tmp_path / "s", tmp_path / "backup"
    rt.createStream(str(stream), DDL)
    sink = opened(stream)
    for n in range(20):
        send(sink, n)
    if closed:
        sink.close()
    shutil.copytree(stream, backup)
    sink = opened(stream) if closed else sink
    for n in range(20, 40):
        send(sink, n)
    change(stream, backup)
    for n in range(40, 43):
        with pytest.raises(rt.DataLostError) as raised:
            send(sink, n)
        assert raised.value.values["path"] == str(stream)
    with pytest.raises(rt.DataLostError):
        sink.close()


def test_what_was_restored_stays_as_it_was(tmp_path: Path) -> None:
    """Whatever the sinks do that had it open."""
    stream, backup = tmp_path / "s", tmp_path / "backup"
    rt.createStream(str(stream), DDL)
    sink = opened(stream)
    for n in range(20):
        send(sink, n)
    shutil.copytree(stream, backup)
    for n in range(20, 40):
        send(sink, n)
    copied_over(stream, backup)
    with pytest.raises(rt.DataLostError):
        send(sink, 40)
    with pytest.raises(rt.DataLostError):
        sink.abandon()
    with opened(stream) as again:
        send(again, 50)
    assert landed(str(stream)) == [*range(20), 50]
    assert check_store(str(stream)).damage == []


def opened(stream: Path) -> rt.RowSink:
    return rt.openSink(str(stream), producer="a", linger=QUIET, lease=None)


def send(sink: rt.RowSink, n: int) -> None:
    sink.sendRow((moment(n), n))
    sink.flush()
