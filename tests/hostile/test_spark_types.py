"""Every type that a stream takes, at its edges, through Spark and back: exactly, natively and through Python."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import spark_rowtime as rt
from spark_rowtime.types.schema import stream_schema
from tests.hostile.kinds import NAMES
from tests.spark.pythontasks import python_tasks, watching
from tests.spark.query_output import finish, refused
from tests.sparksession import NATIVE_READ, NATIVE_WRITE, start
from tests.streams import at, opened

THROUGH_PYTHON = {NATIVE_READ: "false", NATIVE_WRITE: "false"}
ODD_SESSION = {
    "spark.sql.session.timeZone": "America/St_Johns",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
}
WAYS: dict[str, dict[str, str]] = {
    "native": {},
    "Python": THROUGH_PYTHON,
    "native in an odd session": ODD_SESSION,
    "Python in an odd session": {**THROUGH_PYTHON, **ODD_SESSION},
}
LAST = dt.datetime.max
NINES = Decimal("9" * 38)

EDGES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 127],
    "SMALLINT": [-(1 << 15), (1 << 15) - 1],
    "INT": [-(1 << 31), (1 << 31) - 1],
    "BIGINT": [-(1 << 63), (1 << 63) - 1],
    "FLOAT": [float("nan"), -0.0, float("inf"), float("-inf"), 3.4028234663852886e38, 1e-45],
    "DOUBLE": [float("nan"), -0.0, float("inf"), float("-inf"), 1.7976931348623157e308, 5e-324],
    "STRING": ["", "\x00", "größe-漢字-🚂", "'; DROP TABLE events; --", "\r\n", "x" * 5000],
    "BINARY": [b"", b"\x00\xff", b"cos\nsystem\n(S'true'\ntR."],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10), dt.date(1900, 2, 28)],
    "TIMESTAMP": [dt.datetime(1, 1, 1), LAST, dt.datetime(1582, 10, 10), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "TIMESTAMP_NTZ": [dt.datetime(1, 1, 1), LAST, dt.datetime(1582, 10, 10), dt.datetime(2025, 3, 30, 2, 30)],
    "DECIMAL(38,0)": [NINES, NINES.copy_negate(), Decimal(0)],
    "DECIMAL(38,38)": [Decimal(f"0.{NINES}"), Decimal(f"-0.{NINES}"), Decimal("1E-38")],
    "DECIMAL(18,2)": [Decimal("9999999999999999.99"), Decimal("-0.01")],
    "DECIMAL(9,9)": [Decimal("0.999999999")],
    "ARRAY<INT>": [[], [None], [1, None, 2]],
    "ARRAY<ARRAY<DECIMAL(20,3)>>": [[None, [], [None, Decimal("1.125")]]],
    "MAP<STRING, INT>": [{}, {"": None}, {"a": 1, "b": None}],
    "MAP<INT, MAP<DATE, BOOLEAN>>": [{1: {}, 2: None, 3: {dt.date(1, 1, 1): None}}],
    "MAP<STRUCT<a: INT>, ARRAY<BINARY>>": [[({"a": 1}, [b"", None]), ({"a": None}, [])]],
    "STRUCT<a: INT, b: STRUCT<c: TIMESTAMP_NTZ, d: ARRAY<DOUBLE>>>": [
        {"a": None, "b": None},
        {"a": 1, "b": {"c": None, "d": None}},
        {"a": 1, "b": {"c": LAST, "d": [-0.0, float("nan")]}},
    ],
    "STRUCT<a: INT NOT NULL>": [{"a": 1}, None],
}
NOT_TO_ARROW = f"c{len(EDGES) - 1}"
"""The last of them: PySpark's toArrow fails where a STRUCT is null whose fields are not."""


def schema() -> pa.Schema:
    """A column of each type, the first of them with odd names, and an array whose elements are not null."""
    names = [*NAMES, "_", "1"]
    fields = [pa.field("rowtime", pa.timestamp("us"), nullable=False)]
    for n, kind in enumerate(EDGES):
        [_, field] = stream_schema(f"rowtime TIMESTAMP, v {kind}")
        fields.append(field.with_name(names[n] if n < len(names) else f"c{n}"))
    return pa.schema([*fields, pa.field("sure", pa.list_(pa.field("element", pa.string(), nullable=False)))])


def rows() -> list[tuple[Any, ...]]:
    """Each row has a value of each list; null where a list has ended; the last row has nothing but nulls."""
    columns = [*EDGES.values(), [[], ["", "a"]]]
    count = max(map(len, columns)) + 1
    padded = [column + [None] * (count - len(column)) for column in columns]
    return [(at(f"10:{n:02d}"), *values) for n, values in enumerate(zip(*padded, strict=True))]


def read(path: str, *but: str) -> list[str]:
    """All rows of a stream as text, in which NaN is NaN and -0.0 is not 0.0; without some columns."""
    with rt.openReader(path) as reader:
        return [repr(row) for train in reader for row in train.rows.drop_columns([*but]).to_pylist()]


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """A stream of all types with rows at their edges."""
    path = str(tmp_path / "all.rowtime")
    rt.createStream(path, schema())
    with opened(path, "feed") as sink:
        sink.sendRows(rows())
    return path


@pytest.mark.long
def test_every_type_goes_from_stream_to_stream(spark: SparkSession, path: str, tmp_path: Path) -> None:
    sent = read(path)
    assert len(sent) == len(rows())
    for way, conf in WAYS.items():
        session = watching(spark)
        for key, value in conf.items():
            session.conf.set(key, value)
        out = tmp_path / way
        finish(start(session.readStream.format("rowtime").load(path), out, tmp_path / f"checkpoint {way}"))
        assert read(str(out)) == sent
        assert rt.describeStream(str(out)).schema == rt.describeStream(path).schema
        assert bool(python_tasks(out)) == (NATIVE_WRITE in conf)
    batch = spark.read.format("rowtime").load(path).drop(NOT_TO_ARROW).toArrow().sort_by("rowtime")
    assert [repr(row) for row in batch.to_pylist()] == read(path, NOT_TO_ARROW)


@pytest.mark.long
def test_a_long_text(spark: SparkSession, tmp_path: Path) -> None:
    path, out = str(tmp_path / "in"), tmp_path / "out"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, text STRING")
    with opened(path, "feed") as sink:
        sink.sendRows([(at("10:00"), "x" * 5_000_000), (at("10:01"), "")])
    finish(start(spark.readStream.format("rowtime").load(path), out, tmp_path / "checkpoint"))
    assert read(str(out)) == read(path) != []


@pytest.mark.long
def test_wide_and_narrow_streams(spark: SparkSession, tmp_path: Path) -> None:
    for count in (1000, 0):
        path, out = str(tmp_path / f"in-{count}"), tmp_path / f"out-{count}"
        rt.createStream(path, ", ".join(["rowtime TIMESTAMP NOT NULL", *(f"c{n} INT" for n in range(count))]))
        with opened(path, "feed") as sink:
            sink.sendRows([(at(f"10:0{minute}"), *range(count)) for minute in range(2)])
        finish(start(spark.readStream.format("rowtime").load(path), out, tmp_path / f"checkpoint-{count}"))
        assert read(str(out)) == read(path) != []


ODD = {
    "year-month interval": "INTERVAL '1' YEAR",
    "variant": "parse_json('1')",
    "collated element": "array('a' COLLATE UTF8_LCASE)",
}
"""More of them are in test_schemas.py."""


@pytest.mark.long
def test_a_sink_refuses_what_does_not_go_round(spark: SparkSession, path: str, tmp_path: Path) -> None:
    frame = spark.readStream.format("rowtime").load(path)
    for kind, expression in ODD.items():
        with refused(rt.SchemaMismatchError, "odd one"):
            finish(
                start(
                    frame.selectExpr("rowtime", f"{expression} AS `odd one`"), tmp_path / kind, tmp_path / f"c-{kind}"
                )
            )
        assert not (tmp_path / kind).exists()


def test_a_relative_path_is_looked_for_where_spark_was_started(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Path.cwd()
    monkeypatch.chdir(tmp_path)
    rt.createStream("here", "rowtime TIMESTAMP NOT NULL")
    with refused(rt.StreamNotFoundError, f"There is nothing at {started}/here"):
        spark.read.format("rowtime").load("here")
