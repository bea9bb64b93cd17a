"""A row at exactly a non-strict bound is never lost, whatever operator keeps state by it."""

import pytest
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send


@pytest.mark.smoke
@pytest.mark.parametrize("at", ["12:05", "12:05:00.0005"])
def test_drop_duplicates(pipe: Pipe, tmp_path, at) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(pipe.read("orders").dropDuplicates(["rowtime", "k"]), tmp_path) as query:
        send(orders, ("12:00", "a"), promise=at)
        assert query.step() == [("12:00", "a")]
        send(orders, (at, "b"))
        assert query.step() == [(at, "b")]
        send(orders, (at, "b"), (at, "c"), promise="12:06")
        assert query.step() == [(at, "c")]


def test_drop_duplicates_within_watermark(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    frame = pipe.read("orders").withWatermark("rowtime", "10 minutes").dropDuplicatesWithinWatermark(["k"])
    with Observed(frame, tmp_path) as query:
        send(orders, ("12:00", "a"), promise="12:05")
        assert query.step() == [("12:00", "a")]
        send(orders, ("12:05", "b"), ("12:06", "a"))
        assert query.step() == [("12:05", "b")]
        send(orders, ("12:10:00.001", "a"), ("12:12", "a"), promise="12:12")
        assert query.step() == [], "'a' is looked for from its first row, 12:00, until 12:10 is over"


@pytest.mark.long
def test_a_session_goes_on_at_its_very_end(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    sessions = pipe.read("orders").groupBy(F.session_window("rowtime", "10 minutes"), "k").count()
    with Observed(sessions, tmp_path) as query:
        send(orders, ("12:00", "a"), promise="12:10")
        assert query.step() == []
        send(orders, ("12:10", "a"), promise="12:20")
        assert query.step() == [], "a row at 12:20 would still belong to it"
        send(orders, promise="12:20:00.001")
        assert query.step() == [(("12:00", "12:20"), "a", 2)]
        assert query.promised == {"session_window.end": "12:20:00.000001"}


@pytest.mark.long
def test_a_session_that_ends_within_a_millisecond_is_not_late_above_it(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    session = F.session_window("rowtime", "10 minutes").alias("w")
    sessions = pipe.read("orders").groupBy(session, "k").agg(F.count("*").alias("n"))
    timed = sessions.select(F.window_time("w").alias("rowtime"), "n")
    with Observed(timed.dropDuplicates(["rowtime", "n"]), tmp_path) as query:
        send(orders, ("12:00:00.000001", "a"), promise="12:10:00.000002")
        assert query.step() == [], "it ends at 12:10:00.000001, and W is in whole milliseconds"
        send(orders, promise="12:20")
        assert query.step() == [("12:10", 1)]


def odd_windows(rows):
    """Windows that end a microsecond after the hour, as (window_time, number of rows)."""
    window = F.window("rowtime", "1 hour", startTime="1 microsecond").alias("w")
    return rows.groupBy(window).agg(F.count("*").alias("n")).select(F.window_time("w").alias("rowtime"), "n")


@pytest.mark.long
@pytest.mark.parametrize("above", ["dropDuplicates", "groupBy", "session"])
def test_a_window_that_ends_within_a_millisecond_is_not_late_above_it(pipe: Pipe, tmp_path, above) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    rows = odd_windows(pipe.read("orders"))
    frame = {
        "dropDuplicates": lambda: rows.dropDuplicates(["rowtime", "n"]),
        "groupBy": lambda: rows.groupBy("rowtime").agg(F.max("n")),
        "session": lambda: (
            rows.groupBy(F.session_window("rowtime", "1 minute").alias("s"), "n").count().select("s.start", "n")
        ),
    }[above]()
    with Observed(frame, tmp_path) as query:
        send(orders, ("12:30", "a"), promise="13:00:00.000001")
        assert query.step() == [], "it ends at 13:00:00.000001, and W is in whole milliseconds"
        send(orders, promise="13:02")
        assert query.step() == [("13:00", 1)]


@pytest.mark.long
def test_a_time_within_the_millisecond_of_the_bound_is_not_late_for_windows_above_an_aggregation(
    pipe: Pipe, tmp_path
) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    times = pipe.read("orders").groupBy("rowtime").agg(F.count("*").alias("n"))
    with Observed(times.groupBy(F.window("rowtime", "1 hour")).agg(F.sum("n")), tmp_path) as query:
        send(orders, ("12:59:59.9995", "a"), promise="13:00")
        query.step()
        send(orders, promise="13:00:00.001")
        query.step()
        assert [row for rows in query.batches.values() for row in rows] == [(("12:00", "13:00"), 1)]


@pytest.mark.long
def test_times_of_whole_windows_close_in_one_batch(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    hours = pipe.read("orders").groupBy(F.window("rowtime", "1 hour").alias("w")).agg(F.count("*").alias("n"))
    times = hours.select(F.window_time("w").alias("rowtime"), "n").groupBy("rowtime").agg(F.max("n"))
    with Observed(times, tmp_path) as query:
        send(orders, ("12:30", "a"), promise="13:00")
        assert query.step() == [("12:59:59.999999", 1)]


@pytest.mark.long
def test_grouping_by_rowtime_itself(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(pipe.read("orders").groupBy("rowtime").count(), tmp_path) as query:
        send(orders, ("12:30", "a"))
        assert query.step() == []
        send(orders, ("12:30", "b"), promise="12:30", strict=True)
        assert query.step() == [("12:30", 2)]
        assert query.promised == {"rowtime": "12:30:00.000001"}


@pytest.mark.long
def test_the_upper_edge_of_an_outer_interval_join(pipe: Pipe, tmp_path) -> None:
    orders, trades = opened(pipe.create("o", "k STRING"), "p"), opened(pipe.create("t", "k STRING"), "p")
    right = pipe.read("t").select(F.col("rowtime").alias("trade"), F.col("k").alias("tk"))
    within = F.expr("k = tk AND trade BETWEEN rowtime AND rowtime + INTERVAL 10 MINUTES")
    with Observed(pipe.read("o").join(right, within, "leftOuter").select("rowtime", "trade"), tmp_path) as query:
        send(orders, ("10:00", "a"), ("10:03", "b"), promise="10:30")
        send(trades, promise="10:10")
        assert query.step() == []
        send(trades, ("10:10", "a"))
        assert query.step() == [("10:00", "10:10")]
        send(trades, promise="10:13:00.001")
        assert query.step() == [("10:03", None)]


@pytest.mark.long
def test_transform_with_state(pipe: Pipe, tmp_path) -> None:
    pytest.importorskip("google.protobuf", reason="Python's transformWithState needs protobuf")
    from tests.spark.counting_processor import Counting

    orders = opened(pipe.create("orders", "k STRING"), "p")
    frame = (
        pipe.read("orders")
        .groupBy("k")
        .transformWithStateInPandas(Counting(), "k STRING, n BIGINT", "Append", "EventTime")
    )
    with Observed(frame, tmp_path) as query:
        send(orders, ("12:00", "a"), promise="12:05")
        assert query.step() == []
        send(orders, ("12:05", "a"))
        assert query.step() == []
        send(orders, promise="12:05:00.001")
        assert query.step() == [("a", 2)], "the timer at 12:05 fires when the bound is past it, with the row at 12:05"
        assert query.promised == {}
