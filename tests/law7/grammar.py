"""Random queries, as values. Each takes and gives rowtime, k, v, so that any fits on any that Spark lets it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

Read = Callable[[str], DataFrame]
"""A stream by name, as a streaming or as a batch DataFrame."""
COLUMNS = ("rowtime", "k", "v")
JOINED = ("coalesce(ak, bk) AS k", "10 * coalesce(av, -1) + coalesce(bv, -1) AS v")


@dataclass(frozen=True)
class Query:
    """``rowtime`` is null nowhere. Laws: equal rows in, equal rows out; their order is of no account."""

    def frame(self, read: Read) -> DataFrame:
        """The query over these streams."""
        raise NotImplementedError

    def parts(self) -> Iterator["Query"]:
        """The query and all below it."""
        yield self
        for field in fields(self):
            below = getattr(self, field.name)
            if isinstance(below, Query):
                yield from below.parts()


@dataclass(frozen=True)
class Source(Query):
    name: str

    def frame(self, read: Read) -> DataFrame:
        return read(self.name).selectExpr("rowtime", "k", "CAST(v AS BIGINT) AS v")


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


def _summed(rows: DataFrame, by: Column) -> DataFrame:
    return rows.groupBy(by, "k").agg(F.sum("v").alias("v"))


@dataclass(frozen=True)
class Windows(Query):
    """Tumbling where ``slide`` is None, else hopping; ``time``: which time of the window becomes rowtime."""

    of: Query
    size: str
    slide: str | None
    time: str

    def frame(self, read: Read) -> DataFrame:
        windows = F.window("rowtime", self.size, self.slide).alias("w")
        return _summed(self.of.frame(read), windows).selectExpr(f"{self.time} AS rowtime", "k", "v")


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
    """Only of whole rows or of what is kept: which of equal ones is taken is nobody's promise."""

    of: Query
    columns: tuple[str, ...]

    def frame(self, read: Read) -> DataFrame:
        kept = self.of.frame(read).dropDuplicates(list(self.columns))
        return kept.selectExpr(*(c if c in self.columns else f"CAST(1 AS BIGINT) AS {c}" for c in COLUMNS))


@dataclass(frozen=True)
class DistinctWithin(Query):
    """Equal rowtimes, and so never beyond the horizon. Batch has no such operator; it is the same there."""

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
    """On ``k`` and what ``on`` says of the sides' times; ``time`` of them becomes rowtime."""

    one: Query
    other: Query
    how: str
    on: str
    time: str

    def frame(self, read: Read) -> DataFrame:
        one = self.one.frame(read).toDF("a", "ak", "av")
        other = self.other.frame(read).toDF("b", "bk", "bv")
        both = one.join(other, F.expr(f"ak = bk AND {self.on}"), self.how)
        if self.how == "leftsemi":
            return both.toDF(*COLUMNS)
        return both.selectExpr(f"{self.time} AS rowtime", *JOINED)


@dataclass(frozen=True)
class WindowJoin(Query):
    """On ``k`` and equal windows."""

    one: Query
    other: Query
    how: str
    size: str
    time: str

    def frame(self, read: Read) -> DataFrame:
        windows = F.window("rowtime", self.size)
        one = self.one.frame(read).select(windows.alias("a"), F.col("k").alias("ak"), F.col("v").alias("av"))
        other = self.other.frame(read).select(windows.alias("b"), F.col("k").alias("bk"), F.col("v").alias("bv"))
        both = one.join(other, F.expr("ak = bk AND a = b"), self.how)
        if self.how == "leftsemi":
            both = both.selectExpr("*", "ak AS bk", "av AS bv")
        return both.selectExpr(f"{self.time} AS rowtime", *JOINED)


@dataclass(frozen=True)
class Lookup(Query):
    """A join with a table that does not change; it has no k = 2."""

    of: Query
    how: str

    def frame(self, read: Read) -> DataFrame:
        rows = self.of.frame(read)
        table = rows.sparkSession.createDataFrame([(0, 5), (1, 7)], "k INT, price BIGINT")
        return rows.join(table, "k", self.how).selectExpr("rowtime", "k", "v * coalesce(price, -1) AS v")
