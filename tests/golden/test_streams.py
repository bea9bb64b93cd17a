"""Streams that released versions wrote look as they did, and go on. ``python -m tests.golden.write`` makes one."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from tests.golden.write import ADDED_LATER, COLUMNS, HERE, look, plain, producer, row, trains, write
from tests.streams import at

GOLDEN = sorted(HERE.glob("stream-*"))


@pytest.fixture(params=GOLDEN, ids=lambda folder: folder.name)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict]:
    """A copy of a golden stream, and what it looked like."""
    path = tmp_path / "stream"
    shutil.copytree(request.param / "stream", path)
    return str(path), json.loads((request.param / "expected.json").read_text())


def test_there_is_one() -> None:
    assert GOLDEN


def test_it_looks_as_it_did(golden: tuple[str, dict]) -> None:
    path, expected = golden
    position = expected.pop("position")
    assert look(path, position) == expected
    assert not check_store(path).damage


def test_its_rows_are_those_that_were_sent(golden: tuple[str, dict]) -> None:
    """Against the values themselves, not against what was read once."""
    path, _ = golden
    with rt.openReader(path, order="arrival") as reader:
        rows = [row for train in reader for row in train.rows.to_pylist()]
    for n, values in enumerate(COLUMNS.values()):
        got = [repr(plain([*row.values()][n + 2])) for row in rows]
        assert sorted(got) == sorted(
            repr(plain(value)) for which, value in enumerate([*values, None]) for _ in range(COUNTS[which])
        )


def flat(trains: list[Any]) -> list[Any]:
    """The rows of the trains."""
    return [row for rows, _ in trains for row in rows]


COUNTS = [4, 5, 3]
"""How many accepted rows have the first values, the second ones, and nulls."""


def test_whose_bound_it_was_is_unknown_of_old_rejections_only(golden: tuple[str, dict]) -> None:
    path, expected = golden
    old = len(expected["rejected"])
    assert old
    with producer(path, "late") as sink:
        sink.sendRow(row("11:29", "late"))  # below 11:40 less ten minutes
    with closing(open_store(path)) as store:
        found = store.rejected().select(ADDED_LATER).to_pylist()
    assert [[*row.values()][:3] for row in found] == [[None] * 3] * old + [["producer", "late", None]]
    assert all(row["rejectedAt"] is not None for row in found)
    assert not check_store(path).damage


def test_it_goes_on(golden: tuple[str, dict]) -> None:
    path, expected = golden
    with producer(path, "late") as sink:
        assert sink.checkpoint == "offset 7"
        sink.sendRow(row("11:29", "late"))  # below 11:40 less ten minutes: the disorder state was kept
        sink.sendRows([row("11:45", "late", 0), row("11:35", "late", 1)])
        sink.flush(checkpoint="offset 9")
    with producer(path, "any order") as sink, pytest.raises(rt.BoundRegressionError):
        sink.sendRowtimeBound(at("12:00"))
        sink.sendRowtimeBound(at("11:00"))
    info = {p.name: p for p in rt.describeStream(path).producers}
    assert info["late"].rejected == 2
    assert info["late"].checkpoint == "offset 9"
    before, after = flat(expected["rest"]), flat(trains(path, "arrival", start=expected["position"]))
    assert len(before) == 3
    assert after[: len(before)] == before
    assert len(after) == len(before) + 2


def test_the_command_writes_the_same_today(tmp_path: Path) -> None:
    """What this version writes looks as the newest golden stream: otherwise it needs one of its own."""
    path = str(tmp_path / "stream")
    position = write(path)
    expected = json.loads((GOLDEN[-1] / "expected.json").read_text())
    del expected["position"]
    assert look(path, position) == expected


def test_it_can_be_altered(golden: tuple[str, dict]) -> None:
    """A stream of an older format has the format of today then, and its old rows are null in the new columns."""
    path, _ = golden
    before = rt.describeStream(path)
    rt.alterStream(path, add="coupon STRING, nested STRUCT<a: INT>")
    with rt.openSink(path, producer="new") as sink:
        values = dict.fromkeys(before.schema.names) | {"rowtime": at("2006-09-12 12:00"), "who": "new", "coupon": "x"}
        sink.sendRow(values)
    with rt.openReader(path, order="arrival") as reader:
        rows = [row for train in reader for row in train.rows.to_pylist()]
    assert [row["coupon"] for row in rows] == [None] * before.rows + ["x"]
    assert {str(row["nested"]) for row in rows} == {"None"}
    assert not check_store(path).damage
