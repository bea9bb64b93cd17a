"""whyTable through Iceberg tables, whose snapshots are written by PyIceberg, and from one format into the other."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

import spark_rowtime as rt
from spark_rowtime import Cause
from spark_rowtime.drain.properties import BOUND, COLUMN, POSITION
from spark_rowtime.types.timestamps import to_micros
from tests.streams import at
from tests.tables.lake import Lake as Catalog
from tests.tables.test_why import ROWS, Lake, links

SNAPSHOT = 929103405695644137


class IcebergLake(Lake):
    """Tables in the namespace shop of the catalog lake."""

    def path(self, table: str) -> str:
        return f"iceberg:lake.shop.{table}"

    def commit(self, table: str, bound: str | None = None, **properties: str) -> None:
        said = {**({} if bound is None else {BOUND: at(bound)}), **properties}
        catalog = load_catalog("lake")
        catalog.create_namespace_if_not_exists("shop")
        made = catalog.create_table_if_not_exists(f"shop.{table}", ROWS.schema)
        made.append(ROWS, snapshot_properties=said)

    def read(self, table: str, version: int, bound: str | None) -> dict[str, Any]:
        floor = None if bound is None else to_micros(at(bound))
        return {"table": self.path(table), "position": {"version": version, "floor": floor}}

    def why(self, table: str, clock: str, **more: Any) -> rt.Explanation:
        return rt.whyTable(self.path(table), at(clock), **more)


@pytest.fixture
def tables(lake: Catalog, tmp_path: Path) -> IcebergLake:
    assert lake.catalog
    return IcebergLake(tmp_path)


def test_the_query_that_has_not_read_what_its_table_has(tables: IcebergLake) -> None:
    tables.commit("bronze", "11:00", **{POSITION: "7"})
    tables.query("silver", "10:30", tables.read("bronze", SNAPSHOT, "10:30"))
    tables.query("gold", "10:00", tables.read("silver", SNAPSHOT, "10:30"))
    assert tables.why("gold", "10:00").complete is True
    tables.query("silver", "11:00", tables.read("bronze", SNAPSHOT, "11:00"))
    found = tables.why("gold", "11:00")
    assert (found.complete, found.cause, found.holder) == (False, Cause.QUERY_BEHIND, "gold-query")
    assert f"iceberg:lake.shop.silver to snapshot {SNAPSHOT} and the bound {at('10:30')}" in found.note
    assert all(link.lastMoved is not None for link in found.chain)
    found = tables.why("gold", "12:00")
    assert (found.cause, found.holder) == (Cause.DRAIN, "a drain")
    assert [kind for kind, _ in links(found)] == ["drain", "table", "query", "table", "query", "table"]


def test_a_snapshot_by_others_does_not_hide_what_the_query_said(tables: IcebergLake) -> None:
    tables.commit("silver", "11:00", **{POSITION: "7"})
    tables.query("gold", "10:00", tables.read("silver", SNAPSHOT, "10:30"))
    moved = tables.why("gold", "11:00").chain[-1].lastMoved
    tables.commit("gold", None, **{COLUMN: "ts"})
    found = tables.why("gold", "11:00")
    assert (found.cause, found.holder) == (Cause.QUERY_BEHIND, "gold-query")
    assert found.chain[-1].lastMoved == moved, "it is of the query's snapshot"


def test_snapshots_of_strangers_are_named(tables: IcebergLake) -> None:
    tables.commit("bronze")
    tables.commit("bronze")
    tables.query("silver", "10:30", tables.read("bronze", SNAPSHOT, None))
    found = tables.why("silver", "11:00")
    assert (found.cause, found.holder) == (Cause.NOT_OURS, None)
    assert "None of the 2 commits of iceberg:lake.shop.bronze" in found.note


def test_a_status_leads_to_no_other_catalog_nor_folder(tables: IcebergLake, tmp_path: Path) -> None:
    delta = Lake(tmp_path)
    delta.commit("bronze", "10:00", **{POSITION: "7"})
    tables.query("silver", "10:00", delta.read("bronze", 0, "10:00"))
    found = tables.why("silver", "11:00")
    assert (found.cause, found.notFollowed) == (Cause.NOT_FOLLOWED, (delta.path("bronze"),))
    assert tables.why("silver", "11:00", within=[str(tmp_path)]).cause == Cause.DRAIN
    delta.query("gold", "10:00", tables.read("silver", SNAPSHOT, "10:00"))
    found = delta.why("gold", "11:00")
    assert (found.cause, found.notFollowed) == (Cause.NOT_FOLLOWED, ("iceberg:lake.shop.silver",))
    for place in ("iceberg:lake", "iceberg:lake.shop"):
        assert delta.why("gold", "11:00", within=[place]).cause == Cause.DRAIN
    assert delta.why("gold", "11:00", within=["iceberg:lake.sho"]).cause == Cause.NOT_FOLLOWED
    tables.query("far", "10:00", {"table": "iceberg:other.shop.bronze", "position": {"version": 1}})
    assert tables.why("far", "11:00").cause == Cause.NOT_FOLLOWED
    assert (found := tables.why("far", "11:00", within=["iceberg:other"])).cause == Cause.SOURCE_UNREADABLE
    assert "PYICEBERG_CATALOG__OTHER__URI" in found.note
