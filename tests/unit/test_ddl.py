"""Spark's DDL and JSON schema forms, read without Spark."""

from inspect import signature

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from spark_rowtime import SchemaMismatchError
from spark_rowtime.types.ddl import from_ddl, from_spark_json

TYPES = {
    "BOOLEAN": spark.BooleanType(),
    "TINYINT": spark.ByteType(),
    "BYTE": spark.ByteType(),
    "SMALLINT": spark.ShortType(),
    "SHORT": spark.ShortType(),
    "INT": spark.IntegerType(),
    "INTEGER": spark.IntegerType(),
    "BIGINT": spark.LongType(),
    "LONG": spark.LongType(),
    "FLOAT": spark.FloatType(),
    "REAL": spark.FloatType(),
    "DOUBLE": spark.DoubleType(),
    "STRING": spark.StringType(),
    "BINARY": spark.BinaryType(),
    "DATE": spark.DateType(),
    "TIMESTAMP": spark.TimestampType(),
    "TIMESTAMP_LTZ": spark.TimestampType(),
    "TIMESTAMP_NTZ": spark.TimestampNTZType(),
    "DECIMAL": spark.DecimalType(10, 0),
    "DEC(5)": spark.DecimalType(5, 0),
    "NUMERIC(38, 38)": spark.DecimalType(38, 38),
    "DECIMAL(10,2)": spark.DecimalType(10, 2),
    "ARRAY<INT>": spark.ArrayType(spark.IntegerType()),
    "MAP<STRING, DOUBLE>": spark.MapType(spark.StringType(), spark.DoubleType()),
    "STRUCT<x: INT, y: STRING>": spark.StructType().add("x", "integer").add("y", "string"),
    "STRUCT<x INT NOT NULL, `y z`: STRING COMMENT 'why'>": spark.StructType()
    .add("x", spark.IntegerType(), nullable=False)
    .add("y z", "string"),
    "ARRAY<MAP<STRING,ARRAY<STRUCT<x:ARRAY<INT>>>>>": spark.ArrayType(
        spark.MapType(
            spark.StringType(),
            spark.ArrayType(spark.StructType().add("x", spark.ArrayType(spark.IntegerType()))),
        )
    ),
}
PLAIN = [kind for text, kind in TYPES.items() if "<" not in text]


def in_arrow(struct):
    """As Spark has it, with times in UTC: Spark 4.2 has changed how it is told so."""
    is_new = "timezone" in signature(to_arrow_schema).parameters
    return to_arrow_schema(struct, **({"timezone": "UTC"} if is_new else {"timestamp_utc": True}))


@pytest.mark.parametrize("text", TYPES)
def test_every_type_is_as_spark_has_it(text):
    struct = spark.StructType([spark.StructField("c", TYPES[text])])
    assert from_ddl(f"c {text}") == from_ddl(f"c {text.lower()}") == in_arrow(struct)
    assert from_spark_json(struct.jsonValue()) == in_arrow(struct)


def structs(inner):
    field = st.tuples(st.sampled_from(["a", "b c", "é", "not"]), inner, st.booleans())
    return st.lists(field, min_size=1, max_size=3, unique_by=lambda f: f[0]).map(
        lambda fields: spark.StructType([spark.StructField(*f) for f in fields])
    )


def nested(inner):
    return (
        st.builds(spark.ArrayType, inner, st.booleans())
        | st.builds(spark.MapType, st.just(spark.StringType()), inner, st.booleans())
        | structs(inner)
    )


@given(structs(st.recursive(st.sampled_from(PLAIN), nested, max_leaves=5)))
def test_a_struct_type_is_as_spark_has_it(struct):
    assert from_spark_json(struct.jsonValue()) == in_arrow(struct)


def test_columns_keep_order_and_not_null():
    schema = from_ddl("b INT NOT NULL, a: STRING,c DOUBLE COMMENT 'it''s' NOT NULL".replace("''", "\\'"))
    assert schema.names == ["b", "a", "c"]
    assert [field.nullable for field in schema] == [False, True, False]


def test_quoted_names():
    schema = from_ddl("`a b` INT, `back``tick` INT, `INT` INT, `1,<>(`\nSTRING")
    assert schema.names == ["a b", "back`tick", "INT", "1,<>("]


def test_white_space_is_free():
    assert from_ddl("\n a\tINT ,\n b  DECIMAL( 10 , 2 )\n") == from_ddl("a INT,b DECIMAL(10,2)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the end"),
        ("a", "the end"),
        ("a INT,", "the end"),
        ("a INT b INT", "'b'"),
        ("a INT,, b INT", "','"),
        ("INT", "the end"),
        ("a VARIANT", "VARIANT"),
        ("a INTERVAL", "INTERVAL"),
        ("a CHAR(3)", "CHAR"),
        ("a INT NOT", "NOT is not followed by NULL"),
        ("a INT NOT b", "NOT is not followed by NULL"),
        ("a INT COMMENT b", "literal"),
        ("a ARRAY", "ARRAY"),
        ("a ARRAY<", "the end"),
        ("a ARRAY<INT", "'>'"),
        ("a ARRAY<INT>>", "'>'"),
        ("a MAP<INT>", "','"),
        ("a STRUCT<>", "'>'"),
        ("a DECIMAL()", "number"),
        ("a DECIMAL(39,2)", "39"),
        ("a DECIMAL(0)", "0"),
        ("a DECIMAL(2,3)", "2,3"),
        ("a DECIMAL(10,-2)", "cannot read '-2"),
        ("a DECIMAL(10,2", "'\\)'"),
        ("`a INT", "cannot read"),
        ("a; INT", "cannot read '; INT'"),
    ],
)
def test_what_is_not_understood_is_said(text, said):
    with pytest.raises(SchemaMismatchError, match=said) as caught:
        from_ddl(text)
    assert "rowtime TIMESTAMP NOT NULL" in str(caught.value)


def test_a_type_that_a_stream_cannot_hold_names_its_column():
    for kind in (spark.DayTimeIntervalType(), spark.NullType(), spark.VariantType(), spark.ArrayType(spark.NullType())):
        struct = spark.StructType([spark.StructField("odd one", kind)])
        with pytest.raises(SchemaMismatchError, match="odd one"):
            from_spark_json(struct.jsonValue())
    with pytest.raises(SchemaMismatchError, match="odd one"):
        from_spark_json({"fields": [{"name": "odd one", "type": {"type": "udt"}, "nullable": True}]})


def test_times_are_microseconds():
    schema = from_ddl("a TIMESTAMP, b TIMESTAMP_NTZ")
    assert schema.types == [pa.timestamp("us", "UTC"), pa.timestamp("us")]
