"""Random queries, as values. Each reads and outputs rowtime, k and v, so that queries can be combined freely."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rowtime.operators import asofJoin, cascadingAggregate, matchRecognize, slidingAggregate
from tests.spark.observed_query import micros

Read = Callable[["Source"], DataFrame]
"""A source's stream, as a streaming or as a batch DataFrame."""
COLUMNS = ("rowtime", "k", "v")
SAME_KEY = "ak = bk"
JOINED = ("coalesce(ak, bk) AS k", "10 * coalesce(av, -1) + coalesce(bv, -1) AS v")


@dataclass(frozen=True)
class Query:
    """A query. ``rowtime`` is never null.

    Law: equal input rows give equal output rows, in whatever order they come. As-of joins with ties alone depend on the
    order in which the rows of one key and time were sent.
    """

    def frame(self, read: Read) -> DataFrame:
        """The query over these streams."""
        raise NotImplementedError

    def parts(self) -> Iterator["Query"]:
        """The query and all queries below it."""
        yield self
        for below in self.children():
            yield from below.parts()

    def children(self) -> list["Query"]:
        """The queries that this one reads."""
        below = [getattr(self, field.name) for field in fields(self)]
        return [query for query in below if isinstance(query, Query)]


@dataclass(frozen=True)
class Source(Query):
    """The rows of a stream. ``label``: what tells it from other sources of the same query."""

    name: str
    label: str

    def frame(self, read: Read) -> DataFrame:
        return read(self).selectExpr("rowtime", "k", "CAST(v AS BIGINT) AS v")


@dataclass(frozen=True)
class Filter(Query):
    of: Query
    where: str

    def frame(self, read: Read) -> DataFrame:
        return self.of.frame(read).where(self.where)


@dataclass(frozen=True)
class Project(Query):
    """``time`` is monotonic in rowtime."""

    of: Query
    time: str

    def frame(self, read: Read) -> DataFrame:
        return self.of.frame(read).selectExpr(f"{self.time} AS rowtime", "2 - k AS k", "v + 1 AS v")


@dataclass(frozen=True)
class Passed(Query):
    """The same rows and columns, through a copy of each column, or through SQL: a view, WITH, or the pipe syntax."""

    of: Query
    how: str

    def frame(self, read: Read) -> DataFrame:
        rows = self.of.frame(read).select(*COLUMNS)
        if self.how == "copy":
            return rows.toDF(*COLUMNS)
        name = f"rows_{uuid4().hex}"
        rows.createOrReplaceTempView(name)
        if self.how == "view":
            rows.sparkSession.sql(f"CREATE TEMP VIEW view_of_{name} AS SELECT * FROM {name}")
        return rows.sparkSession.sql(PASSING[self.how].format(name))


PASSING = {
    "view": "SELECT * FROM view_of_{}",
    "with": "WITH x AS (SELECT * FROM {}) SELECT * FROM x",
    "pipe": "FROM {} |> WHERE true |> SELECT *",
}
"""Queries that give all rows and columns of a view."""


def _summed(rows: DataFrame, by: Column) -> DataFrame:
    return rows.groupBy(by, "k").agg(F.sum("v").alias("v"))


@dataclass(frozen=True)
class Windows(Query):
    """Windows: tumbling if ``slide`` is None, else hopping. ``time``: the time of the window that becomes rowtime.

    ``start``: the offset of the windows from the usual ones.
    """

    of: Query
    size: str
    slide: str | None
    time: str
    start: str | None = None

    def frame(self, read: Read) -> DataFrame:
        windows = F.window("rowtime", self.size, self.slide, self.start).alias("w")
        return _summed(self.of.frame(read), windows).selectExpr(f"{self.time} AS rowtime", "k", "v")


@dataclass(frozen=True)
class Totals(Query):
    """Tumbling windows of each key, and the totals of each window over all keys."""

    of: Query
    size: str
    time: str

    def frame(self, read: Read) -> DataFrame:
        rows = self.of.frame(read)
        rows.createOrReplaceTempView(name := f"rows_{uuid4().hex}")
        window = f"window(rowtime, '{self.size}')"
        sets = f"GROUPING SETS (({window}, k), ({window}))"
        text = f"SELECT {window} AS w, k, 10 * sum(v) + grouping(k) AS v FROM {name} GROUP BY {sets}"
        return rows.sparkSession.sql(text).selectExpr(f"{self.time} AS rowtime", "k", "v")


@dataclass(frozen=True)
class Session(Query):
    of: Query
    gap: str
    time: str

    def frame(self, read: Read) -> DataFrame:
        sessions = F.session_window("rowtime", self.gap).alias("w")
        return _summed(self.of.frame(read), sessions).selectExpr(f"{self.time} AS rowtime", "k", "v")


@dataclass(frozen=True)
class ByTime(Query):
    of: Query
    time: str

    def frame(self, read: Read) -> DataFrame:
        return _summed(self.of.frame(read), F.expr(self.time).alias("rowtime"))


@dataclass(frozen=True)
class Distinct(Query):
    """Distinct whole rows, or only the columns compared, since it is undefined which of several equal rows is kept."""

    of: Query
    columns: tuple[str, ...]

    def frame(self, read: Read) -> DataFrame:
        kept = self.of.frame(read).dropDuplicates(list(self.columns))
        return kept.selectExpr(*(c if c in self.columns else f"CAST(1 AS BIGINT) AS {c}" for c in COLUMNS))


@dataclass(frozen=True)
class DistinctWithin(Query):
    """Deduplicates rows of equal rowtimes, which are always within the delay. In a batch it is plain deduplication."""

    of: Source
    delay: str

    def frame(self, read: Read) -> DataFrame:
        rows = self.of.frame(read).withWatermark("rowtime", self.delay)
        return rows.dropDuplicatesWithinWatermark() if rows.isStreaming else rows.dropDuplicates()


@dataclass(frozen=True)
class Union(Query):
    one: Query
    other: Query

    def frame(self, read: Read) -> DataFrame:
        return self.one.frame(read).union(self.other.frame(read))


@dataclass(frozen=True)
class Join(Query):
    """A join on ``key`` and on the condition ``on`` on the times of both sides. ``time`` becomes rowtime."""

    one: Query
    other: Query
    how: str
    on: str
    time: str
    key: str = SAME_KEY

    def frame(self, read: Read) -> DataFrame:
        one = self.one.frame(read).toDF("a", "ak", "av")
        other = self.other.frame(read).toDF("b", "bk", "bv")
        both = one.join(other, F.expr(f"{self.key} AND {self.on}"), self.how)
        if self.how == "leftsemi":
            return both.toDF(*COLUMNS)
        return both.selectExpr(f"{self.time} AS rowtime", *JOINED)


@dataclass(frozen=True)
class Again(Query):
    """An outer join to ``third`` by the time of the ``other`` side of a left join, which is NULL without a match."""

    one: Query
    other: Query
    third: Query
    how: str
    on: str

    def frame(self, read: Read) -> DataFrame:
        one = self.one.frame(read).toDF("a", "ak", "av")
        other = self.other.frame(read).toDF("b", "bk", "bv")
        first = one.join(other, F.expr(f"{SAME_KEY} AND {self.on}"), "leftouter")
        pairs = first.selectExpr("b AS a", "ak", "10 * av + coalesce(bv, -1) AS av")
        both = pairs.join(self.third.frame(read).toDF("b", "bk", "bv"), F.expr(f"{SAME_KEY} AND {self.on}"), self.how)
        return both.selectExpr(f"coalesce(a, b, {NO_TIME}) AS rowtime", *JOINED)


NO_TIME = "TIMESTAMP '9999-01-01'"
"""The time of a row without one. No bound but the end of time promises that it does not come."""


@dataclass(frozen=True)
class WindowJoin(Query):
    """A join on ``key`` and on equal windows."""

    one: Query
    other: Query
    how: str
    size: str
    time: str
    key: str = SAME_KEY

    def frame(self, read: Read) -> DataFrame:
        windows = F.window("rowtime", self.size)
        one = self.one.frame(read).select(windows.alias("a"), F.col("k").alias("ak"), F.col("v").alias("av"))
        other = self.other.frame(read).select(windows.alias("b"), F.col("k").alias("bk"), F.col("v").alias("bv"))
        both = one.join(other, F.expr(f"{self.key} AND a = b"), self.how)
        if self.how == "leftsemi":
            both = both.selectExpr("*", "ak AS bk", "av AS bv")
        return both.selectExpr(f"{self.time} AS rowtime", *JOINED)


@dataclass(frozen=True)
class Lookup(Query):
    """A join with a table that does not change, and has no row with k = 2."""

    of: Query
    how: str

    def frame(self, read: Read) -> DataFrame:
        rows = self.of.frame(read)
        table = rows.sparkSession.createDataFrame([(0, 5), (1, 7)], "k INT, price BIGINT")
        if self.how in ("leftsemi", "leftanti"):
            return rows.join(table, "k", self.how).select(*COLUMNS)
        both = table.join(rows, "k", self.how) if self.how == "rightouter" else rows.join(table, "k", self.how)
        return both.selectExpr("rowtime", "k", "v * coalesce(price, -1) AS v")


@dataclass(frozen=True)
class Against(Query):
    """The distinct rows that are not in a table. The table has every other step of the grid from ``start`` on."""

    of: Query
    start: str
    step: int

    def frame(self, read: Read) -> DataFrame:
        rows = self.of.frame(read)
        table = rows.sparkSession.range(12).selectExpr(
            f"timestamp_micros({micros(self.start)} + 2 * id * {self.step}) AS rowtime",
            "explode(array(0, 1, null)) AS k",
            "0L AS v",
        )
        return rows.selectExpr("rowtime", "k", "v % 2 AS v").subtract(table)


@dataclass(frozen=True)
class Sliding(Query):
    of: Query
    interval: str

    def frame(self, read: Read) -> DataFrame:
        sums = {"s": ("sum", "v")}
        summed = slidingAggregate(self.of.frame(read), by="k", interval=self.interval, aggregates=sums)
        return summed.selectExpr("rowtime", "k", "s AS v")


@dataclass(frozen=True)
class Lagged(Query):
    """Each row with the row of its key before it."""

    of: Query

    def frame(self, read: Read) -> DataFrame:
        two = {"seen": ("count", "*"), "before": ("first", "v")}
        rows = slidingAggregate(self.of.frame(read), by="k", rows=2, aggregates=two)
        return rows.selectExpr("rowtime", "k", "10 * v + if(seen = 2, coalesce(before, -2), -1) AS v")


@dataclass(frozen=True)
class Cumulated(Query):
    """Windows that grow: totals of ten minutes, and the total of these since the last half hour."""

    of: Query

    def frame(self, read: Read) -> DataFrame:
        tens = _summed(self.of.frame(read), F.window("rowtime", "10 minutes").alias("w"))
        rows = tens.selectExpr("window_time(w) AS rowtime", "k", "v")
        totals = cascadingAggregate(rows, by="k", window="30 minutes", aggregates={"s": ("sum", "v")})
        return totals.selectExpr("rowtime", "k", "s AS v")


@dataclass(frozen=True)
class Top(Query):
    """The two largest rows of each window."""

    of: Query
    size: str

    def frame(self, read: Read) -> DataFrame:
        rows = F.sort_array(F.collect_list(F.struct("v", "k", "rowtime")), asc=False)
        windows = (
            self.of.frame(read).groupBy(F.window("rowtime", self.size).alias("w")).agg(F.slice(rows, 1, 2).alias("t"))
        )
        ranked = windows.select(F.window_time("w").alias("rowtime"), F.posexplode("t").alias("place", "row"))
        return ranked.selectExpr("rowtime", "row.k AS k", "10 * row.v + place AS v")


@dataclass(frozen=True)
class AsOf(Query):
    """An as-of join.

    ``other``: a straight query, of whose rows at one time the last that was sent counts; or one that has one row for
    each time and key. ``sql``: by Spark's ASOF JOIN, which on streams becomes the operator. In a batch it is Spark's
    own, which does not say which of several rows it takes; there the operator takes its place.
    """

    one: Query
    other: Query
    direction: str
    tolerance: str | None
    how: str
    sql: bool = False

    @property
    def ties(self) -> bool:
        """Whether there may be several rows of one key and time among which the join has to choose."""
        return not isinstance(self.other, ByTime)

    def frame(self, read: Read) -> DataFrame:
        one, other = self.one.frame(read), self.other.frame(read).withColumnRenamed("v", "bv")
        both = (
            as_of_in_sql(one, other, self.how)
            if self.sql and (one.isStreaming or not self.ties)
            else asofJoin(one, other, by="k", direction=self.direction, tolerance=self.tolerance, how=self.how)
        )
        return both.selectExpr("rowtime", "k", "10 * v + coalesce(bv, -1) AS v")


def as_of_in_sql(one: DataFrame, other: DataFrame, how: str) -> DataFrame:
    """The rows of ``one``, each with ``bv`` of the last row of ``other`` at or before it."""
    spark, names = one.sparkSession, [f"rows_{uuid4().hex}" for _ in range(2)]
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    for frame, name in zip((one, other), names, strict=True):
        frame.createOrReplaceTempView(name)
    return spark.sql(
        f"SELECT a.*, b.bv FROM {names[0]} a {how} ASOF JOIN {names[1]} b "
        "MATCH_CONDITION (a.rowtime >= b.rowtime) ON a.k = b.k"
    )


@dataclass(frozen=True)
class Recognized(Query):
    """The runs of rows of a key in which v does not fall, or falls again; or others of a pattern."""

    of: Query
    pattern: str
    within: str
    after: str

    def frame(self, read: Read) -> DataFrame:
        define = {"B": "v >= PREV(v)", "C": "C.v < LAST(B.v) OR C.v IS NULL"}
        define = {name: text for name, text in define.items() if name in self.pattern}
        measures = {"s": "CAST(10 * COALESCE(SUM(v), 0) + COUNT(B.*) AS BIGINT)"}
        found = matchRecognize(
            self.of.frame(read),
            "k",
            pattern=self.pattern,
            define=define,
            measures=measures,
            within=self.within,
            after=self.after,
        )
        return found.selectExpr("rowtime", "k", "s AS v")


@dataclass(frozen=True)
class Packed(Query):
    """The rows inside values, and taken out of them again; of two queries, by position, under other names.

    ``how``: what they are inside of, a row of PACKED. ``other``: the other part of a union.
    """

    of: Query
    other: Query | None
    how: str

    def frame(self, read: Read) -> DataFrame:
        packed, *paths = PACKED[self.how]
        rows = self.of.frame(read).selectExpr(packed.format("rowtime AS t", "k AS k", "v AS v"))
        if self.other is not None:
            second = packed.format("rowtime AS v", "k AS t", "v AS k")
            rows = rows.union(self.other.frame(read).selectExpr(second))
        return rows.selectExpr(*(f"{path} AS {name}" for path, name in zip(paths, COLUMNS, strict=True)))


PACKED = {
    "a struct": ("struct({0}, {1}, {2}) AS s", "s.t", "s.k", "s.v"),
    "structs in structs": ("struct({1}, struct({2}, struct({0}) AS x) AS x) AS s", "s.x.x.t", "s.k", "s.x.v"),
    "an array": ("array(struct({0}, {1}, {2})) AS s", "s[0].t", "s[0].k", "s[0].v"),
    "arrays of the fields": ("array(struct({0}, {1}, {2})) AS s", "s.t[0]", "s.k[0]", "s.v[0]"),
    "rows of an array": ("explode(array(struct({0}, {1}, {2}))) AS s", "s.t", "s.k", "s.v"),
    "a map": ("map('x', struct({0}, {1}, {2})) AS s", "s['x'].t", "s['x'].k", "s['x'].v"),
    "a map in a struct": ("struct(map(1, struct({0}, {1})) AS m, {2}) AS s", "s.m[1].t", "s.m[1].k", "s.v"),
}
"""Expressions of rowtime, k and v as one value, and the paths to these in it."""


@dataclass(frozen=True)
class InKey(Query):
    """Windows of whole rows, and the rows out of the keys of these groups; or distinct rows within windows."""

    of: Query
    size: str
    distinct: bool

    def frame(self, read: Read) -> DataFrame:
        rows = self.of.frame(read).select(F.window("rowtime", self.size).alias("w"), F.struct(*COLUMNS).alias("s"))
        groups = rows.distinct() if self.distinct else rows.groupBy("w", "s").count()
        return groups.selectExpr(*(f"s.{name} AS {name}" for name in COLUMNS))


@dataclass(frozen=True)
class Copied(Query):
    """Other times with the metadata of the times of ``of``, and so with the mark of a watermark."""

    of: Query
    how: str

    def frame(self, read: Read) -> DataFrame:
        rows = self.of.frame(read)
        if self.how == "mapInPandas":
            return rows.mapInPandas(earlier, rows.schema)
        if self.how == "mapInArrow":
            return rows.mapInArrow(earlier_instants, rows.schema)
        time = F.expr("timestamp_micros(unix_micros(rowtime) - 420000000)")
        return rows.select(time.alias("rowtime", metadata=rows.schema["rowtime"].metadata), "k", "v")


def earlier(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The rows, seven minutes earlier by the clocks of the zone, which must be UTC: other clocks may skip that time."""
    for frame in frames:
        yield frame.assign(rowtime=frame["rowtime"] - pd.Timedelta(minutes=7))


def earlier_instants(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows, seven minutes earlier."""
    for batch in batches:
        at = batch.schema.get_field_index("rowtime")
        times = pc.subtract(batch.column(at), pa.scalar(timedelta(minutes=7), pa.duration("us")))
        yield batch.set_column(at, batch.schema.field(at), times)
