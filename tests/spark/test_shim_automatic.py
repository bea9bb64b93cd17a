"""The automatic watermark: rowtime has one without withWatermark, and keeps it where it can be followed."""

from datetime import datetime

import pytest
from pyspark.sql import functions as F

from tests.spark.observed import Observed
from tests.sparksession import wait_for
from tests.streams import Pipe, at, opened, send


def time_at(clock):
    return datetime.fromisoformat(at(clock))


def hourly(frame, time="rowtime"):
    return frame.groupBy(F.window(time, "1 hour")).count()


def starts_of(frame, time="rowtime"):
    return hourly(frame, time).select(F.col("window.start").alias("start"), "count")


def as_view(frame):
    frame.createOrReplaceTempView("orders")
    spark = frame.sparkSession
    return spark.sql("SELECT window.start AS start, count(*) FROM orders GROUP BY window(rowtime, '1 hour')")


FORMS = {
    "as it is": (starts_of, 1),
    "renamed": (lambda d: starts_of(d.withColumnRenamed("rowtime", "at"), "at"), 1),
    "selected": (lambda d: starts_of(d.select(F.col("rowtime").alias("at"), "k").filter("k <> 'z'"), "at"), 1),
    "a view": (as_view, 1),
    "a union with itself": (lambda d: starts_of(d.union(d)), 2),
    "the user's own": (lambda d: starts_of(d.withWatermark("rowtime", "30 minutes")), 1),
    "the user's own, renamed": (
        lambda d: starts_of(d.withColumnRenamed("rowtime", "at").withWatermark("at", "1 day"), "at"),
        1,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_keep_the_watermark(pipe: Pipe, tmp_path, form) -> None:
    build, times = FORMS[form]
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(build(pipe.read("orders")), tmp_path) as query:
        send(orders, ("12:10", "a"))
        assert query.step() == []
        send(orders, promise="13:00")
        assert query.step() == [("12:00", times)]


DERIVED = {
    "rowtime + INTERVAL 1 HOUR": ("13:00", "13:00"),
    "rowtime - INTERVAL 10 MINUTES": ("12:00", "13:10"),
    "date_trunc('HOUR', rowtime)": ("12:00", "13:00"),
    "timestampadd(HOUR, 1, rowtime)": ("13:00", "13:00"),
    "date_trunc('MINUTE', rowtime) + INTERVAL 1 HOUR": ("13:00", "13:00"),
    "rowtime + INTERVAL 1 DAY": ("12:00", "13:00"),  # the session's time zone is UTC
    "greatest(rowtime, TIMESTAMP '2006-09-11 12:15:00')": ("12:00", "13:00"),
}


@pytest.mark.smoke
@pytest.mark.parametrize("expression", DERIVED)
def test_a_derived_rowtime_moves_the_bound(pipe: Pipe, tmp_path, expression) -> None:
    window, closed_by = DERIVED[expression]
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(starts_of(pipe.read("orders").withColumn("rowtime", F.expr(expression))), tmp_path) as query:
        send(orders, ("12:10", "a"), promise="12:59:59.9")
        assert query.step() == []
        send(orders, promise=closed_by)
        assert query.step() == [(window, 1)]


def in_sql(text):
    return lambda orders: orders.sparkSession.sql(text, orders=orders)


GROUPED = {
    "SQL": in_sql("SELECT date_trunc('HOUR', rowtime) AS rowtime, k, count(*) FROM {orders} GROUP BY 1, 2"),
    "HAVING": in_sql("""
        SELECT date_trunc('HOUR', rowtime) AS rowtime, k, count(*) FROM {orders} GROUP BY date_trunc('HOUR', rowtime), k
        HAVING count(*) > 0 AND date_trunc('HOUR', rowtime) > TIMESTAMP '2006-09-11 00:00:00'"""),
    "DataFrame": lambda orders: orders.groupBy(F.date_trunc("hour", "rowtime").alias("rowtime"), "k").count(),
    "below a filter": lambda orders: GROUPED["DataFrame"](orders.filter("k <> 'z'")),
    "shifted": in_sql("SELECT rowtime + INTERVAL 1 SECOND AS rowtime, k, max(rowtime) FROM {orders} GROUP BY 1, k"),
}


@pytest.mark.parametrize("form", GROUPED)
def test_grouped_by_an_expression(pipe: Pipe, tmp_path, form) -> None:
    """Spark alone refuses it in append mode."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    time, what = ("12:10:01", "12:10") if form == "shifted" else ("12:00", 1)
    with Observed(GROUPED[form](pipe.read("orders")), tmp_path) as query:
        send(orders, ("12:10", "a"))
        assert query.step() == []
        send(orders, promise="13:00:00.001")
        assert query.step() == [(time, "a", what)]
        assert query.promised == {"rowtime": "13:00:01.000001" if form == "shifted" else "12:59:59.999001"}


def test_a_row_at_the_moved_bound_is_kept(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    later = pipe.read("orders").select(F.expr("rowtime + INTERVAL 1 HOUR").alias("at"), "k")
    with Observed(later.dropDuplicates(["at", "k"]), tmp_path) as query:
        send(orders, ("12:00", "a"))
        assert query.step() == [("13:00", "a")]
        send(orders, ("12:00", "a"), ("12:00", "b"))
        assert query.step() == [("13:00", "b")]
        assert query.promised == {"at": "13:00"}


@pytest.mark.parametrize("expression", ["rowtime + INTERVAL 1 MONTH", "rowtime + make_dt_interval(0, length(k))"])
def test_a_rowtime_that_cannot_be_followed_has_no_watermark(pipe: Pipe, tmp_path, expression) -> None:
    pipe.create("orders", "k STRING")
    query = Observed(starts_of(pipe.read("orders").withColumn("rowtime", F.expr(expression))), tmp_path)
    with pytest.raises(Exception, match="without watermark"), query:
        pass


KEEPING = {
    "aggregation": lambda orders: orders.groupBy("rowtime", "k").count(),
    "deduplication": lambda orders: orders.dropDuplicates(["rowtime", "k"]),
}


def kept(query: Observed) -> int | None:
    progress = query.query.lastProgress
    return progress.stateOperators[0].numRowsTotal if progress else None


@pytest.mark.parametrize("how", KEEPING)
def test_a_time_that_is_changed_above_what_keeps_rows(pipe: Pipe, tmp_path, how) -> None:
    """The automatic node stays below, where the state is freed by it."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    frame = KEEPING[how](pipe.read("orders")).selectExpr("rowtime + INTERVAL 7 MINUTES AS rowtime", "k")
    with Observed(frame, tmp_path) as query:
        send(orders, ("12:10", "a"), promise="12:10:00.001")
        assert query.step() == [("12:17", "a")]
        wait_for(lambda: kept(query) == 0, "the state to be freed")


def test_a_watermark_on_another_column_follows_the_rows(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "placed TIMESTAMP"), "p")
    frame = pipe.read("orders").withWatermark("placed", "0 seconds").groupBy(F.window("placed", "1 hour")).count()
    with Observed(frame, tmp_path) as query:
        send(orders, ("12:10", time_at("09:10")), promise="15:00")
        assert query.step() == []
        assert query.watermark == "09:10"
        send(orders, ("15:10", time_at("10:00")))
        assert query.step() == [(("09:00", "10:00"), 1)]


def test_without_the_automatic_watermark(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    query = Observed(starts_of(pipe.read("orders", watermark="none")), tmp_path)
    with pytest.raises(Exception, match="without watermark"), query:
        pass
    with Observed(pipe.read("orders", watermark="none"), tmp_path / "rows") as query:
        send(orders, ("12:10", "a"), promise="13:00")
        assert query.step() == [("12:10", "a")]
        assert query.promised == {"rowtime": "13:00"}


def test_drop_duplicates_within_watermark_needs_the_users_delay(pipe: Pipe) -> None:
    pipe.create("orders", "k STRING")
    with pytest.raises(Exception, match="needs withWatermark"):
        pipe.read("orders").dropDuplicatesWithinWatermark(["k"])
