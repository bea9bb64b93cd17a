"""Which operators pass a bound: a closed list. One that is not on it may keep rows, and promises nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.spark.driver_log import logged
from tests.spark.observed_query import Observed
from tests.streams import Pipe, at, opened, send

Build = Callable[[DataFrame], DataFrame]


def promised(pipe: Pipe, folder: Path, build: Build) -> dict[str, str]:
    """What the query promises after a row at 12:10 and a bound within the millisecond of 12:20."""
    rows = opened(pipe.create("a", "k STRING"), "p")
    with Observed(build(pipe.read("a")), folder) as query:
        send(rows, ("12:10", "a"), promise="12:20:00.0005")
        query.step()
        return query.promised


def in_sql(text: str) -> Build:
    """A query over the view ``a`` of the stream, and a table ``t`` of one row."""

    def build(rows: DataFrame) -> DataFrame:
        rows.createOrReplaceTempView("a")
        rows.sparkSession.sql("SELECT TIMESTAMP '2006-09-11 12:10:00' AS rowtime, 'b' AS k").createOrReplaceTempView(
            "t"
        )
        return rows.sparkSession.sql(text)

    return build


def moved_between_tasks(rows: DataFrame) -> DataFrame:
    """Repartition, RepartitionByExpression, RebalancePartitions, ResolvedHint."""
    hints = "SELECT /*+ REPARTITION(2), REBALANCE(k), BROADCAST(a) */ * FROM a"
    return in_sql(hints)(rows).coalesce(1).repartition(2, "k").repartitionByRange(2, "k").hint("broadcast")


def counted_and_exploded(rows: DataFrame) -> DataFrame:
    """CollectMetrics, Generate, SubqueryAlias, View, Filter, PipeOperator, SQLFunctionNode."""
    each = rows.observe("seen", F.count(F.lit(1)).alias("n")).filter("k <> 'b'")
    exploded = in_sql("FROM a LATERAL VIEW explode(array(1, 2)) t AS n |> SELECT rowtime, n")(each.alias("each"))
    exploded.createOrReplaceTempView("exploded")
    returned = "RETURNS TABLE(rowtime TIMESTAMP, n INT) RETURN SELECT rowtime, n FROM exploded"
    rows.sparkSession.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION all_exploded() {returned}")
    return rows.sparkSession.sql("SELECT rowtime, n FROM all_exploded()")


PASS: dict[str, Build] = {
    "partitions, hints": moved_between_tasks,
    "observe, explode": counted_and_exploded,
    "limit": lambda rows: rows.limit(5),
    "dropDuplicates": lambda rows: rows.dropDuplicates(["rowtime", "k"]),
    "withWatermark, dropDuplicatesWithinWatermark": (
        lambda rows: rows.withWatermark("rowtime", "1 hour").dropDuplicatesWithinWatermark(["k"])
    ),
    "IN, EXISTS, a scalar, of a table": in_sql(
        "SELECT rowtime, (SELECT max(t.k) FROM t WHERE t.k = a.k) AS m FROM a"
        " WHERE k NOT IN (SELECT k FROM t) AND NOT EXISTS (SELECT 1 FROM t WHERE t.rowtime > a.rowtime)"
    ),
}


@pytest.mark.each
@pytest.mark.parametrize("operator", PASS)
def test_it_passes_the_bound(pipe: Pipe, tmp_path: Path, operator: str) -> None:
    assert promised(pipe, tmp_path, PASS[operator]) == {"rowtime": "12:20:00.0005"}


DISTINCT: dict[str, Build] = {
    "DISTINCT": in_sql("SELECT DISTINCT rowtime, k FROM a"),
    "EXCEPT": in_sql("SELECT rowtime, k FROM a EXCEPT SELECT rowtime, k FROM t"),
}


@pytest.mark.parametrize("operator", DISTINCT)
def test_a_stateful_distinct_promises_what_it_has_given_out(pipe: Pipe, tmp_path: Path, operator: str) -> None:
    assert promised(pipe, tmp_path, DISTINCT[operator]) == {"rowtime": "12:20:00.000001"}


@pytest.mark.long
def test_a_row_within_the_millisecond_of_the_bound_is_not_below_the_promise_of_except(pipe: Pipe) -> None:
    rows = opened(pipe.create("a", "k STRING"), "p")
    pipe.run(DISTINCT["EXCEPT"](pipe.read("a")))
    rows.sendRowtimeBound(at("12:00"))
    send(rows, ("12:19:59.9995", "a"), ("12:20:00.0002", "c"), promise="12:20:00.0005")
    assert [row[-1] for row in pipe.step()] == ["a"], "12:20:00.0002 is in the millisecond after W"
    send(rows, promise="12:21")
    assert [row[-1] for row in pipe.step()] == ["c"]


def same(frames: Any) -> Any:
    yield from frames


NONE: dict[str, Build] = {
    "mapInPandas": lambda rows: rows.mapInPandas(same, "rowtime TIMESTAMP, k STRING"),
    "LATERAL": in_sql("SELECT rowtime, u FROM a, LATERAL (SELECT upper(a.k) AS u)"),
    "TRANSFORM": in_sql("SELECT TRANSFORM (rowtime, k) USING 'cat' AS (rowtime TIMESTAMP, k STRING) FROM a"),
}


@pytest.mark.parametrize("operator", NONE)
def test_an_operator_that_is_not_on_the_list_promises_nothing(pipe: Pipe, tmp_path: Path, operator: str) -> None:
    assert promised(pipe, tmp_path, NONE[operator]) == {}


@pytest.mark.long
def test_the_warning_names_the_operator_that_loses_the_bound(pipe: Pipe, tmp_path: Path) -> None:
    with logged(pipe.spark) as text:
        promised(pipe, tmp_path, NONE["LATERAL"])
        assert "The output column rowtime carries no bound: it comes from LateralJoin" in text()
