"""A sink's bounds: those that are sent, those that rows imply, and those that others have reached."""

import pytest
from unit_support import HOUR, new_sink, new_stream, row, rows, stream_floor, us, when

import spark_rowtime as rt
from spark_rowtime.store import open_store


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


def test_a_producers_own_bound_is_in_force_while_others_are_behind():
    path = new_stream(boundsBeforeRows=False)
    first, second = new_sink(path, "P1"), new_sink(path, "P2")
    first.sendRowtimeBound(when("10:05"))
    assert stream_floor(path) is None
    with pytest.raises(rt.LateRowError):
        first.sendRow(row("10:04"))
    second.sendRow(row("10:00"))
    assert stream_floor(path) == us("10:00")


def test_a_bound_too_far_ahead_is_refused(clock):
    path = new_stream(maxAhead="1 hour")
    sink = new_sink(path, now=clock)
    for beyond, strict in (("13:00", True), ("13:00:00.000001", False), ("3026-09-11T12:00", False)):
        with pytest.raises(rt.RowtimeAheadError, match="ahead of the clock, which is at 2006-09-11T12:00:00Z") as error:
            sink.sendRowtimeBound(when(beyond), strict=strict)
        assert error.value.values["ceiling"] == us("13:00")
    assert stream_floor(path) is None
    sink.sendRowtimeBound(when("13:00"))
    assert stream_floor(path) == us("13:00")
    clock.advance(HOUR)
    sink.sendRowtimeBound(when("14:00"))
    clock.advance(-3 * HOUR)  # what was said before may be said again
    sink.sendRowtimeBound(when("14:00"))
    unlimited = new_stream(maxAhead="unlimited")
    new_sink(unlimited, now=clock).sendRowtimeBound(when("3026-09-11T12:00"))
    assert stream_floor(unlimited) == us("3026-09-11T12:00")
