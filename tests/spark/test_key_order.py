"""A gateway: many devices behind one sink, each in order; its windows close as the slowest device goes on."""

from pyspark.sql.functions import col, count, window

import spark_rowtime as rt
from tests.streams import Pipe, bound, opened, send


def test_windows_close_with_the_slowest_device(pipe: Pipe) -> None:
    """Also where the gateway is replaced, and a device that is let go, or lies too far behind, holds nothing."""
    path = pipe.create("s", "device STRING")
    how = {"inOrderPer": "device", "keyIdle": "3 hours", "onLate": "reject"}
    gateway = opened(path, "gateway", **how)
    counts = pipe.read("s").groupBy(window("rowtime", "1 hour"), "device").agg(count("*").alias("n"))
    pipe.run(counts.select(col("window.end").alias("rowtime"), "device", "n"))
    send(gateway, ("9:10", "a"), ("9:50", "b"), ("9:20", "c"), ("10:30", "b"))
    assert pipe.step() == []
    send(gateway, ("10:05", "a"))
    assert pipe.step() == [], "c is at 9:20"
    send(gateway, ("9:40", "c"), ("9:30", "c"), ("10:00", "c"))
    assert sorted(pipe.step()) == [("10:00", "a", 1), ("10:00", "b", 1), ("10:00", "c", 2)], "9:30 was late for c"
    assert pipe.bound == bound("10:00", strict=True)
    again = opened(path, "gateway", **how)
    again.sendRows([])
    again.closeKey("a")
    send(again, ("11:10", "b"), ("10:59", "c"))
    assert pipe.step() == [], "c is at 10:59, also for the new gateway"
    send(again, ("14:00", "b"))
    assert sorted(pipe.step()) == [("11:00", "a", 1), ("11:00", "b", 1), ("11:00", "c", 2), ("12:00", "b", 1)]
    info = rt.describeStream(path)
    assert (info.rejected, info.producers[0].keys) == (1, 1), "c lies too far behind"
