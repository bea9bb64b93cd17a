"""Snapshots of a drain expire by its own later commits, so that a commit does not cost more with each one before."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

import spark_rowtime as rt
from spark_rowtime.drain.tables.open import open_table
from spark_rowtime.types.schema import stream_schema
from tests.tables.lake import Lake
from tests.tables.test_drain import SCHEMA
from tests.tables.test_refused import append_beside
from tests.tables.test_set_back import iceberg

KEEP, MERGE_AT = 4, 3
SETTINGS = {
    "history.expire.min-snapshots-to-keep": str(KEEP),
    "commit.manifest.min-count-to-merge": str(MERGE_AT),
    "write.metadata.previous-versions-max": "5",
}


@pytest.fixture
def table(lake: Lake) -> Any:
    made = open_table(lake.target("iceberg"), stream_schema(SCHEMA))
    iceberg().transaction().set_properties(SETTINGS).commit_transaction()
    return open_table(lake.target("iceberg"), stream_schema(SCHEMA)) if made else None


def rows(n: int) -> pa.Table:
    return pa.table({"rowtime": [n + 1], "n": [n]}).cast(stream_schema(SCHEMA))


def commit(table: Any, numbers: range) -> None:
    """A commit with a row, and one without, for each number."""
    for n in numbers:
        table.append(rows(n), {"rowtime.position": str(n)})
        table.append(rows(n).slice(0, 0), {"rowtime.position": str(n), "rowtime.bound": "2026-01-05T11:00:00Z"})


def metadata_files(lake: Lake) -> list[Path]:
    return sorted((lake.folder / "warehouse").glob("**/metadata/*"))


def test_old_snapshots_of_a_drain_expire_and_all_rows_stay(lake: Lake, table: Any) -> None:
    commit(table, range(20))
    assert lake.numbers("iceberg") == list(range(20))
    assert len(iceberg().metadata.snapshots) == KEEP + 1
    files = {file.name for file in metadata_files(lake)}
    assert named(lake) <= files
    orphans = files - named(lake)
    assert all(name.endswith("-m0.avro") for name in orphans), "a manifest that PyIceberg merges as it writes it"
    assert len(orphans) <= 20 / (MERGE_AT - 1)


def named(lake: Lake) -> set[str]:
    """The files that the table's metadata, its snapshots and their manifests name."""
    table = iceberg()
    logged = [entry.metadata_file for entry in table.metadata.metadata_log]
    lists = [snapshot.manifest_list for snapshot in table.metadata.snapshots]
    manifests = [m.manifest_path for snapshot in table.metadata.snapshots for m in snapshot.manifests(table.io)]
    return {Path(place).name for place in [table.metadata_location, *logged, *lists, *manifests]}


@pytest.mark.long
def test_snapshots_of_others_and_those_with_a_tag_stay_whole(lake: Lake, table: Any) -> None:
    commit(table, range(5))
    tagged = iceberg().current_snapshot().snapshot_id
    iceberg().manage_snapshots().create_tag(tagged, "report").commit()
    append_beside(lake, "iceberg", rows(100))
    others = iceberg().current_snapshot().snapshot_id
    table = open_table(lake.target("iceberg"), stream_schema(SCHEMA))
    commit(table, range(5, 20))
    left = {snapshot.snapshot_id for snapshot in iceberg().metadata.snapshots}
    assert {tagged, others} <= left
    assert len(left) == KEEP + 1 + 2
    assert lake.numbers("iceberg") == [*range(20), 100]
    assert sorted(iceberg().scan(snapshot_id=tagged).to_arrow()["n"].to_pylist()) == list(range(5))
    assert sorted(iceberg().scan(snapshot_id=others).to_arrow()["n"].to_pylist()) == [*range(5), 100]


@pytest.mark.long
@pytest.mark.parametrize("during", [False, True], ids=["between", "during"])
def test_a_tag_that_somebody_makes_between_two_commits_or_during_one_stays(
    lake: Lake, table: Any, during: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot is the next one to expire, and the sink has not loaded the table since."""
    from pyiceberg.table import Transaction

    commit(table, range(KEEP))
    oldest = min(iceberg().metadata.snapshots, key=lambda one: one.sequence_number)
    before = sorted(iceberg().scan(snapshot_id=oldest.snapshot_id).to_arrow()["n"].to_pylist())
    append = Transaction.append

    def tagged(*rows: Any, **more: Any) -> None:
        append(*rows, **more)
        if "report" not in iceberg().metadata.refs:
            iceberg().manage_snapshots().create_tag(oldest.snapshot_id, "report").commit()

    if during:
        monkeypatch.setattr(Transaction, "append", tagged)
    else:
        iceberg().manage_snapshots().create_tag(oldest.snapshot_id, "report").commit()
    commit(table, range(KEEP, 12))
    assert "report" in iceberg().metadata.refs
    assert sorted(iceberg().scan(snapshot_id=oldest.snapshot_id).to_arrow()["n"].to_pylist()) == before
    assert lake.numbers("iceberg") == list(range(12))


def test_a_table_that_is_set_back_to_a_snapshot_whose_parent_has_expired_is_refused(lake: Lake, table: Any) -> None:
    """PyIceberg takes the name of the parent away, and what led there is in no metadata file any more."""
    commit(table, range(3))
    append_beside(lake, "iceberg", rows(100))
    others = iceberg().current_snapshot().snapshot_id
    table = open_table(lake.target("iceberg"), stream_schema(SCHEMA))
    commit(table, range(3, 4))
    iceberg().manage_snapshots().create_tag(iceberg().current_snapshot().snapshot_id, "report").commit()
    table = open_table(lake.target("iceberg"), stream_schema(SCHEMA))
    commit(table, range(4, 20))
    assert iceberg().snapshot_by_id(others).parent_snapshot_id is None
    iceberg().manage_snapshots().set_current_snapshot(snapshot_id=others).commit()
    with pytest.raises(rt.DataLostError, match="none that is left"):
        open_table(lake.target("iceberg"), stream_schema(SCHEMA))


def test_snapshots_before_a_change_of_rows_stay_since_their_data_would_be_left_without_one(
    lake: Lake, table: Any
) -> None:
    commit(table, range(3))
    before = {snapshot.snapshot_id for snapshot in iceberg().metadata.snapshots}
    iceberg().delete("n = 1")
    table = open_table(lake.target("iceberg"), stream_schema(SCHEMA))
    commit(table, range(3, 20))
    left = {snapshot.snapshot_id for snapshot in iceberg().metadata.snapshots}
    assert len(left & before) >= len(before) - 2
    assert lake.numbers("iceberg") == [0, *range(2, 20)]
    oldest = min(left & before, key=lambda at: iceberg().snapshot_by_id(at).sequence_number)
    assert iceberg().scan(snapshot_id=oldest).to_arrow().num_rows <= 3


@pytest.mark.parametrize(
    "settings", [{"gc.enabled": "false"}, {"history.expire.max-snapshot-age-ms": "3600000"}], ids=str
)
def test_the_settings_of_iceberg_count(lake: Lake, table: Any, settings: dict[str, str]) -> None:
    iceberg().transaction().set_properties(settings).commit_transaction()
    table = open_table(lake.target("iceberg"), stream_schema(SCHEMA))
    commit(table, range(6))
    assert len(iceberg().metadata.snapshots) == 12
    table.now = lambda: 4e9
    commit(table, range(6, 7))
    assert len(iceberg().metadata.snapshots) == (14 if "gc.enabled" in settings else KEEP + 1)


def test_files_that_cannot_be_deleted_do_not_end_a_drain(
    lake: Lake, table: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    commit(table, range(KEEP // 2))

    def refused(*_: object) -> None:
        raise PermissionError("no delete")

    with monkeypatch.context() as patch:
        patch.setattr(type(iceberg().io), "delete", refused)
        commit(table, range(2, 6))
    assert "they stay as orphans" in caplog.text
    commit(table, range(6, 8))
    assert lake.numbers("iceberg") == list(range(8))


def test_a_table_that_a_drain_makes_has_settings_for_many_commits(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    lake.drain("iceberg")
    made = load_catalog("lake").load_table("shop.orders").properties
    assert made["write.metadata.delete-after-commit.enabled"] == "true"
    assert made["commit.manifest-merge.enabled"] == "true"
