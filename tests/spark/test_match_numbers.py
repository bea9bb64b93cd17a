"""Numbers in conditions of matchRecognize, against Spark's own window function over the same rows."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_rowtime as rt
from spark_rowtime.operators import matchRecognize

COLUMNS = "rowtime TIMESTAMP, k INT, i INT, l BIGINT, f FLOAT, d DOUBLE, c DECIMAL(10, 2)"
CONDITIONS = [
    "i >= PREV(i) * 1.1",
    "f + PREV(f) >= CAST(0.3 AS FLOAT)",
    "i * 0.1 = PREV(i) * 0.1 + 0.1",
    "l >= PREV(l) * 1.1",
    "d >= PREV(d) * 1.1",
    "f >= PREV(f) * 1.1",
    "f - PREV(f) = CAST(0.1 AS FLOAT)",
    "f * PREV(f) >= CAST(0.06 AS FLOAT)",
    "f + PREV(i) > d",
    "f / (PREV(f) + CAST(0.5 AS FLOAT)) >= 0.5",
    "i / PREV(i) >= 1.1D",
    "c >= 0.3 AND PREV(c) < .25",
    "ABS(i - PREV(i) * 1.5) <= 0.5",
    "COALESCE(PREV(i), 0.5) * 2.0 BETWEEN 1. AND 20.00",
    "f >= PREV(f) + 0.1",
    "d = PREV(d) + 0.1D OR d > PREV(f) * 10",
    "PREV(l) IN (1.0, 2, 30) OR -PREV(l) * 1.25 < -10.0",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_equal_to_the_window_function(spark: SparkSession, condition: str) -> None:
    chance, at = random.Random(7), datetime(2026, 1, 5, 10, tzinfo=UTC)
    rows = []
    for key in range(300):
        for row in range(2):
            whole = chance.randrange(1, 12) * chance.choice((1, 1, 10))
            small = chance.randrange(0, 5) / 10
            values = (whole, whole * 5, small, small, Decimal(chance.randrange(0, 50)) / 100)
            rows.append((at + timedelta(seconds=row), key, *(None if chance.random() < 0.05 else v for v in values)))
    given = spark.createDataFrame(rows, COLUMNS)
    found = matched(given, condition)
    given.createOrReplaceTempView("given")
    lagged = condition
    for column in "ilfdc":
        lagged = lagged.replace(f"PREV({column})", f"lag({column}) OVER (PARTITION BY k ORDER BY rowtime)")
    numbered = "row_number() OVER (PARTITION BY k ORDER BY rowtime)"
    wanted = spark.sql(f"SELECT k FROM (SELECT k, {numbered} AS n, {lagged} AS found FROM given) WHERE found AND n = 2")
    keys = {row.k for row in wanted.collect()}
    assert 0 < len(keys) < 300
    assert {row.k for row in found.collect()} == keys


@pytest.mark.parametrize(
    "condition", ["PREV(i) > i / PREV(i) + 1.1 / 2", "l > PREV(l) * 1.12345678901234567890", "PREV(c) * 2 > c"]
)
def test_what_spark_would_round_is_refused(spark: SparkSession, condition: str) -> None:
    given = spark.createDataFrame([], COLUMNS)
    with pytest.raises(rt.InvalidOptionError, match=r"is not possible|would round"):
        matched(given, condition)


def matched(given: DataFrame, condition: str) -> DataFrame:
    """The keys whose second row fulfils the condition."""
    measures = {"n": "COUNT(*)"}
    return matchRecognize(given, "k", pattern="A U", define={"U": condition}, measures=measures, within="1 hour")
