"""Who may write into a folder of Parquet files leads no drain elsewhere: what is below the folder is no link."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import spark_rowtime as rt
from tests.announce.streams import stream_with
from tests.tables.lake import Lake
from tests.tables.test_drain import SCHEMA, fill

pytestmark = pytest.mark.each  # each case is a promise of its own
Plant = Callable[[Path, Path], object]
DAY = "date=2026-01-05"


def linked(place: str, to: str) -> Plant:
    def plant(root: Path, victim: Path) -> None:
        (root / place).parent.mkdir(exist_ok=True, parents=True)
        (root / place).symlink_to(victim / to)

    return plant


def pipe(root: Path, victim: Path) -> None:
    del victim
    (root / "_rowtime").mkdir()
    os.mkfifo(root / "_rowtime/lock")


def hard_link(root: Path, victim: Path) -> None:
    (root / "_rowtime").mkdir()
    os.link(victim / "letter", root / "_rowtime/lock")


REFUSED: dict[str, tuple[str, Plant]] = {
    "the lock": ("_rowtime/lock", linked("_rowtime/lock", "letter")),
    "a lock with another name": ("_rowtime/lock", hard_link),
    "a lock that is a pipe": ("_rowtime/lock", pipe),
    "the folder of the drain": ("_rowtime", linked("_rowtime", ".")),
    "a period's folder": (DAY, linked(DAY, ".")),
    "a folder that is not there": (DAY, linked(DAY, "new")),
    "the state": ("_rowtime/state.json", linked("_rowtime/state.json", "letter")),
}
REPLACED = {
    "the new state": linked("_rowtime/state.new", "letter"),
    "a file in the making": linked("_rowtime/rows-20260105T1000.parquet", "new"),
    "a file of a period": linked(f"{DAY}/hour=10/rows-20260105T1000.parquet", "data.parquet"),
}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    for name in ("letter", "data.parquet"):
        (folder / name).write_text(name)
    return folder


def unharmed(victim: Path) -> bool:
    return {file.name: file.read_text() for file in victim.iterdir()} == {
        name: name for name in ("letter", "data.parquet")
    }


@pytest.fixture
def orders(lake: Lake) -> Lake:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 14))
    (lake.folder / "parquet").mkdir()
    return lake


@pytest.mark.parametrize("what", REFUSED)
def test_a_link_below_the_folder_is_refused(orders: Lake, victim: Path, what: str) -> None:
    place, plant = REFUSED[what]
    plant(orders.folder / "parquet", victim)
    with pytest.raises(rt.StoreUnavailableError, match="remove it") as caught:
        orders.drain("parquet")
    assert f"{orders.folder}/parquet/{place} " in str(caught.value)
    assert unharmed(victim)


@pytest.mark.parametrize("what", REPLACED)
def test_a_link_in_place_of_a_file_that_is_made_again_is_not_followed(orders: Lake, victim: Path, what: str) -> None:
    REPLACED[what](orders.folder / "parquet", victim)
    orders.drain("parquet")
    assert unharmed(victim)
    assert orders.numbers("parquet") == list(range(10, 13))


def test_the_bound_of_a_linked_state_is_not_read(orders: Lake, victim: Path) -> None:
    linked("_rowtime/state.json", "letter")(orders.folder / "parquet", victim)
    with pytest.raises(rt.StoreUnavailableError, match="remove it"):
        rt.readTableBound(orders.target("parquet"))


def test_the_folder_itself_may_be_a_link(orders: Lake, tmp_path: Path) -> None:
    (orders.folder / "parquet").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (orders.folder / "parquet").symlink_to(tmp_path / "elsewhere")
    orders.drain("parquet")
    assert orders.numbers("parquet") == list(range(10, 13))


@pytest.mark.parametrize("place", ["2006-09-11", "2006-09-11/09", "2006-09-11/09/_SUCCESS"])
def test_success_files_are_made_behind_no_link(tmp_path: Path, victim: Path, place: str) -> None:
    path, root = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z"), tmp_path / "out"
    linked(place, "new" if place.endswith("_SUCCESS") else ".")(root, victim)
    to = f"success-file:{root}/%Y-%m-%d/%H"
    with pytest.raises(rt.AnnouncementError, match="remove it") as caught:
        rt.announceTo(path, to, every="1 hour")
    assert f"{root}/{place} " in str(caught.value)
    assert unharmed(victim)
    (root / place).unlink()
    (tmp_path / "linked").symlink_to(root)
    assert rt.announceTo(path, f"success-file:{tmp_path}/linked/%Y-%m-%d/%H", every="1 hour") == 1
    assert (root / "2006-09-11/09/_SUCCESS").read_text() == ""


def test_a_pipe_as_a_success_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    path, root = stream_with("2006-09-11T09:40:00Z", bound="2006-09-12T00:00:00Z"), tmp_path / "out"
    (root / "2006-09-11").mkdir(parents=True)
    os.mkfifo(root / "2006-09-11/_SUCCESS")
    with pytest.raises(rt.AnnouncementError, match="remove it"):
        rt.announceTo(path, f"success-file:{root}/%Y-%m-%d", every="1 day")
