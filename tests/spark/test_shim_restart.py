"""Restarts: the watermark is in the offset log, and a batch that is run again has its own."""

from pathlib import Path

import pytest
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed, put_row
from tests.streams import Pipe, opened, send


def hourly(frame):
    return frame.groupBy(F.window("rowtime", "1 hour"), "k").count()


@pytest.mark.smoke
def test_a_stopped_query_goes_on(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    query = Observed(hourly(pipe.read("orders")), tmp_path)
    with query:
        send(orders, ("12:10", "a"), promise="12:20")
        assert query.step() == []
    send(orders, promise="13:00")
    with query:
        assert query.step() == [(("12:00", "13:00"), "a", 1)]


@pytest.mark.smoke
def test_a_batch_that_is_run_again_closes_nothing_early(pipe: Pipe, tmp_path) -> None:
    """The hole: Spark's own tracker would jump to the largest time in the batch, 14:30."""
    path = pipe.create("orders", "k STRING")
    orders, other = opened(path, "p"), opened(path, "q")
    query = Observed(hourly(pipe.read("orders")), tmp_path)
    with query:
        send(other, promise="13:10")
        send(orders, ("13:05", "b"), ("14:30", "c"))
        assert query.step() == []
    query.lose_commit()
    with query:
        assert query.step() == []
        assert query.watermark == "13:10"
        send(other, ("13:20", "b"), promise="14:00")
        assert query.step() == [(("13:00", "14:00"), "b", 2)]
    query.lose_commit()
    with query:
        assert query.step() == [(("13:00", "14:00"), "b", 2)]


@pytest.mark.long
def test_run_again_where_only_one_of_two_streams_had_moved(pipe: Pipe, tmp_path) -> None:
    a, b = opened(pipe.create("a", "k STRING"), "p"), opened(pipe.create("b", "k STRING"), "p")
    query = Observed(hourly(pipe.read("a").union(pipe.read("b"))), tmp_path)
    with query:
        send(a, ("12:10", "a"), promise="12:30")
        send(b, promise="12:40")
        query.step()
        send(a, ("13:50", "a"), promise="15:00")
        assert query.step() == []
    query.lose_commit()
    with query:
        assert query.step() == []
        assert query.watermark == "12:40"
        send(b, promise="13:00")
        assert query.step() == [(("12:00", "13:00"), "a", 1)]


@pytest.mark.long
def test_run_again_where_only_another_source_had_moved(pipe: Pipe, tmp_path) -> None:
    """No method of the rowtime stream but setLatestSeenOffset is called for that batch."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    files = Path(tmp_path) / "files"
    files.mkdir()
    others = pipe.spark.readStream.schema("rowtime TIMESTAMP, k STRING").json(str(files))
    mixed = pipe.read("orders").union(others).withWatermark("rowtime", "0 seconds")
    query = Observed(mixed.dropDuplicates(["rowtime", "k"]), tmp_path)
    # Both in the first batch: Spark 4.2 takes the columns' nullability in the state from what is there.
    send(orders, ("12:00", "a"), promise="12:30")
    put_row(files / "0.json", "12:10", "f")
    with query:
        query.step()
        put_row(files / "1.json", "13:00", "f")
        assert query.step() == [("13:00", "f")]
    assert query.watermark == "12:30"
    query.lose_commit()
    with query:
        query.step()
        assert query.watermark == "12:30", "not 13:00, Spark's own"
        send(orders, ("12:30", "b"), ("12:30", "b"))
        assert query.step() == [("12:30", "b")]


@pytest.mark.long
def test_a_quiet_stream_is_known_after_a_restart(pipe: Pipe, tmp_path) -> None:
    """A node without data counts as 1970 in Spark; its floor is in the offset."""
    a, b = opened(pipe.create("a", "k STRING"), "p"), opened(pipe.create("b", "k STRING"), "p")
    query = Observed(hourly(pipe.read("a").union(pipe.read("b"))), tmp_path)
    with query:
        send(a, ("12:10", "a"), promise="15:00")
        send(b, promise="12:30")
        query.step()
    with query:
        send(b, promise="13:00")
        assert query.step() == [(("12:00", "13:00"), "a", 1)]
