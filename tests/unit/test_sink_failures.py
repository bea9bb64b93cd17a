"""A sink whose store fails; a sink that threads share, or that a fork inherits."""

import os
import signal
import threading

import pytest
from sink_support import LINGER, counts, producer, tickers
from unit_support import HOUR, accepted, new_sink, row, rows, when

import spark_rowtime as rt
from spark_rowtime.store import open_store


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


def fail(why):
    raise rt.StoreUnavailableError(why)


def test_a_late_row_is_told_also_where_the_answer_is_lost_and_the_next_commit_fails(
    path, failing, clock, monkeypatch, caplog
):
    sink = new_sink(path, "P", now=clock, linger=LINGER)
    other = new_sink(path, "Q", now=clock)
    sink.flush(checkpoint="0")
    sink.sendRow(row("10:00"))
    open_store(path).detach("P")
    other.sendRowtimeBound(when("11:00"))
    failing.mute = True
    with pytest.raises(rt.StoreUnavailableError, match="connection was lost"):
        sink.flush()
    failing.mute = False
    landed, commit = failing.producer("P").number, failing.commit
    with monkeypatch.context() as full:
        full.setattr(failing, "commit", lambda one: commit(one) if one.number == landed else fail("the disk is full"))
        with pytest.raises(rt.StoreUnavailableError, match="disk is full"):
            sink.flush(checkpoint="1")
    with pytest.raises(rt.LateRowError, match="became late before their commit"):
        sink.flush()
    assert counts(path, "P") == (0, 1)
    assert len(caplog.messages) == 1
    sink.flush()


@pytest.mark.parametrize("order", [{"kSort": 2}, {"inOrderPer": "ticker"}])
def test_abandoning_after_a_lost_answer_keeps_the_order_that_has_landed(path, failing, clock, order):
    """Or a later sink would take rows that what has landed excludes."""
    sink = new_sink(path, "P", now=clock, linger=LINGER, order=order, onLate="reject")
    sink.sendRows(rows("10:00", "10:01", "10:02", "10:03"))
    sink.flush(checkpoint="1")
    sink.sendRows(rows("11:00", "11:01", "11:02", "11:03"))
    sink.sendRow(row("9:00"))
    failing.mute = True
    with pytest.raises(rt.StoreUnavailableError):
        sink.flush(checkpoint="2")
    failing.mute = False
    store = open_store(path)
    landed = store.keys("P"), store.producer("P").disorder
    sink.abandon()
    assert (producer(path, "P").checkpoint, *counts(path, "P")) == ("2", 8, 1)
    assert (store.keys("P"), store.producer("P").disorder) == landed


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
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it would go on as another process of pytest
            signal.alarm(240)
            os.write(writer, ",".join(refusals(sink)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    done.set()
    holder.join()
    os.waitpid(child, 0)
    assert os.read(reader, 1000).decode() == ",".join(["SinkClosedError"] * 7)
    os.close(reader)
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


def test_the_timers_thread_leaves_a_fenced_sink_to_the_next_call(path, clock):
    sink = new_sink(path, "P", now=clock, linger=HOUR)
    sink.sendRow(row("10:00"))
    sink.sendRow(row("10:01"))
    new_sink(path, "P")
    with sink._lock:
        clock.advance(2 * HOUR)
        sink._scheduler.run_due()
    assert accepted(path) == ["10:00"]
    with pytest.raises(rt.ProducerFencedError):
        sink.sendRow(row("10:01"))
