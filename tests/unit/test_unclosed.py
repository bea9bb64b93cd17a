"""Sinks that nobody closed, in processes of their own: what is committed, what is dropped, and the warning."""

import gc
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path

import pytest
from unit_support import HandClock, accepted, collect_leftovers, new_sink, new_stream, row

import spark_rowtime as rt
from spark_rowtime.bounds.clock import Status
from spark_rowtime.producer import unclosed
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.memory import STREAMS
from tests.landed import landed

HEAD = """
import gc, os, sys, threading
import spark_rowtime as rt

PATH = sys.argv[1]

def opened(**options):
    return rt.openSink(PATH, producer="feed", linger="1 hour", **options)

def send(sink, *minutes):
    for minute in minutes:
        sink.sendRow((f"2006-09-11T10:{minute:02}:00Z", minute))

def die(rows):
    # Once there are so many rows: ends without what Python does at an exit.
    while rt.describeStream(PATH).rows < rows:
        pass
    for thread in threading.enumerate():
        if thread.name == "rowtime-unclosed":
            thread.join()
    os._exit(0)
"""


@pytest.mark.parametrize("by", ["rowtime close", "a newer sink"])
@pytest.mark.parametrize("pending", [False, True])
def test_a_sink_that_somebody_else_ended_holds_nobody(
    path: str, by: str, pending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning is about rows that are lost, if there are some."""
    sink = rt.openSink(path, producer="feed", linger="1 hour")
    for minute in range(2 if pending else 0):
        sink.sendRow((f"2006-09-11T10:0{minute}:00Z", minute))  # the first one is committed at once
    newer = rt.closeProducer(path, "feed") if by == "rowtime close" else rt.openSink(path, producer="feed")
    collect_leftovers()
    monkeypatch.setattr(unclosed, "PATIENCE_SECONDS", 240)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", rt.SinkNotClosedWarning)
        del sink
        gc.collect()
    texts = [str(each.message) for each in told]
    assert len(texts) == pending
    assert all("1 row(s), and bounds, that were sent are lost" in text and "holds" not in text for text in texts)
    if isinstance(newer, rt.StreamSink):
        newer.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    return path


def run(path: str, script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HEAD + script, path]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def warned(ran: subprocess.CompletedProcess[str]) -> int:
    return ran.stderr.count("SinkNotClosedWarning: The sink of producer 'feed' on ")


ENDS = {
    "exit": "sink = opened(); send(sink, 0, 1, 2)",
    "sys.exit": "sink = opened(); send(sink, 0, 1, 2); sys.exit(7)",
    "error": "sink = opened(); send(sink, 0, 1, 2); 1 / 0",
    "collected": "sink = opened(); send(sink, 0, 1, 2); del sink; die(3)",
    "in a cycle": "sink = opened(); send(sink, 0, 1, 2); sink.me = sink; del sink; gc.collect(); die(3)",
    "in a function": "def f():\n    send(opened(), 0, 1, 2)\nf()\ndie(3)",
    "thread": "threading.Thread(target=lambda: send(opened(lease=None), 0, 1, 2)).start(); die(3)",
    "multiprocessing": "import multiprocessing\ndef f():\n    global sink; sink = opened(); send(sink, 0, 1, 2)\n"
    "child = multiprocessing.get_context('fork').Process(target=f); child.start(); child.join()",
}


@pytest.mark.parametrize("how", ENDS)
def test_what_was_sent_is_committed_and_a_warning_says_that_it_was_not_closed(path: str, how: str) -> None:
    ran = run(path, ENDS[how])
    assert landed(path) == [0, 1, 2], ran.stderr
    assert warned(ran) == 1, ran.stderr
    assert "What was sent is committed now." in ran.stderr
    (feed,) = rt.describeStream(path).producers
    assert feed.status is Status.ATTACHED, "it did not say that it has sent everything"


def test_where_warnings_are_errors_every_sink_is_ended(path: str) -> None:
    """An error in the end of one must not keep the others, or the process, from ending."""
    ran = run(
        path,
        """
import warnings
warnings.simplefilter("error")
sinks = [rt.openSink(PATH, producer=name, linger="1 hour", rowsImplyBounds=False) for name in "abc"]
for n, sink in enumerate(sinks):
    send(sink, n, n + 10)
""",
    )
    assert sorted(landed(path)) == [0, 1, 2, 10, 11, 12], ran.stderr
    assert ran.stderr.count("SinkNotClosedWarning") >= 3


def test_after_a_checkpoint_what_was_not_flushed_is_dropped(path: str) -> None:
    ran = run(path, "sink = opened(); send(sink, 0); sink.flush(checkpoint='1'); send(sink, 1, 2)")
    assert landed(path) == [0], "the feed sends the others again"
    assert "2 row(s) sent since checkpoint '1' are dropped: its feed resumes from there." in ran.stderr
    assert warned(ran) == 1


FAILS = {
    "the stream is gone": "os.remove(PATH + '/catalog.db')",
    "its catalog is damaged": "import sqlite3\nwith sqlite3.connect(PATH + '/catalog.db') as catalog:\n"
    "    catalog.execute('UPDATE producers SET seal = seal + 1')",
}


@pytest.mark.parametrize("why", FAILS)
def test_a_commit_that_fails_at_the_exit_says_how_many_rows_are_lost(path: str, why: str) -> None:
    ran = run(path, f"sink = opened(); send(sink, 0); sink.flush(); send(sink, 1, 2)\n{FAILS[why]}")
    assert "2 row(s), and bounds, that were sent are lost, because their commit failed: " in ran.stderr
    assert warned(ran) == 1


@pytest.mark.parametrize(
    "script",
    [
        "with opened() as sink: send(sink, 0, 1, 2)",
        "sink = opened(); send(sink, 0, 1, 2); sink.close(); sink.close(); del sink; gc.collect()",
        "sink = opened(); send(sink, 0, 1, 2); sink.abandon()",
        "try: opened(maxTrainRows=0)\nexcept rt.InvalidOptionError: pass\nwith opened() as sink: send(sink, 0, 1, 2)",
    ],
)
def test_a_sink_that_was_closed_or_abandoned_does_not_warn(path: str, script: str) -> None:
    ran = run(path, script)
    assert (landed(path), ran.stderr) == ([0, 1, 2], "")


def test_a_fork_does_not_end_the_sink_of_its_parent(path: str) -> None:
    ran = run(
        path,
        "sink = opened(); send(sink, 0, 1, 2)\n"
        "if os.fork() == 0:\n    del sink; gc.collect(); sys.exit(0)\n"
        "os.wait(); send(sink, 3); sink.close()",
    )
    assert (landed(path), ran.stderr) == ([0, 1, 2, 3], "")


def test_a_sink_that_nobody_holds_stops_renewing_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unclosed, "PATIENCE_SECONDS", 240)
    path, clock = new_stream(), HandClock()
    STREAMS[path].now = clock
    sink = new_sink(path, "feed", now=clock, lease=30_000_000)
    sink.sendRow(row("10:00"))
    thread, held = sink._scheduler.timer._thread, weakref.ref(sink)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        del sink
    thread.join(240)
    assert not thread.is_alive()
    assert held() is None, "no thread, and no cycle, holds it"
    clock.advance(30_000_001)
    assert STREAMS[path].expire()


def test_a_sink_whose_close_failed_stops_renewing_its_lease_until_it_sends_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, clock = new_stream(), HandClock()
    store = STREAMS[path]
    store.now = clock

    def fail(*_: object, **__: object) -> None:
        raise rt.StoreUnavailableError("no room")

    with pytest.raises(rt.StoreUnavailableError), new_sink(path, "feed", now=clock, lease=30_000_000) as sink:
        sink.sendRow(row("10:00"))
        monkeypatch.setattr(type(store), "leave", fail)
    clock.advance(10_000_000)
    with sink._lock:
        assert sink._scheduler.run_due() is None, "it does not renew"
    clock.advance(20_000_001)
    assert store.expire()
    monkeypatch.undo()
    sink.sendRow(row("10:01"))
    clock.advance(10_000_000)
    with sink._lock:
        assert sink._scheduler.run_due() == 10.0
    sink.close()
    assert accepted(path) == ["10:00", "10:01"]
    assert rt.describeStream(path).producers[0].status is Status.LEFT


def test_a_collection_in_the_midst_of_a_commit_of_another_sink_does_not_stop_it(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector may run anywhere, here in a transaction: the collected sink's commit waits for its end."""
    cycle = rt.openSink(path, producer="forgotten", linger="1 hour", lease=None)
    cycle.sendRow(("2006-09-11T10:00:00Z", 0))
    cycle.sendRow(("2006-09-11T10:00:00Z", 1))
    cycle.me = cycle  # type: ignore[attr-defined]
    gc.collect()
    monkeypatch.setattr("spark_rowtime.producer.unclosed.PATIENCE_SECONDS", 0.05)
    with rt.openSink(path, producer="feed", linger="1 hour") as sink:
        sink.sendRow(("2006-09-11T10:00:00Z", 2))
        sink.sendRow(("2006-09-11T10:00:00Z", 3))
        land, left = Ledger._land, [cycle]
        del cycle

        def collecting(*arguments: object) -> object:
            if left:
                left.clear()
                gc.collect()
            return land(*arguments)

        monkeypatch.setattr(Ledger, "_land", collecting)
        sink.flush()
    for thread in threading.enumerate():
        if thread.name == "rowtime-unclosed":
            thread.join(240)
    assert sorted(landed(path)) == [0, 1, 2, 3]


def test_a_generator_that_waits_does_not_hold_the_lock() -> None:
    """The lease is renewed, and other threads send, while it has not yet given its last row."""
    path, clock = new_stream(), HandClock()
    store = STREAMS[path]
    store.now = clock
    sink = new_sink(path, "feed", now=clock, lease=30_000_000, order={"rowsImplyBounds": False})

    def elsewhere() -> None:
        with sink._lock:
            sink._scheduler.run_due()
        sink.sendRow(row("10:05"))

    def slowly():
        yield row("10:00")
        for _ in range(4):
            clock.advance(10_000_000)
            thread = threading.Thread(target=elsewhere, daemon=True)
            thread.start()
            thread.join(240)
            assert not thread.is_alive()
            assert not store.expire(), "its lease was renewed"
        yield row("10:10")

    sink.sendRows(slowly())
    sink.close()
    assert accepted(path) == [*["10:05"] * 4, "10:00", "10:10"]


def test_an_iterable_is_not_read_where_the_call_cannot_be_taken() -> None:
    sink = new_sink(new_stream())
    sink.close()
    given = iter([row("10:00")])
    with pytest.raises(rt.SinkClosedError):
        sink.sendRows(given)
    assert next(given) == row("10:00")
