"""The golden stream of expected and complete producers looks as it did, and goes on to its end."""

import json
import shutil
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store
from tests.golden.write import look
from tests.golden.write_ends import FOLDER, write
from tests.streams import bound, drained, opened, send

EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@pytest.fixture
def path(tmp_path: Path) -> str:
    shutil.copytree(FOLDER / "stream", tmp_path / "stream")
    return str(tmp_path / "stream")


def seen(path: str, position: str) -> dict:
    return {"position": EXPECTED["position"], **look(path, position)}


def test_it_looks_as_it_did(path: str) -> None:
    assert seen(path, EXPECTED["position"]) == EXPECTED
    assert not check_store(path).damage
    assert [p[:2] for p in EXPECTED["producers"]] == [
        ["first", "complete"],
        ["lost", "left"],
        ["never", "detached"],
        ["to come", "expected"],
    ]


def test_it_goes_on_to_its_end(path: str) -> None:
    with pytest.raises(rt.StreamCompleteError):
        opened(path, "first")
    with rt.openReader(path) as reader, opened(path, "to come") as sink:
        assert drained(reader) == []
        send(sink, ("9:00", "to come"))
        assert rt.describeStream(path).bound == bound("9:00")
        sink.close(complete=True)
        assert [row[0] for row in drained(reader)] == ["09:00", "10:00", "10:30", "10:40", "11:00"]
        assert reader.getRowtimeBound() == rt.RowtimeBound.END


def test_the_command_writes_the_same_today(tmp_path: Path) -> None:
    path = str(tmp_path / "stream")
    assert seen(path, write(path)) == EXPECTED
