"""Cases of as-of joins: ties, NULL keys, each direction, with a tolerance and without, below other operators."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.law7.calendars import Calendar
from tests.law7.cases import CARRIED, WINDOWS, Drawn, cases
from tests.law7.grammar import Filter, Query, Windows
from tests.law7.machine import Case
from tests.law7.schedule import and_behind


@st.composite
def queries(draw: Any, calendar: Calendar) -> Query:
    """As-of joins, some of them below windows or a filter."""
    drawn = Drawn(draw, calendar)
    if drawn.one((True, False, False, False)):
        return Windows(drawn.as_of(0, carrying=True), *drawn.one(WINDOWS), CARRIED)
    query = drawn.as_of(0, carrying=False)
    return Filter(query, drawn.one(drawn.filters)) if drawn.one((True, False, False)) else query


@st.composite
def cases_of_joins(draw: Any) -> Case:
    """Cases of such queries, in which some rows are sent twice, with other values."""
    case: Case = draw(cases(queries=queries))
    events = [and_behind(event, 0) if draw(st.booleans()) else event for event in case.schedule.events]
    return replace(case, schedule=replace(case.schedule, events=tuple(events)))
