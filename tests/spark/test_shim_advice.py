"""Warnings about what a query's state costs: one each, plain, with what to do."""

import pytest
from pyspark.sql import functions as F

from tests.spark.driver_log import logged
from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send

JOINS = {
    "": "it keeps both streams' rows forever",
    "AND p.rowtime <= o.rowtime + INTERVAL 1 HOUR": "it keeps the right stream's rows forever",
}


@pytest.mark.long
@pytest.mark.parametrize("time", JOINS)
def test_a_join_that_never_frees_its_state(pipe: Pipe, tmp_path, time) -> None:
    orders, _ = (opened(pipe.create(name, "id INT"), "p") for name in ("orders", "payments"))
    sql = f"SELECT o.rowtime, o.id FROM {{o}} o JOIN {{p}} p ON o.id = p.id {time}"
    frame = pipe.spark.sql(sql, o=pipe.read("orders"), p=pipe.read("payments"))
    with logged(pipe.spark) as said, Observed(frame, tmp_path) as query:
        for promise in ("10:00", "10:01"):
            send(orders, promise=promise)
            query.step()
        assert said().count("The join on ") == 1
        for part in ("id = ", JOINS[time], "BETWEEN a.rowtime AND"):
            assert part in said()


@pytest.mark.parametrize("partitions", ["2", "21"])
def test_more_partitions_than_the_cores_can_use(pipe: Pipe, tmp_path, partitions) -> None:
    orders = opened(pipe.create("orders", "id INT"), "p")
    key = "spark.sql.shuffle.partitions"
    before = pipe.spark.conf.get(key)
    pipe.spark.conf.set(key, partitions)
    try:
        frame = pipe.read("orders").groupBy(F.window("rowtime", "1 hour")).count()
        with logged(pipe.spark) as said, Observed(frame, tmp_path) as query:
            send(orders, promise="10:00")
            query.step()
            warned = "in 21 partitions, and there are 2 cores" in said()
            assert warned is (partitions == "21")
    finally:
        pipe.spark.conf.set(key, before)


@pytest.mark.parametrize(("time", "warned"), [("t", True), ("rowtime", False)])
def test_a_watermark_that_was_left_on_another_column(pipe: Pipe, tmp_path, time, warned) -> None:
    """The query runs, by Spark's rules."""
    opened(pipe.create("orders", "t TIMESTAMP"), "p")
    frame = pipe.read("orders").withWatermark(time, "2 hours").groupBy(F.window(time, "1 hour")).count()
    with logged(pipe.spark) as said, Observed(frame, tmp_path) as query:
        query.step()
        assert said().count("withWatermark(") == int(warned)
        for part in ('withWatermark("t", ...) is on another column', "later rows below it are dropped", "Remove withW"):
            assert (part in said()) is warned
