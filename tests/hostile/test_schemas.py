"""Any schema makes a stream that takes its rows, or is refused at createStream, with the column named."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import from_arrow_schema

import spark_rowtime as rt
from spark_rowtime.types.ddl import NESTING_LEVELS
from spark_rowtime.types.schema import stream_schema
from tests.hostile.feeds import MANY, TIME
from tests.hostile.kinds import ANYTHING, KINDS, NAMES
from tests.streams import opened

SIGNS = [",", "<", ">", "(", ")", ":", "`a``b`", "COMMENT 'it''s'", "'", "`", "--", "\x00", "9" * 5000]
OTHERS = ["rowtime", "TIMESTAMP", "NOT NULL", "COLLATE", "INTERVAL DAY", "CHAR(3)", "DECIMAL(39,0)", "DECIMAL(5,6)"]
WORDS = st.sampled_from([*KINDS, *SIGNS, *OTHERS])


class Point(spark.UserDefinedType):
    """A user's own type, over two numbers."""

    @classmethod
    def module(cls) -> str:
        return __name__

    @classmethod
    def sqlType(cls) -> spark.DataType:
        return spark.ArrayType(spark.DoubleType())


LATER = {"time": ("TimeType",), "geography": ("GeographyType", 4326), "geometry": ("GeometryType", 4326)}
"""Types that Spark 4.0 does not have: class and arguments."""
REFUSED: dict[str, spark.DataType] = {
    "day-time interval": spark.DayTimeIntervalType(),
    "year-month interval": spark.YearMonthIntervalType(),
    "calendar interval": spark.CalendarIntervalType(),
    "variant": spark.VariantType(),
    "null": spark.NullType(),
    "char": spark.CharType(3),
    "varchar": spark.VarcharType(3),
    "collated": spark.StringType("UNICODE_CI"),
    "collated element": spark.ArrayType(spark.StringType("UTF8_LCASE")),
    "collated key": spark.MapType(spark.StringType("UTF8_LCASE"), spark.StringType()),
    "user defined": Point(),
    "within": spark.ArrayType(spark.StructType([spark.StructField("x", spark.VariantType())])),
    "empty struct": spark.StructType([]),
    "field twice": spark.StructType([spark.StructField(name, spark.LongType()) for name in ("a", "A")]),
    **{name: getattr(spark, kind)(*given) for name, (kind, *given) in LATER.items() if hasattr(spark, kind)},
}
"""Spark's types that no Arrow column of a stream keeps as they are."""
ABSTRACT = {"DataType", "AtomicType", "AnyTimeType", "AnsiIntervalType", "DatetimeType", "FractionalType"} | {
    "IntegralType", "NumericType", "SpatialType", "StructField", "UserDefinedType",
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_spark_type_that_does_not_go_round_is_refused(tmp_path: Path, kind: str) -> None:
    fields = [spark.StructField("rowtime", spark.TimestampType()), spark.StructField("odd one", REFUSED[kind])]
    with pytest.raises(rt.SchemaMismatchError, match=r"Column 'odd one'|at column 'odd one'") as caught:
        rt.createStream(str(tmp_path / "s"), spark.StructType(fields))
    assert caught.value.values["column"] == "odd one"
    assert list(tmp_path.iterdir()) == []


def test_every_type_of_spark_is_taken_or_refused() -> None:
    known = {name for name, kind in vars(spark).items() if isinstance(kind, type) and issubclass(kind, spark.DataType)}
    refused = {type(kind).__name__ for kind in REFUSED.values()} - {"Point"}
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(KINDS))
    taken = {
        type(field.dataType).__name__ for field in from_arrow_schema(stream_schema(f"rowtime TIMESTAMP, {columns}"))
    }
    assert taken | refused | ABSTRACT == known


@pytest.mark.search
@MANY
@given(st.lists(WORDS, max_size=12).map(" ".join) | st.text(st.characters()))
def test_any_text_is_a_schema_or_refused(text: str) -> None:
    for ddl in (text, f"rowtime TIMESTAMP, {text}", f"rowtime TIMESTAMP, x {text}"):
        try:
            schema = stream_schema(ddl)
        except rt.SchemaMismatchError as error:
            assert len(str(error)) < 2000
        else:
            assert stream_schema(schema) == schema


@pytest.mark.search
@MANY
@given(ANYTHING)
def test_anything_is_a_schema_or_refused(value: Any) -> None:
    with pytest.raises(rt.SchemaMismatchError):
        stream_schema(value)


@pytest.mark.parametrize("name", [*NAMES, "", "\x00"])
def test_names_of_columns(tmp_path: Path, name: str) -> None:
    inner = pa.struct([(name, pa.int32())])
    schema = pa.schema([("rowtime", pa.timestamp("us")), (name, pa.int32()), ("nested", inner)])
    path = str(tmp_path / "s")
    rt.createStream(path, schema)
    with opened(path, "feed") as sink:
        sink.sendRow({"rowtime": TIME, name: 1, "nested": {name: 2}})
        sink.sendRow((TIME, 1, (2,)))
    with rt.openReader(path) as reader:
        rows = [row for train in reader for row in train.rows.to_pylist()]
    assert [(row[name], row["nested"]) for row in rows] == [(1, {name: 2})] * 2


@pytest.mark.parametrize(
    "names", [("rowtime", "ROWTIME"), ("rowtime", "x", "X"), ("rowtime", "Straße", "STRASSE", "x", "x")]
)
def test_names_that_differ_by_case_alone_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(rt.SchemaMismatchError, match="occurs twice"):
        stream_schema(pa.schema([(name, pa.timestamp("us")) for name in names]))


def test_a_rowtime_in_capitals_is_none() -> None:
    with pytest.raises(rt.SchemaMismatchError, match=r"only \['ROWTIME'\]"):
        stream_schema("ROWTIME TIMESTAMP NOT NULL")


def test_many_columns_and_none(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(1000)]
    for name, columns in (("wide", names), ("narrow", [])):
        path = str(tmp_path / name)
        rt.createStream(path, ", ".join(["rowtime TIMESTAMP NOT NULL", *(f"{c} INT" for c in columns)]))
        with opened(path, "feed") as sink:
            sink.sendRow((TIME, *range(len(columns))))
        with rt.openReader(path) as reader:
            [row] = [row for train in reader for row in train.rows.to_pylist()]
        assert [row[c] for c in columns] == list(range(len(columns)))
        assert row.keys() == {"rowtime", *columns}


@pytest.mark.parametrize("depth", [NESTING_LEVELS, NESTING_LEVELS + 1, 100_000])
def test_deeply_nested_types(tmp_path: Path, depth: int) -> None:
    ddl, arrow = f"rowtime TIMESTAMP, x {'ARRAY<' * depth}INT{'>' * depth}", pa.int32()
    for _ in range(min(depth, 1000)):
        arrow = pa.list_(arrow)
    if depth > NESTING_LEVELS:
        for schema in (ddl, pa.schema([("rowtime", pa.timestamp("us")), ("x", arrow)])):
            with pytest.raises(rt.SchemaMismatchError, match="deeper"):
                stream_schema(schema)
        return
    path = str(tmp_path / "s")
    rt.createStream(path, ddl)
    assert rt.describeStream(path).schema == stream_schema(ddl)
