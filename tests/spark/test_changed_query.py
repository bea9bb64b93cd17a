"""A query that is not the one its checkpoint was begun with."""

import json

import pytest
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send


def test_a_window_of_another_size_is_refused_on_an_old_checkpoint(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")

    def counts(*window: str):
        return pipe.read("orders").groupBy(F.window("rowtime", *window)).count().select(F.col("window.end"), "count")

    def rerun(*window: str):
        return Observed(counts(*window), tmp_path)

    with rerun("10 minutes") as query:
        send(orders, ("10:01", "a"), ("10:11", "a"), promise="10:12")
        assert query.step() == [("10:10", 1)]
    for other in (["5 minutes"], ["10 minutes", "5 minutes"], ["10 minutes", "10 minutes", "1 minute"]):
        with pytest.raises(Exception, match="its checkpoint was begun with") as refused, rerun(*other) as query:
            send(orders, promise="10:12:30")
            query.step()
        assert "[600000000L]" in str(refused.value)
    with rerun("10 minutes") as query:
        send(orders, promise="10:20")
        assert query.step() == [("10:20", 1)]
    assert json.loads((tmp_path / "checkpoint" / "rowtime-times.json").read_text()) == ["600000000L"]


def test_a_window_of_a_name_of_with_counts_too(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    pipe.read("orders").createOrReplaceTempView("orders")

    def counts(size: str):
        return pipe.spark.sql(
            f"WITH h AS (SELECT window(rowtime, '{size}') AS w FROM orders) SELECT w.end, count(*) FROM h GROUP BY w"
        )

    with Observed(counts("10 minutes"), tmp_path) as query:
        send(orders, ("10:01", "a"), promise="10:12")
        assert query.step() == [("10:10", 1)]
    with (
        pytest.raises(Exception, match="its checkpoint was begun with"),
        Observed(counts("5 minutes"), tmp_path) as query,
    ):
        send(orders, promise="10:20")
        query.step()
    pipe.spark.catalog.dropTempView("orders")


def test_a_query_whose_first_batch_failed_takes_another_window(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    send(orders, ("10:01", "a"), promise="10:12")

    def counts(size: str):
        return pipe.read("orders").groupBy(F.window("rowtime", size)).count()

    failing = counts("10 minutes").selectExpr("raise_error(concat('window of ', count)) AS n")
    with pytest.raises(Exception, match="window of 1"), Observed(failing, tmp_path) as query:
        query.step()
    with Observed(counts("5 minutes"), tmp_path) as query:
        assert query.step() == [(("10:00", "10:05"), 1)]
