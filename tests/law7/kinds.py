"""Kinds of cases that have a name: what is in them, so that a run can ask for one, or leave one out.

A query of such a kind may be refused when it starts. Then there is no result that could differ, and the case ends
without a verdict; every other query has to run.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.law7.calendars import SUMMER_TIME, UNALIGNED
from tests.law7.grammar import (
    Again,
    Against,
    AsOf,
    ByTime,
    Copied,
    Cumulated,
    Filter,
    InKey,
    Join,
    Lagged,
    Packed,
    Passed,
    Project,
    Query,
    Recognized,
    Sliding,
    Source,
    Top,
    Totals,
    Union,
    WindowJoin,
    Windows,
)
from tests.law7.schedule import Gc, Send
from tests.sparksession import HAS_ASOF_JOIN, HAS_NAMES

TRUNCATIONS = ("date_trunc('HOUR'", "CAST(CAST(rowtime AS DATE)")
DAYS = ("1 DAY", "24 HOURS")


def _parts(case: Any, *types: type) -> list[Any]:
    return _parts_of(case.query, *types)


def _parts_of(query: Query, *types: type) -> list[Any]:
    return [part for part in query.parts() if isinstance(part, types)]


def _keys(case: Any) -> list[Any]:
    return [event_row.k for event in case.schedule.events if isinstance(event, Send) for event_row in event.rows]


def truncation_in_an_unaligned_zone(case: Any) -> bool:
    times = [part.time for part in _parts(case, Project, ByTime)]
    return case.calendar.zone in UNALIGNED and any(time.startswith(TRUNCATIONS) for time in times)


def null_keys(case: Any) -> bool:
    """Where plain equality meets NULL on both sides: in outer joins on both sides, and of expressions."""
    joins = [part for part in _parts(case, Join, WindowJoin) if "<=>" not in part.key]
    if any("nullif" in join.key for join in joins):
        return True
    nulls = None in _keys(case)
    return nulls and any(join.how == "fullouter" or join.key != "ak = bk" for join in joins)


def day_intervals(case: Any) -> bool:
    joins = _parts(case, Join)
    return case.calendar.zone in SUMMER_TIME and any(days in join.on for join in joins for days in DAYS)


def shifts_by_days(case: Any) -> bool:
    times = [part.time for part in _parts(case, Project)]
    return case.calendar.zone in SUMMER_TIME and any(days in time for time in times for days in DAYS)


def times_as_numbers(case: Any) -> bool:
    return any("LONG" in join.on for join in _parts(case, Join))


def odd_windows(case: Any) -> bool:
    """Windows that end within a millisecond, below an operator that keeps rows."""
    below = [part for of in operators(case.query) for child in of.children() for part in child.parts()]
    return any(isinstance(part, Windows) and part.start and "microsecond" in part.start for part in below)


def operators(query: Query) -> list[Query]:
    """All that keep rows."""
    passing = Source | Filter | Project | Passed | Packed | Union | Copied
    return [part for part in query.parts() if not isinstance(part, passing)]


def against_tables(case: Any) -> bool:
    return bool(_parts(case, Against))


def copied_marks(case: Any) -> bool:
    return bool(_parts(case, Copied))


def null_times(case: Any) -> bool:
    return bool(_parts(case, Again))


def totals(case: Any) -> bool:
    return bool(_parts(case, Totals))


def sliding(case: Any) -> bool:
    return bool(_parts(case, Sliding))


def as_of(case: Any) -> bool:
    return bool(_parts(case, AsOf))


def as_of_in_sql(case: Any) -> bool:
    return any(part.sql for part in _parts(case, AsOf))


def as_of_with_ties(case: Any) -> bool:
    """Several rows of one key and time were sent, of which an as-of join takes the last."""
    sent = [(event.stream, row) for event in case.schedule.events if isinstance(event, Send) for row in event.rows]
    among = Counter((stream, row.rowtime, row.k) for stream, row in sent if row.k is not None)
    tied = {stream for (stream, *_), rows in among.items() if rows > 1}
    return any(part.name in tied for join in _parts(case, AsOf) if join.ties for part in _parts_of(join.other, Source))


def as_of_with_null_keys(case: Any) -> bool:
    return as_of(case) and None in _keys(case)


def as_of_forward(case: Any) -> bool:
    return any(join.direction == "forward" for join in _parts(case, AsOf))


def as_of_nearest(case: Any) -> bool:
    return any(join.direction == "nearest" for join in _parts(case, AsOf))


def as_of_within(case: Any) -> bool:
    return any(join.tolerance and join.direction == "backward" for join in _parts(case, AsOf))


def as_of_matches_alone(case: Any) -> bool:
    return any(join.how == "inner" for join in _parts(case, AsOf))


def lagged(case: Any) -> bool:
    return bool(_parts(case, Lagged))


def cumulated(case: Any) -> bool:
    return bool(_parts(case, Cumulated))


def top(case: Any) -> bool:
    return bool(_parts(case, Top))


def recognized(case: Any) -> bool:
    return bool(_parts(case, Recognized))


def times_in_values(case: Any) -> bool:
    return bool(_parts(case, Packed, InKey))


def changed_query(case: Any) -> bool:
    return case.changed is not None


def removed_rows(case: Any) -> bool:
    return any(isinstance(event, Gc) for event in case.schedule.events)


def named_sources(case: Any) -> bool:
    return case.reordered is not None


KINDS: dict[str, Callable[[Any], bool]] = {
    "truncation in an unaligned zone": truncation_in_an_unaligned_zone,
    "null keys": null_keys,
    "day intervals": day_intervals,
    "shifts by days": shifts_by_days,
    "times as numbers": times_as_numbers,
    "odd windows": odd_windows,
    "against tables": against_tables,
    "copied marks": copied_marks,
    "sliding": sliding,
    "as of": as_of,
    "lagged": lagged,
    "cumulated": cumulated,
    "top": top,
    "recognized": recognized,
    "null times": null_times,
    "totals": totals,
    "times in values": times_in_values,
    "changed query": changed_query,
    "removed rows": removed_rows,
    "as of with ties": as_of_with_ties,
    "as of with null keys": as_of_with_null_keys,
    "as of forward": as_of_forward,
    "as of nearest": as_of_nearest,
    "as of within a tolerance": as_of_within,
    "as of matches alone": as_of_matches_alone,
    **({"as of in SQL": as_of_in_sql} if HAS_ASOF_JOIN else {}),
    **({"named sources": named_sources} if HAS_NAMES else {}),
}
REFUSABLE = KINDS.keys() - {
    *("sliding", "lagged", "cumulated", "top", "recognized"),
    *(name for name in KINDS if name.startswith("as of")),
    *("null times", "totals", "changed query", "removed rows", "named sources"),
}
"""Kinds that the product may refuse."""
ASKED = {name.strip() for name in os.environ.get("ROWTIME_LAW7_KINDS", "").split(",")} - {""}
"""The run is of these kinds alone."""


def kinds_of(case: Any) -> set[str]:
    """All that the case is of."""
    return {name for name, is_in in KINDS.items() if is_in(case)}


def wanted(case: Any, number: int) -> bool:
    """Whether the seed of that number tries it: a kind that was asked for, else by turns any case and one of a kind."""
    kinds = kinds_of(case)
    if ASKED:
        return bool(kinds & ASKED)
    turns = list(KINDS)
    return number % 2 == 0 or turns[number // 2 % len(turns)] in kinds
