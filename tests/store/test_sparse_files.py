"""A writer makes files long without writing into them: a reader takes no memory for what is not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store.local import sparse
from tests.otheruser import run, share, shared
from tests.store.crafted import FIRST, lie
from tests.store.processes import ROOT

__all__ = ["shared"]
LONG = 6 << 30
READS = """
import resource, sys
import spark_rowtime as rt
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
try:
    with rt.openReader(sys.argv[1], order="arrival") as reader:
        list(reader)
except rt.StoreCorruptError as error:
    print(error)
"""


@pytest.fixture
def seeks(tmp_path: Path) -> None:
    """Skips a test where the file system does not tell what of a file is there."""
    with (tmp_path / "empty").open("wb") as file:
        file.truncate(LONG)
        if sparse.is_there(file.fileno(), 0, LONG):
            pytest.skip("the file system does not tell where a file has no data")


@pytest.fixture
def lying(tmp_path: Path) -> Path:
    """A stream with a train of LONG bytes, of which the segment has nearly none."""
    path = tmp_path / "s"
    rt.createStream(str(path), "rowtime TIMESTAMP NOT NULL")
    with rt.openSink(str(path), linger="1 hour") as sink:
        sink.sendRow((FIRST,))
    [segment] = (path / "segments").iterdir()
    lie(str(path), bytes, offset=0, length=LONG)
    os.truncate(segment, LONG)
    return path


@pytest.mark.usefixtures("seeks")
def test_a_train_without_data(lying: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READS, lying], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert f"{lying}/segments/" in done.stdout
    assert "holes" in done.stdout


@pytest.mark.usefixtures("seeks")
def test_a_copy_writes_no_holes_out(lying: Path, tmp_path: Path) -> None:
    with pytest.raises(rt.StoreCorruptError, match="holes"):
        rt.copyStream(str(lying), str(tmp_path / "copy"))


@pytest.mark.usefixtures("seeks")
def test_the_state_of_a_drain_without_data(tmp_path: Path) -> None:
    (tmp_path / "lake/_rowtime").mkdir(parents=True)
    with (tmp_path / "lake/_rowtime/state.json").open("wb") as file:
        file.truncate(LONG)
    with pytest.raises(rt.StoreCorruptError, match="holes"):
        rt.readTableBound(f"parquet:{tmp_path}/lake")


@pytest.mark.usefixtures("seeks")
def test_a_catalog_without_data(shared: Path) -> None:
    path = shared / "s"
    rt.createStream(str(path), "rowtime TIMESTAMP NOT NULL")
    share(shared)
    os.truncate(path / "catalog.db", LONG)
    said, _ = run("-c", READS, str(path))
    assert str(path / "catalog.db") in said
    assert "holes" in said


@pytest.mark.usefixtures("seeks")
def test_what_a_compressing_file_system_leaves_out_is_there(tmp_path: Path) -> None:
    """Such a system keeps nothing of zeros. A train of nulls has many."""
    most = sparse.MOST_HOLES
    with (tmp_path / "file").open("wb+") as file:
        file.truncate(2 * most)
        assert sparse.is_there(file.fileno(), 0, most)
        assert not sparse.is_there(file.fileno(), 0, 2 * most)
        os.pwrite(file.fileno(), b"x" * (most // 16), most // 2)
        assert sparse.is_there(file.fileno(), 0, 2 * most)
        assert not sparse.is_there(file.fileno(), most, 3 * most)
        assert file.tell() == 0


def test_a_file_system_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: int) -> int:
        raise OSError(22, "Invalid argument")

    with (tmp_path / "file").open("wb+") as file:
        file.truncate(LONG)
        monkeypatch.setattr(os, "lseek", fail)
        assert sparse.is_there(file.fileno(), 0, LONG)
