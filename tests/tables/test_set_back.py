"""Tables that were set back, replaced or created again: position and bound are what a reader sees, or refused."""

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

import spark_rowtime as rt
from spark_rowtime.types.schema import stream_schema
from tests.tables.lake import TRANSACTIONAL, Lake
from tests.tables.test_drain import SCHEMA, fill
from tests.tables.test_refused import append_beside, drained, opened


@pytest.fixture
def orders(lake: Lake) -> Lake:
    """A lake with an empty stream, and no table yet."""
    rt.createStream(lake.stream, SCHEMA)
    return lake


def fill_and_drain(orders: Lake, kind: str, hours: range) -> Any:
    """What a table can be set back to, after these hours: a version, or the id of a snapshot."""
    fill(orders.stream, hours)
    orders.drain(kind)
    return delta(orders).version() if kind == "delta" else iceberg().current_snapshot().snapshot_id


def delta(orders: Lake) -> DeltaTable:
    return DeltaTable(f"{orders.folder}/delta")


def iceberg() -> Any:
    from pyiceberg.catalog import load_catalog

    return load_catalog("lake").load_table("shop.orders")


def set_back(orders: Lake, kind: str, to: Any) -> None:
    if kind == "delta":
        delta(orders).restore(to)
    else:
        iceberg().manage_snapshots().rollback_to_snapshot(to).commit()


def bound(hour: int) -> rt.RowtimeBound:
    return rt.RowtimeBound(f"2026-01-05T{hour}:45:00Z")


def none_of(orders: Lake, kind: str) -> pa.Table:
    return pa.table({"rowtime": [], "n": []}).cast(stream_schema(SCHEMA))


@pytest.mark.parametrize("kind", TRANSACTIONAL)
@pytest.mark.parametrize("others", [0, 1])
def test_a_table_that_was_set_back_has_the_bound_and_the_position_of_then(orders: Lake, kind: str, others: int) -> None:
    early = fill_and_drain(orders, kind, range(10, 12))
    fill_and_drain(orders, kind, range(12, 16))
    set_back(orders, kind, early)
    for _ in range(others):
        append_beside(orders, kind, none_of(orders, kind))
    assert rt.readTableBound(orders.target(kind)) == bound(11)
    orders.drain(kind)
    assert orders.numbers(kind) == list(range(10, 16))
    assert rt.readTableBound(orders.target(kind)) == bound(15)


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_table_that_was_set_back_twice_and_forward_again(orders: Lake, kind: str) -> None:
    places = [fill_and_drain(orders, kind, range(hour, hour + 1)) for hour in (10, 11, 12)]
    seen = []
    for place in (1, 0, 2):
        if kind == "delta":
            delta(orders).restore(places[place])
        else:
            iceberg().manage_snapshots().set_current_snapshot(places[place]).commit()
        seen.append(rt.readTableBound(orders.target(kind)))
    assert seen == [bound(11), bound(10), bound(12)]
    orders.drain(kind)
    assert orders.numbers(kind) == [10, 11, 12]


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_drain_that_runs_while_its_table_is_set_back_is_refused_and_the_next_one_writes_what_is_missing(
    orders: Lake, kind: str
) -> None:
    early = fill_and_drain(orders, kind, range(10, 12))
    sink = opened(orders, kind)
    fill(orders.stream, range(12, 14))
    drained(orders, sink)
    set_back(orders, kind, early)
    fill(orders.stream, range(14, 16))
    with pytest.raises(rt.ProducerFencedError, match="or the table was set back"):
        drained(orders, sink)
    orders.drain(kind)
    assert orders.numbers(kind) == list(range(10, 16))


def test_a_rollback_whose_snapshots_have_expired_does_not_leave_the_abandoned_position(orders: Lake) -> None:
    """The table's properties are those of the abandoned snapshot: they do not go back."""
    early = fill_and_drain(orders, "iceberg", range(10, 12))
    fill_and_drain(orders, "iceberg", range(12, 16))
    set_back(orders, "iceberg", early)
    for _ in range(2):
        append_beside(orders, "iceberg", none_of(orders, "iceberg"))
    expire_all_but_the_newest()
    assert rt.readTableBound(orders.target("iceberg")) == bound(11)
    orders.drain("iceberg")
    assert orders.numbers("iceberg") == list(range(10, 16))


def expire_all_but_the_newest() -> None:
    table = iceberg()
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id != table.current_snapshot().snapshot_id:
            table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()


def test_a_drain_that_runs_while_others_let_its_snapshot_expire_goes_on(orders: Lake) -> None:
    """With its list of manifests, as Java's expire_snapshots does it: the drain had loaded the table before."""
    mine = fill_and_drain(orders, "iceberg", range(10, 12))
    sink, lists = opened(orders, "iceberg"), iceberg().snapshot_by_id(mine).manifest_list
    append_beside(orders, "iceberg", none_of(orders, "iceberg"))
    expire_all_but_the_newest()
    Path(lists.removeprefix("file://")).unlink()
    fill(orders.stream, range(12, 14))
    drained(orders, sink)
    assert orders.numbers("iceberg") == list(range(10, 14))


@pytest.mark.parametrize(("others", "back"), [(0, False), (1, False), (2, False), (1, True)])
@pytest.mark.parametrize("keepsParents", [True, False])
def test_where_metadata_files_are_gone_too_the_properties_count_if_they_are_of_the_parent(
    orders: Lake, others: int, back: bool, keepsParents: bool
) -> None:
    """Expiry by Java's library leaves the id of a parent that has expired; PyIceberg's takes it away."""
    early = fill_and_drain(orders, "iceberg", range(10, 12))
    if back:
        fill_and_drain(orders, "iceberg", range(12, 16))
        set_back(orders, "iceberg", early)
    for _ in range(others):
        append_beside(orders, "iceberg", none_of(orders, "iceberg"))
    expire_all_but_the_newest_and_metadata(orders, keepsParents)
    if not others or (others == 1 and not back and keepsParents):
        assert rt.readTableBound(orders.target("iceberg")) == bound(11)
        return
    with pytest.raises(rt.DataLostError, match="Which rows of the stream are there is not known"):
        rt.readTableBound(orders.target("iceberg"))
    with pytest.raises(rt.DataLostError):
        orders.drain("iceberg")


def expire_all_but_the_newest_and_metadata(orders: Lake, keepsParents: bool) -> None:
    place = Path(orders._metadata().removeprefix("file://"))
    metadata = json.loads(place.read_text())
    current = metadata["current-snapshot-id"]
    newest = next(snapshot for snapshot in metadata["snapshots"] if snapshot["snapshot-id"] == current)
    if not keepsParents:
        newest.pop("parent-snapshot-id", None)
    log = [entry for entry in metadata["snapshot-log"] if entry["snapshot-id"] == current]
    place.write_text(json.dumps({**metadata, "snapshots": [newest], "snapshot-log": log, "metadata-log": []}))


@pytest.mark.parametrize("expired", [False, True])
def test_rows_of_a_drain_that_were_picked_out_of_its_snapshot_are_not_written_twice(
    orders: Lake, expired: bool
) -> None:
    """As by Iceberg's cherrypick_snapshot, which leaves the position behind; the next drain wrote the rows again."""
    early = fill_and_drain(orders, "iceberg", range(10, 12))
    late = fill_and_drain(orders, "iceberg", range(12, 14))
    rows = iceberg().scan("n >= 12").to_arrow()
    set_back(orders, "iceberg", early)
    iceberg().append(rows, snapshot_properties={"source-snapshot-id": str(late)})
    if expired:
        iceberg().maintenance.expire_snapshots().by_id(late).commit()
    with pytest.raises(rt.DataLostError, match=rf"has the rows of snapshot {late} .*to the snapshot before, {early} "):
        orders.drain("iceberg")
    set_back(orders, "iceberg", early)
    orders.drain("iceberg")
    assert orders.numbers("iceberg") == list(range(10, 14))


def test_rows_of_others_that_were_picked_out_of_their_snapshot_do_not_stop_a_drain(orders: Lake) -> None:
    fill_and_drain(orders, "iceberg", range(10, 12))
    append_beside(orders, "iceberg", none_of(orders, "iceberg"))
    published = {"source-snapshot-id": str(iceberg().current_snapshot().snapshot_id)}
    iceberg().append(none_of(orders, "iceberg"), snapshot_properties=published)
    fill_and_drain(orders, "iceberg", range(12, 14))
    assert orders.numbers("iceberg") == list(range(10, 14))


@pytest.mark.parametrize("drains", [1, 2])
def test_a_table_that_was_rolled_back_to_before_its_first_drain_starts_again(orders: Lake, drains: int) -> None:
    opened(orders, "iceberg").close()
    append_beside(orders, "iceberg", none_of(orders, "iceberg"))
    before = iceberg().current_snapshot().snapshot_id
    for hour in range(10, 10 + drains):
        fill_and_drain(orders, "iceberg", range(hour, hour + 1))
    set_back(orders, "iceberg", before)
    assert rt.readTableBound(orders.target("iceberg")) is None
    orders.drain("iceberg")
    assert orders.numbers("iceberg") == list(range(10, 10 + drains))


def documented_bound() -> str:
    """What the SQL of the guide gives, on Iceberg's own tables of history and snapshots."""
    page = (Path(__file__).parents[2] / "docs/howto/tables.md").read_text()
    (query,) = (text for text in re.findall("```text\n(.*?)```", page, re.DOTALL) if "is_current_ancestor" in text)
    connection = duckdb.connect()
    for name in ("history", "snapshots"):
        connection.register(name, getattr(iceberg().inspect, name)())
    return str(connection.execute(query.replace("prod.shop.orders.", "")).fetchone()[0])


def test_the_documented_sql_leaves_out_snapshots_that_were_abandoned(orders: Lake) -> None:
    early = fill_and_drain(orders, "iceberg", range(10, 12))
    fill_and_drain(orders, "iceberg", range(12, 16))
    assert documented_bound() == "2026-01-05T15:45:00Z"
    set_back(orders, "iceberg", early)
    assert documented_bound() == "2026-01-05T11:45:00Z"
    append_beside(orders, "iceberg", none_of(orders, "iceberg"))
    assert documented_bound() == "2026-01-05T11:45:00Z"


def test_a_restore_to_a_time_is_refused_with_the_way_out(orders: Lake) -> None:
    """The log has the time as it was given, not the version that was found for it."""
    early = fill_and_drain(orders, "delta", range(10, 12))
    fill_and_drain(orders, "delta", range(12, 16))
    written = (orders.folder / f"delta/_delta_log/{early:020}.json").stat().st_mtime
    delta(orders).restore(datetime.fromtimestamp(written, UTC) + timedelta(milliseconds=1))
    assert orders.numbers("delta") == [10, 11]
    with pytest.raises(rt.DataLostError, match=r"RESTORE TABLE \.\.\. TO VERSION AS OF n"):
        rt.readTableBound(orders.target("delta"))
    delta(orders).restore(early)
    orders.drain("delta")
    assert orders.numbers("delta") == list(range(10, 16))


@pytest.mark.parametrize("how", ["overwrite", "replace"])
def test_a_delta_table_whose_rows_were_replaced_is_refused(orders: Lake, how: str) -> None:
    early = fill_and_drain(orders, "delta", range(10, 12))
    if how == "overwrite":
        write_deltalake(f"{orders.folder}/delta", none_of(orders, "delta"), mode="overwrite")
    else:
        DeltaTable.create(f"{orders.folder}/delta", none_of(orders, "delta").schema, mode="overwrite")
    with pytest.raises(rt.DataLostError, match="replaced all rows"):
        orders.drain("delta")
    delta(orders).restore(early)
    orders.drain("delta")
    assert orders.numbers("delta") == [10, 11]


def test_a_table_that_was_overwritten_before_its_first_drain_is_as_any(orders: Lake) -> None:
    for _ in range(2):
        write_deltalake(f"{orders.folder}/delta", none_of(orders, "delta"), mode="overwrite")
    fill_and_drain(orders, "delta", range(10, 12))
    assert orders.numbers("delta") == [10, 11]
    write_deltalake(
        f"{orders.folder}/delta", none_of(orders, "delta"), mode="overwrite", predicate="n = 77"
    )  # a part of the table
    orders.drain("delta")
    assert orders.numbers("delta") == [10, 11]


@pytest.mark.parametrize("versions", [-1, 0, 3])
def test_a_delta_table_created_again_under_a_running_drain_gets_nothing_of_it(orders: Lake, versions: int) -> None:
    """Also where the new table has come to the very version that the drain knows."""
    fill(orders.stream, range(10, 12))
    sink = opened(orders, "delta")
    drained(orders, sink)
    known = delta(orders).version()
    shutil.rmtree(orders.folder / "delta")
    for _ in range(known + versions + 1):
        write_deltalake(f"{orders.folder}/delta", none_of(orders, "delta"), mode="append")
    fill(orders.stream, range(12, 14))
    with pytest.raises(rt.ProducerFencedError, match="deleted and created again"):
        drained(orders, sink)
    assert delta(orders).version() == known + versions
    assert orders.numbers("delta") == []
    orders.drain("delta")
    assert orders.numbers("delta") == list(range(10, 14))


def test_an_iceberg_table_created_again_under_a_running_drain_gets_nothing_of_it(orders: Lake) -> None:
    from pyiceberg.catalog import load_catalog

    fill(orders.stream, range(10, 12))
    sink = opened(orders, "iceberg")
    drained(orders, sink)
    load_catalog("lake").drop_table("shop.orders")
    opened(orders, "iceberg").close()
    fill(orders.stream, range(12, 14))
    with pytest.raises(rt.ProducerFencedError):
        drained(orders, sink)
    orders.drain("iceberg")
    assert orders.numbers("iceberg") == list(range(10, 14))


def test_a_restore_to_a_version_that_the_log_no_longer_has_is_refused(orders: Lake) -> None:
    early = fill_and_drain(orders, "delta", range(10, 12))
    fill_and_drain(orders, "delta", range(12, 16))
    delta(orders).restore(early)
    delta(orders).create_checkpoint()
    for version in range(early + 1):
        (orders.folder / f"delta/_delta_log/{version:020}.json").unlink()
    with pytest.raises(rt.DataLostError, match="its log no longer has the commit with the position"):
        orders.drain("delta")


def test_a_restore_of_what_others_wrote_changes_nothing(orders: Lake) -> None:
    fill_and_drain(orders, "delta", range(10, 12))
    sink = opened(orders, "delta")
    write_deltalake(
        f"{orders.folder}/delta",
        none_of(orders, "delta"),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"by": "others"}),
    )
    delta(orders).restore(delta(orders).version() - 1)
    fill(orders.stream, range(12, 14))
    drained(orders, sink)
    assert orders.numbers("delta") == list(range(10, 14))
