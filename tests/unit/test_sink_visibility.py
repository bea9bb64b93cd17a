"""When the rows of a sink become visible, and in which order."""

import itertools

import pytest
from sink_support import LINGER, counts, rejected, tickers
from unit_support import HOUR, HandClock, accepted, new_sink, row, rows, stream_floor, us, when

import spark_rowtime as rt
from spark_rowtime.producer.timer import Timer
from spark_rowtime.store import open_store
from spark_rowtime.types.timestamps import from_micros, wall_clock


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
    assert open_store(path).wait(seq, 240)
    assert accepted(path) == ["10:00", "10:01"]


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_wall_clock_that_is_set_holds_no_rows_up_and_hurries_none(path, clock, step):
    steady = HandClock("0:00")
    sink = new_sink(path, now=clock, steady=steady, linger=LINGER)
    sink.sendRow(row("10:00"))
    clock.advance(step)
    sink.sendRow(row("10:01"))
    assert accepted(path) == ["10:00"]
    with sink._lock:  # so the timer's thread is not between the two
        steady.advance(LINGER)
        sink.sendRows(rows("10:02"))
    assert accepted(path) == ["10:00", "10:01", "10:02"]


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
