"""``now()`` is the current time of a batch, as ``current_timestamp()`` is, and no constant for Spark's optimizer."""

from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send

BATCHES = 8


@pytest.mark.each
@pytest.mark.parametrize("current", ["now()", "CAST('now' AS TIMESTAMP)", "current_timestamp()"])
def test_a_window_whose_result_depends_on_the_time_has_all_of_its_rows(
    pipe: Pipe, tmp_path: Path, current: str
) -> None:
    """Of keys 0 and 1 one comes out, by the time of the last batch, and not the rows of some batches."""
    orders = opened(pipe.create("orders", "k INT"), "p")
    pipe.read("orders").createOrReplaceTempView("orders")
    counts = pipe.spark.sql(
        "SELECT k, count(*) AS n FROM orders GROUP BY window(rowtime, '1 hour'), k "
        f"HAVING (k + unix_micros({current})) % 2 = 0"
    )
    with Observed(counts, tmp_path) as query:
        for minute in range(BATCHES):
            send(orders, (f"10:0{minute}", 0), (f"10:0{minute}", 1))
            assert query.step() == []
        send(orders, promise="11:00")
        ((_, count),) = query.step()
    assert count == BATCHES


@pytest.mark.parametrize("current", ["now()", pytest.param("current_timestamp()", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT x, y FROM (SELECT concat(ak, '') AS k, x, y FROM a JOIN b ON ak = bk AND y >= x) WHERE {}",
        pytest.param("FROM a |> JOIN b ON ak = bk AND y >= x |> WHERE {} |> SELECT x, y", marks=pytest.mark.long),
        pytest.param("WITH j AS (SELECT * FROM a JOIN b ON ak = bk AND y >= x) SELECT x, y FROM j WHERE {}"),
        "SELECT x, y FROM (SELECT * FROM a LEFT JOIN b ON ak = bk AND y >= x AND y <= x + INTERVAL 1 HOUR) WHERE {}",
    ],
    ids=["projection", "pipe", "with", "left join"],
)
def test_a_join_frees_no_row_by_the_time_of_one_batch(pipe: Pipe, tmp_path: Path, text: str, current: str) -> None:
    """The condition grows: what does not match yet matches in a later batch."""
    a, b = (opened(pipe.create(name, "k STRING"), "p") for name in ("a", "b"))
    pipe.read("a").selectExpr("rowtime AS x", "k AS ak").createOrReplaceTempView("a")
    pipe.read("b").selectExpr("rowtime AS y", "k AS bk").createOrReplaceTempView("b")
    since = datetime.now(UTC) - timedelta(seconds=1)
    grows = f"y <= x + ({current} - TIMESTAMP '{since.isoformat()}')"
    with Observed(pipe.spark.sql(text.format(grows)), tmp_path) as query:
        send(a, ("10:00", "x"), promise="10:59")
        send(b, promise="10:50")
        query.step()
        (join,) = query.query.lastProgress.stateOperators
        assert join.numRowsTotal == 1


def test_days_by_their_names_are_those_of_the_batch(pipe: Pipe, tmp_path: Path) -> None:
    orders = opened(pipe.create("orders", "k INT"), "p")
    days = ("yesterday", "today", "tomorrow")
    texts = [f"datediff(CAST('{day}' AS DATE), current_date())" for day in days]
    hours = "hour(CAST('today' AS TIMESTAMP)) + minute(CAST('Tomorrow ' AS TIMESTAMP))"
    with Observed(pipe.read("orders").selectExpr(*texts, hours), tmp_path) as query:
        send(orders, ("10:00", 0))
        assert query.step() == [(-1, 0, 1, 0)]


@pytest.mark.skipif(version("pyspark") < "4.3", reason="Spark before 4.3 has no such times")
def test_a_time_of_day_that_spark_takes_for_a_constant_is_refused(pipe: Pipe) -> None:
    pipe.create("orders", "k INT")
    pipe.read("orders").createOrReplaceTempView("orders")
    text = "SELECT k FROM orders GROUP BY window(rowtime, '1 hour'), k HAVING k > hour(current_time())"
    pipe.spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        with pytest.raises(Exception, match="is another time in each batch"):
            pipe.spark.sql(text).writeStream.format("noop").start()
    finally:
        pipe.spark.conf.unset("spark.sql.timeType.enabled")
