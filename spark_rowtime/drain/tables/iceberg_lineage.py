"""Which snapshot of an Iceberg table has the position and the bound of the rows that a reader sees."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from spark_rowtime.drain.properties import BOUND, continued, marked, require_times, tells_position
from spark_rowtime.errors import DataLostError

SNAPSHOT = "rowtime.snapshot"
"""The table's property with the id of the snapshot that its other properties are of."""
_PICKED = "source-snapshot-id"
"""Iceberg's property of a snapshot to which the rows of another one were added again."""


class InSight(NamedTuple):
    """What snapshots tell of the rows that a reader sees.

    ``properties`` are those of the newest snapshot by spark-rowtime that led to the current one; empty without one.
    ``snapshot`` is that of the drain or query; None where its properties are not from a snapshot. ``place`` is what has
    the position.
    """

    properties: dict[str, str]
    snapshot: Any = None
    place: str = ""


def in_sight(target: str, table: Any, *, writes: bool) -> InSight:
    """What the snapshots that led to the current one tell.

    A rollback leaves it behind with its rows. Ancestors that have expired are looked up in the table's older metadata
    files; where those are gone, too, the table's properties count if they are of the one that is missing. Otherwise
    raises DataLostError. Where a table is drained into, and for who ``writes``, snapshots by others with properties and
    without a position or a query do not hide that of a drain or query.
    """
    newest: InSight | None = None
    for found, snapshot, _ in _told(target, table):
        ends = tells_position(found) or (BOUND in found and not (writes or tells_position(table.properties)))
        place = "the properties" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
        if newest is None or BOUND not in newest.properties or ends:
            require_times(found, target, place)
        if newest is None:
            newest = InSight(found, snapshot)
        newest = newest._replace(properties=continued(newest.properties, found))
        if ends:
            return newest._replace(snapshot=snapshot, place=place)
    return newest or InSight({})


def _told(target: str, table: Any) -> Iterator[InSight]:
    """Yields what each snapshot tells that led to the current one, newest first, as far as it tells anything."""
    older, known = _older_metadata(table), _by_id(table.metadata)
    lineage: list[int] = []
    at = table.metadata.current_snapshot_id
    while at is not None:
        found = marks(known[at]) if at in known else {}
        while not found and _ends(known, at) and (metadata := next(older, None)) is not None:
            known = _merged(known, _by_id(metadata))
            found = marks(known[at]) if at in known else {}
        if found:
            yield InSight(found, known[at])
        if at not in known:
            yield InSight(_of_properties(target, table, at))
            return
        _require_not_picked(target, table, known, known[at])
        lineage.append(at)
        at = known[at].parent_snapshot_id
    if lineage and marked(table.properties):
        _require_set_back(target, lineage, known)


def _is_first(snapshot: Any) -> bool:
    """Whether a snapshot without a known parent is the first one of its table: all files there are its own."""
    said = _said(snapshot)
    return int(said.get("total-data-files", 0)) <= int(said.get("added-data-files", 0))


def _ends(known: dict[int, Any], at: int) -> bool:
    """Whether a snapshot has expired, or its parent is not known: PyIceberg takes the name of one that expires away."""
    return at not in known or known[at].parent_snapshot_id is None


def _merged(known: dict[int, Any], older: dict[int, Any]) -> dict[int, Any]:
    """Both, with the form of each snapshot that names its parent."""
    return {**older, **{at: s for at, s in known.items() if s.parent_snapshot_id is not None or at not in older}}


def marks(snapshot: Any) -> dict[str, str]:
    """The properties of spark-rowtime in a snapshot's summary; empty if others have made it."""
    return marked(_said(snapshot))


def _said(snapshot: Any) -> dict[str, str]:
    """The summary of a snapshot, without its operation."""
    return {} if snapshot.summary is None else snapshot.summary.additional_properties


def _by_id(metadata: Any) -> dict[int, Any]:
    return {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}


def _older_metadata(table: Any) -> Iterator[Any]:
    """The table's metadata before this one, newest first, as far as the files are there."""
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415  (an extra)

    for entry in reversed(table.metadata.metadata_log):
        try:
            yield FromInputFile.table_metadata(table.io.new_input(entry.metadata_file))
        except FileNotFoundError:
            continue


def _of_properties(target: str, table: Any, missing: int) -> dict[str, str]:
    found = marked(table.properties)
    if not found or table.properties.get(SNAPSHOT) == str(missing):
        return found
    raise DataLostError(
        f"Snapshots of {target} have expired, and with them the one with the position: the parent {missing} of those "
        "that are left is not the last one of a drain or query. Which rows of the stream are there is not known. Drain "
        "into a new table; let a drain run more often than snapshots expire.",
        path=target,
    )


def _require_not_picked(target: str, table: Any, known: dict[int, Any], snapshot: Any) -> None:
    """Raises DataLostError for a snapshot with the rows, and not the position, of one of a drain or query."""
    source = _said(snapshot).get(_PICKED)
    picked = next((other for other in known.values() if str(other.snapshot_id) == source), None)
    if source is None or not (marked(table.properties) if picked is None else marks(picked)):
        return
    raise DataLostError(
        f"Snapshot {snapshot.snapshot_id} of {target} has the rows of snapshot {source} (cherrypick_snapshot, "
        "publish_changes), which a drain or query has written, and not its position. Which rows of the stream are "
        f"there is not known. Set the table to the snapshot before, {snapshot.parent_snapshot_id} "
        "(rollback_to_snapshot), and the next drain writes what is missing; or drain into a new table.",
        path=target,
    )


def _require_set_back(target: str, lineage: list[int], known: dict[int, Any]) -> None:
    """Raises DataLostError unless a snapshot of a drain or query has an ancestor in ``lineage``, newest first.

    If it has, the table was rolled back to a time before its first drain; but not where the oldest one that is known
    has rows that it has not added: then those before it have expired.
    """
    for snapshot in known.values() if _is_first(known[lineage[-1]]) else ():
        at = snapshot.snapshot_id if marks(snapshot) else None
        while at in known:
            if at in lineage:
                return
            at = known[at].parent_snapshot_id
    raise DataLostError(
        f"A drain or query has written to {target}, but of the snapshots that led to its rows none that is left is one "
        "of them: they have expired, or the rows were replaced. Which rows of the stream are there is not known. Drain "
        "into a new table; let a drain run more often than snapshots expire.",
        path=target,
    )
