"""The output bound: what a batch promises of the rows of later ones, per output column."""

import json
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_rowtime as rt
from tests.spark.driver_log import logged
from tests.spark.observed_query import Observed, clock_of_micros
from tests.streams import Pipe, bound, opened, send


def promised_at(pipe: Pipe, folder, build, promise: str, strict: bool = False) -> dict[str, str]:
    """What the query promises after a row at 12:10 and a promise."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(build(pipe.read("orders")), folder) as query:
        send(orders, ("12:10", "a"), promise=promise, strict=strict)
        query.step()
        return query.promised


T_OF = "named_struct('t', {})"
EXPRESSIONS = {
    "rowtime": "12:20:00.000001",
    "rowtime + INTERVAL 100 MILLISECONDS": "12:20:00.100001",
    "rowtime - INTERVAL 1 HOUR": "11:20:00.000001",
    "timestampadd(MINUTE, 5, rowtime)": "12:25:00.000001",
    "date_trunc('MINUTE', rowtime)": "12:20",
    "CAST(CAST(rowtime AS DATE) AS TIMESTAMP)": "00:00",
    "greatest(rowtime, TIMESTAMP '2006-09-11 12:30:00')": "12:30",
    "least(rowtime, rowtime + INTERVAL 1 HOUR)": "12:20:00.000001",
    "coalesce(nullif(rowtime, rowtime), rowtime)": None,
    "coalesce(date_trunc('MINUTE', rowtime), rowtime - INTERVAL 1 MINUTE)": "12:19:00.000001",
    "coalesce(rowtime, try_to_timestamp(k))": "12:20:00.000001",
    f"coalesce({T_OF.format('rowtime')}, {T_OF.format('rowtime - INTERVAL 1 MINUTE')}).t": "12:20:00.000001",
    f"coalesce(if(k = 'a', {T_OF.format('rowtime')}, NULL), {T_OF.format('rowtime')}).t": None,
    f"if(k = 'a', {T_OF.format('rowtime')}, {T_OF.format('rowtime - INTERVAL 1 SECOND')}).t": "12:19:59.000001",
    f"(CASE WHEN k = 'a' THEN {T_OF.format('rowtime')} ELSE {T_OF.format('try_to_timestamp(k)')} END).t": None,
    "if(k = 'a', rowtime, rowtime + INTERVAL 1 SECOND)": "12:20:00.000001",
    "CASE WHEN k = 'a' THEN rowtime ELSE rowtime - INTERVAL 1 SECOND END": "12:19:59.000001",
    "CASE WHEN k = 'a' THEN rowtime END": None,
    "window(rowtime, '1 hour').end": "13:00",
    "least(rowtime, TIMESTAMP '2006-09-11 12:15:00')": "12:15",
    "least(rowtime, try_to_timestamp(k))": None,
    "rowtime + INTERVAL 1 MONTH": None,
    "to_timestamp(date_format(rowtime, 'yyyy-MM-dd'))": None,
    "from_utc_timestamp(rowtime, 'America/New_York')": None,
    "current_timestamp()": None,
}


def test_an_expression_moves_the_bound_in_microseconds(pipe: Pipe, tmp_path) -> None:
    """Each is a column of one query."""
    names = {f"t{number}": expression for number, expression in enumerate(EXPRESSIONS)}
    columns = [F.expr(expression).alias(name) for name, expression in names.items()]
    promised = promised_at(pipe, tmp_path, lambda d: d.select(*columns), "12:20", strict=True)
    assert {expression: promised.get(name) for name, expression in names.items()} == EXPRESSIONS


@pytest.mark.long
def test_a_shift_that_changes_between_batches_promises_nothing(pipe: Pipe, tmp_path) -> None:
    """Spark calls the current time and a session variable foldable."""
    pipe.spark.sql("DECLARE OR REPLACE VARIABLE shift INTERVAL DAY TO SECOND DEFAULT INTERVAL '1' HOUR")
    since = "(current_timestamp() - TIMESTAMP '2006-09-11 00:00:00')"
    changing = {
        "a": f"rowtime - {since}",
        "b": "rowtime - shift",
        "c": "timestampadd(SECOND, CAST(unix_timestamp() AS INT), rowtime)",
        "d": "date_trunc(if(current_date() > DATE '2007-01-01', 'HOUR', 'DAY'), rowtime)",
        "e": f"least(rowtime, TIMESTAMP '2006-09-11 00:00:00' + {since})",
    }
    fixed = {"f": "rowtime - (INTERVAL 1 HOUR * 2)", "g": f"greatest(rowtime, rowtime + {since})"}
    shifted = lambda d: d.select(*(F.expr(text).alias(name) for name, text in (changing | fixed).items()))  # noqa: E731
    assert promised_at(pipe, tmp_path, shifted, "12:20") == {"f": "10:20", "g": "12:20"}


@pytest.mark.long
def test_a_column_whose_name_is_a_path_has_its_own_bound(pipe: Pipe, tmp_path) -> None:
    told: list[Any] = []

    def build(orders):
        window = F.window("rowtime", "1 hour").alias("w")
        none, half = F.expr("try_to_timestamp(k)"), F.expr("rowtime + INTERVAL 30 MINUTES")
        return orders.select(window, none.alias("w.end"), half.alias("w.start"), half.alias("a.b"), none.alias("a"))

    class Asked(Observed):
        def __call__(self, frame, batch):
            told.append([rt.currentRowtimeBound(name) for name in ("w.end", "`w.end`", "`w.start`", "a.b")])
            super().__call__(frame, batch)

    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Asked(build(pipe.read("orders")), tmp_path) as query:
        send(orders, ("12:10", "a"), promise="12:20")
        query.step()
        window = {"w.start": "12:00", "w.end": "13:00"}
        assert query.promised == {**window, "`w.start`": "12:50", "`a.b`": "12:50", "a.b": "12:50"}
    assert told[-1] == [bound("13:00"), None, bound("12:50"), bound("12:50")]


@pytest.mark.long
def test_a_name_of_two_columns_has_the_weaker_bound_of_them(pipe: Pipe, tmp_path) -> None:
    def build(orders):
        later = [F.expr(text).alias(name) for name, text in (("a", "rowtime + INTERVAL 1 HOUR"), ("b", "rowtime"))]
        return orders.select(*later, F.col("rowtime").alias("a"), F.expr("try_to_timestamp(k)").alias("b"))

    assert promised_at(pipe, tmp_path, build, "12:20") == {"a": "12:20"}


@pytest.mark.long
def test_a_sink_takes_the_bound_of_the_column_not_of_the_path(pipe: Pipe) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    half = F.expr("rowtime + INTERVAL 30 MINUTES").alias("w.start")
    pipe.run(pipe.read("orders").select(F.window("rowtime", "1 hour").alias("w"), half), rowtime="w.start")
    send(orders, ("12:10", "a"), promise="12:20")
    pipe.step()
    assert pipe.bound == bound("12:50")


@pytest.mark.long
def test_adding_a_day_is_followed_only_in_a_zone_without_summer_time(pipe: Pipe, tmp_path) -> None:
    zone = "spark.sql.session.timeZone"
    pipe.spark.conf.set(zone, "America/New_York")
    try:
        days = lambda d: d.select(F.expr("rowtime + INTERVAL 1 DAY").alias("d"), "rowtime")  # noqa: E731
        assert set(promised_at(pipe, tmp_path, days, "12:20")) == {"rowtime"}
    finally:
        pipe.spark.conf.set(zone, "UTC")


def by_window(rows: DataFrame, name: str) -> DataFrame:
    return rows.groupBy(F.window("rowtime", "1 hour"), "k").agg(F.count("*").alias(name))


@pytest.mark.parametrize("how", ["full", "left"])
def test_a_join_of_aggregates_on_their_window_passes_the_bound(pipe: Pipe, tmp_path, how: str) -> None:
    """USING in a full join makes the window of either side: coalesce(l.window, r.window)."""
    sinks = [opened(pipe.create(name, "k STRING"), "p") for name in ("a", "b")]
    joined = by_window(pipe.read("a"), "x").join(by_window(pipe.read("b"), "y"), ["window", "k"], how)
    with Observed(joined.select(F.col("window.end").alias("rowtime"), "k", "x", "y"), tmp_path) as query:
        send(sinks[0], ("12:10", "a"), promise="15:00")
        send(sinks[1], promise="14:00")
        query.step()
        assert query.promised == {"rowtime": "14:00:00.000001"}


@pytest.mark.parametrize("window", [False, True])
def test_an_output_that_has_no_bound_is_told_also_above_an_operator_that_keeps_rows(
    pipe: Pipe, tmp_path, window: bool
) -> None:
    rows = opened(pipe.create("orders", "k STRING"), "p")
    built = by_window(pipe.read("orders"), "n").select(F.col("window.end").alias("rowtime"), "k")
    built = (built if window else pipe.read("orders")).selectExpr("rowtime + INTERVAL 1 MONTH AS rowtime", "k")
    with logged(pipe.spark) as text, Observed(built, tmp_path) as query:
        send(rows, ("12:10", "a"), promise="13:00")
        query.step()
        assert query.promised == {}
        assert "The output column rowtime carries no bound: it comes from" in text()


def test_an_output_that_gets_its_bound_later_is_not_told_to_have_none(pipe: Pipe, tmp_path) -> None:
    sinks = [opened(pipe.create(name, "k STRING"), "p") for name in ("a", "b")]
    condition = "l.k = r.k AND r.rowtime BETWEEN l.rowtime AND l.rowtime + INTERVAL 10 MINUTES"
    joined = pipe.read("a").alias("l").join(pipe.read("b").alias("r"), F.expr(condition)).select("l.rowtime", "l.k")
    with logged(pipe.spark) as text, Observed(joined, tmp_path) as query:
        send(sinks[0], ("12:10", "a"))
        query.step()
        assert query.promised == {}
        for sink in sinks:
            send(sink, promise="13:00")
        query.step()
        assert query.promised
        assert "carries no bound" not in text()


@pytest.mark.smoke
def test_stateless_queries_and_deduplication_pass_the_bound_as_it_is(pipe: Pipe, tmp_path) -> None:
    def build(orders):
        return orders.filter("k <> 'a'").dropDuplicates(["rowtime", "k"]).withColumnRenamed("rowtime", "at")

    assert promised_at(pipe, tmp_path, build, "12:20:00.0005") == {"at": "12:20:00.0005"}


def test_a_udf_promises_nothing(pipe: Pipe, tmp_path) -> None:
    same = F.udf(lambda time: time, "timestamp")
    assert promised_at(pipe, tmp_path, lambda d: d.select(same("rowtime").alias("rowtime")), "12:20") == {}


@pytest.mark.long
def test_fields_of_the_same_name_are_told_apart_by_position(pipe: Pipe, tmp_path) -> None:
    def build(orders):
        twice = F.expr("named_struct('t', rowtime + INTERVAL 1 HOUR, 't', rowtime - INTERVAL 1 HOUR, 'T', rowtime)")
        return orders.select(twice.alias("s")).select("s.*").toDF("later", "earlier", "same")

    assert promised_at(pipe, tmp_path, build, "12:20") == {"later": "13:20", "earlier": "11:20", "same": "12:20"}


@pytest.mark.long
def test_pandas_functions_promise_nothing(pipe: Pipe, tmp_path) -> None:
    def build(orders):
        return orders.mapInPandas(lambda frames: frames, "rowtime TIMESTAMP, k STRING")

    assert promised_at(pipe, tmp_path, build, "12:20") == {}


def seen_in_task(batches):
    import pyarrow as pa

    said = TaskContext.get().getLocalProperty("rowtime.outputBounds")
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"said": [said] * batch.num_rows})


@pytest.mark.smoke
def test_the_bound_reaches_the_tasks(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    frame = pipe.read("orders").select("rowtime", "k").mapInArrow(seen_in_task, "said STRING")
    with Observed(frame, tmp_path) as query:
        send(orders, ("12:10", "a"), promise="12:20")
        (said,) = query.step()
        assert json.loads(said[0]) == {}, "this output has no time"


def test_each_batch_has_its_own_also_one_without_rows(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    with Observed(pipe.read("orders"), tmp_path) as query:
        for promise in ("12:20", "12:30", "12:31"):
            send(orders, promise=promise)
            assert query.step() == []
            assert query.promised == {"rowtime": promise}


def test_the_log_has_the_offset_as_python_wrote_it_and_no_question(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    send(orders, ("12:10", "a"))
    with Observed(pipe.read("orders"), tmp_path) as query:
        query.step()
        line = (query.checkpoint / "offsets" / "0").read_text().splitlines()[2]
        logged = json.loads(line)
        assert line == json.dumps(logged)
        assert [*logged] == ["stream", "order", "seq", "cut", "floor", "made", "since"]
        assert clock_of_micros(logged["floor"]) == "12:10"
        progress = json.loads(query.query.lastProgress.json)["sources"][0]
        assert "metrics" not in progress["latestOffset"]
        assert progress["metrics"]["bound"].startswith("2006-09-11T12:10")
