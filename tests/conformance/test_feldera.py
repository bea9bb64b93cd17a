"""Feldera's LATENESS, WATERMARK and append_only, on streams, and on a query's output through the sink."""

from datetime import datetime

import pytest
from pyspark.errors import IllegalArgumentException

import spark_rowtime as rt
from tests.spark.query_output import Watched, table
from tests.streams import Pipe, at, bound, clock_of, drained, opened, send

VISITS = [("0:00", "home"), ("1:00", "office"), ("0:10", "shop"), ("2:00", "home"), ("0:20", "friend")]
FOUR = [("00:00", "home"), ("00:10", "shop"), ("01:00", "office"), ("02:00", "home")]
ALL = sorted([*FOUR, ("00:20", "friend")])


def arrived(path: str) -> list[tuple]:
    """All rows of a stream, sorted."""
    return sorted(drained(rt.openReader(path, order="arrival")))


def rejected(pipe: Pipe, name: str, column: str = "place") -> list[tuple]:
    """A stream's error table: rowtime, a column, reason."""
    frame = pipe.spark.read.format("rowtime").option("view", "rejected").load(pipe.path(name))
    return [(clock_of(time), *rest) for time, *rest in frame.select("rowtime", column, "reason").collect()]


@pytest.mark.parametrize("steps", [5, 1])
def test_f1_lateness(pipe: Pipe, steps: int) -> None:
    visits = pipe.create("visits", "place STRING")
    pipe.run(pipe.read("visits"))
    with opened(visits, lateness="1 hour", onLate="reject") as sink:
        if steps == 1:
            send(sink, *VISITS)
        else:
            for visit in VISITS:
                sink.sendRow((at(visit[0]), visit[1]))
            sink.flush()
        pipe.step()
        assert pipe.bound == bound("1:00"), "an hour below the largest"
    assert arrived(pipe.path("out")) == (ALL if steps == 1 else FOUR)
    assert rejected(pipe, "visits") == ([] if steps == 1 else [("00:20", "friend", "late")])


@pytest.mark.long
def test_f2_too_late_in_any_column_is_too_late(pipe: Pipe) -> None:
    visits = pipe.create("visits", "updated TIMESTAMP, place STRING")
    pipe.run(pipe.read("visits"))
    lateness = {"rowtime": "1 hour", "updated": "10 minutes"}

    def visit(when: str, updated: str, place: str) -> tuple:
        return at(when), datetime.fromisoformat(at(updated)), place

    with opened(visits, lateness=lateness, onLate="reject") as sink:
        sink.sendRow(visit("1:00", "1:00", "home"))
        sink.sendRow(visit("0:00", "0:50", "in both just in time"))
        sink.sendRow(visit("0:30", "0:49", "updated too late"))
        sink.sendRow(visit("2:00", "1:05", "office"))
        sink.sendRow(visit("0:30", "1:05", "too late"))
        sink.flush()
        pipe.step()
        assert pipe.bound == bound("1:00")
    places = [row[-1] for row in arrived(pipe.path("out"))]
    assert places == ["in both just in time", "home", "office"]
    assert [place for _, place, _ in rejected(pipe, "visits")] == ["updated too late", "too late"]


@pytest.mark.long
@pytest.mark.parametrize("steps", [5, 1])
def test_f3_lateness_of_a_view(pipe: Pipe, steps: int) -> None:
    """A batch of the query is a step."""
    visits = pipe.create("visits", "place STRING")
    pipe.run(pipe.read("visits").selectExpr("rowtime", "upper(place) AS place"), lateness="1 hour")
    with opened(visits, rowsImplyBounds=False) as sink:
        for rows in [VISITS] if steps == 1 else [[visit] for visit in VISITS]:
            send(sink, *rows)
            pipe.step()
        assert pipe.bound == bound("1:00")
    upper = [(time, place.upper()) for time, place in (ALL if steps == 1 else FOUR)]
    assert arrived(pipe.path("out")) == upper
    assert rejected(pipe, "out") == ([] if steps == 1 else [("00:20", "FRIEND", "late")])


@pytest.mark.long
def test_f3_lateness_of_a_view_in_several_columns(pipe: Pipe) -> None:
    visits = pipe.create("visits", "updated TIMESTAMP, Version INT, place STRING")
    late = {"lateness": "1 hour", "lateness.updated": "10 minutes", "lateness.Version": "1"}
    pipe.run(pipe.read("visits"), **late)

    def visit(when: str, updated: str, version: int, place: str) -> tuple:
        return when, datetime.fromisoformat(at(updated)), version, place

    with opened(visits, rowsImplyBounds=False) as sink:
        send(sink, visit("1:00", "1:00", 7, "home"))
        pipe.step()
        send(sink, visit("0:00", "0:50", 6, "in all just in time"), visit("0:30", "0:49", 7, "updated too late"))
        send(sink, visit("0:30", "1:00", 5, "an old version"), visit("2:00", "1:05", 7, "office"))
        pipe.step()
        assert pipe.bound == bound("1:00")
    assert [place for *_, place in arrived(pipe.path("out"))] == ["in all just in time", "home", "office"]
    assert {place for _, place, _ in rejected(pipe, "out")} == {"updated too late", "an old version"}


NO_LATENESS = {
    "lateness.place": "needs a TIMESTAMP, DATE or integer column",
    "lateness.nowhere": "must name exactly one of the columns",
    "lateness.rowtime": "lateness mean the same. Give one",
}


def test_f3_lateness_that_cannot_be_had(pipe: Pipe) -> None:
    pipe.create("visits", "place STRING")
    for option, said in NO_LATENESS.items():
        with pytest.raises(Exception, match=said):
            pipe.run(pipe.read("visits"), **{"lateness": "1 hour", option: "1 hour"}).processAllAvailable()


@pytest.mark.long
def test_f4_watermark_in_order_of_arrival(pipe: Pipe) -> None:
    visits = pipe.create("visits", "place STRING")
    with opened(visits, rowsImplyBounds=False) as sink, Watched().start(pipe.read("visits", hold="1 hour")) as query:
        send(sink, ("0:00", "home"))
        assert query.step() == []
        send(sink, ("2:00", "office"))
        assert query.step() == [("00:00", "home")], "0:00 comes out with 2:00"
        send(sink, ("0:30", "shop"))
        assert query.step() == [("00:30", "shop")], "what is later than the hold comes at once"
        send(sink, ("3:00", "home"))
        assert query.step() == [("02:00", "office")]
    assert table(pipe.spark, visits, "rejected") == []


def test_f4_watermark_in_order_of_rowtime(pipe: Pipe) -> None:
    """A row waits for the hold and for the bound."""
    visits = pipe.create("visits", "place STRING")
    held = pipe.read("visits", hold="1 hour", order="rowtime")
    with opened(visits, rowsImplyBounds=False) as sink, Watched().start(held) as query:
        send(sink, ("0:00", "home"), ("2:00", "office"), ("0:30", "shop"))
        assert query.step() == [], "nobody has promised anything"
        send(sink, promise="1:00")
        assert query.step() == [("00:00", "home"), ("00:30", "shop")]
        send(sink, ("3:00", "home"))
        assert query.step() == [], "the hold is over, but a row at 1:00 may still come"
        send(sink, promise="2:30")
        assert query.step() == [("02:00", "office")]
    assert table(pipe.spark, visits, "rejected") == []


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_f5_append_only(pipe: Pipe, mode: str) -> None:
    pipe.create("visits", "place STRING")
    counts = pipe.read("visits").groupBy("place").count().selectExpr("now() AS rowtime", "count")
    writer = counts.writeStream.format("rowtime").outputMode(mode).option("checkpointLocation", pipe.path("checkpoint"))
    with pytest.raises(IllegalArgumentException, match=rf'takes outputMode\("append"\) only: {mode} mode'):
        writer.start(pipe.path("out"))
    assert {name for name in dir(rt.RowSink) if name.startswith("send")} == {"sendRow", "sendRows", "sendRowtimeBound"}
