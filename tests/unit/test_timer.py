"""Timer: one thread, which does what is due under the sink's lock, and ends with the sink."""

import gc
import threading
import weakref

import pytest

from spark_rowtime.producer import timer as timer_module
from spark_rowtime.producer.timer import Timer

PATIENCE_SECONDS = 240


class Owner:
    """What a timer serves: ``waits`` are the answers of ``run_due``, the last of them for ever."""

    def __init__(self, *waits):
        self.lock, self.changed = threading.RLock(), threading.Condition()
        self.waits, self.calls, self.locked, self.threads = list(waits), 0, [], set()
        self.timer = Timer(self.lock, self.run_due, "rowtime-P")

    def run_due(self):
        with self.changed:
            self.calls += 1
            self.locked.append(self.lock._is_owned())
            self.threads.add(threading.current_thread())
            self.changed.notify_all()
        return self.waits.pop(0) if len(self.waits) > 1 else self.waits[0]

    def called(self, times):
        with self.changed:
            return self.changed.wait_for(lambda: self.calls >= times, PATIENCE_SECONDS)

    def thread(self):
        return self.timer._thread

    def end(self):
        thread = self.thread()
        self.timer.stop()
        if thread is not None:
            thread.join(PATIENCE_SECONDS)


@pytest.fixture
def owner():
    made = []

    def make(*waits):
        made.append(Owner(*waits))
        return made[-1]

    yield make
    for one in made:
        one.timer.stop()
    for one in made:
        one.end()


def test_no_thread_runs_before_something_is_due(owner):
    one = owner(None)
    assert one.thread() is None
    one.timer.stop()
    assert one.thread() is None


def test_what_is_due_is_done_under_the_lock_in_one_daemon_thread(owner):
    one = owner(0.0)
    one.timer.wake()
    assert one.called(3)
    one.end()
    assert set(one.locked) == {True}
    [thread] = one.threads
    assert (thread.name, thread.daemon) == ("rowtime-P", True)


def test_a_thread_that_sleeps_is_woken(owner):
    one = owner(None)
    for times in (1, 2, 3):
        one.timer.wake()
        assert one.called(times)
    one.end()
    assert one.calls == 3, "once for each wake"
    assert len(one.threads) == 1


def test_it_sleeps_for_as_long_as_run_due_says(owner):
    one = owner(0.001, 0.001, None)
    one.timer.wake()
    assert one.called(3), "two sleeps ended by themselves"


def test_a_wait_beyond_the_systems_largest_timeout_is_cut(owner, monkeypatch):
    monkeypatch.setattr(timer_module, "LONGEST_SLEEP_SECONDS", 0.001)
    one = owner(float(1 << 62), float(1 << 62), None)
    one.timer.wake()
    assert one.called(3)


def test_a_stopped_timer_does_nothing_more(owner):
    one = owner(0.0)
    with one.lock:
        one.timer.wake()
        thread = one.thread()
        one.timer.stop()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert one.calls == 0


def test_the_thread_ends_with_its_owner():
    one = Owner(None)
    one.timer.wake()
    assert one.called(1)
    thread, wake, gone = one.thread(), one.timer.wake, weakref.ref(one)
    del one
    while gone() is not None and thread.is_alive():
        gc.collect()
    wake()
    thread.join(PATIENCE_SECONDS)
    assert gone() is None
    assert not thread.is_alive()


def test_beside_a_call_that_keeps_the_lock_the_rest_goes_on(owner):
    """And what is due under the lock is done once the call ends."""
    one, other = owner(None), owner(None)
    assert one.timer._shared is other.timer._shared
    with one.lock:
        one.timer.wake()
        other.timer.wake()
        assert other.called(1)
        assert not one.calls
    assert one.called(1)
