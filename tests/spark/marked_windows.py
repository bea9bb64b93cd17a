"""Queries with bounds=markers, for programs whose session has no extension. Each writes a stream, whose name it has."""

from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count, expr, lit, session_window, window

import spark_rowtime as rt
from spark_rowtime.operators import slidingAggregate
from tests.streams import at, opened, send

COLUMNS = "x INT NOT NULL, rowtime TIMESTAMP NOT NULL"


class MarkedQueries:
    """``folder`` has a stream ``s``; all else is made there."""

    def __init__(self, spark: Any, folder: str) -> None:
        self._spark, self._folder = spark, folder

    def read(self, name: str, **options: str) -> DataFrame:
        reader = self._spark.readStream.format("rowtime").option("bounds", "markers").options(**options)
        found: DataFrame = reader.load(f"{self._folder}/{name}")
        return found

    def run(self, frame: DataFrame, name: str) -> None:
        """Writes all that is available now into the stream of that name."""
        writer = frame.writeStream.format("rowtime").option("checkpointLocation", f"{self._folder}/{name}.checkpoint")
        writer.trigger(availableNow=True).start(f"{self._folder}/{name}").awaitTermination()

    def hours(self) -> None:
        """A filter follows, which no marker passes."""
        rows = rt.withBounds(self.read("s"), window("rowtime", "1 hour")).where("x > 1")
        self.run(counted(rows, col("window")), "marked hours")

    def sessions(self) -> None:
        """A row at the very end of a session comes when the bound has been there already; it is in the session."""
        rt.createStream(f"{self._folder}/visits", COLUMNS)
        sink = opened(f"{self._folder}/visits", "feed")
        for minute, promise in ((0, "10:10"), (10, "10:30")):
            sink.sendRow((minute, at(f"10:{minute:02d}")))
            send(sink, promise=promise)
            visits = rt.withBounds(self.read("visits"), session_window("rowtime", "10 minutes").alias("visit"))
            self.run(counted(visits, col("visit")), "marked sessions")

    def union(self) -> None:
        """One of two streams is quiet in the second run, whose Spark has to learn its bound again."""
        for name in ("a", "b"):
            rt.createStream(f"{self._folder}/{name}", COLUMNS)
        a, b = (opened(f"{self._folder}/{name}", "feed") for name in ("a", "b"))
        b.sendRowtimeBound(at("15:00"))
        b.flush()
        for hour in (10, 11):
            a.sendRow((hour, at(f"{hour}:30")))
            send(a, promise=f"{hour + 1}:00")
            one, other = (rt.withBounds(self.read(name), window("rowtime", "1 hour")) for name in ("a", "b"))
            self.run(counted(one.union(other), col("window")), "marked union")

    def distinct(self) -> None:
        """Equal rows in two batches. Spark takes the window for a number here."""
        rows = rt.withBounds(self.read("s", startingPosition=at("11:00")), window("rowtime", "1 hour"))
        same = rows.select("rowtime", lit(1).alias("x"), "window").dropDuplicatesWithinWatermark(["x"])
        self.run(same.select("rowtime", "x"), "marked distinct")
        send(opened(f"{self._folder}/s", "later"), ("12:30", 7), promise="13:00")
        self.run(same.select("rowtime", "x"), "marked distinct")

    def refused(self) -> dict[str, str]:
        """What is said of each query that is refused."""
        rows, hour = self.read("s"), window("rowtime", "1 hour")
        queries: dict[str, Callable[[], DataFrame]] = {
            "time": lambda: rt.withBounds(rows, hour).groupBy("rowtime").count(),
            "another window": lambda: counted(rt.withBounds(rows, hour), hour),
            "a session beside": lambda: counted(rt.withBounds(rows, hour), session_window("rowtime", "1 hour")),
            "no window": lambda: rt.withBounds(rows, col("rowtime")),
            "a moved time": lambda: rt.withBounds(rows, window(expr("rowtime + INTERVAL 1 HOUR"), "1 hour")),
            "the name": lambda: rt.withBounds(rows, hour.alias("X")),
            "without markers": lambda: rt.withBounds(self.read("s", bounds="ignore"), hour),
            "order": lambda: self.read("s", order="arrival"),
            "operator": lambda: slidingAggregate(rt.withBounds(rows, hour), rows=2, aggregates={"n": ("count", "*")}),
            "view": lambda: self.read("s", view="rejected"),
            "batch": lambda: rt.withBounds(self._spark.read.format("rowtime").load(f"{self._folder}/s"), hour),
        }
        return {name: said_of(query) for name, query in queries.items()}


def counted(rows: DataFrame, by: Column) -> DataFrame:
    """The number of rows of each window, at its start. Spark takes no sessions without a key."""
    return rows.groupBy(by.alias("w"), col("x") % 1).agg(count("*").alias("n")).selectExpr("w.start AS rowtime", "n")


def said_of(query: Callable[[], DataFrame]) -> str:
    """The error of a query; empty if there is none."""
    try:
        query().writeStream.format("noop").start().stop()
    except (PySparkException, rt.InvalidOptionError) as error:
        return str(error)
    return ""
