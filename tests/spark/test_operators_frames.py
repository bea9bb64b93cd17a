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
from spark_rowtime.operators.floor import batch_floor, due_ms
from spark_rowtime.operators.framed import framed, key_codes
from spark_rowtime.operators.frames import Cascading, Frame, Sliding

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
    f"{function}_{column}": (function, column) for function in ("count", "sum", "avg", "min", "max") for column in "nx"
} | {"rows": ("count", "*"), "first": ("min", "rowtime")}

times = st.integers(1, 60)
floats = st.sampled_from([None, math.nan, math.inf, -math.inf, 0.1, -2.5, 3.0, 1e300])
rows = st.lists(
    st.tuples(times, st.sampled_from(["a", "b", None]), st.none() | st.integers(-9, 9), floats), min_size=1, max_size=30
)
frames = st.builds(Sliding, st.integers(0, 40)) | st.builds(Cascading, st.integers(1, 30), st.integers(0, 10))


def table(given_rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ARROW.names, row, strict=True)) for row in given_rows], ARROW)


def by_definition(row: Any, seen: list[tuple[Any, ...]], frame: Frame, what: Aggregate) -> Any:
    time, key = row[:2]
    inside = [r for r in seen if r[1] == key and frame.since(time) <= r[0] <= time]
    if what.column == "*":
        return len(inside)
    values = [v for v in (r[ARROW.names.index(what.column)] for r in inside) if v is not None]
    if what.function == "count":
        return len(values)
    if not values:
        return None
    nan_last = [(math.isnan(v), v) for v in values]
    return {
        "sum": lambda: sum(values),
        "avg": lambda: sum(values) / len(values),
        "min": lambda: min(nan_last)[1],
        "max": lambda: max(nan_last)[1],
    }[what.function]()


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
    found = framed(table(given_rows[cut:]), table(given_rows[:cut]), ["key"], "rowtime", frame, what).to_pylist()
    assert len(found) == len(given_rows) - cut
    for row, result in zip(given_rows[cut:], found, strict=True):
        for aggregate in what:
            expected = by_definition(row, given_rows, frame, aggregate)
            assert same(result[aggregate.name], expected), (row, aggregate, result[aggregate.name], expected)


@given(frames, times, times)
def test_since_never_falls(frame: Frame, one: int, more: int) -> None:
    assert frame.since(one) <= frame.since(one + more)
    assert frame.since(one) <= one


@given(frames, st.integers(20, 60), st.integers(20, 200))
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
        framed(big, big.slice(0, 0), ["key"], "rowtime", Sliding(5), aggregates({"s": ("sum", "n")}, SCHEMA))
    fits = framed(big, big.slice(0, 0), ["key"], "rowtime", Sliding(0), aggregates({"s": ("sum", "n")}, SCHEMA))
    assert fits.column("s").to_pylist() == [2**62, 2**62, -(2**62)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "is empty"),
        ({"n": ("sum", "x")}, "a column 'n' already"),
        ({"m": ("median", "x")}, "not one of count"),
        ({"m": ("sum", "units")}, "over 'units'"),
        ({"m": ("sum", "*")}, r"over '\*'"),
        ({"m": ("sum", "price")}, "decimal"),
        ({"m": ("max", "key")}, "string"),
    ],
)
def test_an_aggregate_that_cannot_be_had(asked: dict[str, tuple[str, str]], said: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match=said):
        aggregates(asked, SCHEMA)
