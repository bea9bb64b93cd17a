"""Random programs: two queries with a table between them, and what happens to tables and queries meanwhile."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.law7.cases import CARRIED, GAPS, TABLE_JOINS, TIMES, WINDOWS
from tests.law7.grammar import (
    COLUMNS,
    ByTime,
    Distinct,
    Filter,
    Lookup,
    Passed,
    Project,
    Query,
    Session,
    Source,
    Totals,
    Windows,
)

KEYS = (0, 1, 2, None)
"""Tables are partitioned by the key, so a commit has several files."""
ROWS = Source("rows", "rows")
ORDERS, MIDDLE = "orders", "middle"


class Row(NamedTuple):
    """A row. ``time``: in minutes."""

    time: int
    k: int | None
    v: int


@dataclass(frozen=True)
class Put:
    """A commit of the writer of bounds: rows at its bound or after it, then the bound is so many minutes later."""

    ahead: tuple[tuple[int, int | None], ...]
    step: int


@dataclass(frozen=True)
class Stray:
    """A commit of somebody who knows nothing of bounds: rows around the writer's bound."""

    table: str
    around: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True)
class Compact:
    table: str


@dataclass(frozen=True)
class Step:
    """Both queries process all that is there."""


@dataclass(frozen=True)
class Restart:
    """A query stops and starts. ``crashed``: its last batch runs again."""

    query: int
    crashed: bool


@dataclass(frozen=True)
class Program:
    """``limits``: the options with which each query reads its table."""

    queries: tuple[Query, Query]
    limits: tuple[tuple[str, str], tuple[str, str]]
    commands: tuple[Any, ...]


def _rows(least: int, largest: int) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(st.integers(least, largest), st.sampled_from(KEYS)), min_size=1, max_size=4).map(tuple)


_TABLES = st.sampled_from((ORDERS, MIDDLE))
_PUTS = st.builds(Put, st.just(()) | _rows(0, 60) | _rows(0, 60), st.integers(0, 30))
_COMMANDS = st.one_of(
    *[_PUTS] * 4,
    *[st.just(Step())] * 2,
    st.builds(Stray, _TABLES, _rows(-50, 50)),
    st.builds(Compact, _TABLES),
    st.builds(Restart, st.integers(0, 1), st.booleans()),
)
_LIMITS = st.sampled_from(
    (
        ("maxFilesPerTrigger", "1"),
        ("maxFilesPerTrigger", "2"),
        ("maxBytesPerTrigger", "1500"),
        ("maxFilesPerTrigger", "1000"),
    )
)
"""Iceberg's limit in place of that by bytes is by rows, and no batch has as many."""


@st.composite
def _straight(draw: Any) -> Query:
    query: Query = ROWS
    if draw(st.booleans()):
        query = Filter(query, draw(st.sampled_from(("k <> 0", "v % 2 = 0"))))
    if draw(st.booleans()):
        query = Project(query, draw(st.sampled_from(TIMES[:5])))
    return Passed(query, "copy") if draw(st.booleans()) else query


@st.composite
def _queries(draw: Any) -> Query:
    """Each reads its table once: which rows of others are late, a query decides for each read."""
    of = draw(_straight())
    windows = Windows(of, *draw(st.sampled_from(WINDOWS)), CARRIED)
    kinds = (
        of,
        windows,
        Windows(windows, "30 minutes", None, CARRIED),
        Session(of, draw(st.sampled_from(GAPS)), CARRIED),
        ByTime(of, "rowtime"),
        Distinct(of, COLUMNS),
        Totals(of, "10 minutes", CARRIED),
        Lookup(of, draw(st.sampled_from(TABLE_JOINS[:4]))),
    )
    return draw(st.sampled_from((*kinds, *kinds[1:3])))


def _lively(program: Program) -> bool:
    """Whether something of each kind happens, and one of the queries keeps rows."""
    kinds = Counter(type(command) for command in program.commands)
    keeps = any(isinstance(part, Windows | Session | ByTime) for query in program.queries for part in query.parts())
    return keeps and kinds[Put] >= 4 and kinds[Step] >= 2 and min(kinds[Stray], kinds[Compact], kinds[Restart]) >= 1


PROGRAMS = st.builds(
    Program,
    st.tuples(_queries(), _queries()),
    st.tuples(_LIMITS, _LIMITS),
    st.lists(_COMMANDS, min_size=10, max_size=16).map(tuple),
).filter(_lively)
