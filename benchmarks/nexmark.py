"""Nexmark's queries that are streams with windows, or without state, in CPU seconds.

Plain Spark reads Parquet files of the same rows with ``withWatermark``. Each query starts, reads all rows at rest, and
ends: what its processes take to start is part of its figure. The queries are from github.com/nexmark/nexmark, without
those that correct their results, or count by the wall clock.
"""

import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from source_throughput import CpuMeter
from tables import NEXMARK, PARQUET_WATERMARK

import spark_rowtime as rt
from harness import folder, report, session

DDL = {
    "person": "rowtime TIMESTAMP NOT NULL, id BIGINT, name STRING, city STRING, state STRING",
    "auction": "rowtime TIMESTAMP NOT NULL, id BIGINT, item STRING, initial BIGINT, seller BIGINT, category BIGINT",
    "bid": "rowtime TIMESTAMP NOT NULL, auction BIGINT, bidder BIGINT, price BIGINT, channel STRING",
}
PLACES = {"person": slice(0, 1), "auction": slice(1, 4), "bid": slice(4, 50)}
"""Which of fifty events are of a kind."""
START, APART = 1_767_225_600_000_000, 100
"""Microseconds of the first event, and between two."""
FILE = 50 * 5_000
"""Events whose rows are in one file, and in one call of the sink."""
WINDOW = "10 seconds"


def rows(kind: str, first: int, events: int) -> pa.Table:
    """The rows of a kind among so many events."""
    numbers = np.arange(first, first + events).reshape(-1, 50)[:, PLACES[kind]].ravel()
    random = np.random.default_rng(first)
    group = numbers // 50
    times = pa.array(START + numbers * APART).cast(pa.timestamp("us", "UTC"))
    recent = np.maximum(group - random.integers(0, 100, len(group)), 0)
    if kind == "person":
        columns = [group, _texts("person", group % 1000), _texts("city", group % 50), _texts("state", group % 6)]
    elif kind == "auction":
        columns = [numbers, _texts("item", group % 1000), group % 100 + 1, recent, group % 5 + 10]
    else:
        auction = recent * 50 + random.integers(1, 4, len(group))
        columns = [auction, recent, random.integers(1, 10_000, len(group)), _texts("channel", group % 4)]
    return pa.table([times, *columns], names=[part.split()[0] for part in DDL[kind].split(", ")])


def _texts(name: str, numbers: np.ndarray) -> pa.Array:
    values = pa.array([f"{name} {n}" for n in range(int(numbers.max()) + 1)])
    return values.take(pa.array(numbers))


def write(root: Path, events: int) -> None:
    """Each kind twice: as a stream, and as Parquet."""
    for kind, columns in DDL.items():
        (root / kind).mkdir()
        rt.createStream(str(root / f"{kind}-stream"), columns)
        schema = rt.describeStream(str(root / f"{kind}-stream")).schema
        with rt.openSink(str(root / f"{kind}-stream")) as sink:
            for first in range(0, events, FILE):
                table = rows(kind, first, FILE).cast(schema)
                sink.sendRows(table)
                sink.flush()
                pq.write_table(table, root / kind / f"{first:012d}.parquet")


Read = Callable[[str], DataFrame]
"""The rows of a kind, as a stream of a query."""


def passed(read: Read) -> DataFrame:
    return read("bid").select("auction", "bidder", "price", "rowtime")


def converted(read: Read) -> DataFrame:
    return read("bid").select("auction", "bidder", (F.col("price") * 0.908).alias("price"), "rowtime")


def selected(read: Read) -> DataFrame:
    return read("bid").where("auction % 123 = 0").select("auction", "price")


def hot_items(read: Read) -> DataFrame:
    counted = read("bid").groupBy(F.window("rowtime", WINDOW, "2 seconds"), "auction").count()
    return counted.groupBy("window").agg(F.max(F.struct("count", "auction")))


def highest_bid(read: Read) -> DataFrame:
    best = F.max(F.struct("price", "auction", "bidder"))
    return read("bid").groupBy(F.window("rowtime", WINDOW)).agg(best)


def new_users(read: Read) -> DataFrame:
    people = read("person").select("id", "name", F.window("rowtime", WINDOW).alias("window"))
    sellers = read("auction").select("seller", F.window("rowtime", WINDOW).alias("of"))
    return people.join(sellers, F.expr("id = seller AND window = of"))


def user_sessions(read: Read) -> DataFrame:
    return read("bid").groupBy(F.session_window("rowtime", WINDOW), "bidder").count()


QUERIES = dict(
    zip(NEXMARK, (passed, converted, selected, hot_items, highest_bid, new_users, user_sessions), strict=True)
)


def from_stream(spark: SparkSession, root: Path, kind: str) -> DataFrame:
    return spark.readStream.format("rowtime").load(str(root / f"{kind}-stream"))


def from_parquet(spark: SparkSession, root: Path, kind: str) -> DataFrame:
    return spark.readStream.schema(DDL[kind]).parquet(str(root / kind)).withWatermark("rowtime", "0 seconds")


class Run(NamedTuple):
    """CPU seconds of a query from its start to its end, and its results."""

    cpu: float
    results: int


def run(rows: DataFrame, meter: CpuMeter) -> Run:
    counted, before = rows.observe("results", F.count("*").alias("n")), meter.sample()
    query = counted.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    found = [progress.observedMetrics["results"].n for progress in query.recentProgress if progress.observedMetrics]
    return Run(meter.sample() - before, sum(found))


def require_same_results(ours: list[Run], theirs: list[Run]) -> None:
    """Plain Spark leaves out the last windows, since no later row ends them."""
    mine, others = {run.results for run in ours}, {run.results for run in theirs}
    if len(mine | others) > 2 or not 0.95 * max(mine) <= max(others) <= max(mine):
        raise RuntimeError(f"the results differ: {mine} and {others}")


def main(events: int = 10_000_000, rounds: int = 3) -> None:
    spark = session()
    meter = CpuMeter()
    with folder() as root:
        write(root, events)
        readers = [partial(source, spark, root) for source in (from_stream, from_parquet)]
        ratios = []
        for name, query in QUERIES.items():
            runs = [[run(query(read), meter) for read in readers] for _ in range(rounds + 1)][1:]  # the first warms up
            ours, theirs = map(list, zip(*runs, strict=True))
            require_same_results(ours, theirs)
            figures = [[run.cpu for run in runs] for runs in (ours, theirs)]
            ratios.append(report(f"Nexmark {name}", *figures, "CPU s", PARQUET_WATERMARK))
    print(f"{events:,} events, {rounds} rounds: median of the ratios {statistics.median(ratios):.2f}")
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
