"""Signals and failures that come where nobody looks for them: each row is there once, or an error says so."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit_support import row, rows, when

import spark_rowtime as rt
from spark_rowtime.store.local.catalog import Catalog

HOUR = "1 hour"


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, ticker STRING")
    return path


def landed(path: str) -> list[str]:
    with rt.openReader(path, order="arrival") as reader:
        return [f"{time:%H:%M}" for train in reader for time in train.rows.column("rowtime").to_pylist()]


def interrupting(call: Any, error: BaseException, first: str = "") -> Any:
    """The call, which once does what it does and raises all the same; ``first``: how its argument begins then."""
    left = [error]

    def called(*arguments: Any) -> Any:
        found = call(*arguments)
        if left and (not first or arguments[0].startswith(first)):
            raise left.pop()
        return found

    return called


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TimeoutError("an alarm"), rt.StoreUnavailableError("full")])
def test_law_8_a_commit_that_landed_and_raised_is_not_taken_for_the_next(
    path: str, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    sink = rt.openSink(path, producer="feed", linger=HOUR, onLate="reject")
    sink.sendRows(rows("10:00"))
    sink.flush()
    sink.sendRows(rows("10:01", "9:00"))
    with monkeypatch.context() as broken:
        broken.setattr(sink._store, "commit", interrupting(sink._store.commit, error))
        with pytest.raises(type(error)):
            sink.flush(checkpoint="two")
    sink.sendRow(row("10:02"))
    sink.sendRows(rows("9:30"))
    sink.sendRowtimeBound(when("10:10"))
    sink.flush(checkpoint="three")
    sink.close()
    (feed,) = rt.describeStream(path).producers
    assert landed(path) == ["10:00", "10:01", "10:02"]
    assert (feed.checkpoint, feed.accepted, feed.rejected) == ("three", 3, 2)
    assert feed.bound == rt.RowtimeBound(when("10:10"))


def test_an_interrupt_behind_begin_leaves_no_lock(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (rt.openSink(path, producer=name, lease="1 hour", linger=HOUR) for name in ("one", "two"))
    catalog: Catalog = one._store._catalog
    one.sendRows(rows("10:00"))  # is committed at once
    one.sendRows(rows("10:02"))
    with monkeypatch.context() as broken:
        broken.setattr(catalog, "execute", interrupting(catalog.execute, KeyboardInterrupt(), "BEGIN"))
        with pytest.raises(KeyboardInterrupt):
            one.flush()
    two.sendRows(rows("10:01"))
    two.flush()
    one.flush()
    assert sorted(landed(path)) == ["10:00", "10:01", "10:02"]


def test_a_sink_that_was_interrupted_between_two_steps_says_so(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = rt.openSink(path, producer="feed", linger=HOUR)
    sink.sendRow(row("10:00"))
    sink.flush(checkpoint="one")
    sink.sendRow(row("10:01"))
    with monkeypatch.context() as broken:
        broken.setattr(sink._outbox.rows, "drain", interrupting(sink._outbox.rows.drain, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            sink.flush(checkpoint="two")
    for call in (sink.flush, lambda: sink.sendRow(row("10:02")), lambda: sink.sendRows(rows("10:02")), sink.close):
        with pytest.raises(rt.SinkClosedError, match="interrupted"):
            call()
    with rt.openSink(path, producer="feed") as again:
        assert again.checkpoint == "one"
    assert landed(path) == ["10:00"]


def test_an_interrupt_between_the_columns_of_a_row(path: str) -> None:
    sink = rt.openSink(path, producer="feed", linger=HOUR)
    sink.sendRow(row("10:00"))
    sink.sendRow(row("10:01"))
    take = sink._take_plain

    def half(one: Any) -> bool:
        sink._outbox.rows._columns[0].append(sink._outbox.rows._columns[0][-1])
        raise KeyboardInterrupt

    sink._take_plain = half
    with pytest.raises(KeyboardInterrupt):
        sink.sendRow(row("10:02"))
    sink._take_plain = take
    sink.sendRow(row("10:03"))
    sink.close()
    assert landed(path) == ["10:00", "10:01", "10:03"]


FEED = """
import signal, sys
from datetime import UTC, datetime, timedelta
import spark_rowtime as rt

path, last, tries, interrupts, armed = sys.argv[1], 600, 0, 0, False

def interrupt(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
begin = datetime(2006, 9, 11, tzinfo=UTC)
sink = rt.openSink(path, producer="feed", linger="1 hour")
sink.sendRow((begin, "0"))
sink.flush(checkpoint="0")
while (at := int(sink.checkpoint)) < last:
    tries += 1  # of 60 rows each: Python ignores an interrupt in the callback of a weak reference
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, 0.002 + tries % 7 / 1000)
        for n in range(at + 1, min(at + 60, last) + 1):
            sink.sendRow((begin + timedelta(minutes=n), str(n)))
            sink.flush(checkpoint=str(n))
        armed = False
    except (KeyboardInterrupt, rt.SinkClosedError):
        interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sink.abandon()
    sink = rt.openSink(path, producer="feed", linger="1 hour")
sink.close()
print(interrupts)
"""


def test_law_8_real_interrupts_at_any_point(path: str) -> None:
    """A feed that goes on from its checkpoint gives each row once, wherever it was interrupted."""
    command = [sys.executable, "-c", FEED, path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 3
    with rt.openReader(path, order="arrival") as reader:
        assert [int(n) for train in reader for n in train.rows.column("ticker").to_pylist()] == list(range(601))


def test_where_no_thread_can_be_started_the_row_is_committed_at_once(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    sink = rt.openSink(path, producer="feed", lease=None, linger=HOUR)
    sink.sendRow(row("10:00"))
    monkeypatch.setattr(threading.Thread, "start", none_left)
    sink.sendRow(row("10:01"))
    assert landed(path) == ["10:00", "10:01"]
    monkeypatch.undo()
    sink.sendRow(row("10:02"))
    assert sink._scheduler.timer._thread is not None
    sink.close()
    assert landed(path) == ["10:00", "10:01", "10:02"]


def test_rows_that_send_rows_do_not_pass_an_old_bound(path: str) -> None:
    sink = rt.openSink(path, producer="feed", linger=HOUR)
    sink.sendRow(row("10:00"))

    def generated() -> Iterator[dict[str, Any]]:
        yield row("10:20")
        sink.sendRow(row("10:05"))
        yield row("10:30")

    sink.sendRows(generated())
    with pytest.raises(rt.LateRowError):
        sink.sendRow(row("10:06"))
    sink.close()
    assert landed(path) == ["10:00", "10:05", "10:20", "10:30"]


def test_leases_and_lingers_as_long_as_can_be_said(path: str) -> None:
    with rt.openSink(path, producer="feed", lease="365000 days", linger="200000 days") as sink:
        sink.sendRow(row("10:00"))
        sink.sendRow(row("10:01"))
        with sink._lock:
            sink._scheduler.timer.wake()
        assert sink._scheduler.timer._thread is not None
        assert sink._scheduler.timer._thread.is_alive()
