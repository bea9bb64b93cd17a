"""Joins of two streams: each side's bound frees the other side's state."""

import pytest
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed
from tests.sparksession import ROCKSDB, STATE_PROVIDER
from tests.streams import Pipe, opened, send

WITHIN = "id = trade_id AND traded BETWEEN rowtime AND rowtime + INTERVAL 10 MINUTES"


def sides(pipe: Pipe):
    trades = pipe.read("trades").selectExpr("rowtime AS traded", "id AS trade_id")
    return pipe.read("orders"), trades


def joined(pipe: Pipe, how: str):
    orders, trades = sides(pipe)
    return orders.join(trades, F.expr(WITHIN), how)


@pytest.fixture
def feeds(pipe: Pipe):
    return tuple(opened(pipe.create(name, "id INT"), "p") for name in ("orders", "trades"))


@pytest.fixture(params=["2", "3", "4"])
def state_format(pipe: Pipe, state_on_heap, request):
    if request.param == "4" and pipe.spark.version < "4.3":
        pytest.skip("join state format 4 is not in Spark 4.2")
    key = "spark.sql.streaming.join.stateFormatVersion"
    pipe.spark.conf.set(key, request.param)
    if request.param != "2":
        pipe.spark.conf.set(STATE_PROVIDER, ROCKSDB)
    yield request.param
    pipe.spark.conf.unset(key)


@pytest.mark.long
def test_an_order_without_a_trade_comes_out_by_the_trades_bound_alone(pipe, feeds, tmp_path, state_format) -> None:
    orders, trades = feeds
    with Observed(joined(pipe, "fullOuter").select("rowtime", "traded"), tmp_path) as query:
        send(orders, ("10:00", 1), ("10:00", 0), ("10:03", 2))
        send(trades, ("10:02", 1), ("10:04", 2), ("10:07:30", 1))
        assert query.step() == [("10:00", "10:02"), ("10:00", "10:07:30"), ("10:03", "10:04")]
        send(trades, promise="10:11")
        assert query.step() == [("10:00", None)], "with one watermark for both: only when Orders has moved"
        send(orders, promise="10:10")
        assert query.step() == []
        send(trades, ("10:12", 1))
        assert query.step() == []
        send(orders, promise="10:12:00.001")
        assert query.step() == [(None, "10:12")]


@pytest.mark.long
def test_a_left_semi_join_of_rows_that_come_with_the_bound_past_them(pipe, feeds, tmp_path, state_format) -> None:
    orders, trades = feeds
    with Observed(joined(pipe, "leftsemi").select("rowtime", "id"), tmp_path) as query:
        send(orders, ("10:00", 1), ("10:03", 2), promise="11:00")
        send(trades, ("10:02", 1), promise="11:00")
        assert query.step() == [("10:00", 1)], "Spark alone loses it"
        for feed in feeds:
            send(feed, promise="12:00")
        assert query.step() == []
        assert query.query.lastProgress.stateOperators[0].numRowsTotal == 0


@pytest.mark.smoke
def test_what_an_interval_join_promises(pipe, feeds, tmp_path) -> None:
    orders, trades = feeds
    frame = joined(pipe, "inner").select("rowtime", "traded", F.coalesce("rowtime", "traded").alias("either"))
    with Observed(frame, tmp_path) as query:
        send(orders, ("10:00:59.999001", 1), promise="10:10")
        send(trades, ("10:09:59.999001", 2), promise="10:11")
        query.step()
        kept = "10:00:59.999001"  # the first after 10:11 - 10 minutes, less the millisecond in which Spark evicts
        assert query.promised == {"rowtime": kept, "traded": "10:09:59.999001", "either": kept}


@pytest.mark.long
def test_a_join_promises_by_the_rows_that_were_sent(pipe, feeds, tmp_path) -> None:
    """No order between 10:01 and 10:07 has been sent, and none will be before 10:10: what the state keeps is later."""
    orders, trades = feeds
    frame = joined(pipe, "fullOuter").select("rowtime", "traded")
    with Observed(frame, tmp_path) as query:
        send(orders, ("10:00", 1), ("10:07", 2), ("10:09", 3), promise="10:10")
        send(trades, ("10:08", 1), promise="10:11")
        query.step()
        assert query.promised == {"rowtime": "10:07", "traded": "10:11"}
        send(orders, ("10:12", 4), promise="10:20")
        send(trades, promise="10:19")
        query.step()
        assert query.promised == {"rowtime": "10:09", "traded": "10:19"}


@pytest.mark.long
def test_run_again_a_join_promises_the_same(pipe, feeds, tmp_path) -> None:
    """Rows that were sent since the batch was planned are none of its own."""
    orders, trades = feeds
    query = Observed(joined(pipe, "inner"), tmp_path)
    with query:
        send(orders, ("10:00", 1), promise="10:10")
        send(trades, promise="10:05")
        query.step()
        first = query.last
    promised = query.promised
    query.lose_commit()
    send(opened(pipe.path("orders"), "q"), ("10:11", 2), promise="10:12")
    with query:
        query.step()
    assert query.promises[first] == promised == {"rowtime": "10:00", "traded": "10:05"}
    assert query.last > first


def shifted(frame):
    return frame.selectExpr("rowtime + INTERVAL 1 HOUR AS rowtime", "id")


def narrowed(pipe: Pipe):
    table = pipe.spark.range(9).selectExpr("id AS other")
    return pipe.read("orders").where("id < 5").join(table, F.expr("id = other")).dropDuplicates(["rowtime", "id"])


def united(pipe: Pipe):
    return pipe.read("orders", order="rowtime").union(pipe.read("orders").where("id > 1"))


@pytest.mark.long
@pytest.mark.parametrize("side", [narrowed, united])
def test_rows_are_known_through_what_does_not_change_their_time(pipe, feeds, tmp_path, side) -> None:
    orders, trades = feeds
    left = side(pipe).selectExpr("rowtime AS ordered", "id")
    right = pipe.read("trades").selectExpr("rowtime AS traded", "id AS trade_id")
    within = "id = trade_id AND traded BETWEEN ordered AND ordered + INTERVAL 10 MINUTES"
    with Observed(left.join(right, F.expr(within)), tmp_path) as query:
        send(orders, ("10:00", 1), ("10:07", 2), promise="10:10")
        send(trades, promise="10:11")
        query.step()
        assert query.promised["ordered"] == "10:07"


@pytest.mark.long
def test_rows_of_a_changed_time_are_not_known(pipe, feeds, tmp_path) -> None:
    orders, trades = feeds
    trades_later = shifted(pipe.read("trades")).selectExpr("rowtime AS traded", "id AS trade_id")
    with Observed(shifted(pipe.read("orders")).join(trades_later, F.expr(WITHIN)), tmp_path) as query:
        send(orders, ("10:00", 1), ("10:07", 2), promise="10:10")
        send(trades, promise="10:11")
        query.step()
        assert query.promised["rowtime"] == "11:00:59.999001", "by the bounds alone"


@pytest.mark.long
def test_before_both_sides_have_a_bound_nothing_is_promised(pipe, feeds, tmp_path) -> None:
    orders, _ = feeds
    with Observed(joined(pipe, "inner"), tmp_path) as query:
        send(orders, promise="10:10")
        query.step()
        assert query.promised == {}


def test_a_join_on_equal_windows(pipe, feeds, tmp_path) -> None:
    orders, trades = feeds
    left = pipe.read("orders").select(F.window("rowtime", "5 minutes").alias("w"), "id")
    right = pipe.read("trades").select(F.window("rowtime", "5 minutes").alias("v"), F.col("id").alias("trade_id"))
    with Observed(left.join(right, F.expr("w = v AND id = trade_id"), "leftOuter"), tmp_path) as query:
        send(orders, ("10:01", 1), ("10:02", 2), promise="10:20")
        send(trades, ("10:03", 1))
        assert query.step() == [(("10:00", "10:05"), 1, ("10:00", "10:05"), 1)]
        send(trades, promise="10:05")
        assert query.step() == [(("10:00", "10:05"), 2, None, None)]
        assert query.promised["w.end"] == "10:05:00.000001"


@pytest.mark.long
def test_a_join_on_equal_times(pipe, feeds, tmp_path) -> None:
    orders, trades = feeds
    right = pipe.read("trades").withColumnRenamed("id", "trade_id")
    with Observed(pipe.read("orders").join(right, ["rowtime"], "leftOuter"), tmp_path) as query:
        send(orders, ("10:01", 1), ("10:02", 2), promise="10:20")
        send(trades, promise="10:02")
        assert query.step() == [("10:01", 1, None)]
        send(trades, ("10:02", 9), promise="10:03")
        assert query.step() == [("10:02", 2, 9)]


def test_a_window_over_a_join(pipe, feeds, tmp_path) -> None:
    orders, trades = feeds
    frame = joined(pipe, "inner").drop("traded").groupBy(F.window("rowtime", "5 minutes")).count()
    with Observed(frame, tmp_path) as query:
        send(orders, ("10:00", 1), ("10:03", 2), ("10:06", 3), promise="10:20")
        send(trades, ("10:02", 1), ("10:04", 2), ("10:07", 3), promise="10:15")
        assert query.step() == [], "an order at 10:05 less a microsecond may still find a trade at 10:15"
        send(trades, promise="10:15:00.001")
        assert query.step() == [(("10:00", "10:05"), 2)]


def test_an_aggregation_over_a_join_without_time_is_refused(pipe, feeds, tmp_path) -> None:
    left, right = sides(pipe)
    frame = left.join(right, F.expr("id = trade_id")).drop("traded").groupBy(F.window("rowtime", "1 hour")).count()
    with pytest.raises(Exception, match="without a condition on both their times"), Observed(frame, tmp_path) as query:
        query.step()


@pytest.mark.long
@pytest.mark.smoke
def test_a_quiet_side_does_not_change_the_order_of_the_operators(pipe, feeds, tmp_path) -> None:
    """While the right side is empty Spark alone swaps them, so that each reads the other's state."""
    orders, trades = feeds
    window = F.window("rowtime", "10 minutes").alias("w")
    counts = pipe.read("orders").groupBy(window).agg(F.count("*").alias("n"))
    traded = pipe.read("trades").select(F.window("rowtime", "10 minutes").alias("t"))
    frame = counts.join(traded, F.expr("w = t"), "leftsemi").select(F.col("w.end").alias("rowtime"), "n")
    with Observed(frame, tmp_path) as query:
        send(orders, ("10:01", 1), ("10:02", 2))
        assert query.step() == []
        send(trades, ("10:03", 1), ("10:14", 1))
        assert query.step() == []
        send(orders, ("10:11", 3), promise="10:20")
        assert query.step() == [("10:10", 2)]
        send(trades, promise="10:20")
        assert query.step() == [("10:20", 1)]


@pytest.fixture
def through_union(pipe: Pipe):
    key = "spark.sql.optimizer.pushDownJoinThroughUnion.enabled"
    pipe.spark.conf.set(key, "true")
    yield
    pipe.spark.conf.unset(key)


@pytest.mark.long
@pytest.mark.usefixtures("through_union")
def test_a_quiet_side_does_not_take_a_join_apart(pipe, feeds, tmp_path) -> None:
    """Spark has a rule that makes of a join with a union a union of joins, where the other side is small."""
    orders, trades = feeds
    extra = opened(pipe.create("extra", "id INT"), "p")
    both = pipe.read("orders").union(pipe.read("extra"))
    _, right = sides(pipe)
    with Observed(both.join(right, F.expr(WITHIN), "leftOuter").select("rowtime", "traded"), tmp_path) as query:
        send(orders, ("10:00", 1))
        send(extra, ("10:01", 2))
        assert query.step() == []
        send(trades, ("10:02", 1), ("10:03", 2))
        assert query.step() == [("10:00", "10:02"), ("10:01", "10:03")]
        send(extra, ("10:05", 3))
        assert query.step() == []
        for feed in (orders, extra, trades):
            send(feed, promise="11:00")
        assert query.step() == [("10:05", None)]


@pytest.mark.long
def test_a_quiet_stream_keeps_its_limit(pipe, feeds, tmp_path) -> None:
    """Spark leaves out the limit of a stream without rows, and then fails since the limit's state is not there."""
    orders, trades = feeds
    limited, others = (pipe.read(name, watermark="none") for name in ("orders", "trades"))
    with Observed(limited.limit(2).union(others).select("id"), tmp_path) as query:
        send(orders, ("10:00", 1))
        assert query.step() == [(1,)]
        send(trades, ("10:00", 2))
        assert query.step() == [(2,)]
        send(orders, ("10:01", 3), ("10:01", 3))
        assert query.step() == [(3,)]
