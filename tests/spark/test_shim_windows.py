"""Windows close in the very batch that carries the bound."""

import pytest
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def hourly(frame, *keys):
    return frame.groupBy(F.window("rowtime", "1 hour"), *keys).count()


@pytest.mark.smoke
def test_a_window_closes_in_the_batch_that_carries_the_bound(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(hourly(pipe.read("orders"), "k"), tmp_path) as query:
        send(orders, ("12:10", "a"), ("12:20", "a"))
        assert query.step() == []
        before = query.last
        send(orders, promise="13:00")
        assert query.step() == [(("12:00", "13:00"), "a", 2)]
        assert query.last == before + 1, "one micro-batch, not two"
        assert query.watermark == "13:00"
        assert query.query.lastProgress.numInputRows == 0


@pytest.mark.long
def test_rows_at_the_bound_belong_to_the_next_window(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(hourly(pipe.read("orders")), tmp_path) as query:
        send(orders, ("12:30", "a"), promise="13:00")
        assert query.step() == [(("12:00", "13:00"), 1)]
        send(orders, ("13:00", "b"), ("13:00", "c"), promise="13:59:59.999999")
        assert query.step() == []
        send(orders, promise="14:00")
        assert query.step() == [(("13:00", "14:00"), 2)]


@pytest.mark.long
def test_a_strict_bound_closes_no_earlier_than_it_may(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(hourly(pipe.read("orders")), tmp_path) as query:
        send(orders, ("12:59:59.999", "a"), promise="12:59:59.999", strict=True)
        assert query.step() == []
        send(orders, ("12:59:59.999001", "b"), promise="12:59:59.999999", strict=True)
        assert query.step() == [(("12:00", "13:00"), 2)]


def test_sliding_windows(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    sliding = pipe.read("orders").groupBy(F.window("rowtime", "1 hour", "30 minutes")).count()
    with Observed(sliding, tmp_path) as query:
        send(orders, ("12:10", "a"), promise="12:30")
        assert query.step() == [(("11:30", "12:30"), 1)]
        assert query.promised == {"window.start": "11:30:00.000001", "window.end": "12:30:00.000001"}
        send(orders, promise="13:00")
        assert query.step() == [(("12:00", "13:00"), 1)]


def test_chained_windows_close_in_one_batch(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    halves = pipe.read("orders").groupBy(F.window("rowtime", "30 minutes"), "k").count()
    hours = halves.groupBy(F.window(F.window_time("window"), "1 hour")).agg(F.sum("count"))
    with Observed(hours, tmp_path) as query:
        send(orders, ("12:10", "a"), ("12:20", "b"), ("12:40", "a"), promise="13:00")
        assert query.step() == [(("12:00", "13:00"), 3)]
        assert query.promised["window.end"] == "13:00:00.000001"


@pytest.mark.long
def test_window_time_is_promised_without_strictness(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    frame = hourly(pipe.read("orders")).select(
        F.window_time("window").alias("rowtime"), F.col("window.end").alias("end"), "count"
    )
    with Observed(frame, tmp_path) as query:
        send(orders, ("12:10", "a"), promise="13:00")
        assert query.step() == [("12:59:59.999999", "13:00", 1)]
        assert query.promised == {"rowtime": "13:00", "end": "13:00:00.000001"}


@pytest.mark.long
def test_nothing_is_promised_of_windows_before_there_is_a_bound(pipe: Pipe, tmp_path) -> None:
    path = pipe.create("orders", "k STRING")
    fast, _slow = opened(path, "fast"), opened(path, "slow")
    with Observed(hourly(pipe.read("orders")), tmp_path) as query:
        send(fast, ("12:10", "a"), promise="15:00")
        assert query.step() == []
        assert query.promised == {}


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_other_output_modes(pipe: Pipe, tmp_path, mode) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(hourly(pipe.read("orders")), tmp_path, mode) as query:
        send(orders, ("12:10", "a"), promise="13:00")
        assert query.step() == [(("12:00", "13:00"), 1)]
        assert ("window.end" in query.promised) == (mode == "update"), "complete mode writes all again"


def test_groups_of_a_union_of_the_same_groups_with_rocksdb(pipe: Pipe, tmp_path) -> None:
    """Plain Spark fails in the first batch: both run in one task, and RocksDB has one store for a task."""
    spark = pipe.spark.newSession()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)

    def counts(name: str):
        rows = spark.readStream.format("rowtime").load(pipe.create(name, "k STRING"))
        return rows.groupBy(F.window("rowtime", "10 minutes").alias("w")).agg(F.count("*").alias("n"))

    totals = counts("a").union(counts("b")).groupBy("w").agg(F.sum("n").alias("n"))
    with Observed(totals, tmp_path) as query:
        for name in "ab":
            send(opened(pipe.path(name), "p"), ("10:01", "x"), ("10:12", "x"), promise="10:20")
        assert query.step() == [(("10:00", "10:10"), 2), (("10:10", "10:20"), 2)]
