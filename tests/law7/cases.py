"""Random cases: a query of the grammar, a schedule for the streams that it reads, and the bounds to leave out."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from tests.law7.calendars import CALENDARS, Calendar
from tests.law7.feed import LeftOut
from tests.law7.grammar import (
    COLUMNS,
    PACKED,
    SAME_KEY,
    Again,
    Against,
    AsOf,
    ByTime,
    Copied,
    Cumulated,
    Distinct,
    DistinctWithin,
    Filter,
    InKey,
    Join,
    Lagged,
    Lookup,
    Packed,
    Passed,
    Project,
    Query,
    Recognized,
    Session,
    Sliding,
    Source,
    Top,
    Totals,
    Union,
    WindowJoin,
    Windows,
)
from tests.law7.machine import ADDED, Case
from tests.law7.schedule import LATENESS, PARTITIONS, Send, TopicBounds, Watched, schedules
from tests.sparksession import HAS_ASOF_JOIN, HAS_NAMES
from tests.streams import at

SOURCES = ("a", "b")
TIMES = (
    "rowtime",
    "rowtime + INTERVAL 7 MINUTES",
    "rowtime - INTERVAL 100 MILLISECONDS",
    "date_trunc('MINUTE', rowtime)",
    "date_trunc('HOUR', rowtime)",
    "CAST(CAST(rowtime AS DATE) AS TIMESTAMP)",
    "rowtime + INTERVAL 1 DAY",
    "rowtime - INTERVAL 24 HOURS",
)
DISTINCT_TIMES = TIMES[:3]
"""Those of them that keep different times different. Of others, ``order`` decides which row comes last."""
STARTS = (None,) * 6 + ("2 minutes", "1 microsecond", "299999999 microseconds")
"""The offsets of windows from the usual ones. With the last, windows end a microsecond before the usual ones."""
WINDOWS = (("10 minutes", None), ("30 minutes", None), ("20 minutes", "10 minutes"), ("30 minutes", "5 minutes"))
WINDOW_TIMES = ("w.end", "w.start")
CARRIED = "window_time(w)"
"""The time of a window on which another operator can be put."""
HOUR = "date_trunc('HOUR', rowtime)"
GAPS = ("5 minutes", "12 minutes")
WITHIN = (
    "b BETWEEN a AND a + INTERVAL 10 MINUTES",
    "b BETWEEN a - INTERVAL 5 MINUTES AND a + INTERVAL 5 MINUTES",
    "b > a - INTERVAL 15 MINUTES AND b < a",
    "a = b",
)
RARE = (
    "b BETWEEN a AND a + INTERVAL 1 DAY",
    "b BETWEEN a - INTERVAL 24 HOURS AND a",
    "CAST(b AS LONG) BETWEEN CAST(a AS LONG) AND CAST(a AS LONG) + 600",
)
KEYS = (SAME_KEY,) * 5 + ("ak <=> bk", "nullif(ak, 0) = nullif(bk, 0)", "ak % 2 = bk % 2")
WAYS = ("copy", "view", "with", "pipe")
TABLE_JOINS = ("inner", "leftouter", "leftsemi", "leftanti", "rightouter")
DIRECTIONS = (("backward", None), ("backward", "8 minutes"), ("forward", "8 minutes"), ("nearest", "5 minutes"))
"""How a row of an as-of join finds another. Rows of the last two come later than their time."""
RUNS = ("A B+", "A B+?", "A B* C", "B{2,3} | B C", "A (B | C)* B")
"""Patterns of rows. All have B, which is counted."""
SIDE = {"inner": "ab", "leftouter": "a", "rightouter": "b", "leftsemi": "a"}
"""The sides whose time is never null, by type of join."""


class Drawn:
    """A query that is being drawn."""

    def __init__(self, draw: Any, calendar: Calendar) -> None:
        self.draw, self.calendar = draw, calendar
        self.used: set[str] = set()
        self.sources = 0

    @property
    def filters(self) -> tuple[str, ...]:
        return "k <> 0", "v % 2 = 0", f"rowtime < '{at(self.calendar.after(8))}'"

    def one(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def source(self) -> Source:
        """A source, preferably one that is not in the query yet."""
        fresh = tuple(name for name in SOURCES if name not in self.used)
        name = self.one((*fresh, *fresh, *SOURCES))
        self.used.add(name)
        self.sources += 1
        return Source(name, f"source{self.sources}")

    def straight(self, times: tuple[str, ...] = TIMES) -> Query:
        """A stream, maybe filtered and projected."""
        query: Query = self.source()
        if self.one((False, False, True)):
            query = Filter(query, self.one(self.filters))
        if self.one((False, False, True)):
            query = Project(query, self.one(times))
        return Passed(query, self.one(WAYS)) if self.one((False, False, False, True)) else query

    def carrying(self, depth: int) -> Query:
        """A query whose rowtime has a watermark, for another operator to be put on."""
        return self.straight() if depth == 0 else self.operator(depth, carrying=True)

    def operator(self, depth: int, *, carrying: bool) -> Query:
        """One operator over others, in ``depth`` levels."""
        often = (self.windows, self.join, self.join)
        kinds = (self.windows, self.session, self.by_time, self.distinct, self.union, self.join, self.project)
        seldom = (
            self.against,
            self.sliding,
            self.as_of,
            self.recognized,
            self.lagged,
            self.cumulated,
            self.top,
            self.copied,
            self.totals,
            self.again,
            self.packed,
            self.packed,
            self.in_key,
        )
        return self.one((*often, *kinds) * 2 + seldom)(depth - 1, carrying)

    def project(self, below: int, carrying: bool) -> Query:
        """A changed rowtime over any query. Spark accepts another operator above it only over straight streams."""
        of = self.carrying(below)
        return Project(of, self.one(TIMES) if is_straight(of) or not carrying else "rowtime")

    def windows(self, below: int, carrying: bool) -> Query:
        of = self.carrying(below)
        return Windows(of, *self.one(WINDOWS), self.window_time(carrying), self.one(STARTS))

    def session(self, below: int, carrying: bool) -> Query:
        return Session(self.carrying(below), self.one(GAPS), self.window_time(carrying))

    def window_time(self, carrying: bool) -> str:
        return CARRIED if carrying else self.one((*WINDOW_TIMES, CARRIED))

    def by_time(self, below: int, carrying: bool) -> Query:
        of = self.carrying(below)
        return ByTime(of, self.one(("rowtime", HOUR)) if is_straight(of) and not carrying else "rowtime")

    def distinct(self, below: int, carrying: bool) -> Query:
        if below == 0 and self.one((True, False)):
            return DistinctWithin(self.source(), self.one(("1 minute", "1 hour")))
        of, columns = self.carrying(below), self.one((COLUMNS, ("rowtime", "k")))
        return Distinct(of, COLUMNS if is_grouped_by_time(of) else columns)

    def union(self, below: int, carrying: bool) -> Query:
        return Union(self.carrying(below), self.carrying(below) if self.one((True, False, False)) else self.straight())

    def join(self, below: int, carrying: bool) -> Query:
        one, other = self.carrying(below), self.carrying(below) if self.one((True, False, False)) else self.straight()
        if self.one((True, False)):
            one, other = other, one
        kind = self.one(("within", "within", "within", "windows", "windows", "table"))
        if kind == "table":
            return Lookup(one, self.one(TABLE_JOINS))
        how = self.one(tuple(SIDE) if carrying else (*SIDE, "fullouter"))
        side = self.one(SIDE.get(how, ("",)))
        if kind == "within":
            return Join(one, other, how, self.one(WITHIN * 2 + RARE), side or "coalesce(a, b)", self.one(KEYS))
        time = f"window_time({side})" if carrying else f"{side}.end" if side else "coalesce(a.end, b.end)"
        return WindowJoin(one, other, how, self.one(("10 minutes", "30 minutes")), time, self.one(KEYS))

    def against(self, below: int, carrying: bool) -> Query:
        return Against(self.carrying(below), self.calendar.start, self.calendar.step)

    def totals(self, below: int, carrying: bool) -> Query:
        return Totals(self.carrying(below), self.one(("10 minutes", "30 minutes")), self.window_time(carrying))

    def again(self, below: int, carrying: bool) -> Query:
        if carrying:
            return self.join(below, carrying)
        how = self.one(("leftouter", "fullouter", "rightouter", "inner"))
        return Again(self.carrying(below), self.straight(), self.straight(), how, self.one(WITHIN))

    def packed(self, below: int, carrying: bool) -> Query:
        other = self.one((None, self.straight()))
        return Packed(self.carrying(below), other, self.one(tuple(PACKED)))

    def in_key(self, below: int, carrying: bool) -> Query:
        return InKey(self.carrying(below), self.one(("10 minutes", "30 minutes")), self.one((True, False)))

    def sliding(self, below: int, carrying: bool) -> Query:
        return Sliding(self.straight(), self.one(("5 minutes", "20 minutes")))

    def as_of(self, below: int, carrying: bool) -> Query:
        direction, tolerance = self.one(DIRECTIONS[:2] if carrying else DIRECTIONS)
        sql = HAS_ASOF_JOIN and (direction, tolerance) == DIRECTIONS[0] and self.one((True, False))
        tied = self.one((True, False))
        other = self.straight(DISTINCT_TIMES) if tied else ByTime(self.straight(), "rowtime")
        return AsOf(self.straight(), other, direction, tolerance, self.one(("left", "inner")), sql)

    def lagged(self, below: int, carrying: bool) -> Query:
        return Lagged(self.straight())

    def cumulated(self, below: int, carrying: bool) -> Query:
        return Cumulated(self.carrying(below))

    def top(self, below: int, carrying: bool) -> Query:
        return Top(self.carrying(below), self.one(("10 minutes", "30 minutes")))

    def recognized(self, below: int, carrying: bool) -> Query:
        if carrying:  # the matches come later than their time
            return self.as_of(below, carrying)
        within, after = self.one(("5 minutes", "20 minutes")), self.one(("past last row", "to next row"))
        return Recognized(self.straight(), self.one(RUNS), within, after)

    def copied(self, below: int, carrying: bool) -> Query:
        of = self.sliding(below, True) if self.one((True, False)) else self.carrying(below)
        function = "mapInPandas" if self.calendar.zone == "UTC" else "mapInArrow"
        return Copied(of, self.one((function, "alias")))


CHANGES: dict[type, dict[str, Any]] = {
    Project: {"time": TIMES[:4]},
    Windows: {"size": ("10 minutes", "30 minutes"), "time": WINDOW_TIMES},
    Session: {"gap": GAPS, "time": ("w.end",)},
    ByTime: {"time": ("rowtime", HOUR)},
    Join: {"on": WITHIN, "time": ("a", "b", "coalesce(a, b)")},
    WindowJoin: {"size": ("10 minutes", "30 minutes")},
    Filter: {"where": ("k <> 0", "v % 2 = 0")},
}
"""What a user may change in a part of a query, and goes on with the old checkpoint."""


@st.composite
def changed(draw: Any, query: Query, named: bool) -> Query:
    """The query with one part changed, if there is one that can be; with names, maybe with other sources."""
    if named and draw(st.booleans()):
        return draw(with_other_sources(query))
    parts = [part for part in query.parts() if CHANGES.get(type(part))]
    if not parts:
        return Project(query, draw(st.sampled_from(TIMES)))
    part = draw(st.sampled_from(parts))
    field = draw(st.sampled_from(sorted(CHANGES[type(part)])))
    return replaced(query, part, replace(part, **{field: draw(st.sampled_from(CHANGES[type(part)][field]))}))


@st.composite
def with_other_sources(draw: Any, query: Query) -> Query:
    """The query without a side of a union, or with a source more, beside another one."""
    unions = [part for part in query.parts() if isinstance(part, Union)]
    if unions and draw(st.booleans()):
        union = draw(st.sampled_from(unions))
        return replaced(query, union, union.one)
    source = draw(st.sampled_from([part for part in query.parts() if isinstance(part, Source)]))
    return replaced(query, source, Union(source, Source(source.name, ADDED)))


OVER_UNIONS = (Source, Filter, Passed, Union, Windows, Session, ByTime, Distinct, Join, WindowJoin, Lookup)
"""What runs over any union of sources."""


@st.composite
def of_more_sources(draw: Any, query: Query) -> Query:
    """The query, maybe with a source more, beside another one."""
    if draw(st.booleans()) or not all(isinstance(part, OVER_UNIONS) for part in query.parts()):
        return query
    source = draw(st.sampled_from([part for part in query.parts() if isinstance(part, Source)]))
    return replaced(query, source, Union(source, Source(draw(st.sampled_from(SOURCES)), "more")))


def reordered(query: Query) -> Query:
    """The query with the two sources of each union of straight queries in the other order."""
    query = over(query, reordered)
    is_turned = isinstance(query, Union) and is_straight(query.one) and is_straight(query.other)
    return Union(query.other, query.one) if is_turned else query


def replaced(query: Query, part: Query, by: Query) -> Query:
    """The query with another part in the place of ``part``."""
    return by if query is part else over(query, lambda child: replaced(child, part, by))


def over(query: Query, changed: Callable[[Query], Query]) -> Query:
    """The query over what is made of the queries below it."""
    below = {f.name: getattr(query, f.name) for f in fields(query) if isinstance(getattr(query, f.name), Query)}
    return replace(query, **{name: changed(child) for name, child in below.items()})


def is_straight(query: Query) -> bool:
    """Whether the query reads one stream, and no operator keeps rows."""
    return all(isinstance(part, Source | Filter | Project | Passed) for part in query.parts())


def is_grouped_by_time(query: Query) -> bool:
    """Whether the rows lie as an aggregation by rowtime and ``k`` has left them.

    Spark fails on a deduplication by the same columns above it, with RocksDB and without the extension too: "Can only
    upgrade readStore to writeStore with the same stateStoreId".
    """
    while isinstance(query, Filter | Project | Passed):
        query = query.of
    return isinstance(query, ByTime)


@st.composite
def queries(draw: Any, calendar: Calendar) -> Query:
    """Queries with up to three levels of operators, sometimes with a filter on top."""
    drawn = Drawn(draw, calendar)
    depth = drawn.one((0, 1, 1, 1, 1, 2, 2, 2, 2, 3))
    query = drawn.operator(depth, carrying=False) if depth else drawn.straight()
    return Filter(query, drawn.one(drawn.filters)) if drawn.one((False, False, True)) else query


READ = st.builds(
    lambda *options: tuple((name, value) for name, value in options if value),
    st.tuples(st.just("order"), st.sampled_from(("arrival", "rowtime"))),
    st.tuples(st.just("maxRowsPerTrigger"), st.sampled_from(("", "", "3", "6"))),
    st.tuples(st.just("hold"), st.sampled_from(("", "", "", "20 minutes"))),
)
"""The options with which each stream is read."""


def watches(calendar: Calendar) -> st.SearchStrategy[Watched]:
    """Watches. One that a query hosts reads messages: by the brokers' clock its bound would never stand still."""
    lateness = st.integers(0, LATENESS).map(lambda steps: steps * calendar.grid)
    return st.builds(Watched, st.booleans(), lateness, st.just(False)) | st.builds(
        Watched, st.just(True), lateness, st.just(True)
    )


@st.composite
def topics(
    draw: Any, query: Query, streams: list[str], watched: st.SearchStrategy[Watched] | None
) -> dict[str, TopicBounds]:
    """Which streams are topics with bounds beside them, at least one. A topic that is read twice has no strays.

    Each of its sources judges by itself whether a row is late. ``watched``: how those that are read once are watched.
    """
    reads = [part.name for part in query.parts() if isinstance(part, Source)]
    spread = st.lists(st.integers(0, PARTITIONS - 1), min_size=2, max_size=5).map(tuple)
    chosen = draw(st.lists(st.sampled_from(streams), unique=True, min_size=1))
    found = {}
    for name in chosen:
        once = reads.count(name) == 1
        topic_bounds = TopicBounds(draw(spread), draw(st.booleans()), once and draw(st.booleans()))
        found[name] = replace(topic_bounds, watched=draw(watched)) if once and watched is not None else topic_bounds
    return found


@st.composite
def cases(
    draw: Any,
    topic_bounds: bool = False,
    watch: bool = False,
    queries: Callable[[Calendar], st.SearchStrategy[Query]] = queries,
    read: st.SearchStrategy[tuple[tuple[str, str], ...]] = READ,
) -> Case:
    """A query, a schedule for its streams, and the bounds that one of the runs leaves out.

    ``topic_bounds``: some of the streams are topics with bounds beside them, which watches derive with ``watch``; then
    no source has a name. ``read``: the options of each stream.
    """
    calendar = draw(st.sampled_from(CALENDARS))
    named = HAS_NAMES and not topic_bounds and draw(st.sampled_from((False, False, False, True)))
    query = draw(queries(calendar).flatmap(of_more_sources) if named else queries(calendar))
    streams = sorted({part.name for part in query.parts() if isinstance(part, Source)})
    of_topics = draw(topics(query, streams, watches(calendar) if watch else None)) if topic_bounds else {}
    schedule = draw(schedules(streams, calendar, of_topics))
    some = st.lists(st.sampled_from(schedule.promises or [0]), unique=True, min_size=1)
    left_out = LeftOut(frozenset(draw(st.just(schedule.promises) | some)), draw(st.booleans()), draw(st.booleans()))
    partitions = draw(st.sampled_from((1, 1, 2)))
    later = draw(changed(query, named)) if draw(st.sampled_from((False, False, False, True))) else None
    same = reordered(query) if named else None
    return Case(query, calendar, schedule, draw(read), partitions, left_out, later, same)


def lively(case: Case) -> bool:
    """Whether the case has some rows, and bounds to leave out."""
    sent = [event for event in case.schedule.events if isinstance(event, Send)]
    watched = any(topic_bounds.watched for _, topic_bounds in case.schedule.topic_bounds)
    return sum(len(event.rows) for event in sent) >= 5 and (watched or bool(case.schedule.promises))
