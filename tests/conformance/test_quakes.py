"""A month of earthquakes, each seismic network a producer, some silent for days: streamed, and as a batch."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_rowtime as rt
from tests.streams import Pipe, opened

COLUMNS = "net STRING, mag DOUBLE"
SCHEMA = {"time": pa.timestamp("us", "UTC"), "net": pa.string(), "mag": pa.float64()}


@pytest.fixture(scope="module")
def events(quakes: Path) -> pa.Table:
    """All earthquakes by time, as the feed has them."""
    options = csv.ConvertOptions(include_columns=list(SCHEMA), column_types=SCHEMA)
    return csv.read_csv(quakes, convert_options=options).rename_columns(["rowtime", "net", "mag"]).sort_by("rowtime")


def per_hour(frame: DataFrame) -> DataFrame:
    """Count and largest magnitude per network and hour."""
    hours = frame.groupBy(F.window("rowtime", "1 hour"), "net")
    counts = hours.agg(F.count("*").alias("n"), F.max("mag").alias("largest"))
    return counts.select(F.col("window.end").alias("rowtime"), "net", "n", "largest")


def batch(pipe: Pipe, file: Path) -> set[tuple[Any, ...]]:
    """The same over the CSV, without this project."""
    table = pipe.spark.read.csv(str(file), header=True, inferSchema=True)
    return {tuple(row) for row in per_hour(table.withColumn("rowtime", F.col("time").cast("timestamp"))).collect()}


def results(pipe: Pipe) -> set[tuple[Any, ...]]:
    """What the query has written so far."""
    assert pipe.query is not None
    pipe.query.processAllAvailable()
    rows = [tuple(row) for row in pipe.spark.read.format("rowtime").load(pipe.path("out")).collect()]
    assert len(rows) == len(set(rows)), "each result comes once"
    return set(rows)


def last_hour(rows: set[tuple[Any, ...]]) -> datetime:
    return max(row[0] for row in rows).replace(tzinfo=UTC)


class Feed:
    """Each network's sink, and its events; bounds are promised only where they are true."""

    def __init__(self, path: str, events: pa.Table, stack: ExitStack) -> None:
        self.of = {net: events.filter(pc.equal(events["net"], net)) for net in events["net"].unique().to_pylist()}
        self.sent = dict.fromkeys(self.of, 0)
        self.sinks = {net: stack.enter_context(opened(path, net)) for net in sorted(self.of)}

    def send(self, until: datetime, chance: random.Random | None = None) -> None:
        """All that happens before a time; with ``chance`` in pieces, with bounds anywhere between them."""
        for net, rows in self.of.items():
            end = pc.sum(pc.less(rows["rowtime"], until)).as_py() or 0
            while self.sent[net] < end:
                upto = chance.randint(self.sent[net] + 1, end) if chance else end
                self.sinks[net].sendRows(rows.slice(self.sent[net], upto - self.sent[net]))
                self.sent[net] = upto
                if chance and chance.random() < 0.5:
                    self.promise_any(net, until, chance)
            if chance and chance.random() < 0.3:
                self.promise_any(net, until, chance)
            self.sinks[net].flush()

    def promise_any(self, net: str, until: datetime, chance: random.Random) -> None:
        """Some time up to the network's next event, and not far ahead."""
        times = self.of[net]["rowtime"]
        sent = self.sent[net]
        next_one = min(times[sent].as_py(), until) if sent < len(times) else until
        known = self.sinks[net].getRowtimeBound()
        least = known.time if known is not None else next_one - timedelta(hours=3)
        if next_one > least:
            self.sinks[net].sendRowtimeBound(least + (next_one - least) * chance.random())

    def promise_all(self, until: datetime) -> None:
        """By every network."""
        for sink in self.sinks.values():
            sink.sendRowtimeBound(until)
            sink.flush()


def longest_silence(events: pa.Table) -> tuple[str, datetime, datetime]:
    """The network that is silent for longest, and the earthquakes before and after."""
    gaps = []
    for net in pc.unique(events["net"]).to_pylist():
        times = events.filter(pc.equal(events["net"], net))["rowtime"].to_pylist()
        gaps += [(after - before, net, before, after) for before, after in pairwise(times)]
    return max(gaps)[1:]


@contextmanager
def feeding(pipe: Pipe, events: pa.Table) -> Iterator[Feed]:
    """The query runs, and its feed is attached."""
    path = pipe.create("quakes", COLUMNS)
    pipe.run(per_hour(pipe.read("quakes")))
    with ExitStack() as stack:
        yield Feed(path, events, stack)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_with_bounds_in_any_places_the_results_are_those_of_a_batch(pipe, events, quakes, seed) -> None:
    chance = random.Random(seed)
    first, last = (time.as_py() for time in pc.min_max(events["rowtime"]).values())
    expected = batch(pipe, quakes)
    with feeding(pipe, events) as feed:
        assert len(feed.sinks) >= 5
        for _ in range(6):
            feed.send(first + (last - first) * chance.random(), chance)
            assert results(pipe) <= expected, "nothing that comes out is ever taken back"
        feed.send(last + timedelta(seconds=1))
        feed.promise_all(last + timedelta(hours=1))
        assert results(pipe) == expected
        assert rt.describeStream(pipe.path("quakes")).rejected == 0


def test_with_bounds_each_hour_is_out_when_it_ends(pipe, events, quakes) -> None:
    expected = batch(pipe, quakes)
    with feeding(pipe, events) as feed:
        for hour in range(10, 13):
            end = datetime(2025, 5, 6, hour, tzinfo=UTC)
            feed.send(end)
            feed.promise_all(end)
            assert results(pipe) == {row for row in expected if row[0].replace(tzinfo=UTC) <= end}
            assert rt.describeStream(pipe.path("out")).bound == rt.RowtimeBound(end, strict=True)


@pytest.mark.long
def test_without_bounds_a_silent_network_holds_the_clock_for_days(pipe, events, quakes) -> None:
    silent, silent_since, until = longest_silence(events)
    heard_again = until.replace(minute=0, second=0, microsecond=0)
    assert heard_again - silent_since > timedelta(days=7)
    with feeding(pipe, events) as feed:
        feed.send(heard_again)
        assert last_hour(results(pipe)) == silent_since.replace(minute=0, second=0, microsecond=0)
        stream = rt.describeStream(pipe.path("quakes"))
        assert stream.holder == silent
        assert stream.bound == rt.RowtimeBound(silent_since)
        feed.promise_all(heard_again)
        assert results(pipe) == {row for row in batch(pipe, quakes) if row[0].replace(tzinfo=UTC) <= heard_again}
