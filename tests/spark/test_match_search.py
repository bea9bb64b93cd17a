"""The search of matchRecognize, without Spark: patterns, conditions, and when a match is decided."""

import math
import random
import time
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StringType, TimestampType

import spark_rowtime as rt
from spark_rowtime.operators import match_search
from spark_rowtime.operators.match_conditions import condition
from spark_rowtime.operators.match_expressions import tree_of
from spark_rowtime.operators.match_path import Path
from spark_rowtime.operators.match_pattern import parsed
from spark_rowtime.operators.match_references import Reference, References, SqlText
from spark_rowtime.operators.match_rows import Matches
from spark_rowtime.operators.match_search import Condition, Search
from tests.spark.match_reference import matches, random_part

TYPES: dict[str, DataType] = {
    "v": LongType(),
    "f": DoubleType(),
    "s": StringType(),
    "flag": BooleanType(),
    "t": TimestampType(),
}
ANY = "A B"


def conditions(pattern: str, **define: str) -> dict[str, Condition]:
    find = References(parsed(pattern).variables, TYPES)
    found = {}
    for name, text in define.items():
        whole = SqlText("define", text)
        tree = tree_of(whole, find.within(whole, whole=False), name)
        found[name] = condition(
            whole, tree, {**TYPES, **{t: BooleanType() for t in tree.texts() if t not in TYPES}}, name
        )
    return found


def search(pattern: str, within: int, *, overlapping: bool = False, **define: str) -> Search:
    return Search(parsed(pattern), conditions(pattern, **define), within, overlapping)


DEFINE = {"B": "v > PREV(v)", "C": "v <= FIRST(v) OR COUNT(B.*) > 1"}


def holds(rows: Any, way: tuple[str, ...]) -> bool:
    """What DEFINE says, over plain numbers; the rows are not further apart than ``within``."""
    value = rows[-1]
    if way[-1] == "B":
        return len(rows) > 1 and bool(value > rows[-2])
    if way[-1] == "C":
        return bool(value <= rows[-len(way)] or way.count("B") > 1)
    return True


@pytest.mark.parametrize("block", range(2))
def test_a_match_is_the_most_preferred_of_all_mappings(block: int) -> None:
    chance, compared = random.Random(block), 0
    while compared < 100:
        pattern, overlapping, within = random_part(chance, 2), chance.random() < 0.5, chance.choice((3, 5, 99))
        text, values = str(pattern), [chance.randrange(4) for _ in range(5)]
        if "C" in text and "B" not in text:
            continue  # the condition of C names B
        if () in pattern.ways(5):
            with pytest.raises(rt.InvalidOptionError, match="no row at all"):
                parsed(text)
            continue
        times = sorted(chance.randrange(9) for _ in values)
        if any(b - a > within for a, b in pairwise(times)):
            continue  # PREV would be NULL
        wanted = matches(pattern, values, times, holds, within, overlapping=overlapping)
        of = search(text, within, overlapping=overlapping, **{k: c for k, c in DEFINE.items() if k in text})
        assert told(of, times, values) == wanted, (text, times, values)
        assert stepwise(of, times, values) == wanted, (text, times, values)
        compared += 1


def told(of: Search, times: list[int], values: list[int]) -> list[tuple[int, tuple[str, ...]]]:
    found, rest = of.matches(times, {"v": values}, 0, None)
    assert rest == len(times)
    return [shown(path) for path in found]


def stepwise(of: Search, times: list[int], values: list[int]) -> list[tuple[int, tuple[str, ...]]]:
    """The matches as the bound rises by one."""
    found: list[Path] = []
    begin = 0
    for floor in range(max(times) + of.within + 2):
        there = [time for time in times if time < floor]
        more, begin = of.matches(there, {"v": values[: len(there)]}, begin, floor)
        assert all(floor <= path.times[path.start] + of.within + 1 for path in more), "as soon as it is decided"
        found += more
    return [shown(path) for path in found]


def shown(path: Path) -> tuple[int, tuple[str, ...]]:
    return path.start, tuple(path.variables)


@pytest.mark.parametrize(
    ("pattern", "floor", "decided"),
    [
        ("A B", 12, 1),
        ("A B+", 12, 0),
        ("A B+?", 12, 1),
        ("A B{1,2}", 12, 0),
        ("A B{1}", 12, 1),
        ("A (B | B B)", 12, 1),
        ("A (B B | B)", 12, 0),
        ("A B+", 20, 0),
        ("A B+", 21, 1),
    ],
)
def test_a_match_is_decided_when_no_later_row_can_change_it(pattern: str, floor: int, decided: int) -> None:
    of = search(pattern, 10, B="v > PREV(v)")
    found, rest = of.matches([10, 11], {"v": [1, 2]}, 0, floor)
    assert (len(found), rest) == (decided, 2 * decided)


def test_a_row_that_ends_the_repetition_decides() -> None:
    of = search("A B+", 10, B="v > PREV(v)")
    assert [shown(path) for path in of.matches([10, 11, 12], {"v": [1, 2, 0]}, 0, 13)[0]] == [(0, ("A", "B"))]


def test_a_long_match_and_a_pattern_with_many_ways_are_found() -> None:
    rows = 300
    of = search("(A | B)* C", rows, A="v >= 0", B="v >= 0", C="v < 0")
    assert of.matches(list(range(rows)), {"v": [1] * rows, "v >= 0": [True] * rows, "v < 0": [False] * rows}, 0, None)
    long = search("A+ C", rows, C="v > 9")
    found, _ = long.matches(list(range(rows)), {"v": [1] * rows, "v > 9": [False] * (rows - 1) + [True]}, 0, None)
    assert [path.last for path in found] == [rows - 1]


@pytest.mark.parametrize(
    ("pattern", "define"),
    [("A B+ C", {"B": "v > PREV(v)", "C": "v < PREV(v)"}), ("A B+", {"B": "B.v > A.v AND COUNT(B.*) > 0"})],
)
def test_the_time_of_a_search_grows_with_the_rows(pattern: str, define: dict[str, str]) -> None:
    """Not with the rows by the rows within reach: all of them are, and no match ends."""

    def took(rows: int) -> float:
        before = time.thread_time()
        search(pattern, rows, **define).matches(list(range(rows)), {"v": list(range(rows))}, 0, None)
        return time.thread_time() - before

    pairs = [(took(8_000), took(1_000)) for _ in range(3)]
    assert min(long for long, _ in pairs) < 24 * min(short for _, short in pairs)


def test_the_row_before_counts_if_it_is_at_most_within_before() -> None:
    of = search("B", 10, B="v > PREV(v)")
    found, _ = of.matches([0, 10, 21], {"v": [1, 2, 3]}, 0, None)
    assert [path.start for path in found] == [1]


NAN, NULL = math.nan, None
ROW: dict[str, list[Any]] = {"v": [4, 7], "f": [NAN, 0.5], "s": ["a", "b"], "flag": [True, NULL], "t": [10, 30]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A.v < B.v", True),
        ("A.v + 3 = LAST(v)", True),
        ("LAST(v) + 2 * A.v = 15", True),
        ("(A.v + 1) * 2 = 10", True),
        ("A.v / 8 = 0.5", True),
        ("A.v / 0 IS NULL", True),
        ("-A.v = -4 AND ABS(-A.v) = 4", True),
        ("A.v BETWEEN 4 AND 5 AND NOT A.v NOT BETWEEN 4 AND 5", True),
        ("A.v IN (1, 4) AND A.v NOT IN (1, 2)", True),
        ("A.v IN (1, NULL)", None),
        ("A.f > 1e308", True),
        ("A.f = A.f", True),
        ("PREV(f) <> 0.5 and prev(s) == 'a'", True),
        ("A.flag OR FIRST(flag, 1)", True),
        ("FIRST(flag, 1) AND A.flag", None),
        ("FIRST(flag, 1) AND NOT A.flag", False),
        ("FIRST(flag, 1) <=> NULL", True),
        ("A.v <=> NULL", False),
        ("FIRST(v, 5) IS NULL AND PREV(v, 2) IS NULL", True),
        ("LAST(B.v, 1) IS NULL AND LAST(v, 1) = 4", True),
        ("PREV(A.v) IS NULL AND PREV(B.v) = 4", True),
        ("COUNT(*) = 2 AND COUNT(A.*) = 1 AND COUNT(flag) = 1", True),
        ("SUM(v) = 11 AND AVG(v) = 5.5 AND MIN(v) = 4 AND MAX(f) > 9", True),
        ("SUM(FIRST(v)) = 1", "FIRST within another"),
        ("COALESCE(LAST(B.v, 1), A.v) = 4.0", True),
        ("COALESCE(PREV(v, 2), 0) = 0", True),
        ("A.t < B.t AND B.t - A.t = B.t - A.t", True),
        ("A.v > 'x'", "a whole number is compared with a string. Cast one of them"),
        ("A.s + 1 > 2", "a string [+] a whole number is not possible"),
        ("A.v LIKE 'x'", "LIKE over references is not supported, but AND, OR"),
        ("A.v % 2 = 0", "% over references"),
        ("sqrt(A.v) > 2", "SQRT over references"),
        ("CASE WHEN A.v > 1 THEN true END", "CASE over references"),
        ("NEXT(v) > 1", "NEXT is not supported"),
        ("A.v", "it is a whole number, not a condition"),
        ("A.v AND A.flag", "AND does not take a whole number"),
        ("SUM(s) > 'a'", "SUM takes whole numbers and floats, not string"),
        ("SUM(A.v + B.v) > 1", "A and B in one reference"),
        ("LAST(v, v) > 1", "is a whole number"),
        ("LAST(v > 1", "a '[)]' is missing"),
        ("A.v >", "it ends too early"),
        ("A.v > 1 A", "'A' is not expected there"),
        ("A.v # 1", "'#' is not SQL that is known here"),
        ("A.v IN ()", "IN over references is not supported"),
        ("A.v > 1_000", "1_000 is not a number"),
        ("PREV(v, ²) > 1", "is a whole number"),
        (f"PREV(v, {'9' * 5000}) > 1", "is a whole number"),
        (f"{'(' * 3000}A.v{')' * 3000} > 1", "it is nested too deeply"),
        (f"{'NOT ' * 3000}A.flag", "it is nested too deeply"),
    ],
)
def test_conditions_are_those_of_spark_and_others_are_refused_by_name(text: str, expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(rt.InvalidOptionError, match=expected):
            conditions(ANY, B=text)
        return
    path = Path([10, 30], ROW, 100, 0, 1, ["A", "B"])
    assert conditions(ANY, B=text)["B"].holds(path) is expected


def test_what_is_over_one_row_is_left_to_spark() -> None:
    def texts(text: str) -> list[str]:
        whole = SqlText("define", text)
        return list(tree_of(whole, References(["A", "B"], TYPES).within(whole, whole=False), "B").texts())

    assert texts("upper(B.s) LIKE 'X%' AND v > 1") == ["upper ( s ) LIKE 'X%' AND v > 1"]
    assert texts("cast(B.v AS double) > A.v") == ["cast ( v AS double )", "v"]
    assert texts("filter(array(v), x -> x > 1)[0] = PREV(v + 2)") == [
        "filter ( array ( v ) , x -> x > 1 ) [ 0 ]",
        "v + 2",
    ]
    assert texts("B.t > A.t + INTERVAL '5' MINUTES AND s = A.s") == ["t", "t", "INTERVAL '5' MINUTES", "s", "s"]
    assert texts("CASE WHEN v > 1 THEN s END = A.s AND t > DATE '2006-01-01'") == [
        "CASE WHEN v > 1 THEN s END",
        "s",
        "t > DATE '2006-01-01'",
    ]
    assert texts("'it''s' = A.s AND (v IS NULL OR A.v IS NOT NULL)") == ["s", "v IS NULL", "v"]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "a part of it is empty"),
        ("A |", "a part of it is empty"),
        ("(A B", "a '[)]' is missing"),
        ("A )", "'[)]' is not expected there"),
        ("A*", "matches no row at all"),
        ("A{2,1}", "has a most of 1"),
        ("A{}", "is not {n}"),
        (f"A{{{'9' * 5000}}}", "is not {n}"),
        ("^ A", "'\\^' is not possible there"),
        ("PERMUTE(A, B)", "'PERMUTE' is not possible there"),
        ("A{101} (A{1000}){100}", "more than 10000 states"),
        ("V B", "V is a column, too"),
    ],
)
def test_a_pattern_that_cannot_be_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match=why) as refused:
        References(parsed(pattern).variables, TYPES)
    assert refused.value.values["option"] == "pattern"


def test_patterns_are_read_as_in_sql() -> None:
    assert set(parsed("a b+ | (c{2}?)").variables) == {"A", "B", "C"}


def test_the_row_before_is_kept_for_a_row_at_which_a_match_may_begin() -> None:
    """It is more than ``within`` below the bound, but not below that row."""
    of = Matches(
        search("B B+", 20, B="v > PREV(v)"), [], "rowtime", {"v": "v"}, {"n": Reference("LAST", None, "v")}, [], 1
    )
    rows = pa.table({"rowtime": pa.array([0, 15], pa.timestamp("us", "UTC")), "v": [1, 2]})
    found, kept = of.advance(of.opened(rows), 30)
    assert (found.num_rows, kept.column("v").to_pylist(), of.due(kept, 30)) == (0, [1, 2], 36)
    more = pa.table({"rowtime": pa.array([31], pa.timestamp("us", "UTC")), "v": [3]})
    found, kept = of.advance(pa.concat_tables([kept, of.opened(more)]), 36)
    assert (found.column("n").to_pylist(), kept.column("v").to_pylist()) == ([3], [3])
    assert of.advance(kept, 52)[1].num_rows == 0


def test_a_search_that_would_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a condition looks at the match, each mapping is a way of its own: here 2^60."""
    monkeypatch.setattr(match_search, "_MOST_TRIED", 10_000)
    rows = {"v": [*range(60)]}
    endless = search("(A | B)+ C", 100, C="v < FIRST(v)")
    with pytest.raises(rt.InvalidOptionError, match=r"more than 10,000 mappings .* conditions of C look at other rows"):
        endless.matches([*range(60)], rows, 0, None)
    assert search("(A | B)+ C", 100, C="v < PREV(v)").matches([*range(60)], rows, 0, None) == ([], 60)
