"""What the operators compute, without Spark: against the definition, row by row."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DecimalType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

import spark_rowtime as rt
from spark_rowtime.operators.aggregates import Aggregate, aggregates
from spark_rowtime.operators.chunks import BUCKET, CHUNK, from_bytes, pack
from spark_rowtime.operators.frames import Cascading, Frame, LastRows, Sliding
from spark_rowtime.operators.group_processor import batch_floor, due_ms
from spark_rowtime.operators.processor import over_frames
from spark_rowtime.operators.sorted_rows import SortedRows, in_sequence, key_codes

SCHEMA = StructType(
    [
        StructField("rowtime", TimestampType()),
        StructField("key", StringType()),
        StructField("n", LongType()),
        StructField("x", DoubleType()),
        StructField("price", DecimalType(9, 2)),
    ]
)
ARROW = pa.schema(
    [("rowtime", pa.timestamp("us", "UTC")), ("key", pa.string()), ("n", pa.int64()), ("x", pa.float64())]
)
ASKED = {
    f"{function}_{column}": (function, column)
    for function in ("count", "sum", "avg", "min", "max", "first", "last", "rank", "median")
    for column in "nx"
} | {"rows": ("count", "*"), "least": ("min", "rowtime"), "oldest": ("first", "key")}

times = st.integers(1, 60)
floats = st.sampled_from([None, math.nan, math.inf, -math.inf, 0.1, -2.5, 3.0, 1e300])
rows = st.lists(
    st.tuples(times, st.sampled_from(["a", "b", None]), st.none() | st.integers(-9, 9), floats), min_size=1, max_size=30
)
by_time = st.builds(Sliding, st.integers(0, 40), st.just(0) | st.integers(0, 20)) | st.builds(
    Cascading, st.integers(1, 30), st.integers(0, 10)
)
frames = by_time | st.builds(LastRows, st.integers(1, 5))


def table(given_rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ARROW.names, row, strict=True)) for row in given_rows], ARROW)


def inside(number: int, seen: list[tuple[Any, ...]], frame: Frame) -> list[tuple[Any, ...]]:
    """The rows that count for the one of that number, in their order."""
    time, key = seen[number][:2]
    same_key = sorted((r[0], n) for n, r in enumerate(seen) if r[1] == key)
    if isinstance(frame, LastRows):
        place = same_key.index((time, number))
        return [seen[n] for _, n in same_key[max(0, place - frame.count + 1) : place + 1]]
    return [seen[n] for t, n in same_key if frame.since(time) <= t <= time + frame.following]


def by_definition(number: int, seen: list[tuple[Any, ...]], frame: Frame, what: Aggregate) -> Any:
    counted = inside(number, seen, frame)
    if what.column == "*":
        return len(counted)
    place = ARROW.names.index(what.column)
    if what.function in ("first", "last"):
        return counted[0 if what.function == "first" else -1][place]
    values = [v for v in (r[place] for r in counted) if v is not None]
    return len(values) if what.function == "count" else summary(what.function, values, seen[number][place])


def summary(function: str, values: list[Any], own: Any) -> Any:
    if not values or (function == "rank" and own is None):
        return None
    nan_last = sorted((math.isnan(v), v) for v in values)
    middle = [v for _, v in nan_last[(len(values) - 1) // 2 : len(values) // 2 + 1]]
    return {
        "sum": lambda: sum(values),
        "avg": lambda: sum(values) / len(values),
        "min": lambda: nan_last[0][1],
        "max": lambda: nan_last[-1][1],
        "median": lambda: sum(middle) / len(middle),
        "rank": lambda: 1 + sum(1 for v in nan_last if v < (math.isnan(own), own) and not (v[0] and math.isnan(own))),
    }[function]()


def same(one: Any, other: Any) -> bool:
    if isinstance(one, datetime):
        one = (one - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return one == other


@given(rows, frames, st.data())
def test_each_row_meets_the_rows_of_its_frame(given_rows: list[Any], frame: Frame, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(given_rows) - 1))
    what = aggregates(ASKED, SCHEMA)
    found = over_frames(table(given_rows[cut:]), table(given_rows[:cut]), ["key"], "rowtime", frame, what).to_pylist()
    assert len(found) == len(given_rows) - cut
    for number, result in enumerate(found, cut):
        for aggregate in what:
            expected = by_definition(number, given_rows, frame, aggregate)
            shown = given_rows[number], aggregate, result[aggregate.name], expected
            assert same(result[aggregate.name], expected), shown


@given(rows, st.integers(0, 4))
def test_the_last_rows_of_each_key_are_kept(given_rows: list[Any], count: int) -> None:
    kept = SortedRows(table(given_rows), ["key"], "rowtime").among_last(count)
    for key in ("a", "b", None):
        numbers = sorted((row[0], n) for n, row in enumerate(given_rows) if row[1] == key)
        assert [n for _, n in numbers if kept[n]] == [n for _, n in numbers[max(0, len(numbers) - count) :]]


def test_rows_in_sequence_are_as_spark_orders_them() -> None:
    values = [math.nan, 2.0, None, -math.inf, math.inf]
    found = in_sequence(table([(1, "a", None, x) for x in values] + [(1, None, 1, 0.0)]), ["key", "n", "x"])
    assert [str(x) for x in found.column("x").to_pylist()] == ["0.0", "None", "-inf", "2.0", "inf", "nan"]


@given(frames, times, times)
def test_since_never_falls(frame: Frame, one: int, more: int) -> None:
    assert frame.since(one) <= frame.since(one + more)
    assert frame.since(one) <= one


@given(by_time, st.integers(20, 60), st.integers(20, 200))
def test_since_reaches_an_end_when_the_floor_frees_it(frame: Frame, end: int, floor: int) -> None:
    assert (frame.since(floor) >= end) == (floor >= frame.free_at(end))


@given(st.integers(2, 10**7), st.integers(1, 10**7))
def test_a_timer_is_never_later_than_its_floor(floor: int, wanted: int) -> None:
    watermark = (floor - 1) // 1000
    if floor >= wanted:
        assert watermark >= due_ms(wanted)
    assert batch_floor(watermark) <= floor, "without the property the floor is never overstated"


def test_chunks_keep_every_row_and_type() -> None:
    given_rows = table([(1, "a", 2**62 + 1, math.nan), (2, None, None, None), (3, "c", 1, -0.0)])
    batch = given_rows.append_column(BUCKET, pa.array([5, 1, 5], pa.int32())).combine_chunks().to_batches()[0]
    packed = list(pack(iter([batch, batch.slice(0, 0)])))
    assert [p.column(BUCKET).to_pylist() for p in packed] == [[1, 5], []]
    one, five = (from_bytes(chunk.as_py()) for chunk in packed[0].column(CHUNK))
    assert one.equals(given_rows.slice(1, 1))
    assert five.column("n").to_pylist() == [2**62 + 1, 1]
    assert math.isnan(five.column("x")[0].as_py())


def test_keys_are_equal_where_sql_says_so() -> None:
    columns = [
        pa.array([0.0, -0.0, math.nan, math.nan, None, None, 0.0]),
        pa.array(["a", "a", "a", "a", "a", "a", "b"]),
    ]
    assert key_codes(pa.table(columns, names=["x", "y"]), ["x", "y"]).tolist() == [0, 0, 2, 2, 3, 3, 1]


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    big = table([(1, "a", 2**62, 0.0), (2, "a", 2**62, 0.0), (3, "b", -(2**62), 0.0)])
    with pytest.raises(OverflowError, match="DOUBLE"):
        over_frames(big, big.slice(0, 0), ["key"], "rowtime", Sliding(5), aggregates({"s": ("sum", "n")}, SCHEMA))
    fits = over_frames(big, big.slice(0, 0), ["key"], "rowtime", Sliding(0), aggregates({"s": ("sum", "n")}, SCHEMA))
    assert fits.column("s").to_pylist() == [2**62, 2**62, -(2**62)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "is empty"),
        ({"n": ("sum", "x")}, "already a column 'n'"),
        ({"N": ("sum", "x")}, "already a column 'N'"),
        ({"a": ("sum", "x"), "A": ("max", "x")}, "already a column 'A'"),
        ({"m": ("mode", "x")}, "not one of count"),
        ({"m": ("median", "rowtime")}, "timestamp"),
        ({"m": ("sum", "units")}, "over 'units'"),
        ({"m": ("sum", "*")}, r"over '\*'"),
        ({"m": ("sum", "price")}, "decimal"),
        ({"m": ("max", "key")}, "string"),
    ],
)
def test_an_aggregate_that_cannot_be_had(asked: dict[str, tuple[str, str]], said: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match=said):
        aggregates(asked, SCHEMA)
