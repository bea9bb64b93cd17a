"""The commits of a table as its log, or its metadata, has them: the rows of each, and its bound."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow.parquet as pq

from spark_rowtime.drain.properties import BOUND, QUERY, STRICT
from spark_rowtime.types.timestamps import to_micros

LOG = "_delta_log"


class Commit(NamedTuple):
    """``times``: of its new rows, in microseconds. ``floor``: what it promises. ``by_query``: by one of ours."""

    version: int
    times: list[int]
    floor: int | None
    by_query: bool


def commits(table: Path, column: str) -> Iterator[Commit]:
    """All commits, oldest first. Files that only take the place of others have no new rows."""
    for file in sorted((table / LOG).glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        added = [action["add"] for action in actions if "add" in action and action["add"]["dataChange"]]
        times = [to_micros(row[column]) for add in added for row in _rows(table, add, column)]
        said = next((_said(action["commitInfo"]) for action in actions if "commitInfo" in action), {})
        yield Commit(int(file.stem), times, _floor(said), QUERY in said)


def iceberg_commits(table: Any, column: str) -> Iterator[Commit]:
    """The snapshots of an Iceberg table of PyIceberg. One that has not only added files has no new rows."""
    for snapshot in sorted(table.metadata.snapshots, key=lambda each: each.sequence_number):
        said = snapshot.summary.additional_properties
        files = _added(snapshot, table.io) if snapshot.summary.operation.value == "append" else []
        times = [to_micros(time) for file in files for time in _times(file, column)]
        yield Commit(snapshot.snapshot_id, times, _floor(said), QUERY in said)


def require_lawful(commits: Iterable[Commit]) -> int:
    """Checks that the query's bound never falls and that no row of its commits is below it; returns the last one."""
    floor = 0
    for commit in commits:
        if commit.by_query:
            assert all(time >= floor for time in commit.times), (commit, floor)
        if commit.floor is not None:
            assert commit.floor >= floor, (commit, floor)
            floor = commit.floor
    return floor


def _rows(table: Path, add: dict[str, Any], column: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.ParquetFile(table / unquote(add["path"])).read([column]).to_pylist()
    return found


def _added(snapshot: Any, io: Any) -> list[str]:
    """The files that a snapshot has added."""
    entries = [entry for manifest in snapshot.manifests(io) for entry in manifest.fetch_manifest_entry(io)]
    return [entry.data_file.file_path for entry in entries if entry.snapshot_id == snapshot.snapshot_id]


def _times(file: str, column: str) -> list[Any]:
    found: list[Any] = pq.ParquetFile(file.removeprefix("file:")).read([column]).column(column).to_pylist()
    return found


def _floor(said: Mapping[str, Any]) -> int | None:
    return to_micros(said[BOUND]) + (said[STRICT] == "true") if BOUND in said else None


def _said(info: dict[str, Any]) -> dict[str, Any]:
    return {**json.loads(info.get("userMetadata") or "{}"), **info}
