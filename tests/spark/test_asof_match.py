"""Which right row a left row of an as-of join gets, without Spark: against the definition, row by row."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.operators.asof_match import AsOf

SCHEMA = pa.schema([("rowtime", pa.timestamp("us", "UTC")), ("k", pa.float64()), ("n", pa.int64())])
times = st.integers(1, 12)
keys = st.sampled_from([0.0, -0.0, 1.0, float("nan")])
lefts = st.lists(st.tuples(st.none() | times, st.none() | keys), min_size=1, max_size=12)
rights = st.lists(st.tuples(times, keys), max_size=12)
joins = st.builds(
    AsOf,
    st.just(["k"]) | st.just([]),
    st.just("rowtime"),
    st.sampled_from(["backward", "forward", "nearest"]),
    st.none() | st.integers(0, 5),
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, (*row, 0), strict=True)) for row in rows], SCHEMA)


def by_definition(left: tuple[Any, ...], right: list[tuple[Any, ...]], asof: AsOf) -> int | None:
    time, key = left
    counting = [
        (abs(time - t), t > time, -number)
        for number, (t, k) in enumerate(right)
        if time is not None
        and (not asof.by or repr(k).removeprefix("-") == repr(key).removeprefix("-"))
        and (t <= time or asof.direction != "backward")
        and (t >= time or asof.direction != "forward")
        and abs(time - t) <= (100 if asof.tolerance is None else asof.tolerance)
    ]
    return -min(counting)[2] if counting else None


@given(lefts, rights, joins)
def test_each_row_gets_the_row_of_the_definition(left: list[Any], right: list[Any], asof: AsOf) -> None:
    if asof.tolerance is None and asof.direction != "backward":
        left = [(time or 1, key) for time, key in left]  # on streams these directions have a tolerance
    found = asof.matches(table(left), table(right)).to_pylist()
    assert found == [by_definition(one, right, asof) for one in left]


@given(rights, st.sampled_from([["k"], []]))
def test_the_latest_row_of_each_key_is_the_last_in_time_and_in_the_given_order(right: list[Any], by: list[str]) -> None:
    numbered = table(right).set_column(2, "n", pa.array(range(len(right)), pa.int64()))
    found = AsOf(by, "rowtime", "backward", None).latest(numbered).column("n").to_pylist()
    names = {repr(k).removeprefix("-") if by else "" for _, k in right}
    each = [[(t, n) for n, (t, k) in enumerate(right) if not by or repr(k).removeprefix("-") == name] for name in names]
    assert sorted(found) == sorted(max(rows)[1] for rows in each)
