"""What the plan of a query shows to be wrong is refused by start(), with the expression and a way out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rowtime.operators import slidingAggregate
from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send

NEAR = "l.k = r.k AND r.rowtime BETWEEN l.rowtime AND l.rowtime + INTERVAL 1 MINUTE"


@pytest.fixture
def streams(pipe: Pipe) -> Pipe:
    """Streams a and b, which are views of these names, too."""
    for name in ("a", "b"):
        pipe.create(name, "k STRING, x INT")
        pipe.read(name).createOrReplaceTempView(name)
    return pipe


def hourly(frame: DataFrame, time: Any = "rowtime") -> DataFrame:
    return frame.groupBy(F.window(time, "1 hour")).count()


def earlier(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame.assign(rowtime=frame["rowtime"] - pd.Timedelta(hours=2))


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


class Counter:
    """A table function: the number of its rows."""

    def __init__(self) -> None:
        self.rows = 0

    def eval(self, row: Any) -> None:
        self.rows += 1

    def terminate(self) -> Iterator[tuple[int]]:
        yield (self.rows,)


def sliding(pipe: Pipe) -> DataFrame:
    return slidingAggregate(pipe.read("a"), "k", interval="1 hour", aggregates={"n": ("count", "*")})


def marked_alias(pipe: Pipe, expression: str) -> DataFrame:
    mark = pipe.read("a").schema["rowtime"].metadata
    return pipe.read("a").select(F.expr(expression).alias("t", metadata=mark))


def of_the_operators_schema(pipe: Pipe) -> DataFrame:
    rows = sliding(pipe)
    return hourly(rows.mapInPandas(earlier, rows.schema))


def state_function_of_the_operators_schema(pipe: Pipe) -> DataFrame:
    rows = sliding(pipe)
    renamed = rows.withColumnRenamed("x", "chunk")
    return renamed.mapInPandas(earlier, renamed.schema).dropDuplicates(["rowtime", "k"])


def cogrouped(pipe: Pipe) -> DataFrame:
    left, right = (pipe.read(name).groupBy("k") for name in ("a", "b"))
    return left.cogroup(right).applyInPandas(lambda one, _: one[["k"]], "k STRING")


def as_of(pipe: Pipe) -> DataFrame:
    prices = pipe.spark.sql("SELECT TIMESTAMP '2006-09-11' AS since, 1 AS price")
    return pipe.read("a")._joinAsOf(
        prices, "rowtime", "since", how="left", tolerance=None, allowExactMatches=True, direction="backward"
    )


def table_function(text: str) -> Any:
    def build(pipe: Pipe) -> DataFrame:
        pipe.spark.udtf.register("whole", F.udtf(Counter, returnType="n INT"))
        return pipe.spark.sql(text)

    return build


def sql(text: str) -> Any:
    return lambda pipe: pipe.spark.sql(text)


UNKNOWN = "no watermark is known for this time"
NULL = "in append mode the group of NULL is never complete"
PARTS = "the rows that a group has in one micro-batch"
REREAD = "by an aggregation of the stream, and by a join of the stream with that"
NEVER = "aggregation without watermark is never complete"
OUTER = "SELECT {by}, count(*) FROM a l LEFT JOIN b r ON " + NEAR + " {where} GROUP BY {by}"
PAIRED = (
    "SELECT {by}, count(*) FROM (SELECT window(rowtime, '1 hour') AS w, k FROM a) l "
    "LEFT JOIN (SELECT window(rowtime, '1 hour') AS w, k FROM b) r ON l.w = r.w AND l.k = r.k GROUP BY {by}"
)


def union_with_itself(pipe: Pipe) -> DataFrame:
    """The right times of a left join, beside those of its rows that have a match: columns with the same ids."""
    paired = pipe.spark.sql("SELECT r.rowtime AS rt, l.k FROM a l LEFT JOIN b r ON " + NEAR)
    return paired.where("rt IS NOT NULL").union(paired).groupBy("rt").count()


def of_a_function(schema: str) -> Any:
    def build(pipe: Pipe) -> DataFrame:
        frame = pipe.read("a").mapInPandas(earlier, schema)
        return frame.withWatermark("rowtime", "0 seconds").groupBy("rowtime").count()

    return build


def without_duplicates(text: str) -> Any:
    def build(pipe: Pipe) -> DataFrame:
        for name in ("a", "b"):
            pipe.read(name).withWatermark("rowtime", "10 hours").createOrReplaceTempView(f"delayed_{name}")
        return pipe.spark.sql(text).dropDuplicatesWithinWatermark(["k"])

    return build


REFUSED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "duplicates within windows": (
        without_duplicates("SELECT window(rowtime, '10 minutes') AS w, k FROM delayed_a"),
        ("goes by w, which is a struct", "window_time(w)"),
    ),
    "duplicates within aggregated windows": (
        without_duplicates("SELECT window AS w, k FROM delayed_a GROUP BY window(rowtime, '10 minutes'), k"),
        ("goes by w, which is a struct",),
    ),
    "duplicates by a time that may be missing": (
        without_duplicates(f"SELECT r.rowtime, l.k FROM delayed_a l LEFT JOIN delayed_b r ON {NEAR}"),
        ("goes by r.rowtime, which can be NULL", "WHERE r.rowtime IS NOT NULL"),
    ),
    "a join within a time that grows": (
        sql(f"SELECT l.k FROM a l JOIN b r ON {NEAR} AND r.rowtime <= l.rowtime + (now() - TIMESTAMP '2026-01-01')"),
        ("another one in a later batch", "r.rowtime <=", "Write a constant"),
    ),
    "a time that grows, above an inner join": (
        sql(f"SELECT l.k FROM a l JOIN b r ON {NEAR} WHERE r.rowtime <= l.rowtime + (now() - TIMESTAMP '2026-01-01')"),
        ("another one in a later batch", "r.rowtime <="),
    ),
    "an operator's schema": (of_the_operators_schema, (UNKNOWN, "give mapInPandas its schema as text")),
    "an operator's schema, renamed": (state_function_of_the_operators_schema, (UNKNOWN, "rowtime")),
    "a copied mark": (lambda p: hourly(marked_alias(p, "rowtime - INTERVAL 2 HOURS"), "t"), (UNKNOWN, "alias without")),
    "a copied mark, truncated": (
        lambda p: marked_alias(p, "rowtime + INTERVAL 1 MONTH").groupBy(F.date_trunc("hour", "t")).count(),
        (NEVER, "date_trunc('hour', t)"),
    ),
    "a field with a copied mark": (
        lambda p: hourly(
            marked_alias(p, "rowtime - INTERVAL 2 HOURS").select(F.struct("t").alias("s")).select("s.t"), "t"
        ),
        (UNKNOWN,),
    ),
    "a copied mark on a column that is no key": (
        lambda p: marked_alias(p, "rowtime - INTERVAL 2 HOURS").withColumn("k", F.lit("k")).dropDuplicates(["k"]),
        (UNKNOWN, "Deduplicate keeps rows by the time t"),
    ),
    "a copied mark on a column in no condition": (
        lambda p: p.read("a").mapInPandas(earlier, p.read("a").schema).join(p.read("b").select("k"), "k"),
        (UNKNOWN, "Join keeps rows by the time rowtime (MapInPandas)"),
    ),
    "a watermark above an aggregation": (
        lambda p: hourly(
            hourly(p.read("a")).select(F.col("window.end").alias("t")).withWatermark("t", "0 seconds"), "t"
        ),
        ('withWatermark("t", ...) is above Aggregate', "window_time(window)"),
    ),
    "a watermark above deduplication": (
        lambda p: hourly(p.read("a").dropDuplicates(["rowtime", "k"]).withWatermark("rowtime", "1 minute")),
        ('withWatermark("rowtime", ...) is above Deduplicate', "before the Deduplicate"),
    ),
    "two watermarks": (
        lambda p: p.read("a").withWatermark("rowtime", "0 seconds").withWatermark("rowtime", "1 minute"),
        ("above another withWatermark",),
    ),
    "a watermark on a window": (
        lambda p: (
            p.read("a")
            .select(F.window("rowtime", "1 hour").alias("w"))
            .withWatermark("w", "0 seconds")
            .groupBy("w")
            .count()
        ),
        ('withWatermark("w", ...) is on a struct', "Leave it out"),
    ),
    "the end of a window as a time": (
        lambda p: hourly(hourly(p.read("a")).select(F.col("window.end").alias("t")), "t"),
        (NEVER, "window(t, ...)"),
    ),
    "no time": (sql("SELECT k, count(*) FROM a GROUP BY k"), (NEVER, "groups by a.k,")),
    "distinct": (sql("SELECT DISTINCT k FROM a"), (NEVER, "groups by a.k,")),
    "distinct by a time without a match": (
        sql("SELECT DISTINCT r.rowtime, l.k FROM a l LEFT JOIN b r ON " + NEAR),
        (NULL, "LEFT OUTER JOIN"),
    ),
    "except": (sql("SELECT k FROM a EXCEPT SELECT 'z'"), (NEVER, "groups by a.k,")),
    "nothing": (sql("SELECT count(*) FROM a"), (NEVER, "groups by nothing")),
    "a text of the time": (
        sql("SELECT t, count(*) FROM (SELECT date_format(rowtime, 'HH') AS t FROM a) GROUP BY t"),
        (NEVER, "(date_format(a.rowtime, 'HH'))"),
    ),
    "a cube": (
        sql("SELECT window(rowtime, '1 hour'), k, count(*) FROM a GROUP BY CUBE(window(rowtime, '1 hour'), k)"),
        ("A grouping set without the event time column",),
    ),
    **{
        f"a rollup of {what}": (
            sql(f"SELECT count(*) FROM a GROUP BY ROLLUP({keys})"),
            ("A grouping set without the event time column", "CUBE and ROLLUP always create a set without it"),
        )
        for what, keys in {
            "rowtime": "rowtime, k",
            "its hour": "date_trunc('hour', rowtime), k",
            "the end of a window": "window(rowtime, '1 hour').end, k",
            "no time": "k, x",
        }.items()
    },
    "the right time of a left join": (
        sql(OUTER.format(by="r.rowtime", where="")),
        (NULL, "LEFT OUTER JOIN", "WHERE r.rowtime IS NOT NULL"),
    ),
    "the right window of a left join": (sql(PAIRED.format(by="r.w")), (NULL, "LEFT OUTER JOIN")),
    "either time of a full join": (
        sql(OUTER.format(by="l.rowtime", where="").replace("LEFT", "FULL")),
        (NULL, "FULL OUTER JOIN"),
    ),
    "a union with itself, of rows with a match and all": (union_with_itself, (NULL, "LEFT OUTER JOIN")),
    "the time of a function, with a schema that allows NULL": (
        of_a_function("rowtime TIMESTAMP, k STRING, x INT"),
        (NULL, "nullable in MapInPandas", "WHERE rowtime IS NOT NULL", "say TIMESTAMP NOT NULL in the schema"),
    ),
    "EXCEPT ALL": (
        sql("SELECT rowtime, k FROM a EXCEPT ALL SELECT now(), 'z'"),
        ("in each micro-batch", "Except All true", "LEFT ANTI JOIN"),
    ),
    "applyInPandas": (
        lambda p: p.read("a").groupBy("k").applyInPandas(whole, p.read("a").schema),
        (PARTS, "FlatMapGroupsInPandas [k#", "transformWithStateInPandas"),
    ),
    "applyInArrow": (lambda p: p.read("a").groupBy("k").applyInArrow(whole, p.read("a").schema), (PARTS,)),
    "a table function over one partition": (
        table_function("SELECT * FROM whole(TABLE(SELECT * FROM a) WITH SINGLE PARTITION)"),
        ("whole(TABLE(...) WITH SINGLE PARTITION)", "the rows that a stream has in one micro-batch"),
    ),
    "cogroup": (cogrouped, (PARTS,)),
    "zipWithIndex": (lambda p: p.read("a").zipWithIndex(), ("numbers the rows of each micro-batch from 0 on",)),
    "a scalar sub-query by a range": (
        sql("SELECT rowtime, (SELECT max(t.id) FROM range(9) t WHERE t.id < a.x) AS m FROM a"),
        (REREAD, "Project [rowtime", "equal columns alone"),
    ),
    "an aggregate of LATERAL": (
        sql("SELECT a.rowtime, m FROM a, LATERAL (SELECT max(t.id) AS m FROM range(9) t WHERE t.id = a.x)"),
        (REREAD, "LateralJoin"),
    ),
    "IN a sub-query by a range": (
        sql("SELECT rowtime FROM a WHERE x IN (SELECT max(t.id) FROM range(9) t WHERE t.id < length(a.k))"),
        (REREAD,),
    ),
    "an as-of join": (as_of, ("ASOF JOIN", "AsOfJoin", "operators.asofJoin")),
}


def start_each_batch(frame: DataFrame) -> Any:
    return frame.writeStream.foreachBatch(lambda batch, _: batch.collect()).start()


@pytest.mark.parametrize("case", REFUSED)
def test_refused(streams: Pipe, case: str) -> None:
    build, said = REFUSED[case]
    frame = build(streams)
    with pytest.raises(IllegalArgumentException) as caught:
        start_each_batch(frame).stop()
    for part in said:
        assert part in str(caught.value)


TAKEN = {
    "a table function": table_function("SELECT * FROM whole(TABLE(SELECT * FROM a))"),
    "sub-queries by equal columns": sql(
        "SELECT rowtime, (SELECT max(t.id) FROM range(9) t WHERE t.id = a.x) AS m FROM a"
        " WHERE EXISTS (SELECT 1 FROM range(9) t WHERE t.id > a.x) AND x NOT IN (SELECT max(id) FROM range(9))"
        " AND x > (WITH t AS (SELECT id FROM range(9)) SELECT max(t.id) FROM t WHERE t.id = a.x)"
    ),
    "LATERAL by a range": sql("SELECT a.rowtime, t.id FROM a, LATERAL (SELECT id FROM range(9) WHERE id < a.x) t"),
    "LATERAL of the rows up to a time": sql(
        "SELECT a.rowtime, id FROM a,"
        " LATERAL (SELECT id FROM range(9) WHERE timestamp_seconds(id) <= a.rowtime ORDER BY id DESC LIMIT 1)"
    ),
    "the pipe syntax": sql(
        "FROM a |> WHERE x > 0 |> EXTEND date_trunc('HOUR', rowtime) AS h |> AGGREGATE count(*) AS n GROUP BY h"
        " |> SELECT h AS rowtime, n"
    ),
    "rows with a match": sql(OUTER.format(by="r.rowtime", where="WHERE r.x > 0")),
    "the time of a function, with a schema that says NOT NULL": of_a_function(
        "rowtime TIMESTAMP NOT NULL, k STRING, x INT"
    ),
    "the left time of a left join": sql(OUTER.format(by="l.rowtime", where="")),
    "the left window of a left join": sql(PAIRED.format(by="l.w")),
    "a function without state above": lambda p: sliding(p).mapInPandas(earlier, sliding(p).schema),
    "the operator's own time": lambda p: hourly(sliding(p)),
    "an operator above another": lambda p: slidingAggregate(
        sliding(p), "k", interval="1 day", aggregates={"m": ("max", "n")}
    ),
    "deduplication of a union that has no watermark": lambda p: (
        p.read("a").select("rowtime", "k").union(p.read("b").selectExpr("timestamp_seconds(x)", "k"))
    ).dropDuplicates(["k"]),
    "a limit above a join without time": sql("SELECT l.rowtime, r.x FROM a l JOIN b r ON l.k = r.k LIMIT 5"),
    "a limit": lambda p: hourly(p.read("a").limit(1000).withWatermark("rowtime", "10 minutes")),
    "a window of an expression beside the time": sql(
        "SELECT rowtime, window(rowtime + INTERVAL 2 HOURS, '1 day') AS w, count(*) FROM a "
        "GROUP BY rowtime, window(rowtime + INTERVAL 2 HOURS, '1 day')"
    ),
    "a key of another time beside a range": sql(
        "SELECT l.rowtime, r.x FROM a l LEFT JOIN b r ON l.rowtime = timestamp_seconds(r.x) AND " + NEAR
    ),
    "a session": lambda p: p.read("a").groupBy(F.session_window("rowtime", "1 hour"), "k").count(),
    "a window's time": lambda p: hourly(hourly(p.read("a")).select(F.window_time("window").alias("t")), "t"),
}


@pytest.mark.parametrize("case", TAKEN)
def test_taken(streams: Pipe, case: str) -> None:
    query = start_each_batch(TAKEN[case](streams))
    query.processAllAvailable()
    query.stop()


def test_update_mode_has_no_such_group(streams: Pipe) -> None:
    frame = streams.spark.sql("SELECT k, count(*) FROM a GROUP BY k")
    frame.writeStream.outputMode("update").format("noop").start().stop()


@pytest.mark.long
def test_the_ways_out_that_the_error_about_null_names(pipe: Pipe, tmp_path: Path) -> None:
    rows = opened(pipe.create("a", "k STRING"), "p")
    mapped = pipe.read("a").mapInPandas(same_or_null, "rowtime TIMESTAMP, k STRING")
    frame = mapped.where("rowtime IS NOT NULL").withWatermark("rowtime", "0 seconds").groupBy("rowtime").count()
    with Observed(frame, tmp_path / "filtered") as query:
        send(rows, ("12:10", "a"), ("12:10", "null"), promise="12:20")
        assert query.step() == [("12:10", 1)]
    mapped = pipe.read("a").mapInPandas(same_or_null, "rowtime TIMESTAMP NOT NULL, k STRING")
    frame = mapped.withWatermark("rowtime", "0 seconds").groupBy("rowtime").count()
    with pytest.raises(Exception, match="Value at index is null"), Observed(frame, tmp_path / "failing") as query:
        query.step()


def same_or_null(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame.assign(rowtime=frame["rowtime"].where(frame["k"] != "null"))
