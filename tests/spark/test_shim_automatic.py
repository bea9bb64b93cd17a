"""The automatic watermark: rowtime has one without withWatermark, and keeps it where it can be followed."""

from datetime import datetime

import pytest
from pyspark.errors import IllegalArgumentException, StreamingQueryException
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed
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
    "rowtime + INTERVAL 1 DAY": ("2006-09-12 12:00", "13:00"),  # the session's time zone is UTC
    "greatest(rowtime, TIMESTAMP '2006-09-11 12:15:00')": ("12:00", "13:00"),
    "CASE WHEN k = 'z' THEN rowtime + INTERVAL 1 DAY WHEN k = 'a' THEN rowtime + INTERVAL 1 HOUR ELSE rowtime END": (
        "13:00",
        "14:00",
    ),
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


def by_a_function(orders):
    define = "CREATE OR REPLACE TEMPORARY FUNCTION hour_of(t TIMESTAMP) RETURNS TIMESTAMP RETURN date_trunc('HOUR', t)"
    orders.sparkSession.sql(define)
    return in_sql("SELECT hour_of(rowtime) AS rowtime, k, count(*) FROM {orders} GROUP BY hour_of(rowtime), k")(orders)


GROUPED = {
    "a function defined in SQL": by_a_function,
    "SQL": in_sql("SELECT date_trunc('HOUR', rowtime) AS rowtime, k, count(*) FROM {orders} GROUP BY 1, 2"),
    "HAVING": in_sql("""
        SELECT date_trunc('HOUR', rowtime) AS rowtime, k, count(*) FROM {orders} GROUP BY date_trunc('HOUR', rowtime), k
        HAVING count(*) > 0 AND date_trunc('HOUR', rowtime) > TIMESTAMP '2006-09-11 00:00:00'"""),
    "DataFrame": lambda orders: orders.groupBy(F.date_trunc("hour", "rowtime").alias("rowtime"), "k").count(),
    "below a filter": lambda orders: GROUPED["DataFrame"](orders.filter("k <> 'z'")),
    "over a union and a table": lambda orders: GROUPED["DataFrame"](
        orders.union(orders.filter("k = 'z'")).join(orders.sparkSession.range(1).selectExpr("'a' AS k"), "k")
    ),
    "by a column beside another derived one": in_sql("""
        SELECT t AS rowtime, k, n FROM (
            SELECT t, k, count(*) AS n FROM (
                SELECT date_trunc('HOUR', rowtime) AS t, rowtime + INTERVAL 1 HOUR AS later, k FROM {orders})
            GROUP BY t, k)
        WHERE n > 0"""),
    "shifted": in_sql("SELECT rowtime + INTERVAL 1 SECOND AS rowtime, k, max(rowtime) FROM {orders} GROUP BY 1, k"),
}


@pytest.mark.long
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


def changing_nothing(orders):
    spread = orders.repartition(3).repartition("k").hint("rebalance").hint("broadcast")
    return spread.observe("seen", F.count("*").alias("n")).coalesce(1)


THROUGH = {
    "what changes no row": (changing_nothing, 1),
    "a union": (lambda orders: orders.union(orders), 2),
    "a join with a table": (lambda orders: orders.join(orders.sparkSession.range(1).selectExpr("'a' AS k"), "k"), 1),
    "a struct": (lambda orders: orders.select(F.struct("rowtime", "k").alias("s")).select("s.*"), 1),
}


@pytest.mark.long
@pytest.mark.parametrize("operators", THROUGH)
def test_a_derived_rowtime_above_operators_without_state(pipe: Pipe, tmp_path, operators) -> None:
    through, times = THROUGH[operators]
    orders = opened(pipe.create("orders", "k STRING"), "p")
    moved = through(pipe.read("orders")).withColumn("rowtime", F.expr("rowtime - INTERVAL 10 MINUTES"))
    with Observed(hourly(moved), tmp_path) as query:
        send(orders, ("12:15", "a"), promise="13:09")
        assert query.step() == []
        send(orders, promise="13:10")
        assert query.step() == [(("12:00", "13:00"), times)]
        assert query.promised == {"window.start": "12:00:00.000001", "window.end": "13:00:00.000001"}


WINDOWS = {
    "window(rowtime + INTERVAL 1 HOUR, '1 hour')": ([("13:00", "14:00")], "13:00"),
    "window(rowtime + INTERVAL 1 HOUR, '1 hour', '30 minutes')": ([("12:30", "13:30"), ("13:00", "14:00")], "13:00"),
    "session_window(rowtime + INTERVAL 1 HOUR, '5 minutes')": ([("13:10", "13:15")], "12:15:00.001"),
    "window(s.rowtime, '1 hour')": ([("12:00", "13:00")], "13:00"),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_of_an_expression(pipe: Pipe, tmp_path, window) -> None:
    """Spark alone knows no watermark of it."""
    windows, closed_by = WINDOWS[window]
    orders = opened(pipe.create("orders", "k STRING"), "p")
    rows = pipe.read("orders").withColumn("s", F.struct("rowtime", "k"))
    with Observed(rows.groupBy(F.expr(window).alias("w"), "k").count(), tmp_path) as query:
        send(orders, ("12:10", "a"), promise="12:14:59")
        assert query.step() == []
        send(orders, promise=closed_by)
        assert query.step() == [(each, "a", 1) for each in windows]


@pytest.mark.long
def test_the_results_of_a_window_of_an_expression_go_on_into_another(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    pipe.read("orders").createOrReplaceTempView("orders")
    query = """
        SELECT window.end AS rowtime, sum(n) AS n FROM (
            SELECT window_time(w) AS t, n FROM (
                SELECT window(rowtime + INTERVAL 1 MINUTE, '1 hour') AS w, count(*) AS n
                FROM orders GROUP BY window(rowtime + INTERVAL 1 MINUTE, '1 hour') HAVING count(*) > 0))
        GROUP BY window(t, '2 hours')"""
    with Observed(pipe.spark.sql(query), tmp_path) as seen:
        send(orders, ("12:10", "a"), ("13:10", "a"), promise="13:58")
        assert seen.step() == []
        send(orders, promise="13:59")
        assert seen.step() == [("14:00", 2)]


@pytest.mark.parametrize("minutes", [20_000 * 1440, 19_299_700])
def test_times_before_1970_are_refused_before_they_are_lost(pipe: Pipe, tmp_path, minutes) -> None:
    """Of the second shift only the first row is that early."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    moved = pipe.read("orders").withColumn("rowtime", F.expr(f"rowtime - make_dt_interval(0, 0, {minutes})"))
    query = Observed(hourly(moved), tmp_path)
    send(orders, ("12:10", "a"), ("14:50", "b"), promise="15:00")
    with pytest.raises(StreamingQueryException, match="shift the times of the results"), query:
        query.step()
    assert query.batches == {}


def test_times_after_1970_are_not(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    moved = pipe.read("orders").withColumn("rowtime", F.expr("rowtime - INTERVAL 13402 DAYS"))
    with Observed(hourly(moved), tmp_path) as query:
        send(orders, ("12:10", "a"))
        assert query.step() == []
        send(orders, promise="13:00")
        assert [count for _, count in query.step()] == [1]


@pytest.mark.long
def test_a_row_at_the_moved_bound_is_kept(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    later = pipe.read("orders").select(F.expr("rowtime + INTERVAL 1 HOUR").alias("at"), "k")
    with Observed(later.dropDuplicates(["at", "k"]), tmp_path) as query:
        send(orders, ("12:00", "a"))
        assert query.step() == [("13:00", "a")]
        send(orders, ("12:00", "a"), ("12:00", "b"))
        assert query.step() == [("13:00", "b")]
        assert query.promised == {"at": "13:00"}


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("how", KEEPING)
def test_a_time_that_is_changed_above_what_keeps_rows(pipe: Pipe, tmp_path, how) -> None:
    """The automatic node stays below, where the state is freed by it."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    frame = KEEPING[how](pipe.read("orders")).selectExpr("rowtime + INTERVAL 7 MINUTES AS rowtime", "k")
    with Observed(frame, tmp_path) as query:
        send(orders, ("12:10", "a"), promise="12:10:00.001")
        assert query.step() == [("12:17", "a")]
        wait_for(lambda: kept(query) == 0, "the state to be freed")


@pytest.mark.long
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


def test_what_is_computed_of_a_time_is_a_key_like_others(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    pipe.read("orders").createOrReplaceTempView("orders")
    counts = "SELECT date_trunc('HOUR', rowtime) AS h, hour(rowtime), count(*) FROM orders GROUP BY ALL"
    with Observed(pipe.spark.sql(counts), tmp_path) as query:
        send(orders, ("12:10", "a"), ("12:20", "a"), ("13:00", "a"), promise="13:30")
        assert query.step() == [("12:00", 12, 2)]


@pytest.mark.parametrize("first", [True, False])
def test_windows_and_rows_in_a_union(pipe: Pipe, tmp_path, first: bool) -> None:
    """The window's end has no watermark for Spark. The windows below the union keep theirs."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    other = opened(pipe.create("other", "k STRING"), "p")
    counts = hourly(pipe.read("orders")).select(F.col("window.end").alias("rowtime"), "count")
    rows = pipe.read("other").select("rowtime", F.lit(1).cast("long").alias("count"))
    union = counts.union(rows) if first else rows.union(counts)
    with Observed(union, tmp_path) as query:
        send(orders, ("12:10", "a"), ("12:20", "a"))
        send(other, ("09:00", "a"), promise="14:00")
        assert query.step() == [("09:00", 1)]
        send(orders, promise="13:00")
        assert query.step() == [("13:00", 2)]


def test_what_keeps_rows_by_a_union_of_windows_and_rows_is_refused(pipe: Pipe, tmp_path) -> None:
    pipe.create("orders", "k STRING")
    kept = pipe.read("orders").dropDuplicates(["rowtime", "k"]).select("rowtime")
    ordinary = pipe.spark.readStream.format("rate").load().select(F.col("timestamp").alias("rowtime"))
    for union in (kept.union(ordinary), ordinary.union(kept)):
        with pytest.raises(IllegalArgumentException, match=r"no watermark is known|never complete"):
            starts_of(union).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()


@pytest.mark.parametrize("edge", ["end", "start"])
def test_a_left_join_by_the_edge_of_a_window_without_aggregation(pipe: Pipe, tmp_path, edge: str) -> None:
    a, b = (opened(pipe.create(name, "k STRING"), "p") for name in ("a", "b"))
    for name in ("a", "b"):
        pipe.read(name).createOrReplaceTempView(name)
    edges = f"SELECT window(rowtime, '1 hour').{edge} AS t, k FROM"
    joined = f"SELECT x.t, x.k, y.k FROM ({edges} a) x LEFT JOIN ({edges} b) y ON x.t = y.t AND x.k = y.k"
    with Observed(pipe.spark.sql(joined), tmp_path) as query:
        send(a, ("12:10", "a"), ("12:20", "b"), promise="13:00")
        send(b, ("12:50", "a"))
        time = "13:00" if edge == "end" else "12:00"
        assert query.step() == [(time, "a", "a")]
        send(b, promise="13:00")
        assert query.step() == [(time, "b", None)]
