"""RowBuffer: what goes the short way comes out as the long way would have it."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import us, when

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.producer.row_buffer import RowBuffer
from spark_rowtime.types.schema import rows_to_batch, stream_schema
from spark_rowtime.types.timestamps import LARGEST, from_micros

KINDS = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP",
    "TIMESTAMP_NTZ", "DECIMAL(10,2)", "ARRAY<INT>",
]  # fmt: skip
EDGES = [1 << bits for bits in (7, 15, 24, 31, 53, 63)]
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3), st.dates(),
    st.datetimes(), st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-12))])),
    st.sampled_from([*EDGES, *(-e for e in EDGES), *(e - 1 for e in EDGES), *(-e - 1 for e in EDGES)]),
    st.sampled_from(["\ud800", "grün", 3.5e38, -1e300, Decimal("1.5"), [1], datetime.max, datetime.min]),
)  # fmt: skip


def opened(columns: str, rises: bool = False, floor: int | None = None, ceiling: int | None = None) -> RowBuffer:
    buffer = RowBuffer(stream_schema(f"rowtime TIMESTAMP NOT NULL, {columns}"), rises=rises)
    buffer.open(floor, ceiling, 100)
    return buffer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("null", ["", " NOT NULL"])
@given(value=VALUES)
def test_what_is_taken_is_the_arrow_that_the_long_way_makes(kind, null, value):
    """Whatever the buffer takes."""
    schema = stream_schema(f"rowtime TIMESTAMP NOT NULL, v {kind}{null}")
    buffer, row = RowBuffer(schema, rises=True), (when("10:00"), value)
    buffer.open(None, None, 1)
    if buffer.take(row):
        [batch] = buffer.drain()
        assert batch.serialize() == rows_to_batch([row], schema).serialize()  # bytes: NaN is not equal to itself
    assert len(buffer) == 0


@given(st.datetimes(timezones=st.none() | st.timezones()))
def test_a_rowtime_is_the_same_in_every_zone(time):
    buffer = opened("a INT")
    if buffer.take((time, 1)):
        assert buffer.drain() == [rows_to_batch([(time, 1)], stream_schema("rowtime TIMESTAMP NOT NULL, a INT"))]
    else:
        with pytest.raises(SchemaMismatchError):
            rows_to_batch([(time, 1)], stream_schema("rowtime TIMESTAMP NOT NULL, a INT"))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BOOLEAN", True), ("INT", -5), ("BIGINT", (1 << 63) - 1), ("FLOAT", 1.5), ("DOUBLE", 1.5), ("DOUBLE", 3),
        ("STRING", "x"), ("STRING", "grün"), ("BINARY", b"x"), ("DATE", date(2026, 1, 1)), ("INT", None),
        ("TIMESTAMP", when("9:00")), ("TIMESTAMP_NTZ", datetime(2026, 1, 1)),
    ],
)  # fmt: skip
def test_plain_values_go_the_short_way(kind, value):
    for row in ((when("10:00"), value), [datetime(2006, 9, 11, 10), value], {"v": value, "rowtime": when("10:00")}):
        assert opened(f"v {kind}").take(row)


@pytest.mark.parametrize(
    "row",
    [
        (when("10:00"),),
        (when("10:00"), 1, 2),
        {"rowtime": when("10:00")},
        {"rowtime": when("10:00"), "b": 1},
        {"rowtime": when("10:00"), "a": 1, "b": 1},
        {"a": 1},
        "ab",
        7,
        None,
        (None, 1),
        ("2026-01-01", 1),
        (from_micros(0), 1),
        (from_micros(LARGEST + 1), 1),
        (when("10:00"), True),
        (when("10:00"), "1"),
    ],
)
def test_other_rows_leave_no_trace(row):
    buffer = opened("a INT")
    assert not buffer.take(row)
    assert len(buffer) == 0
    assert buffer.last() is None


def test_rowtimes_between_the_ends():
    buffer = opened("a INT", floor=us("10:00"), ceiling=us("11:00"))
    taken = [buffer.take((when(t), 1)) for t in ("9:59:59.999999", "10:00", "11:00", "11:00:00.000001", "10:00")]
    assert taken == [False, True, True, False, True]


def test_rises_refuses_a_row_below_the_one_before():
    buffer = opened("a INT", rises=True)
    assert [buffer.take((when(t), 1)) for t in ("10:00", "10:00", "9:59", "10:01", "10:00")] == [1, 1, 0, 1, 0]
    assert buffer.last() == us("10:01")


def test_full_shut_and_drained():
    buffer = opened("a INT")
    buffer.open(None, None, 2)
    assert [buffer.take((when("10:00"), n)) for n in range(3)] == [True, True, False]
    buffer.shut()
    [batch] = buffer.drain()
    assert batch.column("a").to_pylist() == [0, 1]
    assert not buffer.take((when("10:00"), 1))
    assert len(buffer) == 0


def test_names_are_no_code():
    names = ["1x", "x y", "x'); raise SystemExit  #", "{v}", "names", "lambda", "ü\n"]
    schema = pa.schema([("rowtime", pa.timestamp("us", "UTC")), *((name, pa.int32()) for name in names)])
    buffer = RowBuffer(schema, rises=False)
    buffer.open(None, None, 9)
    assert buffer.take({"rowtime": when("10:00"), **{name: n for n, name in enumerate(names)}})
    [batch] = buffer.drain()
    assert [batch.column(name).to_pylist() for name in names] == [[n] for n in range(len(names))]


def test_one_column_and_a_thousand():
    alone = RowBuffer(stream_schema("rowtime TIMESTAMP NOT NULL"), rises=False)
    alone.open(None, None, 9)
    assert alone.take((when("10:00"),))
    assert alone.take({"rowtime": when("10:00")})
    wide = opened(", ".join(f"c{n} INT" for n in range(1000)))
    assert wide.take((when("10:00"), *range(1000)))
    assert wide.drain()[0].column("c999").to_pylist() == [999]
