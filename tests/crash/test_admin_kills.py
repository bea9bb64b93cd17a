"""A copy, and an alteration, that die before any line of the store's code.

Every twelfth line once in CI; ROWTIME_KILLS=100 (or more): each line once, and so many more.
"""

import shutil
from pathlib import Path

import pytest

from spark_rowtime.errors import StreamNotFoundError
from spark_rowtime.store import check_store
from spark_rowtime.store.local import copy_local, create_local, open_local
from spark_rowtime.store.settings import StreamSettings
from tests.crash import writers
from tests.crash.test_boundaries import chosen, moments
from tests.crash.victims import KILLED, Victim
from tests.store.streams import SCHEMA, Writer, names, read

ROWS = [1.0, 2.0, 3.0, 4.0]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A stream with two segments."""
    path = str(tmp_path / "s")
    create_local(path, SCHEMA, StreamSettings())
    stores = [open_local(path) for _ in range(2)]
    for store, rows in zip(stores, (ROWS[:2], ROWS[2:]), strict=True):
        Writer(store, f"from {rows[0]}").send(rows)
    for store in stores:
        store.close()
    return path


def no_part_of_a_stream(path: str) -> None:
    """What a copy leaves is no stream, unless it is all there and only lacks its name."""
    try:
        store = open_local(path)
    except StreamNotFoundError:
        return
    assert read(store) == ROWS
    store.close()
    assert check_store(path).damage == []


@pytest.mark.long
def test_a_copy_that_dies_before_any_line(path: str, tmp_path: Path) -> None:
    """There is a whole copy, or none and the way is free."""
    deaths = chosen(moments(writers.copy, path))
    shutil.rmtree(f"{path} copy")
    for moment in deaths:
        heard, code = Victim(writers.killed_at, writers.copy, path, moment).end()
        assert code == KILLED, moment
        if "s copy" not in names(tmp_path):
            assert not heard, "what was said to be there is there"
            copy_local(path, f"{path} copy")
        assert check_store(f"{path} copy").damage == []
        copy = open_local(f"{path} copy")
        assert read(copy) == ROWS
        copy.close()
        for left in names(tmp_path):
            if left.endswith(".copying"):
                no_part_of_a_stream(str(tmp_path / left))
            if left != "s":
                shutil.rmtree(tmp_path / left)


@pytest.mark.long
def test_an_alteration_that_dies_before_any_line(path: str, tmp_path: Path) -> None:
    """The column is there or not, and the rows are."""
    shutil.copytree(path, tmp_path / "before")
    for moment in chosen(moments(writers.alter, path)):
        shutil.rmtree(path)
        shutil.copytree(tmp_path / "before", path)
        heard, code = Victim(writers.killed_at, writers.alter, path, moment).end()
        assert code == KILLED, moment
        store = open_local(path)
        assert store.schema.names in (["rowtime", "n"], ["rowtime", "n", "coupon"])
        assert not heard or "coupon" in store.schema.names
        assert read(store) == ROWS
        store.close()
        assert check_store(path).damage == []
