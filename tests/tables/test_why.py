"""whyTable: which query, drain or stranger holds a Delta table. Commits are written by a drain and by ``deltalake``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

import spark_rowtime as rt
from spark_rowtime import Cause
from spark_rowtime.drain.properties import BATCH, BOUND, COLUMN, POSITION, QUERY, QUERY_STATUS
from spark_rowtime.types.timestamps import to_micros
from tests.streams import at

ROWS = pa.table({"k": ["a"]})


class Lake:
    """Tables in a folder, and the commits of those who write them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, table: str) -> str:
        return str(self.folder / table)

    def commit(self, table: str, bound: str | None = None, **properties: str) -> None:
        said = {**({} if bound is None else {BOUND: at(bound)}), **properties}
        commit = CommitProperties(custom_metadata=said)
        write_deltalake(self.path(table), ROWS, mode="append", commit_properties=commit)

    def query(self, table: str, bound: str, *sources: dict[str, Any], **status: Any) -> None:
        """A commit of a query that has read these sources."""
        name = f"{table}-query"
        told = {"query": name, "name": name, "batch": 1, "sources": list(sources), "output": {}, "lost": {}, **status}
        self.commit(table, bound, **{QUERY: name, BATCH: "1", QUERY_STATUS: json.dumps(told)})

    def read(self, table: str, version: int, bound: str | None) -> dict[str, Any]:
        floor = None if bound is None else to_micros(at(bound))
        return {"table": f"file:{self.path(table)}", "position": {"version": version, "floor": floor}}

    def why(self, table: str, clock: str, **more: Any) -> rt.Explanation:
        return rt.whyTable(f"delta:{self.path(table)}", at(clock), **more)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def links(found: rt.Explanation) -> list[tuple[str, str]]:
    return [(link.kind, link.name.rpartition("/")[2]) for link in found.chain]


def test_a_table_that_is_complete(lake: Lake) -> None:
    lake.query("gold", "11:00", lake.read("silver", 0, "11:00"))
    found = lake.why("gold", "11:00")
    assert (found.complete, found.cause, links(found)) == (True, Cause.COMPLETE, [("table", "gold")])


def test_the_query_that_has_not_read_what_its_table_has(lake: Lake) -> None:
    lake.query("silver", "10:30", lake.read("bronze", 0, "10:30"))
    lake.query("gold", "10:00", lake.read("silver", 0, "10:30"))
    lake.query("silver", "11:00", lake.read("bronze", 1, "11:00"))
    found = lake.why("gold", "11:00")
    assert (found.complete, found.cause, found.holder) == (False, Cause.QUERY_BEHIND, "gold-query")
    assert "to version 0 and the bound 2006-09-11T10:30:00Z, which now has the bound 2006-09-11T11:00:00Z" in found.note
    assert links(found) == [("table", "silver"), ("query", "gold-query"), ("table", "gold")]


def test_the_drain_at_the_beginning_of_a_chain(lake: Lake) -> None:
    lake.commit("bronze", "10:30", **{POSITION: "7"})
    lake.query("silver", "10:30", lake.read("bronze", 0, "10:30"))
    lake.query("gold", "10:00", lake.read("silver", 0, "10:30"))
    found = lake.why("gold", "11:00")
    assert (found.cause, found.holder) == (Cause.DRAIN, "a drain")
    assert [kind for kind, _ in links(found)] == ["drain", "table", "query", "table", "query", "table"]
    assert [link.cause for link in found.chain] == [Cause.DRAIN, None, None, None, None, None]


def test_commits_of_strangers_are_named(lake: Lake) -> None:
    lake.commit("bronze")
    lake.commit("bronze")
    lake.query("silver", "10:30", lake.read("bronze", 0, None))
    found = lake.why("silver", "11:00")
    assert (found.cause, found.holder) == (Cause.NOT_OURS, None)
    assert "None of the 2 commits of" in found.note
    assert links(found) == [("table", "bronze"), ("query", "silver-query"), ("table", "silver")]
    lake.commit("bronze", "10:30")
    lake.query("silver", "10:30", lake.read("bronze", 2, "10:30"))
    assert "is by somebody else" in lake.why("silver", "11:00").note


def test_a_commit_by_others_does_not_hide_what_the_query_said(lake: Lake) -> None:
    lake.commit("silver", "11:00", **{POSITION: "7"})
    lake.query("gold", "10:00", lake.read("silver", 0, "10:30"))
    moved = lake.why("gold", "11:00").chain[-1].lastMoved
    lake.commit("gold", None, **{COLUMN: "ts"})
    found = lake.why("gold", "11:00")
    assert (found.cause, found.holder) == (Cause.QUERY_BEHIND, "gold-query")
    assert found.chain[-1].lastMoved == moved, "it is of the query's commit"


def test_a_query_whose_operators_keep_rows(lake: Lake) -> None:
    lake.commit("silver", "11:00", **{POSITION: "7"})
    lake.query("gold", "10:00", lake.read("silver", 0, "11:00"))
    assert (found := lake.why("gold", "10:30")).cause == Cause.OPERATOR
    assert "up to 2006-09-11T11:00:00Z, and its operators keep rows" in found.note


def test_the_side_of_a_join_that_holds_is_named(lake: Lake) -> None:
    """The one whose bound, less the join's interval, is least."""
    lake.commit("orders", "10:25", **{POSITION: "3"})
    lake.commit("trades", "11:10", **{POSITION: "3"})
    orders = {**lake.read("orders", 0, "10:25"), "behind": 0}
    trades = {**lake.read("trades", 0, "11:10"), "behind": 3_600_000_000}
    operators = [{"name": "stateStoreSave", "emits": "complete"}, {"name": "symmetricHashJoin", "emits": "complete"}]
    output = {"end": to_micros(at("10:10"))}
    lake.query("gold", "10:10", orders, trades, operators=operators, output=output)
    found = lake.why("gold", "10:20")
    assert (links(found)[:2], found.cause) == ([("drain", "a drain"), ("table", "trades")], Cause.DRAIN)
    lake.commit("trades", "11:21", **{POSITION: "4"})
    found = lake.why("gold", "10:20")
    assert (found.holder, found.cause) == ("gold-query", Cause.QUERY_BEHIND)


def test_a_query_without_bounds_in_its_sources_or_its_output(lake: Lake) -> None:
    lake.query("gold", "10:00", {"other": "RateStreamSource"})
    assert lake.why("gold", "11:00").cause == Cause.ORDINARY_SOURCE
    lake.query("lost", "10:00", lake.read("silver", 0, "11:00"), lost={"end": "nullif(end, now())"})
    assert (found := lake.why("lost", "11:00")).cause == Cause.BOUND_LOST
    assert "end: nullif(end, now())" in found.note
    lake.commit("old", "10:00", **{QUERY: "some", BATCH: "1"})
    assert (found := lake.why("old", "11:00")).cause == Cause.NO_ACCOUNT
    assert found.holder == "some"


def test_a_stream_before_the_first_table(lake: Lake) -> None:
    stream = lake.path("orders.rowtime")
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL", producers=["Oslo"])
    lake.query("bronze", "10:00", {"path": stream, "position": {"stream": "x", "seq": 1, "floor": None}})
    found = lake.why("bronze", "11:00")
    assert (found.cause, found.holder) == (Cause.EXPECTED, "Oslo")
    assert [kind for kind, _ in links(found)] == ["producer", "stream", "query", "table"]


def test_a_status_leads_nowhere_else(lake: Lake, tmp_path: Path) -> None:
    inner = Lake(tmp_path / "lake")
    lake.commit("elsewhere", "10:00", **{POSITION: "7"})
    inner.query("gold", "10:00", lake.read("elsewhere", 0, "10:00"))
    found = inner.why("gold", "11:00")
    assert (found.cause, found.notFollowed) == (Cause.NOT_FOLLOWED, (lake.path("elsewhere"),))
    assert inner.why("gold", "11:00", within=[str(tmp_path)]).cause == Cause.DRAIN
    inner.query("far", "10:00", {"table": "s3://bucket/table", "position": {"version": 1}})
    assert (found := inner.why("far", "11:00")).cause == Cause.NOT_FOLLOWED
    assert "not followed: s3://bucket/table" in found.note
    inner.query("missing", "10:00", inner.read("nothing", 0, "10:00"))
    assert inner.why("missing", "11:00").cause == Cause.SOURCE_UNREADABLE


@pytest.mark.parametrize("status", ["", "[]", "{}", '{"query": 1}', '{"query": "q", "sources": 7}', "{" * 9_999])
def test_a_status_is_of_a_stranger(lake: Lake, status: str) -> None:
    lake.commit("gold", "10:00", **{QUERY: "q", BATCH: "1", QUERY_STATUS: status})
    assert lake.why("gold", "11:00").cause in (Cause.NO_ACCOUNT, Cause.ORDINARY_SOURCE)


def test_a_query_that_reads_its_own_table_ends(lake: Lake) -> None:
    lake.query("gold", "10:00", lake.read("gold", 0, "10:00"))
    assert lake.why("gold", "11:00").complete is False


@pytest.mark.long
def test_the_command(lake: Lake) -> None:
    lake.commit("bronze", "10:30", **{POSITION: "7"})
    target = f"delta:{lake.path('bronze')}"
    command = [str(Path(sys.executable).with_name("rowtime")), "why", target, "--at"]
    done = subprocess.run([*command, at("11:00")], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "drain: A drain writes" in " ".join(done.stdout.split())
    assert subprocess.run([*command, at("10:30")], capture_output=True, check=False).returncode == 0
    refused = subprocess.run([*command[:-1], "--query", "q", "--at", at("10:30")], capture_output=True, check=False)
    assert refused.returncode == 2


def test_what_is_no_table_or_no_time(lake: Lake) -> None:
    with pytest.raises(rt.errors.InvalidOptionError, match="is no Delta or Iceberg table"):
        rt.whyTable("orders.rowtime", at("10:00"))
    lake.commit("bronze")
    with pytest.raises(rt.errors.InvalidOptionError, match="at is missing"):
        rt.whyTable(f"delta:{lake.path('bronze')}", None)
