"""alterStream and ``rowtime alter``: what sinks, readers, adapters and files do before and after."""

import itertools
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.adapter.adapter import host
from spark_rowtime.cli import main
from tests.commands import printed

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"
MINUTES = itertools.count()


@pytest.fixture(params=["memory", "local"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty stream."""
    path = f"memory://{uuid.uuid4()}" if request.param == "memory" else str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA)
    return path


def time(minute: int) -> str:
    return f"2006-09-11T10:{minute:02d}:00Z"


def moment(minute: int) -> pa.Array:
    return pa.array([time(minute)]).cast(pa.timestamp("us", "UTC"))


def read(path: str) -> list[tuple[Any, ...]]:
    """All rows without rowtime, in arrival order."""
    with rt.openReader(path, order="arrival") as reader:
        return [tuple(row.values())[1:] for train in reader for row in train.rows.to_pylist()]


def test_open_sinks_and_readers_keep_their_schema_until_they_open_again(path: str) -> None:
    with rt.openSink(path, producer="a") as sink, rt.openReader(path, order="arrival") as reader:
        sink.sendRow((time(0), 0))
        sink.flush()
        rt.alterStream(path, add="coupon STRING, discount DECIMAL(5,2)")
        sink.sendRow((time(1), 1))
        with pytest.raises(rt.SchemaMismatchError, match=r"unknown \['coupon'\]"):
            sink.sendRow({"rowtime": time(2), "n": 2, "coupon": "x"})
        sink.flush()
        with rt.openSink(path, producer="b") as new:
            new.sendRow({"rowtime": time(2), "n": 2, "coupon": "x", "discount": None})
        assert [row["n"] for train in reader for row in train.rows.to_pylist()] == [0, 1, 2]
        assert reader.schema.names == ["rowtime", "n"]
    assert read(path) == [(0, None, None), (1, None, None), (2, "x", None)]
    assert rt.describeStream(path).schema.names == ["rowtime", "n", "coupon", "discount"]


FORMS: dict[str, Callable[[], Any]] = {
    "mapping": lambda: [{"rowtime": time(1), "n": 1}],
    "some of them": lambda: [{"rowtime": time(1), "n": 1, "coupon": None}],
    "tuple": lambda: [(time(1), 1)],
    "list of some": lambda: [[time(1), 1, None]],
    "Arrow": lambda: pa.table({"n": pa.array([1], pa.int32()), "rowtime": moment(1)}),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_row_may_leave_added_columns_out(path: str, form: str) -> None:
    """An adapter goes on, also when it is restarted, until its new version is there."""
    rt.alterStream(path, add="coupon STRING, k INT")
    with rt.openSink(path) as sink:
        sink.sendRows(FORMS[form]())
        if form != "Arrow":
            sink.sendRow(FORMS[form]()[0])
    assert set(read(path)) == {(1, None, None)}


def test_other_columns_are_needed_as_before(path: str) -> None:
    rt.alterStream(path, add="coupon STRING")
    with rt.openSink(path) as sink:
        for row in ({"rowtime": time(1), "coupon": "x"}, (time(1),), {"rowtime": time(1), "n": 1, "Coupon": "x"}):
            with pytest.raises(rt.SchemaMismatchError):
                sink.sendRow(row)
        with pytest.raises(rt.SchemaMismatchError, match=r"missing \['n'\]"):
            sink.sendRows(pa.table({"rowtime": moment(1), "coupon": ["x"]}))
    assert read(path) == []


def test_a_train_has_rows_with_and_without_them(path: str) -> None:
    rt.alterStream(path, add="coupon STRING")
    with rt.openSink(path, linger="1 hour") as sink:
        sink.sendRow({"rowtime": time(1), "n": 1})
        sink.sendRow({"rowtime": time(2), "n": 2, "coupon": "x"})
        sink.sendRow((time(3), 3))
        sink.sendRows(pa.table({"rowtime": moment(4), "n": pa.array([4], pa.int32()), "coupon": ["y"]}))
    assert read(path) == [(1, None), (2, "x"), (3, None), (4, "y")]


def test_a_reader_resumes_with_the_new_schema(path: str) -> None:
    with rt.openSink(path) as sink:
        sink.sendRow((time(1), 1))
        sink.flush()
        with rt.openReader(path, order="arrival") as reader:
            assert len(list(reader)) == 1
            position = reader.position
        rt.alterStream(path, add="coupon STRING")
        sink.sendRow((time(2), 2))
    with rt.openReader(path, order="arrival", start=position) as reader:
        assert [train.rows.to_pydict()["coupon"] for train in reader] == [[None]]


def test_a_drain_into_a_stream_with_the_old_schema(path: str) -> None:
    """Its consumer has a schema of its own, and says so."""
    copy = f"{path}-copy"
    rt.createStream(copy, SCHEMA)
    with rt.openSink(path) as sink:
        sink.sendRow((time(1), 1))
    rt.alterStream(path, add="coupon STRING")
    with rt.openReader(path) as reader, rt.openSink(copy) as into, pytest.raises(rt.SchemaMismatchError):
        reader.drainTo(into)
    rt.alterStream(copy, add="coupon STRING")
    with rt.openReader(path) as reader, rt.openSink(copy) as into:
        reader.drainTo(into)
    assert read(copy) == [(1, None)]


class OldFeed:
    """An adapter from before the column."""

    schema = SCHEMA

    def run(self, sink: Any) -> None:
        sink.sendRow({"rowtime": time(next(MINUTES)), "n": 7})


class NewFeed(OldFeed):
    """Its next version, which creates the stream where there is none."""

    schema = f"{SCHEMA}, coupon STRING"

    def run(self, sink: Any) -> None:
        sink.sendRow({"rowtime": time(next(MINUTES)), "n": 8, "coupon": "x"})


@pytest.mark.parametrize("create", [True, False])
def test_adapters_of_both_schemas_are_hosted(path: str, create: bool) -> None:
    with pytest.raises(rt.SchemaMismatchError, match="coupon string"):
        host(NewFeed, path, producer="feed", delays=[], create=create)
    rt.alterStream(path, add="coupon STRING")
    for feed in (OldFeed, NewFeed):
        host(feed, path, producer="feed", delays=[], create=create)
    assert read(path) == [(7, None), (8, "x")]
    rt.createStream(path, SCHEMA, existOk=True)
    with pytest.raises(rt.SchemaMismatchError):
        rt.createStream(path, f"{SCHEMA}, coupon INT", existOk=True)


def test_the_command_and_csv_files_of_both_schemas(tmp_path: Path) -> None:
    stream, old, new, last = (str(tmp_path / name) for name in ("orders.rowtime", "old.csv", "new.csv", "last.csv"))
    Path(old).write_text(f"time,n\n{time(1)},1\n")
    Path(last).write_text(f"time,n\n{time(4)},4\n")
    Path(new).write_text(f"coupon,time,n\nx,{time(2)},2\n,{time(3)},3\n")

    printed("send", stream, "--create", "--csv", old, "--rowtime", "time")
    refusal = printed("send", stream, "--csv", new, "--rowtime", "time", code=1)
    assert "unknown ['coupon']" in refusal
    assert "coupon string" in printed("alter", stream, "--add", "coupon STRING")
    for file in (new, last):
        printed("send", stream, "--csv", file, "--rowtime", "time", "--name", file)
    assert [row[1:] for row in read(stream)] == [(1, None), (2, "x"), (3, None), (4, None)]
    assert "already" in printed("alter", stream, "--add", "Coupon STRING", code=1)
    assert "NOT NULL" in printed("alter", stream, "--add", "m INT NOT NULL", code=1)
    assert "whole" in printed("check", stream)


def test_a_stream_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(rt.StreamNotFoundError):
        rt.alterStream(str(tmp_path / "nothing"), add="coupon STRING")


def test_a_limit_that_was_in_the_way_is_lifted_as_the_error_says(path: str) -> None:
    """A stream of bookings: the error of the first one says what to do, and the next sink takes it."""
    booking = ("2126-09-11T10:00:00Z", 1)
    with pytest.raises(rt.LateRowError, match="larger maxAhead") as caught, rt.openSink(path) as sink:
        sink.sendRow(booking)
    assert "alterStream" in str(caught.value)
    rt.alterStream(path, maxAhead=None)
    assert rt.describeStream(path).settings == {"maxAhead": None}
    with rt.openSink(path, producer="again") as sink:
        sink.sendRow(booking)
    assert read(path) == [(1,)]
    rt.alterStream(path, maxAhead="1 day")
    assert rt.describeStream(path).settings == {}


def test_who_may_join_is_changed(path: str) -> None:
    rt.alterStream(path, producers=["Berlin"], closed=True)
    assert rt.describeStream(path).waitsFor == "'Berlin' (expected, has not opened)"
    with pytest.raises(rt.InvalidOptionError, match=r"producers=\['Oslo'\]"):
        rt.openSink(path, producer="Oslo")
    rt.alterStream(path, producers=["Oslo"])
    assert rt.describeStream(path).settings == {"closed": ("Berlin", "Oslo")}
    rt.openSink(path, producer="Oslo").close()
    rt.alterStream(path, producers=["Rome"], closed=True)
    with pytest.raises(rt.InvalidOptionError, match="closed to all but 'Rome'"):
        rt.openSink(path, producer="Oslo")
    rt.alterStream(path, closed=False)
    rt.openSink(path, producer="anybody").close()


@pytest.mark.parametrize(
    ("change", "said"),
    [({}, "Nothing is to be altered"), ({"closed": True}, "would let nobody send"), ({"maxAhead": "far"}, "maxAhead")],
    ids=str,
)
def test_what_cannot_be_changed(path: str, change: dict[str, Any], said: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match=said):
        rt.alterStream(path, **change)


@pytest.mark.parametrize("change", [{"add": "c STRING", "maxAhead": "31 days"}, {"add": "N INT"}], ids=str)
def test_what_fails_in_part_changes_nothing(path: str, change: dict[str, Any]) -> None:
    with rt.openSink(path, producer="Berlin") as sink:
        sink.close(complete=True)
    before = rt.describeStream(path)
    with pytest.raises((rt.StreamCompleteError, rt.SchemaMismatchError)):
        rt.alterStream(path, producers=["Oslo"], **change)
    after = rt.describeStream(path)
    assert (after.schema, after.settings, after.producers) == (before.schema, before.settings, before.producers)


def test_the_commands_create_and_alter_closed_streams(tmp_path: Path) -> None:
    path, run = str(tmp_path / "closed"), CliRunner().invoke
    made = run(
        main, ["create", path, "--schema", SCHEMA, "--producer", "Berlin", "--closed", "--max-ahead", "unlimited"]
    )
    assert made.exit_code == 0, made.output
    assert rt.describeStream(path).settings == {"maxAhead": None, "closed": ("Berlin",)}
    shown = run(main, ["describe", path]).output
    assert "settings  maxAhead=unlimited, closed=to all but Berlin" in shown
    altered = run(main, ["alter", path, "--max-ahead", "2 days", "--not-closed"])
    assert altered.output.endswith(", maxAhead=2 days\n")
    assert run(main, ["create", str(tmp_path / "nobody"), "--schema", SCHEMA, "--closed"]).exit_code != 0
