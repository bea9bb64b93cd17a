"""Commits by others of any form, between those of a drain: what they say counts as Delta's protocol has it, or not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

import spark_rowtime as rt
from tests.conftest import set_s3_environment
from tests.tables.lake import TRANSACTIONAL, Lake
from tests.tables.test_drain import SCHEMA, fill
from tests.tables.test_refused import append_beside, opened
from tests.tables.test_set_back import bound, delta, fill_and_drain, iceberg, none_of, set_back

LINES = Callable[[str], str]


@pytest.fixture
def orders(lake: Lake) -> Lake:
    rt.createStream(lake.stream, SCHEMA)
    return lake


def without_info(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if '"commitInfo"' not in line)


def saying(**info: Any) -> LINES:
    """A commit that says this instead of what it said."""
    line = json.dumps({"commitInfo": {"timestamp": 1, "operation": "WRITE", **info}})
    return lambda text: line + "\n" + without_info(text)


def commit_beside(orders: Lake, of: LINES) -> Path:
    """A commit without rows by another writer, whose file has other lines than the library has written."""
    append_beside(orders, "delta", none_of(orders, "delta"))
    file = orders.folder / f"delta/_delta_log/{delta(orders).version():020}.json"
    file.write_text(of(file.read_text()))
    return file


def test_a_restore_past_a_commit_without_commit_info_has_the_bound_and_the_position_of_its_version(
    orders: Lake,
) -> None:
    """The history of deltalake numbers the commits before such a one too high."""
    places = [fill_and_drain(orders, "delta", range(hour, hour + 1)) for hour in (10, 11, 12)]
    commit_beside(orders, without_info)
    assert rt.readTableBound(orders.target("delta")) == bound(12)
    set_back(orders, "delta", places[1])
    assert rt.readTableBound(orders.target("delta")) == bound(11)
    orders.drain("delta")
    assert orders.numbers("delta") == [10, 11, 12]


def cloned(orders: Lake, files: str) -> None:
    """The first commit becomes a clone, on top of version -1, as it says, which deltalake's history refuses."""
    first = orders.folder / f"delta/_delta_log/{0:020}.json"
    parameters, metrics = {"source": "delta.`/lake/orders`", "sourceVersion": 2}, {"sourceNumOfFiles": files}
    said = {"operation": "CLONE", "operationParameters": parameters, "operationMetrics": metrics, "readVersion": -1}
    first.write_text(saying(**said)(first.read_text()))


def test_a_clone_of_an_empty_table_is_as_a_table_by_others(orders: Lake) -> None:
    opened(orders, "delta").close()
    cloned(orders, "0")
    fill(orders.stream, range(10, 12))
    assert rt.readTableBound(orders.target("delta")) is None
    assert rt.whyTable(orders.target("delta"), "2026-01-05T12:00:00Z").cause == rt.Cause.NOT_OURS
    orders.drain("delta")
    assert orders.numbers("delta") == [10, 11]
    assert rt.readTableBound(orders.target("delta")) == bound(11)


def test_a_clone_with_rows_takes_none_of_a_drain_which_may_be_among_them(orders: Lake) -> None:
    """Delta leaves the position behind, and the number of the drain's commits: its rows were in the clone twice."""
    append = pa.table({"rowtime": [1], "n": [10]}).cast(none_of(orders, "delta").schema)
    write_deltalake(f"{orders.folder}/delta", append)
    cloned(orders, "1")
    fill(orders.stream, range(10, 12))
    with pytest.raises(rt.DataLostError, match=r"Version 0 of delta:.* is a clone: .*make the table by CREATE TABLE"):
        orders.drain("delta")
    assert rt.readTableBound(orders.target("delta")) is None
    assert orders.numbers("delta") == [10]


@pytest.mark.parametrize(
    "info",
    [
        {"operationParameters": "mode"},
        {"operationParameters": None},
        {"operationParameters": {"mode": ["Overwrite"], "predicate": 5}},
        {"operation": {"name": "WRITE"}},
        {"operation": None},
        {"userMetadata": {"rowtime.query": "q"}},
        {"userMetadata": '["rowtime.query"]'},
        {"userMetadata": "rowtime.query" + "[" * 100_000},
        {"userMetadata": '{"rowtime.query":' + "[" * 100_000},
        {"timestamp": "now"},
        {"readVersion": -1},
    ],
    ids=lambda info: json.dumps(info)[:60],
)
def test_a_commit_of_a_strange_form_says_nothing(orders: Lake, info: dict[str, Any]) -> None:
    fill_and_drain(orders, "delta", range(10, 12))
    commit_beside(orders, saying(**info))
    assert rt.readTableBound(orders.target("delta")) == bound(11)
    fill_and_drain(orders, "delta", range(12, 14))
    assert orders.numbers("delta") == list(range(10, 14))


@pytest.mark.parametrize("version", ["x", 4, "77", -1, None, "9" * 5000])
def test_a_restore_to_what_is_no_version_before_it_is_refused(orders: Lake, version: Any) -> None:
    fill_and_drain(orders, "delta", range(10, 12))
    commit_beside(orders, saying(operation="RESTORE", operationParameters={"version": version}))
    with pytest.raises(rt.DataLostError, match="does not say which version that was"):
        rt.readTableBound(orders.target("delta"))


def test_a_commit_by_others_with_a_bound_may_leave_out_when_it_was_made(orders: Lake) -> None:
    fill_and_drain(orders, "delta", range(10, 12))
    commit_beside(orders, saying(**{"timestamp": None, "rowtime.bound": "2026-01-05T13:45:00+01:00"}))
    assert rt.readTableBound(orders.target("delta")) == bound(12)
    assert rt.whyTable(orders.target("delta"), "2026-01-05T12:00:00Z").cause == rt.Cause.COMPLETE


STRANGE_TIMES = ["2026-01-01T01:00:00", "2026-01-01T01:00Z", "2026-01-01 01:00:00Z", "2026-13-01T01:00:00Z", 5, None]
"""Java's Instant, which readers in Spark use, takes none of them."""


@pytest.mark.each
@pytest.mark.parametrize("time", STRANGE_TIMES)
def test_a_bound_of_another_form_is_refused_by_its_version(orders: Lake, time: Any) -> None:
    fill_and_drain(orders, "delta", range(10, 12))
    file = commit_beside(orders, saying(**{"rowtime.bound": time}))
    with pytest.raises(rt.StoreCorruptError, match=rf"In version {int(file.stem)} of delta:.*, rowtime\.bound is"):
        rt.readTableBound(orders.target("delta"))
    with pytest.raises(rt.StoreCorruptError, match="such as 2026-01-05T10:00:00Z"):
        orders.drain("delta")


@pytest.mark.parametrize("time", [time for time in STRANGE_TIMES if isinstance(time, str)])
def test_a_bound_of_another_form_is_refused_by_its_snapshot(orders: Lake, time: str) -> None:
    fill_and_drain(orders, "iceberg", range(10, 12))
    iceberg().append(none_of(orders, "iceberg"), snapshot_properties={"rowtime.bound": time})
    snapshot = iceberg().current_snapshot().snapshot_id
    with pytest.raises(rt.StoreCorruptError, match=rf"In snapshot {snapshot} of iceberg:.*, rowtime\.bound is"):
        rt.readTableBound(orders.target("iceberg"))


@pytest.mark.parametrize("position", ["zzz", "[]", "", '{"seq": 1}'])
@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_position_that_is_none_is_refused_by_its_commit(orders: Lake, kind: str, position: str) -> None:
    fill_and_drain(orders, kind, range(10, 12))
    right = {name: orders.commits(kind)[-1][f"rowtime.{name}"] for name in ("bound", "strict", "position")}
    beside(orders, kind, {"rowtime.position": position, "rowtime.bound": "2026-01-05T12:45:00Z"})
    place = f"version {delta(orders).version()}" if kind == "delta" else f"snapshot {newest()}"
    with pytest.raises(rt.StoreCorruptError, match=f"in {place} of {kind}:.* is .*, which is no position"):
        orders.drain(kind)
    assert rt.readTableBound(orders.target(kind)) == bound(12), "who only reads the bound needs no position"
    beside(orders, kind, {f"rowtime.{name}": value for name, value in right.items()})
    fill(orders.stream, range(12, 14))
    orders.drain(kind)
    assert orders.numbers(kind) == [10, 11, 12, 13], "the error says this way out"


def test_a_position_that_is_none_is_refused_by_the_state_of_parquet(orders: Lake) -> None:
    fill(orders.stream, range(10, 13))
    orders.drain("parquet")
    file = orders.folder / "parquet/_rowtime/state.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "rowtime.position": "zzz"}))
    with pytest.raises(rt.StoreCorruptError, match=r"in .*state\.json of parquet:.* is 'zzz', which is no"):
        orders.drain("parquet")


def newest() -> int:
    return int(iceberg().current_snapshot().snapshot_id)


@pytest.mark.parametrize("said", [{"rowtime.bound": "2026-01-05T09:00:00Z"}, {"rowtime.column": "ts"}], ids=str)
@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_commits_by_others_without_a_position_do_not_hide_that_of_the_drain(
    orders: Lake, kind: str, said: dict[str, str]
) -> None:
    """They did: the next drain began at the beginning of the stream, and its rows were in the table twice."""
    fill_and_drain(orders, kind, range(10, 12))
    extent = {name: orders.commits(kind)[-1][f"rowtime.{name}"] for name in ("first", "last")}
    for _ in range(2):
        beside(orders, kind, said)
    told = rt.RowtimeBound(said["rowtime.bound"]) if "rowtime.bound" in said else bound(11)
    assert rt.readTableBound(orders.target(kind)) == told, "a commit without a bound takes back none"
    fill(orders.stream, range(12, 14))
    orders.drain(kind)
    assert orders.numbers(kind) == [10, 11, 12, 13]
    assert rt.readTableBound(orders.target(kind)) == bound(13)
    assert orders.commits(kind)[-1]["rowtime.first"] == extent["first"]


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_commit_without_a_bound_does_not_hide_that_of_a_writer_who_tells_no_position(orders: Lake, kind: str) -> None:
    opened(orders, kind).close()
    beside(orders, kind, {"rowtime.bound": "2026-01-05T11:45:00Z", "rowtime.column": "rowtime"})
    beside(orders, kind, {"rowtime.column": "ts"})
    assert rt.readTableBound(orders.target(kind)) == bound(11)


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_bound_by_others_lets_no_drain_into_the_table_of_a_query(orders: Lake, kind: str) -> None:
    """As the format's own sink writes it, without properties of an Iceberg table."""
    opened(orders, kind).close()
    beside(orders, kind, {"rowtime.query": "q", "rowtime.batch": "1", "rowtime.bound": "2026-01-05T09:00:00Z"})
    beside(orders, kind, {"rowtime.bound": "2026-01-05T10:00:00Z"})
    with pytest.raises(rt.InvalidOptionError, match="The query q writes to"):
        opened(orders, kind)


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_drain_begins_where_only_others_have_written_bounds(orders: Lake, kind: str) -> None:
    opened(orders, kind).close()
    for hour in (8, 9):
        beside(orders, kind, {"rowtime.bound": f"2026-01-05T{hour:02d}:00:00Z"})
    fill_and_drain(orders, kind, range(10, 12))
    assert orders.numbers(kind) == [10, 11]


def beside(orders: Lake, kind: str, said: dict[str, str], rows: pa.Table | None = None) -> None:
    """A commit by another writer with these properties, and without rows if none are given."""
    rows = none_of(orders, kind) if rows is None else rows
    if kind == "delta":
        write_deltalake(delta(orders), rows, mode="append", commit_properties=CommitProperties(custom_metadata=said))
    else:
        iceberg().append(rows, snapshot_properties=said)


def test_a_line_that_is_no_action_is_refused_by_its_version(orders: Lake) -> None:
    fill_and_drain(orders, "delta", range(10, 12))
    sink_of = rt.openTableSink(orders.target("delta"), none_of(orders, "delta").schema)
    commit_beside(orders, lambda text: '{"commitInfo": ' + "[" * 100_000 + "\n" + text)
    with pytest.raises((rt.StoreCorruptError, rt.StoreUnavailableError)):
        rt.readTableBound(orders.target("delta"))
    sink_of.abandon()


@pytest.mark.usefixtures("s3")
def test_commits_of_a_table_in_a_bucket_are_read_there(
    orders: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_s3_environment(monkeypatch)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    target = f"delta:s3://rows/{tmp_path.name}"
    monkeypatch.setattr(orders, "target", lambda _: target)
    for hours in (range(10, 12), range(12, 14)):
        fill(orders.stream, hours)
        orders.drain("delta")
        DeltaTable(target.removeprefix("delta:")).optimize.compact()
    assert rt.readTableBound(target) == bound(13)
    assert rt.whyTable(target, "2026-01-05T13:00:00Z").cause == rt.Cause.COMPLETE
