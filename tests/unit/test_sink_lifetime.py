"""A sink from openSink to close: its options, takeovers, its lease, its end."""

import pytest
from sink_support import producer, tickers
from unit_support import HOUR, HandClock, accepted, new_sink, new_stream, row, rows, stream_floor, us, when

import spark_rowtime as rt
from spark_rowtime.producer.rowsink import StreamSink
from spark_rowtime.store import STREAMS
from spark_rowtime.store.steady_clock import Reading


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
    with pytest.raises(rt.InvalidOptionError, match=next(iter(options))):
        rt.openSink(path, **options)
    assert rt.describeStream(path).producers == ()


def test_open_sink_needs_a_stream():
    with pytest.raises(rt.StreamNotFoundError, match="nowhere"):
        rt.openSink("memory://nowhere")


# ---- takeover


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


# ---- leaving


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


def test_a_fenced_sink_in_a_block_is_ended(path):
    with pytest.raises(rt.ProducerFencedError), new_sink(path, "P") as sink:
        new_sink(path, "P")
        sink.sendRow(row("10:00"))
    with pytest.raises(rt.SinkClosedError):
        sink.flush()


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


def test_a_wall_clock_that_is_set_back_in_small_steps_ends_no_lease(path, clock):
    """Each step is shorter than the pause between two renewals."""
    steady = HandClock("0:00")
    sink = new_sink(path, "feed", now=clock, steady=steady, linger=HOUR, lease=6_000_000)
    store = STREAMS[path]
    store.steady = lambda: Reading("boot", steady())
    sink.sendRow(row("10:00"))
    for _ in range(8):
        steady.advance(2_000_000)
        clock.advance(100_000)  # two seconds on, and 1.9 back
        with sink._lock:
            assert sink._scheduler.run_due() == 2.0
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
