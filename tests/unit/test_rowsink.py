"""RowSink over memory streams: what is taken, what is refused, and when it becomes visible."""

import contextlib
import itertools
import logging
import os
import signal
import threading
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import (
    HOUR,
    MINUTE,
    HandClock,
    accepted,
    clock_times,
    new_sink,
    new_stream,
    row,
    rows,
    stream_floor,
    us,
    when,
)

import spark_rowtime as rt
from spark_rowtime.producer.rowsink import StreamSink
from spark_rowtime.producer.timer import Timer
from spark_rowtime.store import STREAMS, open_store
from spark_rowtime.store.base import Position
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.types.schema import rows_to_batch
from spark_rowtime.types.timestamps import from_micros, wall_clock

LINGER = 100_000


@pytest.fixture
def path():
    return new_stream()


@pytest.fixture
def clock():
    return HandClock()


def rejected(path):
    return [
        (r["producer"], r["reason"], r["bound"], r["rowtime"].strftime("%H:%M"), r["ticker"])
        for r in open_store(path).rejected().to_pylist()
    ]


def producer(path, name):
    return next(p for p in rt.describeStream(path).producers if p.name == name)


def counts(path, name):
    found = producer(path, name)
    return found.accepted, found.rejected


def tickers(path):
    return [ticker for _, ticker in everything(path)]


def everything(path):
    store = open_store(path)
    head = store.head().seq
    pieces = store.slices(Position(0, None, None), Position(head, None, None))
    found = [store.read(p) for p in pieces]
    return [(t, r["ticker"]) for batch in found for t, r in zip(clock_times(batch), batch.to_pylist(), strict=True)]


class FailingStore(MemoryStore):
    """A store that cannot be written while ``down``."""

    down = False

    def commit(self, commit):
        if self.down:
            raise rt.StoreUnavailableError("the disk is full")
        return super().commit(commit)


@pytest.fixture
def failing(path):
    made = STREAMS[path]
    STREAMS[path] = FailingStore(path, made.schema, made.settings)
    return STREAMS[path]


# ---- late rows


def test_a_late_row_raises_and_is_recorded(path):
    sink = new_sink(path, "P")
    sink.sendRow(row("10:00", "on time"))
    with pytest.raises(rt.LateRowError) as caught:
        sink.sendRow(row("9:58", "late"))
    assert "09:58" in str(caught.value)
    assert "10:00" in str(caught.value)
    assert caught.value.values["producer"] == "P"
    assert caught.value.values["rows"] == 1
    assert caught.value.values["bound"] == us("10:00")
    assert rejected(path) == [("P", "late", when("10:00"), "09:58", "late")]
    assert counts(path, "P") == (1, 1)


def test_late_rows_are_left_out_where_asked(path):
    sink = new_sink(path, "P", onLate="reject")
    sink.sendRow(row("10:00"))
    for late in ("9:58", "9:47", "9:59"):
        sink.sendRow(row(late))
    sink.sendRow(row("10:00"))
    assert accepted(path) == ["10:00", "10:00"]
    assert [r[3] for r in rejected(path)] == ["09:58", "09:47", "09:59"]
    assert counts(path, "P") == (2, 3)


def test_raise_refuses_the_whole_call_but_counts_only_its_late_rows(path):
    sink = new_sink(path, "P")
    sink.sendRow(row("10:00"))
    with pytest.raises(rt.LateRowError):
        sink.sendRows(rows("10:01", "9:59", "10:02"))
    assert accepted(path) == ["10:00"]
    assert counts(path, "P") == (1, 1)
    sink.sendRow(row("10:00:30"))
    assert sink.getRowtimeBound() == rt.RowtimeBound(when("10:00:30"))


def test_reject_takes_the_others_of_the_call(path):
    sink = new_sink(path, "P", onLate="reject")
    sink.sendRows(rows("10:01", "9:59", "10:02"))
    assert accepted(path) == ["10:01", "10:02"]
    assert counts(path, "P") == (2, 1)


def test_each_late_row_is_kept_with_the_bound_in_force_for_it(path):
    """Within one call each row moves the bound for those after it."""
    sink = new_sink(path, "P", onLate="reject")
    sink.sendRows(rows("10:00", "9:58", "11:00", "10:59", "10:30"))
    found = [(time, bound) for _, _, bound, time, _ in rejected(path)]
    assert found == [("09:58", when("10:00")), ("10:59", when("11:00")), ("10:30", when("11:00"))]


def test_a_row_at_the_bound_is_not_late(path):
    sink = new_sink(path)
    sink.sendRowtimeBound(when("12:05"))
    sink.sendRow(row("12:05"))
    with pytest.raises(rt.LateRowError):
        sink.sendRow(row("12:04:59.999"))


def test_a_row_at_a_strict_bound_is_late(path):
    sink = new_sink(path)
    sink.sendRowtimeBound(when("12:05"), strict=True)
    with pytest.raises(rt.LateRowError):
        sink.sendRow(row("12:05"))
    sink.sendRow(row("12:05:00.000001"))
    assert accepted(path) == ["12:05:00.000001"]


def test_the_streams_bound_makes_a_newcomers_row_late(path):
    with new_sink(path, "old") as old:
        old.sendRow(row("11:10"))
    newcomer = new_sink(path, "new")
    assert newcomer.getRowtimeBound() == rt.RowtimeBound(when("11:10"))
    with pytest.raises(rt.LateRowError):
        newcomer.sendRow(row("11:00"))
    newcomer.sendRow(row("11:10"))


@given(st.lists(st.lists(st.integers(1, 20), max_size=6), max_size=8), st.sampled_from(["raise", "reject"]), st.data())
def test_accounting(calls, on_late, data):
    """received = accepted + rejected, per producer; what is accepted is in the stream, in order."""
    path = new_stream()
    order = data.draw(st.sampled_from([{}, {"kSort": 1}, {"lateness": "3 us"}, {"rowsImplyBounds": False}]))
    sink = new_sink(path, "P", onLate=on_late, order=order, linger=data.draw(st.sampled_from([0, LINGER])))
    received = 0
    for call in calls:
        before = counts_now(sink, path)
        try:
            sink.sendRows([(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=t), "X") for t in call])
            received += len(call)
        except rt.LateRowError as late:
            received += late.values["rows"]
            assert on_late == "raise"
            assert counts_now(sink, path) == (before[0], before[1] + late.values["rows"])
        if call and data.draw(st.booleans()) and on_late == "reject":
            sink.sendRowtimeBound(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=30))
    sink.flush()
    taken, lost = counts(path, "P")
    assert taken + lost == received
    assert taken == rt.describeStream(path).rows == len(accepted(path))
    assert lost == open_store(path).rejected().num_rows


def counts_now(sink, path):
    sink.flush()
    return counts(path, "P")


def test_what_only_the_commit_can_see_is_reported_by_the_next_call():
    path = new_stream(maxLag="10 minutes")
    slow = new_sink(path, "slow", linger=LINGER)
    fast = new_sink(path, "fast")
    slow.sendRow(row("10:00"))
    slow.sendRow(row("10:01"))
    fast.sendRow(row("11:00"))
    slow.flush()
    assert accepted(path) == ["10:00", "11:00"]
    assert counts(path, "slow") == (1, 1)
    assert rejected(path) == [("slow", "late", when("10:50"), "10:01", "X")]
    with pytest.raises(rt.LateRowError, match="earlier call"):
        slow.sendRow(row("11:30"))
    assert counts(path, "slow") == (1, 1)
    slow.sendRow(row("11:30"))
    slow.flush()
    assert counts(path, "slow") == (2, 1)


def test_what_only_the_commit_can_see_is_only_recorded_where_asked():
    path = new_stream(maxLag="10 minutes")
    slow = new_sink(path, "slow", linger=LINGER, onLate="reject")
    slow.sendRow(row("10:00"))
    slow.sendRows(rows("10:01", "10:55"))
    new_sink(path, "fast").sendRow(row("11:00"))
    slow.flush()
    slow.sendRow(row("11:30"))
    slow.flush()
    assert accepted(path) == ["10:00", "11:00", "10:55", "11:30"]
    assert counts(path, "slow") == (3, 1)


# ---- the log of late rows


def test_log_lines_at_the_1st_10th_and_100th(path, caplog):
    caplog.set_level(logging.INFO, "spark_rowtime.laterow")
    sink = new_sink(path, "P", onLate="reject")
    sink.sendRow(row("10:00"))
    for _ in range(120):
        sink.sendRow(row("9:00"))
    assert [r.args[1] for r in caplog.records] == [1, 10, 100]
    assert all("'P'" in r.getMessage() and "09:00" in r.getMessage() for r in caplog.records)


def test_log_lines_cross_a_power_of_ten_within_one_call(path, caplog):
    caplog.set_level(logging.INFO, "spark_rowtime.laterow")
    sink = new_sink(path, onLate="reject")
    sink.sendRow(row("10:00"))
    sink.sendRows(rows(*["9:00"] * 8))
    sink.sendRows(rows(*["9:00"] * 8))
    sink.sendRows(rows(*["9:00"] * 8))
    assert [r.args[1] for r in caplog.records] == [8, 16]


def test_log_counts_per_producer_across_sinks(path, caplog):
    caplog.set_level(logging.INFO, "spark_rowtime.laterow")
    for _ in range(2):
        sink = new_sink(path, "P", onLate="reject")
        sink.sendRow(row("10:00"))
        sink.sendRow(row("9:00"))
    assert [r.args[1] for r in caplog.records] == [1]


def test_log_has_every_late_row_at_debug(path, caplog):
    caplog.set_level(logging.DEBUG, "spark_rowtime.laterow")
    sink = new_sink(path, onLate="reject")
    sink.sendRow(row("10:00"))
    for _ in range(12):
        sink.sendRow(row("9:00"))
    assert len(caplog.records) == 12


# ---- bounds


def test_a_bound_moves_the_stream_without_a_row(path):
    new_sink(path).sendRowtimeBound(when("12:05"))
    assert rt.describeStream(path).bound == rt.RowtimeBound(when("12:05"))
    assert rt.describeStream(path).rows == 0


def test_a_bound_backwards_is_an_error(path):
    sink = new_sink(path)
    sink.sendRowtimeBound(when("12:05"))
    with pytest.raises(rt.BoundRegressionError, match=r"12:04.*12:05"):
        sink.sendRowtimeBound(when("12:04"))
    assert stream_floor(path) == us("12:05")


def test_a_non_strict_bound_after_the_strict_one_is_backwards(path):
    sink = new_sink(path)
    sink.sendRowtimeBound(when("12:05"), strict=True)
    with pytest.raises(rt.BoundRegressionError):
        sink.sendRowtimeBound(when("12:05"))


def test_a_bound_below_a_row_sent_in_order_is_an_error(path):
    sink = new_sink(path)
    sink.sendRow(row("12:05"))
    with pytest.raises(rt.BoundRegressionError):
        sink.sendRowtimeBound(when("12:04"))


@pytest.mark.parametrize("order", [{"lateness": "1 hour"}, {"kSort": 0}])
def test_a_bound_below_what_disorder_implies_is_a_no_op(path, order):
    sink = new_sink(path, order=order)
    sink.sendRow(row("12:00"))
    known = sink.getRowtimeBound()
    sink.sendRowtimeBound(when("10:30"))
    assert sink.getRowtimeBound() == known
    assert known.time >= when("11:00")


def test_an_equal_bound_is_a_no_op(path):
    sink = new_sink(path)
    sink.sendRowtimeBound(when("12:05"))
    seq = rt.describeStream(path).seq
    sink.sendRowtimeBound(when("12:05"))
    sink.flush()
    assert rt.describeStream(path).seq == seq


def test_a_bound_known_from_joining_is_a_no_op(path):
    new_sink(path).sendRowtimeBound(when("12:05"))
    newcomer = new_sink(path)
    newcomer.sendRowtimeBound(when("12:00"))
    assert newcomer.getRowtimeBound() == rt.RowtimeBound(when("12:05"))
    assert stream_floor(path) == us("12:05")


def test_a_bound_known_from_a_takeover_is_a_no_op(path):
    new_sink(path, "P").sendRowtimeBound(when("12:05"))
    again = new_sink(path, "P")
    again.sendRowtimeBound(when("12:00"))
    assert again.getRowtimeBound() == rt.RowtimeBound(when("12:05"))


def test_a_bound_takes_a_time_zone(path):
    sink = new_sink(path)
    sink.sendRowtimeBound("2006-09-11T14:05:00", tz="Europe/Berlin")
    assert stream_floor(path) == us("12:05")
    sink.sendRowtimeBound("2006-09-11T12:06:00")
    assert stream_floor(path) == us("12:06")


def test_rows_without_implied_bounds_move_nothing(path):
    sink = new_sink(path, order={"rowsImplyBounds": False})
    sink.sendRows(rows("12:05", "12:01", "12:03"))
    assert stream_floor(path) is None
    sink.sendRowtimeBound(when("12:02"))
    assert stream_floor(path) == us("12:02")
    with pytest.raises(rt.LateRowError):
        sink.sendRow(row("12:01"))
    sink.sendRow(row("12:02"))


def test_the_bound_of_rows_sent_after_it_is_not_published_before_them(path):
    """A commit with rows and a later bound: every train's floor is true for what follows it."""
    sink = new_sink(path, maxTrainRows=1, order={"rowsImplyBounds": False})
    sink.sendRowtimeBound(when("10:00"))
    sink.flush(checkpoint="start")
    sink.sendRows(rows("10:40", "10:30", "10:25", "10:35"))
    sink.sendRowtimeBound(when("11:00"))
    sink.flush(checkpoint="end")
    bounds = [b["bound"] for b in open_store(path).bounds().to_pylist() if b["rows"]]
    assert bounds == [when("10:25"), when("10:25"), when("10:35"), when("11:00")]


# ---- the form of rows


def test_rows_come_in_every_form(path):
    sink = new_sink(path)
    schema = pa.schema([("ticker", pa.string()), ("rowtime", pa.timestamp("us", "UTC"))])
    arrow = pa.table({"ticker": ["f"], "rowtime": [when("10:05")]}, schema)
    sink.sendRow((when("10:00"), "a"))
    sink.sendRow([when("10:01"), "b"])
    sink.sendRow({"ticker": "c", "rowtime": when("10:02")})
    sink.sendRows([(when("10:03"), "d"), {"rowtime": when("10:04"), "ticker": None}])
    sink.sendRows(arrow)
    sink.sendRows(pa.table({"ticker": ["g"], "rowtime": [when("10:06")]}, schema).to_batches()[0])
    sink.sendRows(row for row in [(when("10:07"), "h")])
    assert tickers(path) == ["a", "b", "c", "d", None, "f", "g", "h"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"rowtime": when("10:00")}, r"missing \['ticker'\]"),
        ({"rowtime": when("10:00"), "ticker": "X", "price": 3}, r"unknown \['price'\]"),
        ((when("10:00"),), "2 values"),
        ("10:00", "must be a mapping"),
        ({"rowtime": None, "ticker": "X"}, "rowtime"),
        ((None, "X"), "rowtime"),
        ({"rowtime": "soon", "ticker": "X"}, "rowtime"),
        ({"rowtime": 1_000_000, "ticker": "X"}, "rowtime"),
        ({"rowtime": datetime(1970, 1, 1, tzinfo=UTC), "ticker": "X"}, "1970"),
        ({"rowtime": datetime(1969, 7, 20, tzinfo=UTC), "ticker": "X"}, "1970"),
        ({"rowtime": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "ticker": "X"}, "10000"),
        ({"rowtime": when("10:00"), "ticker": 7}, "ticker"),
    ],
)
def test_a_row_of_the_wrong_form_is_refused_whole(path, bad, said):
    sink = new_sink(path)
    with pytest.raises(rt.SchemaMismatchError, match=said):
        sink.sendRow(bad)
    with pytest.raises(rt.SchemaMismatchError, match=said):
        sink.sendRows([row("9:00"), bad])
    sink.flush()
    assert everything(path) == []
    assert sink.getRowtimeBound() is None


@pytest.mark.parametrize("bad", [{"rowtime": 1}, "abc", b"abc", 5])
def test_send_rows_takes_no_single_row(path, bad):
    with pytest.raises(rt.SchemaMismatchError, match="sendRow takes one row"):
        new_sink(path).sendRows(bad)


def test_an_iterable_that_fails_midway_has_sent_nothing(path):
    sink = new_sink(path)

    def feed():
        yield row("10:00")
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        sink.sendRows(feed())
    sink.flush()
    assert everything(path) == []


def arrow(rowtimes, kind=pa.timestamp("us", "UTC"), **columns):
    return pa.table({"rowtime": pa.array(rowtimes, kind), "ticker": ["X"] * len(rowtimes), **columns})


@pytest.mark.parametrize(
    "bad",
    [
        arrow([us("10:00")]).drop_columns("ticker"),
        arrow([us("10:00")], price=[3]),
        arrow([us("10:00"), None]),
        arrow(["2006-09-11T10:00:00"], pa.string()),
        arrow([us("10:00")], pa.int64()),
        arrow([0]),
        arrow([2**64 // 1_000_000 + 10], pa.timestamp("s")),
        pa.table({"rowtime": pa.array([us("10:00")], pa.timestamp("us", "UTC")), "ticker": [b"\xff"]}),
    ],
    ids=["missing", "unknown", "null", "text", "number", "epoch", "overflow", "bytes"],
)
def test_arrow_of_the_wrong_form_is_refused_whole(path, bad):
    sink = new_sink(path)
    with pytest.raises(rt.SchemaMismatchError):
        sink.sendRows(bad)
    assert everything(path) == []


def test_zone_less_times_are_utc(path):
    sink = new_sink(path)
    sink.sendRow((datetime(2006, 9, 11, 10, 0), "naive"))
    sink.sendRow(("2006-09-11T10:01:00", "text"))
    sink.sendRow(("2006-09-11T12:02:00+02:00", "text with a zone"))
    sink.sendRows(arrow([us("10:03")], pa.timestamp("us")))
    sink.sendRows(arrow([us("10:04") * 1000 + 999], pa.timestamp("ns")))
    sink.sendRows(arrow([us("10:05") // 1000000], pa.timestamp("s", "Asia/Tokyo")))
    assert accepted(path) == ["10:00", "10:01", "10:02", "10:03", "10:04", "10:05"]


def test_empty_calls_change_nothing(path):
    sink = new_sink(path)
    sink.sendRows([])
    sink.sendRows(arrow([]))
    sink.flush()
    assert rt.describeStream(path).seq == 1


def test_rows_are_taken_as_they_are_at_the_call():
    """What the adapter does to its own list afterwards is no matter."""
    path = new_stream("rowtime TIMESTAMP NOT NULL, tags ARRAY<STRING>")
    sink = new_sink(path, linger=LINGER)
    tags = ["a"]
    sink.sendRow((when("9:00"), []))
    sink.sendRow((when("10:00"), tags))
    tags.append(7)
    sink.flush()
    store = open_store(path)
    [_, second] = store.slices(Position(0, None, None), Position(store.head().seq, None, None))
    assert store.read(second).column("tags").to_pylist() == [["a"]]


# ---- now, and promoted columns


def test_a_missing_rowtime_is_now(path, clock):
    sink = new_sink(path, now=clock)
    sink.sendRow({"ticker": "a"})
    clock.advance(MINUTE)
    sink.sendRows([{"ticker": "b"}, {"ticker": "c"}])
    sink.sendRows(pa.table({"ticker": ["d"]}))
    assert everything(path) == [("12:00", "a"), ("12:01", "b"), ("12:01", "c"), ("12:01", "d")]


def test_now_is_never_below_the_bound(path, clock):
    sink = new_sink(path, now=clock)
    sink.sendRowtimeBound(when("12:30"), strict=True)
    clock.advance(-HOUR)
    sink.sendRow({"ticker": "a"})
    sink.sendRows([{"ticker": "b"}])
    sink.sendRows(pa.table({"ticker": ["c"]}))
    assert accepted(path) == ["12:30:00.000001"] * 3


def test_a_clock_that_steps_back_within_a_call_makes_nothing_late(path):
    times = iter([us("12:00")] * 3 + [us("11:59")] * 9)
    sink = new_sink(path, now=lambda: next(times))
    sink.sendRows([{"ticker": "a"}, {"ticker": "b"}, {"ticker": "c"}])
    assert len(set(accepted(path))) == 1


def test_another_column_is_promoted_to_rowtime():
    path = new_stream("rowtime TIMESTAMP NOT NULL, ticker STRING, created_at TIMESTAMP")
    sink = new_sink(path, rowtime="created_at")
    sink.sendRow({"ticker": "a", "created_at": when("10:00")})
    sink.sendRows([{"ticker": "b", "created_at": when("10:01")}])
    kind = pa.timestamp("us", "UTC")
    sink.sendRows(pa.table({"ticker": ["c"], "created_at": pa.array([when("10:02")], kind)}))
    assert everything(path) == [("10:00", "a"), ("10:01", "b"), ("10:02", "c")]
    with pytest.raises(rt.SchemaMismatchError, match="rowtime"):
        sink.sendRow({"ticker": "d", "created_at": None})
    with pytest.raises(rt.SchemaMismatchError, match="created_at"):
        sink.sendRow({"ticker": "e"})
    with pytest.raises(rt.SchemaMismatchError, match="created_at"):
        sink.sendRows(pa.table({"ticker": ["f"]}))


@pytest.mark.parametrize("column", ["rowtime", "nothing"])
def test_promoting_needs_another_column(path, column):
    with pytest.raises(rt.InvalidOptionError, match=column):
        new_sink(path, rowtime=column)


# ---- maxAhead


def test_a_row_too_far_ahead_is_rejected(clock):
    path = new_stream(maxAhead="1 hour")
    sink = new_sink(path, "P", now=clock, onLate="reject")
    sink.sendRow(row("13:00"))
    sink.sendRow(row("13:00:00.000001"))
    sink.sendRows(rows("13:00", "14:00", "12:59"))
    assert accepted(path) == ["13:00", "13:00"]
    assert [(r[1], r[2], r[3]) for r in rejected(path)] == [
        ("ahead", when("13:00"), "13:00"),
        ("ahead", when("13:00"), "14:00"),
        ("late", when("13:00"), "12:59"),
    ]
    assert counts(path, "P") == (2, 3)
    clock.advance(HOUR)
    sink.sendRow(row("14:00"))
    assert sink.getRowtimeBound() == rt.RowtimeBound(when("14:00"))


def test_a_row_too_far_ahead_raises_and_makes_nothing_late(clock):
    path = new_stream(maxAhead="1 hour")
    sink = new_sink(path, "P", now=clock)
    with pytest.raises(rt.LateRowError, match="ahead"):
        sink.sendRow({"rowtime": "2999-01-01", "ticker": "X"})
    sink.sendRow(row("12:00"))
    assert counts(path, "P") == (1, 1)


def test_a_bound_too_far_ahead_is_refused(clock):
    path = new_stream(maxAhead="1 hour")
    sink = new_sink(path, now=clock)
    for beyond, strict in (("13:00", True), ("13:00:00.000001", False), ("3026-09-11T12:00", False)):
        with pytest.raises(rt.InvalidOptionError, match="lies beyond 2006-09-11T13:00:00Z, which is maxAhead"):
            sink.sendRowtimeBound(when(beyond), strict=strict)
    assert stream_floor(path) is None
    sink.sendRowtimeBound(when("13:00"))
    assert stream_floor(path) == us("13:00")
    clock.advance(HOUR)
    sink.sendRowtimeBound(when("14:00"))
    unlimited = new_stream()
    new_sink(unlimited, now=clock).sendRowtimeBound(when("3026-09-11T12:00"))
    assert stream_floor(unlimited) == us("3026-09-11T12:00")


# ---- told the times, or giving them

TOLD = {
    "dict": lambda sink: sink.sendRow(row("12:00")),
    "tuple": lambda sink: sink.sendRow((when("12:00"), "X")),
    "text": lambda sink: sink.sendRow(("2006-09-11T12:00:00Z", "X")),
    "rows": lambda sink: sink.sendRows(rows("12:00")),
    "arrow": lambda sink: sink.sendRows(pa.table({"rowtime": [when("12:00")], "ticker": ["X"]})),
    "batch": lambda sink: sink.sendRows(rows_to_batch(rows("12:00"), sink._store.schema)),
}
GIVEN = {
    "dict": lambda sink: sink.sendRow({"ticker": "now"}),
    "rows": lambda sink: sink.sendRows([{"ticker": "now"}]),
    "arrow": lambda sink: sink.sendRows(pa.table({"ticker": ["now"]})),
}


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("linger", [0, HOUR])
def test_a_sink_is_told_the_times_or_gives_them(clock, told, given, linger):
    path = new_stream()
    sink = new_sink(path, now=clock, linger=linger)
    for _ in range(3):
        TOLD[told](sink)
    with pytest.raises(rt.SchemaMismatchError, match=r"Row 0 comes without .* sink came with theirs"):
        GIVEN[given](sink)
    TOLD[told](sink)
    sink.close()
    assert accepted(path) == ["12:00"] * 4
    path = new_stream()
    sink = new_sink(path, now=clock, linger=linger)
    for _ in range(3):
        GIVEN[given](sink)
    with pytest.raises(rt.SchemaMismatchError, match=r"Row 0 comes with a .* each got the time now"):
        TOLD[told](sink)
    GIVEN[given](sink)
    sink.close()
    assert accepted(path) == ["12:00"] * 4


def test_a_sink_that_gives_times_takes_values_that_are_not_plain(clock):
    path = new_stream("rowtime TIMESTAMP NOT NULL, price DECIMAL(9, 2)")
    sink = new_sink(path, now=clock)
    for _ in range(3):
        sink.sendRow({"price": Decimal("1.50")})
    with pytest.raises(rt.SchemaMismatchError, match="Row 0 comes with a"):
        sink.sendRow({"rowtime": when("12:00"), "price": Decimal("1.50")})
    sink.close()
    assert accepted(path) == ["12:00"] * 3


def test_a_call_with_rows_of_both_kinds_is_refused_and_decides_nothing(clock):
    path = new_stream()
    sink = new_sink(path, now=clock)
    with pytest.raises(rt.SchemaMismatchError, match="Row 1 comes without a rowtime"):
        sink.sendRows([row("12:00"), {"ticker": "now"}])
    with pytest.raises(rt.SchemaMismatchError, match="Row 1 comes with a rowtime"):
        sink.sendRows([{"ticker": "now"}, (when("12:00"), "X")])
    with pytest.raises(rt.SchemaMismatchError, match="ticker=5"):
        sink.sendRow({"ticker": 5})
    sink.sendRow(row("12:00"))
    sink.close()
    assert accepted(path) == ["12:00"]


def test_with_another_column_as_rowtime_all_times_are_told(clock):
    path = new_stream("rowtime TIMESTAMP NOT NULL, created TIMESTAMP")
    sink = new_sink(path, now=clock, rowtime="created")
    sink.sendRow({"created": when("12:00")})
    sink.sendRow({"rowtime": when("12:01"), "created": when("12:00")})
    sink.sendRows([{"created": when("12:02")}, {"rowtime": when("12:03"), "created": None}])
    sink.sendRows(pa.table({"created": [when("12:04")]}))
    with pytest.raises(rt.SchemaMismatchError):
        sink.sendRow({})
    sink.close()
    assert accepted(path) == ["12:00", "12:01", "12:02", "12:03", "12:04"]


# ---- visibility


def test_the_first_row_after_a_quiet_linger_is_visible_at_once(path, clock):
    sink = new_sink(path, now=clock, linger=LINGER)
    sink.sendRow(row("10:00"))
    assert accepted(path) == ["10:00"]
    clock.advance(LINGER)
    sink.sendRowtimeBound(when("10:05"))
    assert stream_floor(path) == us("10:05")


def test_under_load_rows_are_grouped(path, clock):
    sink = new_sink(path, now=clock, linger=HOUR)
    sink.sendRow(row("10:00"))
    clock.advance(HOUR // 2)
    sink.sendRows(rows("10:01", "10:02"))
    assert accepted(path) == ["10:00"]
    clock.advance(HOUR // 2)
    sink.sendRows(rows("10:03"))
    assert accepted(path)[:3] == ["10:00", "10:01", "10:02"]
    counts = open_store(path).bounds().column("rows").to_pylist()
    assert counts in ([0, 1, 3], [0, 1, 2]), "or the timer's thread was first"


def test_the_timer_commits_while_rows_pour_in(path):
    """sendRow looks at no clock under load; the timer's thread gets its turn all the same."""
    sink = new_sink(path, now=wall_clock, linger=LINGER)
    store, sent = open_store(path), 0
    while store.head().seq < 5:
        sink.sendRow((from_micros(sent + 1), "X"))
        sent += 1
    sink.close()
    assert rt.describeStream(path).rows == sent


def test_under_load_the_timer_is_woken_once_a_linger(path, monkeypatch):
    """Each look at the clock is a microsecond later, and the timer's thread does what it does between the calls."""
    woken, times = [], itertools.count(us("9:00"))
    monkeypatch.setattr(Timer, "wake", lambda _: woken.append(True))
    sink = new_sink(path, now=lambda: next(times), linger=HOUR)
    sink.sendRow(row("10:00"))
    for minute in range(1, 20):
        sink.sendRows(rows(f"10:{minute:02}"))
        sink._scheduler.run_due()
    assert len(woken) == 1


def test_a_row_of_the_wrong_form_leaves_the_short_way_shut(path, clock):
    """The next row is the first one still, and is visible at once."""
    sink = new_sink(path, now=clock, linger=LINGER)
    for bad in ({"rowtime": when("10:00")}, (when("10:00"), 7)):
        with pytest.raises(rt.SchemaMismatchError):
            sink.sendRow(bad)
    sink.sendRow(row("10:01"))
    assert accepted(path) == ["10:01"]


def test_rows_of_the_short_and_the_long_way_keep_their_order(path, clock):
    sink = new_sink(path, now=clock, linger=HOUR)
    sink.sendRow(row("9:00", "first"))
    for n in range(40):
        when_ = when(f"10:{n:02}")
        sink.sendRow((when_ if n % 3 else when_.isoformat(), str(n)))
        if n % 7 == 0:
            sink.sendRows([(when_, f"{n} again")])
    sink.flush()
    sent = [name for n in range(40) for name in ((str(n), f"{n} again") if n % 7 == 0 else (str(n),))]
    assert tickers(path) == ["first", *sent]


def test_a_late_row_after_many_is_judged_by_the_last_of_them(path, clock):
    sink = new_sink(path, "P", now=clock, linger=HOUR, onLate="reject")
    for minute in range(50):
        sink.sendRow(row(f"10:{minute:02}"))
    sink.sendRow(row("10:48"))
    sink.sendRow(row("10:49"))
    assert sink.getRowtimeBound() == rt.RowtimeBound(when("10:49"))
    sink.sendRowtimeBound(when("10:55"))
    sink.sendRow(row("10:54"))
    sink.flush()
    assert [(r[3], r[2]) for r in rejected(path)] == [("10:48", when("10:49")), ("10:54", when("10:55"))]
    assert counts(path, "P") == (51, 2)


def test_a_full_train_of_single_rows_is_visible_with_its_last_row(path, clock):
    sink = new_sink(path, now=clock, linger=HOUR, maxTrainRows=5)
    sink.sendRow(row("9:00"))
    for minute in range(5):
        assert len(accepted(path)) == 1
        sink.sendRow(row(f"10:{minute:02}"))
    assert len(accepted(path)) == 6


def test_what_lingers_comes_without_another_call(path, clock):
    sink = new_sink(path, now=clock, linger=1)
    sink.sendRow(row("10:00"))
    seq = open_store(path).head().seq
    sink.sendRow(row("10:01"))
    clock.advance(1)
    assert open_store(path).wait(seq, 10)
    assert accepted(path) == ["10:00", "10:01"]


def test_a_clock_that_is_set_back_does_not_hold_rows_up(path, clock):
    sink = new_sink(path, now=clock, linger=LINGER)
    sink.sendRow(row("10:00"))
    clock.advance(-HOUR)
    sink.sendRow(row("10:01"))
    assert accepted(path) == ["10:00", "10:01"]


def test_a_full_train_does_not_wait(path, clock):
    sink = new_sink(path, now=clock, linger=HOUR, maxTrainRows=3)
    sink.sendRow(row("10:00"))
    sink.sendRows(rows("10:01", "10:02"))
    assert accepted(path) == ["10:00"]
    sink.sendRow(row("10:03"))
    assert len(accepted(path)) == 4
    sink.sendRows(rows(*["10:04"] * 7))
    assert open_store(path).bounds().column("rows").to_pylist() == [0, 1, 3, 3, 3, 1]


def test_the_order_of_the_calls_is_the_order_in_the_stream(path, clock):
    sink = new_sink(path, now=clock, linger=HOUR)
    sink.sendRow(row("9:00", "first"))
    sink.sendRow(row("10:00", "a"))
    sink.sendRows([row("10:00", "b"), row("10:00", "c")])
    sink.sendRow(row("10:00", "d"))
    sink.flush()
    assert tickers(path) == ["first", "a", "b", "c", "d"]


def test_flush_without_anything_to_say_says_nothing(path):
    sink = new_sink(path)
    sink.flush()
    assert rt.describeStream(path).seq == 1


# ---- checkpoints


def test_with_a_checkpoint_only_flush_makes_visible(path, clock):
    sink = new_sink(path, "P", now=clock, linger=LINGER, maxTrainRows=2)
    assert sink.checkpoint is None
    sink.sendRow(row("10:00"))
    sink.flush(checkpoint="one")
    assert sink.checkpoint == "one"
    clock.advance(HOUR)
    sink.sendRows(rows("10:01", "10:02", "10:03"))
    sink.sendRowtimeBound(when("10:30"))
    clock.advance(HOUR)
    sink.sendRow(row("10:40"))
    assert accepted(path) == ["10:00"]
    assert stream_floor(path) == us("10:00")
    sink.flush(checkpoint="two")
    assert accepted(path) == ["10:00", "10:01", "10:02", "10:03", "10:40"]
    assert producer(path, "P").checkpoint == "two"


def test_a_checkpoint_is_stored_with_nothing_to_commit(path):
    sink = new_sink(path, "P")
    sink.flush(checkpoint="zero")
    assert producer(path, "P").checkpoint == "zero"
    assert new_sink(path, "P").checkpoint == "zero"


def test_an_empty_checkpoint_is_one(path):
    new_sink(path, "P").flush(checkpoint="")
    again = new_sink(path, "P")
    assert again.checkpoint == ""
    again.sendRow(row("10:00"))
    assert accepted(path) == []


def test_closing_lands_what_came_after_the_checkpoint(path):
    """The feed is complete: its end must not be lost because no checkpoint followed it."""
    with new_sink(path, "P") as sink:
        sink.sendRow(row("10:00"))
        sink.flush(checkpoint="1")
        sink.sendRow(row("10:01"))
        sink.sendRows(rows("10:02"))
        sink.sendRow(row("10:03"))
        assert accepted(path) == ["10:00"]
    assert accepted(path) == ["10:00", "10:01", "10:02", "10:03"]
    assert producer(path, "P").checkpoint == "1"


def test_flush_without_a_checkpoint_lands_and_leaves_the_stored_one(path):
    sink = new_sink(path, "P")
    sink.flush(checkpoint="1")
    sink.sendRow(row("10:01"))
    sink.flush()
    assert accepted(path) == ["10:01"]
    assert (sink.checkpoint, producer(path, "P").checkpoint) == ("1", "1")


def test_a_restart_resumes_where_the_checkpoint_says(path):
    first = new_sink(path, "P", linger=LINGER)
    first.sendRow(row("10:00"))
    first.flush(checkpoint="1")
    first.sendRow(row("10:01", "lost with the process"))
    first.abandon()
    second = new_sink(path, "P", linger=LINGER)
    assert second.checkpoint == "1"
    second.sendRow(row("10:01", "sent again"))
    assert accepted(path) == ["10:00"]
    second.flush(checkpoint="2")
    assert everything(path) == [("10:00", "X"), ("10:01", "sent again")]


# ---- takeover, leaving


def test_a_takeover_fences_the_old_holder(path):
    old = new_sink(path, "P")
    old.sendRow(row("10:00"))
    new = new_sink(path, "P")
    with pytest.raises(rt.ProducerFencedError, match="'P'"):
        old.sendRow(row("10:01", "of the old"))
    new.sendRow(row("10:00", "of the new"))
    assert tickers(path) == ["X", "of the new"]
    with pytest.raises(rt.ProducerFencedError):
        old.flush()
    with pytest.raises(rt.ProducerFencedError):
        old.close()
    old.close()
    with pytest.raises(rt.SinkClosedError):
        old.sendRow(row("10:02"))
    assert producer(path, "P").status == "attached"


def test_a_takeover_carries_bound_and_disorder_on(path):
    first = new_sink(path, "P", order={"lateness": "10 minutes"})
    first.sendRows(rows("10:00", "9:30"))
    second = new_sink(path, "P", order={"lateness": "10 minutes"})
    assert second.getRowtimeBound() == rt.RowtimeBound(when("9:50"))
    with pytest.raises(rt.LateRowError):
        second.sendRow(row("9:49"))
    second.sendRow(row("9:50"))


def test_a_takeover_of_one_that_was_outrun_starts_at_the_stream():
    path = new_stream(maxLag="10 minutes")
    new_sink(path, "slow").sendRow(row("10:00"))
    new_sink(path, "fast").sendRow(row("11:00"))
    again = new_sink(path, "slow")
    assert again.getRowtimeBound() == rt.RowtimeBound(when("10:50"))
    with pytest.raises(rt.LateRowError):
        again.sendRow(row("10:49"))


def test_a_takeover_with_another_declaration_is_an_error(path):
    new_sink(path, "P", order={"lateness": "10 minutes"})
    for other in ({}, {"lateness": "11 minutes"}, {"kSort": 3}, {"rowsImplyBounds": False}):
        with pytest.raises(rt.InvalidOptionError, match="declared"):
            new_sink(path, "P", order=other)


def test_closing_lets_the_stream_go(path):
    slow, fast = new_sink(path), new_sink(path)
    slow.sendRow(row("10:00"))
    fast.sendRow(row("10:05"))
    assert stream_floor(path) == us("10:00")
    slow.close()
    assert stream_floor(path) == us("10:05")


def test_close_commits_what_lingers_and_is_idempotent(path, clock):
    sink = new_sink(path, now=clock, linger=HOUR)
    sink.sendRow(row("10:00"))
    sink.sendRow(row("10:01"))
    sink.close()
    seq = rt.describeStream(path).seq
    sink.close()
    assert accepted(path) == ["10:00", "10:01"]
    assert rt.describeStream(path).seq == seq


def test_a_closed_sink_takes_nothing(path):
    sink = new_sink(path, "P")
    sink.close()
    for call in (
        lambda: sink.sendRow(row("10:00")),
        lambda: sink.sendRows(rows("10:00")),
        lambda: sink.sendRowtimeBound(when("10:00")),
        sink.flush,
    ):
        with pytest.raises(rt.SinkClosedError, match="'P'"):
            call()
    assert accepted(path) == []


def test_leaving_the_block_closes(path):
    with new_sink(path, "P") as sink:
        sink.sendRow(row("10:00"))
    assert producer(path, "P").status == "left"


def test_leaving_the_block_by_an_exception_does_not_leave_the_stream(path, clock):
    with pytest.raises(ZeroDivisionError), new_sink(path, "P", now=clock, linger=HOUR) as sink:
        sink.sendRow(row("10:00"))
        sink.sendRow(row("10:01"))
        raise ZeroDivisionError
    assert accepted(path) == ["10:00", "10:01"]
    assert producer(path, "P").status == "attached"
    with pytest.raises(rt.SinkClosedError):
        sink.sendRow(row("10:02"))


def test_leaving_the_block_by_an_exception_after_a_checkpoint_drops_what_came_after_it(path):
    with contextlib.suppress(ZeroDivisionError), new_sink(path, "P") as sink:
        sink.flush(checkpoint="0")
        sink.sendRow(row("10:00"))
        raise ZeroDivisionError
    assert accepted(path) == []


def test_a_fenced_sink_in_a_block_is_ended(path):
    with pytest.raises(rt.ProducerFencedError), new_sink(path, "P") as sink:
        new_sink(path, "P")
        sink.sendRow(row("10:00"))
    with pytest.raises(rt.SinkClosedError):
        sink.flush()


# ---- a store that fails


def test_a_call_that_raises_has_taken_nothing(path, failing):
    """So an adapter that sends again what was refused sends it once."""
    sink = new_sink(path)
    failing.down = True
    sink.sendRow(row("10:00", "kept"))
    for _ in range(3):
        with pytest.raises(rt.StoreUnavailableError):
            sink.sendRow(row("10:01", "refused"))
    failing.down = False
    sink.sendRow(row("10:01", "sent again"))
    sink.flush()
    assert tickers(path) == ["kept", "sent again"]
    assert counts(path, sink.producer) == (2, 0)


def test_flush_raises_itself_and_may_be_repeated(path, failing, clock):
    sink = new_sink(path, now=clock, linger=HOUR)
    sink.sendRow(row("10:00"))
    failing.down = True
    sink.sendRow(row("10:01"))
    with pytest.raises(rt.StoreUnavailableError):
        sink.flush(checkpoint="1")
    assert sink.checkpoint is None
    failing.down = False
    sink.flush(checkpoint="1")
    assert accepted(path) == ["10:00", "10:01"]
    assert sink.checkpoint == "1"


def test_close_may_be_repeated_where_the_store_failed(path, failing, clock):
    sink = new_sink(path, now=clock, linger=HOUR)
    sink.sendRow(row("10:00"))
    sink.sendRow(row("10:01"))
    failing.down = True
    with pytest.raises(rt.StoreUnavailableError):
        sink.close()
    failing.down = False
    sink.close()
    assert accepted(path) == ["10:00", "10:01"]
    assert producer(path, sink.producer).status == "left"


def test_a_failure_behind_is_raised_by_the_next_call(path, failing, clock):
    """Also under load, where the timer and not the caller commits."""
    sink = new_sink(path, now=clock, linger=HOUR)
    sink.sendRow(row("10:00"))
    failing.down = True
    sink.sendRow(row("10:01", "kept"))
    clock.advance(HOUR)
    with sink._lock:  # as the timer's thread does it
        sink._scheduler.commit_unasked()
    with pytest.raises(rt.StoreUnavailableError):
        sink.sendRow(row("10:02", "refused"))
    failing.down = False
    sink.sendRow(row("10:02", "again"))
    sink.flush()
    assert tickers(path) == ["X", "kept", "again"]


# ---- threads and processes


def test_threads_share_a_sink(path):
    sink = new_sink(path, order={"rowsImplyBounds": False}, linger=10, maxTrainRows=7)
    start = threading.Barrier(4)

    def feed(name):
        start.wait()
        for n in range(100):
            sink.sendRow((when("10:00"), f"{name}-{n}"))

    threads = [threading.Thread(target=feed, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sink.close()
    found = tickers(path)
    assert sorted(found) == sorted(f"{name}-{n}" for name in "abcd" for n in range(100))
    for name in "abcd":
        mine = [t for t in found if t.startswith(name)]
        assert mine == [f"{name}-{n}" for n in range(100)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_may_not_use_the_sink(path, clock):
    sink = new_sink(path, "P", now=clock, linger=HOUR)
    sink.sendRow(row("10:00"))
    sink.sendRow(row("10:01"))
    reader, writer = os.pipe()
    held, done = threading.Event(), threading.Event()

    def hold():
        with sink._lock:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        os.write(writer, ",".join(refusals(sink)).encode())
        os._exit(0)
    done.set()
    holder.join()
    os.waitpid(child, 0)
    assert os.read(reader, 1000).decode() == ",".join(["SinkClosedError"] * 7)
    os.close(reader)
    os.close(writer)
    sink.flush()
    assert accepted(path) == ["10:00", "10:01"]


def refusals(sink):
    calls = (
        lambda: sink.sendRow(row("10:02")),
        lambda: sink.sendRows(rows("10:02")),
        lambda: sink.sendRowtimeBound(when("10:02")),
        sink.getRowtimeBound,
        sink.flush,
        sink.abandon,
        sink.close,
    )
    for call in calls:
        try:
            call()
            yield "nothing"
        except Exception as error:
            yield type(error).__name__


# ---- opening


def test_open_sink_names_its_producer():
    path = new_stream()
    with rt.openSink(path) as one, rt.openSink(path) as other, rt.openSink(path, producer="P") as named:
        assert one.producer != other.producer
        assert named.producer == "P"
        assert isinstance(one, StreamSink)
        assert isinstance(one, rt.RowSink)


@pytest.mark.parametrize(
    "options",
    [
        {"onLate": "ignore"},
        {"maxTrainRows": 0},
        {"maxTrainRows": "many"},
        {"linger": "soon"},
        {"linger": None},
        {"durability": "none"},
        {"lateness": "1 hour", "kSort": 3},
        {"lateness": {"ticker": "1 hour"}},
        {"kSort": -1},
        {"kSort": True},
        {"rowsImplyBounds": False, "kSort": 3},
        {"rowtime": "nothing"},
    ],
    ids=str,
)
def test_open_sink_refuses_what_it_cannot_do(path, options):
    with pytest.raises(rt.InvalidOptionError):
        rt.openSink(path, **options)
    assert rt.describeStream(path).producers == ()


def test_open_sink_needs_a_stream():
    with pytest.raises(rt.StreamNotFoundError, match="nowhere"):
        rt.openSink("memory://nowhere")


def test_a_producers_own_bound_is_in_force_while_others_are_behind():
    path = new_stream(boundsBeforeRows=False)
    first, second = new_sink(path, "P1"), new_sink(path, "P2")
    first.sendRowtimeBound(when("10:05"))
    assert stream_floor(path) is None
    with pytest.raises(rt.LateRowError):
        first.sendRow(row("10:04"))
    second.sendRow(row("10:00"))
    assert stream_floor(path) == us("10:00")


# ---- the lease


def test_the_pulse_keeps_the_lease(path, clock):
    sink = new_sink(path, "feed", now=clock, linger=HOUR, lease=30_000_000)
    store = STREAMS[path]
    store.now = clock
    sink.sendRow(row("10:00"))
    for _ in range(6):
        clock.advance(10_000_000)
        with sink._lock:
            assert sink._scheduler.run_due() == 10.0
        assert not store.expire()
    sink.close()


def test_a_sink_learns_from_its_pulse_that_it_is_fenced(path, clock):
    old = new_sink(path, "feed", now=clock, linger=HOUR, lease=30_000_000)
    new = new_sink(path, "feed", now=clock, linger=HOUR, lease=30_000_000)
    clock.advance(10_000_000)
    with old._lock:
        old._scheduler.run_due()
    with pytest.raises(rt.ProducerFencedError):
        old.sendRow(row("10:00"))
    new.close()


def test_abandoning_after_a_checkpoint_records_what_was_rejected(path, clock):
    sink = new_sink(path, "feed", now=clock, linger=HOUR, onLate="reject")
    sink.sendRow(row("10:00"))
    sink.flush(checkpoint="1")
    sink.sendRow(row("10:05"))
    sink.sendRow(row("9:00"))
    sink.abandon()
    assert accepted(path) == ["10:00"]
    assert (producer(path, "feed").accepted, producer(path, "feed").rejected) == (1, 1)


def test_close_reports_what_became_late_before_its_commit(clock):
    path = new_stream(maxLag="10 minutes")
    slow, fast = new_sink(path, "slow", now=clock, linger=HOUR), new_sink(path, "fast", now=clock, linger=HOUR)
    slow.sendRow(row("10:00"))
    slow.sendRow(row("10:01", "overtaken"))
    fast.sendRow(row("11:00"))
    with pytest.raises(rt.LateRowError, match="became late before their commit"):
        slow.close()
    assert (producer(path, "slow").accepted, producer(path, "slow").rejected) == (1, 1)
    assert producer(path, "slow").status == "left"


def test_flush_lands_before_it_reports(clock):
    path = new_stream(maxLag="10 minutes")
    slow, fast = new_sink(path, "slow", now=clock, linger=HOUR), new_sink(path, "fast", now=clock, linger=HOUR)
    slow.sendRow(row("10:00"))
    slow.sendRow(row("10:01", "overtaken"))
    fast.sendRow(row("11:00"))
    slow.flush()
    with pytest.raises(rt.LateRowError):
        slow.flush(checkpoint="kept")
    assert producer(path, "slow").checkpoint == "kept"


def test_a_pandas_frame_is_told_the_way_to_arrow():
    frame = pd.DataFrame({"rowtime": [when("10:00")], "ticker": ["X"]})
    sink = new_sink(new_stream())
    with pytest.raises(rt.SchemaMismatchError, match="from_pandas"):
        sink.sendRows(frame)
    sink.sendRows(pa.Table.from_pandas(frame, preserve_index=False))


def test_a_zone_that_knows_no_offset_is_none():
    class Nowhere(tzinfo):
        def utcoffset(self, _):
            return None

    path = new_stream()
    new_sink(path).sendRow({"rowtime": when("10:00").replace(tzinfo=Nowhere()), "ticker": "X"})
    assert accepted(path) == ["10:00"]
