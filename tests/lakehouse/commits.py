"""The commits of a Delta table as its log has them: the rows of each, and its bound."""

import json
from collections.abc import Iterator
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
        floor = to_micros(said[BOUND]) + (said[STRICT] == "true") if BOUND in said else None
        yield Commit(int(file.stem), times, floor, QUERY in said)


def require_lawful(table: Path, column: str) -> int:
    """Checks that the query's bound never falls and that no row of its commits is below it; returns the last one."""
    floor = 0
    for commit in commits(table, column):
        if commit.by_query:
            assert all(time >= floor for time in commit.times), (commit, floor)
        if commit.floor is not None:
            assert commit.floor >= floor, (commit, floor)
            floor = commit.floor
    return floor


def _rows(table: Path, add: dict[str, Any], column: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.ParquetFile(table / unquote(add["path"])).read([column]).to_pylist()
    return found


def _said(info: dict[str, Any]) -> dict[str, Any]:
    return {**json.loads(info.get("userMetadata") or "{}"), **info}
