"""A stream that a bound of the year 9999 has made useless is copied without it, and the copy takes its place."""

from pathlib import Path

import pytest
from pyspark.sql import functions as F

import spark_rowtime as rt
from spark_rowtime.store.local import exclusive
from tests.commands import printed
from tests.spark.observed_query import Observed
from tests.streams import Pipe, at, bound, opened, send


def test_the_feed_and_the_query_go_on(pipe: Pipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive, "PATIENCE_SECONDS", 240.0)  # the process of a query's source may take long to end
    orders = pipe.create("orders", "n INT", maxAhead="unlimited")
    feed = [("12:10", 1), ("12:50", 2), ("13:10", 3), ("14:10", 4)]
    hourly = pipe.read("orders").groupBy(F.window("rowtime", "1 hour")).count()

    sink = opened(orders, "feed", rowsImplyBounds=False)
    with Observed(hourly, tmp_path) as query:
        send(sink, feed[0], promise="12:10")
        assert query.step() == []
    send(sink, feed[1], promise="12:50")
    send(sink, promise="9999-01-01 10:00")
    sink.close()
    with opened(orders, "feed", rowsImplyBounds=False, onLate="reject") as late:
        send(late, feed[2])
    assert rt.describeStream(orders).rejected == 1

    back, away = pipe.path("back"), pipe.path("poisoned")
    said = printed("copy", orders, back, "--until", at("23:00"))
    assert f"{back}: 2 rows, up to event 4 of {orders}" in said
    assert "producer 'feed' has committed after that, so it has no checkpoint" in said
    printed("alter", back, "--max-ahead", "36500 days")
    printed("rename", orders, away)
    printed("rename", back, orders)

    (known,) = rt.describeStream(orders).producers
    assert (known.bound, known.accepted, known.checkpoint) == (bound("12:50"), 2, None)
    again = opened(orders, "feed", rowsImplyBounds=False)
    with Observed(hourly, tmp_path) as query:
        for row in feed[known.accepted :]:
            send(again, row, promise=row[0])
        assert query.step() == [(("12:00", "13:00"), 2), (("13:00", "14:00"), 1)]
    again.close()
