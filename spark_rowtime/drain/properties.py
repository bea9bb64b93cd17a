"""The properties of a table's commit: the bound that follows its rows, and the position or batch at its end."""

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import DisorderedOutputError, InvalidOptionError, StoreCorruptError
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import LARGEST, LEAST, show_micros, to_micros

BOUND, STRICT, POSITION = "rowtime.bound", "rowtime.strict", "rowtime.position"
"""The bound's time in ISO 8601, "true" or "false", and the reader's position, as ``RowReader.position`` returns it."""
COLUMN = "rowtime.column"
"""The column that a query promises the bound of. That of a drain is ``rowtime``."""
FIRST, LAST = "rowtime.first", "rowtime.last"
"""The least and the largest rowtime of the rows that drains have committed so far, in ISO 8601."""
QUERY, BATCH = "rowtime.query", "rowtime.batch"
"""The id of the Spark query that made the commit, and the number of its batch."""
OFFSETS = "rowtime.offsets"
"""A hash of the source offsets at which the batch ends, by which a repeated batch is told from another one."""
QUERY_STATUS = "rowtime.account"
"""What the query tells about the batch: its sources and how far it has read them, its operators, the bounds.

It is a local property of the query, too, which the first task of a sink takes to the commit.
"""
COMMIT = "rowtime.commit"
"""A mark of a commit into a Delta table, different for each, by which its writer knows it where the answer was lost."""
KEYS = (BOUND, STRICT, COLUMN, FIRST, LAST, POSITION, QUERY, BATCH, OFFSETS)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")


def bound_properties(bound: RowtimeBound | None) -> dict[str, str]:
    """The properties of a bound; none while nothing is promised. The end of time is the last legal time, strict."""
    if bound is None:
        return {}
    return {BOUND: show_micros(bound.floor - bound.strict), STRICT: str(bound.strict).lower()}


def bound_in(properties: Mapping[str, str]) -> RowtimeBound | None:
    """The bound in a commit's properties; None if there is none."""
    if BOUND not in properties:
        return None
    return exact_bound(properties[BOUND], properties.get(STRICT) == "true")


def exact_bound(t: object, strict: bool) -> RowtimeBound:
    """The bound at ``t``. A strict bound at the last legal time, by which a drain tells the end, is the end of time."""
    floor = to_micros(t) + strict
    bound = RowtimeBound.fromFloor(floor)
    return bound if bound.isEnd else RowtimeBound(t, strict)


def require_at_or_after(bound: RowtimeBound, least: int, column: str, target: str, advice: str = "") -> None:
    """Raises DisorderedOutputError if the least time of a table's next rows is below the bound that the table has."""
    if least < bound.floor:
        raise DisorderedOutputError(
            f"A row with {column} at {show_micros(least)} is below the bound of {target}, {bound}. The readers of "
            f"{target} were told that it is complete up to there.{advice}",
            path=target,
            bound=bound.floor,
        )


def marked(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of spark-rowtime among those of a commit; empty if it made none of them."""
    return {key: str(properties[key]) for key in KEYS if key in properties}


def require_times(properties: Mapping[str, str], target: str, place: str) -> None:
    """Raises StoreCorruptError if a time in a commit has another form than Java's ``Instant`` takes, too.

    Others may write bounds, and each reader has to understand the same, or none. ``place``: of the commit in the table.
    """
    for key in (BOUND, FIRST, LAST):
        if key in properties and not _is_time(properties[key]):
            raise StoreCorruptError(
                f"In {place} of {target}, {key} is {short_repr(properties[key])}, which is no time after 1970 in ISO "
                "8601 with seconds and a zone, such as 2026-01-05T10:00:00Z. So up to where the table is complete is "
                "not known. Let the writer of that commit make another one, with a time of this form.",
                path=target,
            )


def tells_position(properties: Mapping[str, str]) -> bool:
    """Whether a commit is by a drain that said its position, or by a query, which has none."""
    return POSITION in properties or QUERY in properties


def continued(newest: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """The properties of the newest commit, with what it leaves out of those of a commit before it.

    Others may write a bound, or another property, and no position: a drain goes on where it was all the same, and a
    query behind its last batch. A commit without a bound takes back none.
    """
    kept: tuple[str, ...] = (POSITION, FIRST, LAST) if POSITION in before else (QUERY, BATCH, OFFSETS)
    if BOUND not in newest:
        newest = {key: value for key, value in newest.items() if key not in (STRICT, COLUMN)}
        kept = (*kept, BOUND, STRICT, COLUMN)
    return {**{key: before[key] for key in kept if key in before}, **newest}


def batch_in(properties: Mapping[str, str]) -> int:
    """The number of the batch in a commit's properties; -1 if there is none."""
    batch = properties.get(BATCH, "")
    return int(batch) if re.fullmatch("[0-9]{1,18}", batch) else -1


def _is_time(text: str) -> bool:
    try:
        return bool(_TIME.fullmatch(text) and to_micros(text))
    except InvalidOptionError:
        return False


def extent_properties(rows: pa.Table | pa.RecordBatch, before: Mapping[str, str]) -> dict[str, str]:
    """The properties of the least and the largest rowtime of ``rows`` and of what the commits before have brought.

    A value that no stream can have as a rowtime, as in a table of a query with such a column, is left out.
    """
    known = {name: before[name] for name in (FIRST, LAST) if name in before}
    if ROWTIME not in rows.schema.names or not rows.num_rows:
        return known
    times = rows.column(ROWTIME).cast(pa.int64())
    fits = pc.and_(pc.greater_equal(times, LEAST), pc.less_equal(times, LARGEST))
    found = pc.min_max(times.filter(fits)).as_py()
    if found["min"] is None:
        return known
    first, last = (to_micros(known[name]) if name in known else found["min"] for name in (FIRST, LAST))
    return {FIRST: show_micros(min(first, found["min"])), LAST: show_micros(max(last, found["max"]))}
