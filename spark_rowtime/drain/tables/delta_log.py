"""Which commit of a Delta log the rows that a reader sees belong to, where the table was set back or replaced."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from spark_rowtime.drain.properties import BATCH, QUERY, marked
from spark_rowtime.errors import DataLostError

RESTORE, _WHOLE = "RESTORE", (None, "", "[]")
"""The operation that sets a table back; what Spark and deltalake call the predicate of a write of all rows."""


class InSight(NamedTuple):
    """What a log tells of the rows that a reader sees.

    ``properties`` are those of the last commit by spark-rowtime that led to them; empty without one. ``missing`` is the
    version that would have to be looked at to know more; None where the log has all that is needed. ``commit`` is that
    commit as the history has it, with what a query has said in it.
    """

    properties: dict[str, str]
    missing: int | None
    commit: Mapping[str, Any] | None = None


def in_sight(target: str, commits: Iterable[Mapping[str, Any]], version: int) -> InSight:
    """Walks back from ``version``; ``commits`` are the newest of the log, newest first.

    A RESTORE leads to the version that it names: the commits between are there, but their rows are not. Raises
    DataLostError where a position lies behind a commit after which nobody knows which rows are there.
    """
    wanted, replaced = version, None
    for commit in commits:
        if commit["version"] > wanted:
            continue
        if commit["version"] < wanted:
            break
        if found := marked(said := _said(commit)):
            _require_not_replaced(target, replaced)
            return InSight(found, None, said)
        if wanted > 0:
            replaced = replaced or (commit if _replaces(commit) else None)
            wanted = _restored(target, commit) if commit.get("operation") == RESTORE else wanted - 1
        else:
            return InSight({}, None)
    return InSight({}, wanted)


def _said(commit: Mapping[str, Any]) -> dict[str, Any]:
    """A commit with its properties, as ``DeltaCommit`` has them.

    Those of a query with Delta's own sink are in its ``userMetadata``, and count in the commit of the batch that they
    name: any statement of a session inherits the setting for it.
    """
    try:
        given = json.loads(commit.get("userMetadata") or "{}")
    except ValueError:
        given = {}
    batch = commit.get("operationParameters", {})
    is_of_batch = isinstance(given, dict) and QUERY in given and given[QUERY] == batch.get("queryId")
    of_sink = given if is_of_batch and given.get(BATCH) == batch.get("epochId") else {}
    return {**of_sink, **commit}


def _restored(target: str, commit: Mapping[str, Any]) -> int:
    version = commit.get("operationParameters", {}).get("version")
    if version is not None:
        return int(version)
    raise DataLostError(
        f"{target} was set back by RESTORE to a time (version {commit['version']} of its log), and the log does not "
        "say which version that was; so the position and the bound of its rows are not known. Say it by number, which "
        "changes no row if it is the same: RESTORE TABLE ... TO VERSION AS OF n.",
        path=target,
    )


def _replaces(commit: Mapping[str, Any]) -> bool:
    """Whether a commit by others put other rows in the place of all that were there."""
    parameters = commit.get("operationParameters", {})
    if "REPLACE TABLE" in str(commit.get("operation")) or commit.get("operation") == "CLONE":
        return True
    if commit.get("operation") == "STREAMING UPDATE" and parameters.get("outputMode") == "Complete":
        return True
    whole = parameters.get("predicate") in _WHOLE and parameters.get("isDynamicPartitionOverwrite") in (None, "false")
    return commit.get("operation") == "WRITE" and parameters.get("mode") == "Overwrite" and whole


def _require_not_replaced(target: str, commit: Mapping[str, Any] | None) -> None:
    if commit is not None:
        raise DataLostError(
            f"Version {commit['version']} of {target} ({commit['operation']}) has replaced all rows since the last "
            "drain or query. Whether the rows up to its position are among the new ones is not known. Drain into "
            f"another table, or set this one back: RESTORE TABLE ... TO VERSION AS OF {commit['version'] - 1}.",
            path=target,
        )
