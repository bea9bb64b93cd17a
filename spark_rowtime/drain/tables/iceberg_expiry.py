"""Expiry of a drain's own snapshots in an Iceberg table, so that a commit does not cost more with each one before."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from spark_rowtime.drain.tables.iceberg_lineage import marks
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.short_repr import short_repr

LOG = logging.getLogger("spark_rowtime.drain.tables")
AGE, KEPT, GC = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep", "gc.enabled"
"""Iceberg's own settings of a table, which count here, too."""
NEWEST = 100
"""How many snapshots stay if the table does not say it. A commit costs time for each, in memory and on the disk."""
AT_ONCE = 100
"""How many snapshots one commit lets expire: the first one after an update of this package may find thousands."""
MOST_APART = 100
"""How many snapshots of others are asked for their manifests before one is deleted; with more it stays."""
MADE_WITH = {
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.target-size-bytes": str(1 << 20),
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""The settings of a table that a drain makes. Without them, files of metadata are never removed or merged."""


def outdated(metadata: Any, now: int) -> list[Any]:
    """The snapshots that expire with the next commit, oldest first; ``now`` is in milliseconds.

    Law: each has been made by spark-rowtime, no branch or tag points to it, and only appends lie between it and the
    current one. So whatever data file it has, the current snapshot has, and no data is left without a snapshot.
    """
    settings = metadata.properties
    if settings.get(GC, "true").lower() == "false":
        return []
    before, kept = now - _number(settings, AGE, 0), max(_number(settings, KEPT, NEWEST), 1)
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    chain = list(_appended(metadata))[kept:]
    old = [s for s in chain if s.timestamp_ms <= before and s.snapshot_id not in named and marks(s)]
    return old[::-1][:AT_ONCE]


def _number(settings: Mapping[str, str], name: str, default: int) -> int:
    value = settings.get(name, default)
    try:
        return int(value)
    except ValueError:
        raise InvalidOptionError(
            f"The table's property {name} is {short_repr(value)}, which is no whole number. Correct it.", option=name
        ) from None


def _appended(metadata: Any) -> Iterator[Any]:
    """The current snapshot and those before it, back to one that has not only added rows."""
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    at = metadata.current_snapshot_id
    while at in known:
        yield known[at]
        summary = known[at].summary
        if summary is None or summary.operation.value != "append":
            return
        at = known[at].parent_snapshot_id


def remove_files(expired: list[Any], before: Any, table: Any) -> None:
    """Deletes the lists of manifests of snapshots that have expired, and the manifests that no other one has.

    ``before`` is the metadata from before the commit. A failure is logged: such files are orphans, which
    ``remove_orphan_files`` finds.
    """
    if not expired:
        return
    try:
        for file in [*_unused_manifests(expired, before, table), *(snapshot.manifest_list for snapshot in expired)]:
            table.io.delete(file)
    except Exception:  # each kind of storage has errors of its own
        LOG.warning("Files of expired snapshots could not be deleted; they stay as orphans", exc_info=True)


def _unused_manifests(expired: list[Any], before: Any, table: Any) -> set[str]:
    """The manifests of expired snapshots that are in no other one.

    A manifest goes from parent to child until it is merged into another one; so the neighbours tell, and those that
    are not in the chain of appends.
    """
    gone = {snapshot.snapshot_id for snapshot in expired}
    chain = list(_appended(before))
    pairs = [pair for pair in pairwise(chain) if gone & {snapshot.snapshot_id for snapshot in pair}]
    left = [snapshot for pair in pairs for snapshot in pair if snapshot.snapshot_id not in gone]
    unused = _manifests(expired, table.io) - _manifests([*left, table.current_snapshot()], table.io)
    inside = {snapshot.snapshot_id for snapshot in chain}
    apart = [snapshot for snapshot in table.metadata.snapshots if snapshot.snapshot_id not in inside]
    if not unused or len(apart) > MOST_APART:
        return set()
    return unused - _manifests(apart, table.io)


def _manifests(snapshots: Iterable[Any], io: Any) -> set[str]:
    return {manifest.manifest_path for snapshot in snapshots for manifest in snapshot.manifests(io)}
