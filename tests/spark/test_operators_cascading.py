"""cascadingAggregate through real streams."""

import random
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_rowtime.operators import cascadingAggregate
from tests.spark.operator_streams import after_noon, kept, output, restart, told
from tests.spark.test_operators_sliding import assert_same_rows
from tests.streams import Pipe, opened, send

SO_FAR = {"soFar": ("sum", "units")}


def running_total(df: DataFrame, **more: Any) -> DataFrame:
    return cascadingAggregate(df, by="product", window="1 hour", aggregates=SO_FAR, **more)


@pytest.mark.long
def test_c6_a_running_total_resets_on_the_hour(pipe: Pipe) -> None:
    orders = pipe.create("orders", "product STRING, units INT")
    pipe.run(running_total(pipe.read("orders")))
    with opened(orders) as sink:
        send(sink, ("9:10", "A", 4), ("9:59", "A", 1), ("9:59", "B", 5), ("10:00", "A", 7), promise="10:00")
        nine = [("09:10", "A", 4, 4), ("09:59", "A", 1, 5), ("09:59", "B", 5, 5)]
        assert told(pipe) == nine
        assert kept(pipe) > 0
        send(sink, ("10:30", "A", 2), promise="11:00")
        assert told(pipe) == [*nine, ("10:00", "A", 7, 7), ("10:30", "A", 2, 9)], "10:00 starts again"
        send(sink, promise="12:00", strict=True)
        told(pipe)
        assert kept(pipe) == 0


@pytest.mark.long
def test_equal_to_sql_in_batch_with_a_restart(pipe: Pipe) -> None:
    orders, chance = pipe.create("orders", "product STRING, units INT"), random.Random(42)
    frame = running_total(pipe.read("orders"), startTime=timedelta(minutes=-48))
    pipe.run(frame)
    with opened(orders, rowsImplyBounds=False) as sink:
        for step in range(4):
            times = [after_noon(minutes=40 * step, milliseconds=chance.randrange(6_000_000)) for _ in range(100)]
            sink.sendRows([(time, chance.choice("AB"), chance.randrange(9)) for time in times])
            sink.sendRowtimeBound(after_noon(minutes=40 * step + 40))
            sink.flush()
            output(pipe)
            if step == 1:
                restart(pipe, frame)
        sink.sendRowtimeBound(after_noon(hours=9))
        sink.flush()
        found = output(pipe)
    sql = """SELECT *, sum(units) OVER (PARTITION BY product, date_trunc('HOUR', rowtime - INTERVAL 12 MINUTES)
        ORDER BY rowtime) AS soFar FROM {orders}"""
    batch = pipe.spark.read.format("rowtime").load(orders)
    assert_same_rows(found, pipe.spark.sql(sql, orders=batch))
    assert_same_rows(found, running_total(batch, startTime="12 minutes"))
    assert_same_rows(found, running_total(batch, startTime="-48 minutes"))
