"""The schema of a stream, the rules of its rowtime, and rows of it as Arrow."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import types as spark
from unit_support import us, when

from spark_rowtime import SchemaMismatchError
from spark_rowtime.types.schema import (
    TIMESTAMP,
    batch_to_schema,
    check_rowtimes,
    rows_to_batch,
    rowtime_micros,
    show_schema,
    stream_schema,
)
from spark_rowtime.types.timestamps import LARGEST, LEAST

ROWTIME = pa.field("rowtime", TIMESTAMP, nullable=False)
SCHEMA = stream_schema("rowtime TIMESTAMP NOT NULL, n INT, name STRING NOT NULL")


@pytest.mark.parametrize(
    "given",
    [
        "rowtime TIMESTAMP NOT NULL, n INT",
        "rowtime TIMESTAMP, n INT",
        "rowtime TIMESTAMP_NTZ, n INT",
        spark.StructType().add("rowtime", "timestamp", nullable=False).add("n", "integer"),
        pa.schema([("rowtime", pa.timestamp("us", "UTC")), ("n", pa.int32())]),
        pa.schema([("rowtime", pa.timestamp("ns")), ("n", pa.int32())]),
        pa.schema([("rowtime", pa.timestamp("s", "Asia/Tokyo")), ("n", pa.int32())]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_form_gives_the_same_stream(given):
    assert stream_schema(given) == pa.schema([ROWTIME, ("n", pa.int32())])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("n INT", "needs a column 'rowtime"),
        ("rowtime BIGINT", "rowtime must be a TIMESTAMP"),
        ("rowtime STRING", "rowtime must be a TIMESTAMP"),
        ("rowtime DATE", "rowtime must be a TIMESTAMP"),
        ("rowtime ARRAY<TIMESTAMP>", "rowtime must be a TIMESTAMP"),
        ("rowtime TIMESTAMP, rowtime TIMESTAMP", "'rowtime' occurs twice"),
        ("rowtime TIMESTAMP, RowTime INT", "'rowtime' occurs twice"),
        ("rowtime TIMESTAMP, a INT, A INT", "'a' occurs twice"),
        (pa.schema([ROWTIME, ("u", pa.uint8())]), "'u'.*uint8"),
        (pa.schema([ROWTIME, ("t", pa.time64("us"))]), "'t'"),
        (pa.schema([ROWTIME, ("d", pa.duration("us"))]), "'d'"),
        (pa.schema([ROWTIME, ("h", pa.float16())]), "'h'"),
        (pa.schema([ROWTIME, ("n", pa.null())]), "'n'"),
        (pa.schema([ROWTIME, ("d", pa.decimal256(50, 2))]), "'d'"),
        (pa.schema([ROWTIME, ("d", pa.decimal128(5, -2))]), "'d'"),
        (pa.schema([ROWTIME, ("l", pa.list_(pa.uint64()))]), "'l'"),
        (pa.schema([ROWTIME, ("s", pa.struct([("x", pa.date64())]))]), "'s'"),
        (17, "int is not a schema"),
        (None, "NoneType is not a schema"),
    ],
)
def test_what_is_no_schema_of_a_stream(given, said):
    with pytest.raises(SchemaMismatchError, match=said):
        stream_schema(given)


def test_wide_arrow_types_become_what_spark_has():
    wide = pa.schema(
        [
            ROWTIME,
            ("s", pa.large_string()),
            ("v", pa.string_view()),
            ("b", pa.large_binary()),
            ("l", pa.large_list(pa.field("item", pa.large_string(), nullable=False))),
            ("m", pa.map_(pa.large_string(), pa.timestamp("ns", "Asia/Tokyo"))),
            ("t", pa.struct([pa.field("x", pa.timestamp("ms"), nullable=False)])),
        ]
    )
    assert stream_schema(wide) == pa.schema(
        [
            ROWTIME,
            ("s", pa.string()),
            ("v", pa.string()),
            ("b", pa.binary()),
            ("l", pa.list_(pa.field("element", pa.string(), nullable=False))),
            ("m", pa.map_(pa.string(), TIMESTAMP)),
            ("t", pa.struct([pa.field("x", pa.timestamp("us"), nullable=False)])),
        ]
    )


def test_rowtime_may_stand_anywhere_and_metadata_does_not_matter():
    schema = stream_schema("n INT, rowtime TIMESTAMP")
    assert schema.names == ["n", "rowtime"]
    assert show_schema(schema) == "n int32, rowtime timestamp[us, tz=UTC] not null"


# ---- Python rows


def test_rows_to_batch():
    rows = [(when("10:00"), 1, "a"), {"name": "b", "n": None, "rowtime": "2006-09-11T10:01:00"}]
    batch = rows_to_batch(rows, SCHEMA)
    assert batch.schema == SCHEMA
    assert rowtime_micros(batch).to_pylist() == [us("10:00"), us("10:01")]
    assert batch.to_pylist()[1] == {"rowtime": when("10:01"), "n": None, "name": "b"}
    assert rows_to_batch([], SCHEMA).num_rows == 0


def test_every_type_goes_in_and_out():
    columns = {
        "flag BOOLEAN": True,
        "b TINYINT": -128,
        "s SMALLINT": 32767,
        "i INT": -(2**31),
        "l BIGINT": 2**63 - 1,
        "f FLOAT": 0.5,
        "d DOUBLE": 1e300,
        "t STRING": "näh\U0001f600",
        "y BINARY": b"\x00\xff",
        "day DATE": date(1600, 2, 29),
        "at TIMESTAMP": datetime(1600, 1, 1, tzinfo=UTC),
        "local TIMESTAMP_NTZ": datetime(9999, 12, 31, 23, 59, 59, 999999),
        "price DECIMAL(38,2)": Decimal("-123456789012345678901234567890123456.78"),
        "tags ARRAY<STRING>": ["a", None],
        "counts MAP<STRING, INT>": [("a", 1)],
        "point STRUCT<x: INT, y: ARRAY<INT>>": {"x": 1, "y": []},
    }
    schema = stream_schema(", ".join(["rowtime TIMESTAMP", *columns]))
    full, empty = (when("10:00"), *columns.values()), (when("10:01"), *[None] * len(columns))
    batch = rows_to_batch([full, empty], schema)
    assert [tuple(row.values()) for row in batch.to_pylist()] == [full, empty]
    assert batch_to_schema(batch, schema) == batch


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ((when("10:00"), 2**31, "a"), "Row 1: n=2147483648 does not fit"),
        ((when("10:00"), 1.5, "a"), "Row 1: n=1.5"),
        ((when("10:00"), float("nan"), "a"), "Row 1: n=nan"),
        ((when("10:00"), Decimal("1.5"), "a"), "Row 1: n="),
        ((when("10:00"), "1", "a"), "Row 1: n='1'"),
        ((when("10:00"), True, "a"), "Row 1: n=True"),
        ((when("10:00"), 1, None), "Row 1 has no value for 'name', which is NOT NULL"),
        ((when("10:00"), 1, "\ud800"), "Row 1: name="),
        ((when("10:00"), 1), "Row 1 is .* 3 values"),
        ((when("10:00"), 1, "a", "b"), "Row 1 is .* 3 values"),
        ("abc", "Row 1 is 'abc'"),
        (b"abc", "Row 1"),
        ({1, 2, 3}, "Row 1"),
        (None, "Row 1 is None"),
        ((None, 1, "a"), "Row 1: rowtime is invalid"),
        (("whenever", 1, "a"), "Row 1: rowtime is invalid"),
        ({"rowtime": when("10:00"), "n": 1}, r"Row 1 .*missing \['name'\]"),
        ({"rowtime": when("10:00"), "n": 1, "name": "a", "x": 1}, r"Row 1 .*unknown \['x'\]"),
        ({"rowtime": when("10:00"), "n": 1, "Name": "a"}, r"missing \['name'\], unknown \['Name'\]"),
    ],
)
def test_the_error_names_row_column_and_value(bad, said):
    with pytest.raises(SchemaMismatchError, match=said):
        rows_to_batch([(when("9:00"), 1, "a"), bad], SCHEMA)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("INT", 1.0, 1.5),
        ("ARRAY<INT>", [1, None], [1, 1.5]),
        ("MAP<STRING, INT>", {"a": 1}, {"a": 1.5}),
        ("MAP<INT, STRING>", [(1, "a")], [(1.5, "a")]),
        ("STRUCT<x: STRING, y: ARRAY<BIGINT>>", {"x": "a", "y": [2]}, {"x": "a", "y": [2.5]}),
        ("STRUCT<x: INT>", (1,), (1.5,)),
    ],
)
def test_no_fraction_is_cut_off(kind, good, bad):
    schema = stream_schema(f"rowtime TIMESTAMP, v {kind}")
    assert rows_to_batch([(when("10:00"), good), (when("10:00"), None)], schema).num_rows == 2
    with pytest.raises(SchemaMismatchError, match=r"Row 1: v=.*not a whole number"):
        rows_to_batch([(when("10:00"), good), (when("10:00"), bad)], schema)


def test_a_time_whose_offset_has_microseconds_keeps_them():
    """As timezone(datetime.now() - datetime.utcnow()) has them; Arrow itself cuts the offset to seconds."""
    schema = stream_schema("rowtime TIMESTAMP, at TIMESTAMP, local TIMESTAMP_NTZ, all ARRAY<TIMESTAMP>")
    odd = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1, microseconds=-5)))
    at = datetime(2026, 1, 1, 0, 0, 0, 5, UTC)
    [row] = rows_to_batch([(odd, odd, odd, [odd])], schema).to_pylist()
    assert row == {"rowtime": at, "at": at, "local": at.replace(tzinfo=None), "all": [at]}


def test_whole_numbers_in_a_double():
    """As JavaScript writes them in JSON; Arrow itself takes none from 2^63 on."""
    schema = stream_schema("rowtime TIMESTAMP, v DOUBLE")
    rows = [(when("10:00"), value) for value in (10**20, -(2**63), 2**100, 1.5, float("nan"), None)]
    found = rows_to_batch(rows, schema).column("v").to_pylist()
    assert found[:4] == [1e20, -(2.0**63), 2.0**100, 1.5]
    for bad in (10**20 + 1, 2**53 + 1, 10**400):
        with pytest.raises(SchemaMismatchError, match="Row 1: v="):
            rows_to_batch([*rows[:1], (when("10:00"), bad)], schema)


# ---- Arrow


def table(**columns):
    start = {"rowtime": pa.array([us("10:00")], TIMESTAMP), "n": pa.array([1], pa.int32()), "name": ["a"]}
    return pa.table({**start, **columns})


def test_columns_go_by_name():
    given = table().select(["name", "rowtime", "n"])
    batch = batch_to_schema(given, SCHEMA)
    assert batch.schema == SCHEMA
    assert batch == batch_to_schema(given.to_batches()[0], SCHEMA)
    assert batch.to_pylist() == [{"rowtime": when("10:00"), "n": 1, "name": "a"}]


def test_chunks_become_one_batch():
    both = pa.concat_tables([table(), table(name=["b"])])
    assert batch_to_schema(both, SCHEMA).column("name").to_pylist() == ["a", "b"]
    assert batch_to_schema(both.slice(0, 0), SCHEMA).num_rows == 0
    assert batch_to_schema(SCHEMA.empty_table(), SCHEMA).num_rows == 0


def test_safe_casts_are_made():
    given = table(n=pa.array([7], pa.int64()), name=pa.array(["x"], pa.large_string()))
    assert batch_to_schema(given, SCHEMA).to_pylist() == [{"rowtime": when("10:00"), "n": 7, "name": "x"}]
    dictionary = table(name=pa.array(["x"]).dictionary_encode())
    assert batch_to_schema(dictionary, SCHEMA).column("name").to_pylist() == ["x"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"n": pa.array([2**31])}, "'n' is int64, not int32"),
        ({"n": pa.array([1.5])}, "'n' is double"),
        ({"n": ["many"]}, "'n' is string"),
        ({"name": pa.array([None], pa.string())}, "'name' is NOT NULL, but 1 of"),
        ({"name": pa.array([b"\xff"])}, "'name' is binary"),
        ({"rowtime": pa.array([None], TIMESTAMP)}, "'rowtime' is NOT NULL"),
        ({"rowtime": ["2006-09-11T10:00:00"]}, "'rowtime' is string"),
        ({"rowtime": pa.array([us("10:00")])}, "'rowtime' is int64"),
        ({"rowtime": pa.array([0], TIMESTAMP)}, "later than 1970"),
        ({"rowtime": pa.array([-1], pa.timestamp("ns"))}, "later than 1970"),
        ({"rowtime": pa.array([LARGEST + 1], TIMESTAMP)}, "at most 9999-12-31T23:59:59.999998Z"),
        ({"rowtime": pa.array([2**64 // 1_000_000 + 10], pa.timestamp("s"))}, "out of bounds"),
        ({"x": [1]}, r"unknown \['x'\]"),
    ],
)
def test_arrow_that_does_not_fit(columns, said):
    with pytest.raises(SchemaMismatchError, match=said):
        batch_to_schema(table(**columns), SCHEMA)


def test_a_missing_or_double_column():
    with pytest.raises(SchemaMismatchError, match=r"missing \['n'\]"):
        batch_to_schema(table().drop_columns("n"), SCHEMA)
    with pytest.raises(SchemaMismatchError):
        batch_to_schema(table().append_column("n", pa.array([1])), SCHEMA)


def test_the_ends_of_the_range_are_legal():
    check_rowtimes(pa.array([LEAST, LARGEST], TIMESTAMP))
    check_rowtimes(pa.array([], TIMESTAMP))
    for beyond in (LEAST - 1, LARGEST + 1):
        with pytest.raises(SchemaMismatchError, match="invalid"):
            check_rowtimes(pa.array([us("10:00"), beyond], TIMESTAMP))


def test_iso_text_is_a_time_in_every_timestamp_column():
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, zoned TIMESTAMP, plain TIMESTAMP_NTZ")
    batch = rows_to_batch([("2006-09-11T10:00:00Z", "1969-07-20T20:17:40+00:00", "2006-09-11T10:00:00")], schema)
    assert [column[0].value for column in batch.columns] == [1157968800000000, -14182940000000, 1157968800000000]
    with pytest.raises(SchemaMismatchError, match="zoned='noon'"):
        rows_to_batch([("2006-09-11T10:00:00Z", "noon", None)], schema)
