"""Which bound each operator puts on its output, in microseconds, as the reader of the sink's stream gets it.

There is a row at 12:10 in each of two streams; ``a`` promises strictly 12:20, ``b`` 12:15, or ``a`` alone 13:00.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

import spark_rowtime as rt
from tests.streams import Pipe, at, drained, opened, send

Build = Callable[[DataFrame], DataFrame]
Join = Callable[[DataFrame, DataFrame], DataFrame]


def output(pipe: Pipe, frame: DataFrame) -> rt.RowtimeBound | None:
    """The bound that a reader has after all that is there."""
    writer = frame.writeStream.format("rowtime").option("checkpointLocation", pipe.path("checkpoint"))
    assert writer.trigger(availableNow=True).start(pipe.path("out")).awaitTermination(240)
    with rt.openReader(pipe.path("out")) as reader:
        drained(reader)
        return reader.getRowtimeBound()


def micros(clock: str | None) -> rt.RowtimeBound | None:
    """A bound of the examples' day."""
    return None if clock is None else rt.RowtimeBound(at(clock))


def derived(expression: str) -> Build:
    return lambda a: a.select(F.expr(expression).alias("rowtime"), "k")


class Passing(StatefulProcessor):
    """Gives the rows that it gets; it could keep them."""

    def init(self, handle: Any) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        yield from rows

    def close(self) -> None:
        pass


def through_state(a: DataFrame) -> DataFrame:
    return a.groupBy("k").transformWithStateInPandas(Passing(), "rowtime TIMESTAMP, k STRING", "append", "eventTime")


STATELESS: dict[str, tuple[Build, str | None]] = {
    "filter, projection": (lambda a: a.filter("k <> 'a'").select("rowtime", F.upper("k")), "12:20:00.000001"),
    "+ interval": (derived("rowtime + INTERVAL 100 MILLISECONDS"), "12:20:00.100001"),
    "date_trunc": (derived("date_trunc('MINUTE', rowtime)"), "12:20"),
    "cast to date": (derived("CAST(CAST(rowtime AS DATE) AS TIMESTAMP)"), "0:00"),
    "+ month": (derived("rowtime + INTERVAL 1 MONTH"), None),
    "UDF": (lambda a: a.select(F.udf(lambda time: time, "timestamp")("rowtime").alias("rowtime")), None),
    "dropDuplicates": (lambda a: a.dropDuplicates(["rowtime", "k"]), "12:20:00.000001"),
    "dropDuplicatesWithinWatermark": (
        lambda a: a.withWatermark("rowtime", "1 hour").dropDuplicatesWithinWatermark(["k"]),
        "12:20:00.000001",
    ),
    "transformWithState": (through_state, None),
}


@pytest.mark.parametrize("operator", STATELESS)
def test_one_input(pipe: Pipe, operator: str) -> None:
    build, expected = STATELESS[operator]
    send(opened(pipe.create("a", "k STRING")), ("12:10", "a"), promise="12:20", strict=True)
    assert output(pipe, build(pipe.read("a"))) == micros(expected)


def windowed(window: Any, rowtime: str, function: Callable[[str], Any] = F.col) -> Build:
    return lambda a: a.groupBy(window.alias("w"), "k").count().select(function(rowtime).alias("rowtime"), "count")


def chained(a: DataFrame) -> DataFrame:
    halves = a.groupBy(F.window("rowtime", "30 minutes"), "k").count()
    hours = halves.groupBy(F.window(F.window_time("window"), "1 hour").alias("w")).agg(F.sum("count").alias("n"))
    return hours.select(F.col("w.end").alias("rowtime"), "n")


AGGREGATED: dict[str, tuple[Callable[[], Build], str | None]] = {
    "tumbling, end": (lambda: windowed(F.window("rowtime", "1 hour"), "w.end"), "13:00:00.000001"),
    "tumbling, window_time": (lambda: windowed(F.window("rowtime", "1 hour"), "w", F.window_time), "13:00"),
    "tumbling, start": (lambda: windowed(F.window("rowtime", "1 hour"), "w.start"), "12:00:00.000001"),
    "hopping, start": (lambda: windowed(F.window("rowtime", "1 hour", "20 minutes"), "w.start"), "12:00:00.000001"),
    "session, end": (lambda: windowed(F.session_window("rowtime", "5 minutes"), "w.end"), "12:59:59.999001"),
    "session, start": (lambda: windowed(F.session_window("rowtime", "5 minutes"), "w.start"), None),
    "by rowtime": (lambda: lambda a: a.groupBy("rowtime").count(), "12:59:59.999001"),
    "chained": (lambda: chained, "13:00:00.000001"),
}


@pytest.mark.usefixtures("state_on_heap")
@pytest.mark.parametrize("operator", AGGREGATED)
def test_aggregations(pipe: Pipe, operator: str) -> None:
    build, expected = AGGREGATED[operator]
    send(opened(pipe.create("a", "k STRING")), ("12:10", "a"), promise="13:00")
    assert output(pipe, build()(pipe.read("a"))) == micros(expected)


def joined(rowtime: str, on: str, how: str = "inner", window: bool = False) -> Join:
    def join(a: DataFrame, b: DataFrame) -> DataFrame:
        if window:
            a, b = (side.select("*", F.window("rowtime", "5 minutes").alias("w")) for side in (a, b))
        both = a.alias("a").join(b.alias("b"), F.expr(f"a.k = b.k AND {on}"), how)
        return both.select(F.expr(rowtime).alias("rowtime"))

    return join


WITHIN = "b.rowtime BETWEEN a.rowtime AND a.rowtime + INTERVAL 10 MINUTES"
TWO_INPUTS: dict[str, tuple[Join, str | None]] = {
    "union": (lambda a, b: a.union(b), "12:15"),
    "interval join, left": (joined("a.rowtime", WITHIN), "12:10"),
    "interval join, right": (joined("b.rowtime", WITHIN), "12:15"),
    "interval join, full outer": (joined("coalesce(a.rowtime, b.rowtime)", WITHIN, "fullouter"), "12:10"),
    "equal windows": (joined("a.w.end", "a.w = b.w", window=True), "12:15:00.000001"),
    "equal times": (joined("a.rowtime", "a.rowtime = b.rowtime"), "12:20:00.000001"),
    "no time": (joined("a.rowtime", "true"), None),
}


@pytest.mark.usefixtures("state_on_heap")
@pytest.mark.parametrize("operator", TWO_INPUTS)
def test_two_inputs(pipe: Pipe, operator: str) -> None:
    build, expected = TWO_INPUTS[operator]
    send(opened(pipe.create("a", "k STRING")), ("12:10", "a"), promise="12:20", strict=True)
    send(opened(pipe.create("b", "k STRING")), ("12:10", "a"), promise="12:15")
    assert output(pipe, build(pipe.read("a"), pipe.read("b"))) == micros(expected)


def test_a_join_with_a_table(pipe: Pipe) -> None:
    send(opened(pipe.create("a", "k STRING")), ("12:10", "a"), promise="12:20", strict=True)
    names = pipe.spark.createDataFrame([("a", "Anna")], "k STRING, name STRING")
    assert output(pipe, pipe.read("a").join(names, "k", "left")) == micros("12:20:00.000001")
