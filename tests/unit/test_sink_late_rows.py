"""A sink's late rows: rejected, recorded, counted, logged, and reported to the caller."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sink_support import LINGER, counts, producer, rejected
from unit_support import HOUR, accepted, clock_times, new_sink, new_stream, row, rows, us, when

import spark_rowtime as rt
from spark_rowtime.store import open_store


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


def overtaken(clock):
    """A stream, and a sink whose second row became late before its commit: another producer was beyond maxLag."""
    path = new_stream(maxLag="10 minutes")
    slow, fast = new_sink(path, "slow", now=clock, linger=HOUR), new_sink(path, "fast", now=clock, linger=HOUR)
    slow.sendRow(row("10:00"))
    slow.sendRow(row("10:01", "overtaken"))
    fast.sendRow(row("11:00"))
    return path, slow


def test_close_reports_what_became_late_before_its_commit(clock):
    path, slow = overtaken(clock)
    with pytest.raises(rt.LateRowError, match="became late before their commit"):
        slow.close()
    assert (producer(path, "slow").accepted, producer(path, "slow").rejected) == (1, 1)
    assert producer(path, "slow").status == "left"


def test_flush_lands_before_it_reports(clock):
    path, slow = overtaken(clock)
    slow.flush()
    with pytest.raises(rt.LateRowError):
        slow.flush(checkpoint="kept")
    assert producer(path, "slow").checkpoint == "kept"


# ---- the log of late rows


def test_log_lines_at_the_1st_10th_and_100th(path, caplog):
    caplog.set_level(logging.INFO, "spark_rowtime.laterow")
    sink = new_sink(path, "P", onLate="reject")
    sink.sendRow(row("10:00"))
    for _ in range(120):
        sink.sendRow(row("9:00"))
    assert [r.args[1] for r in caplog.records] == [1, 10, 100]
    assert ["declare a lateness" in r.getMessage() for r in caplog.records] == [True, False, False]
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


def test_a_late_row_is_told_whose_bound_it_fell_below(path):
    """A producer that joins is at the stream's bound: it has not promised that itself."""
    with new_sink(path, "Berlin") as berlin:
        berlin.sendRowtimeBound(when("10:00"))
        berlin.flush()
        oslo = new_sink(path, "Oslo")
        with pytest.raises(rt.LateRowError, match="the stream's since producer 'Berlin' sent") as joined:
            oslo.sendRow(row("9:00"))
        assert "promise of producer 'Oslo'" not in str(joined.value)
        oslo.sendRowtimeBound(when("11:00"))
        with pytest.raises(rt.LateRowError, match=r"promise of producer 'Oslo' itself.*earlier rows and bounds") as own:
            oslo.sendRow(row("10:30"))
        oslo.close()
    names = ("boundOf", "boundBy", "boundEvent")
    values = [tuple(error.value.values[name] for name in names) for error in (joined, own)]
    assert values == [("stream", "Berlin", "sent"), ("producer", "Oslo", None)]
    found = rt.rejectedRows(path).select([*names, "producer"]).to_pylist()
    assert [tuple(one.values()) for one in found] == [(*whose, "Oslo") for whose in values]


def test_whose_bound_it_was_after_a_producer_closed_and_after_a_restart(path):
    with new_sink(path, "Berlin", order={"rowsImplyBounds": False}) as berlin:
        berlin.sendRow(row("10:00"))
        berlin.sendRowtimeBound(when("9:30"))
    with new_sink(path, "Oslo", onLate="reject") as oslo:
        oslo.sendRows(rows("9:45", "9:20", "11:00", "10:59"))
    with new_sink(path, "Oslo", onLate="reject") as again:
        again.sendRow(row("10:30"))
    found = rt.rejectedRows(path)
    whose = [tuple(one.values()) for one in found.select(["boundOf", "boundBy", "boundEvent"]).to_pylist()]
    left, own = ("stream", "Berlin", "left"), ("producer", "Oslo", None)
    assert list(zip(clock_times(found), whose, strict=True)) == [
        ("09:45", left),
        ("09:20", left),
        ("10:59", own),
        ("10:30", own),
    ]


def test_an_interrupt_while_a_late_row_is_logged_loses_no_error() -> None:
    """As Ctrl-C where nobody reads the log."""
    path = new_stream()
    one, other = (rt.openSink(path, producer=name, linger="1 hour") for name in ("one", "other"))
    one.flush(checkpoint="start")
    one.sendRow(row("10:00", "late"))
    rt.detachProducer(path, "one")
    other.sendRow(row("12:00", "later"))
    other.flush()
    with interrupted_logs(), pytest.raises(KeyboardInterrupt):
        one.flush()
    with pytest.raises(rt.LateRowError, match="became late before their commit"):
        one.flush()
    one.close()


@contextmanager
def interrupted_logs() -> Iterator[None]:
    def interrupt(_: logging.LogRecord) -> bool:
        raise KeyboardInterrupt

    logging.getLogger("spark_rowtime.laterow").addFilter(interrupt)
    try:
        yield
    finally:
        logging.getLogger("spark_rowtime.laterow").removeFilter(interrupt)
