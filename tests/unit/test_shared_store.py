"""Sinks of one process and one stream share the open store, the timer's thread and the renewal of their leases."""

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from unit_support import new_sink

import spark_rowtime as rt
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.local import LocalStore

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"
MANY = 40


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, SCHEMA)
    return path


def opened(path: str, number: int, **options: Any) -> Any:
    return rt.openSink(path, producer=f"p{number}", **options)


def row(minute: int) -> tuple[str, int]:
    return f"2026-01-05T14:{minute:02}:00Z", minute


def in_use(path: str) -> tuple[int, int]:
    """How many descriptors on files of the stream, and threads of its sinks, this process has."""
    links = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(link.readlink()))
        except FileNotFoundError:
            continue
    threads = [thread for thread in threading.enumerate() if thread.name == f"rowtime-{path}"]
    return sum(link.startswith(path) for link in links), len(threads)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
def test_many_sinks_use_what_one_uses(path: str) -> None:
    first = opened(path, 0)
    first.sendRow(row(0))
    first.flush()
    one = in_use(path)
    sinks = [first, *(opened(path, number) for number in range(1, MANY))]
    for sink in sinks:
        sink.sendRow(row(1))
        sink.flush()
    assert in_use(path) == one
    for sink in sinks[1:]:
        sink.close()
    first.sendRow(row(2))
    first.close()
    assert in_use(path)[0] == 0
    assert rt.describeStream(path).rows == MANY + 2


def test_one_transaction_renews_all_leases(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed, all_at_once = [], threading.Event()
    renew_all = LocalStore.renew_all

    def noting(store: LocalStore, producers: Any) -> Any:
        renewed.append([held.producer for held in producers])
        if len(renewed[-1]) == MANY:
            all_at_once.set()
        return renew_all(store, producers)

    monkeypatch.setattr(LocalStore, "renew_all", noting)
    sinks = [opened(path, number, lease="3 s") for number in range(MANY)]
    assert all_at_once.wait(240)
    sinks[0].close()
    renewed.clear()
    all_at_once.clear()
    while not renewed:
        all_at_once.wait(0.01)
    assert "p0" not in renewed[0], "a sink that is closed renews nothing"
    for sink in sinks[1:]:
        sink.close()


def test_a_renewal_tells_each_sink_what_became_of_it(path: str) -> None:
    """One is taken over; the others go on."""
    sinks = [opened(path, number, lease="300 ms") for number in range(3)]
    other = opened(path, 1, lease="300 ms")
    lease = sinks[1]._scheduler.lease
    waiting = threading.Event()
    while lease.fenced is None:
        waiting.wait(0.01)
    with pytest.raises(rt.ProducerFencedError):
        sinks[1].sendRow(row(1))
    for sink in (sinks[0], sinks[2], other):
        sink.sendRow(row(1))
        sink.close()
    assert rt.describeStream(path).rows == 3
    with pytest.raises(rt.ProducerFencedError):
        sinks[1].close()


def test_a_sink_in_a_long_call_keeps_no_other_from_committing(path: str) -> None:
    busy, other = opened(path, 0), opened(path, 1, linger="50 ms", lease=None)
    with busy._lock, ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: [other.sendRow(row(n)) for n in range(3)]).result()
        waiting = threading.Event()
        while rt.describeStream(path).rows < 3:
            waiting.wait(0.01)
    busy.close()
    other.close()


def test_threads_with_a_sink_each(path: str) -> None:
    """All have joined before the first row, so that none is late for another."""

    def feed(sink: Any) -> None:
        with sink:
            for minute in range(30):
                sink.sendRow(row(minute))
                if minute % 7 == 0:
                    sink.flush()

    sinks = [opened(path, number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(feed, sinks))
    info = rt.describeStream(path)
    assert (info.rows, info.rejected) == (240, 0)
    assert sorted(r["n"] for train in rt.openReader(path) for r in train.rows.to_pylist()) == sorted(
        n for n in range(30) for _ in range(8)
    )


def test_a_stream_that_was_created_again_is_opened_again(path: str) -> None:
    old = opened(path, 0, lease=None)
    shutil.rmtree(path)
    rt.createStream(path, SCHEMA)
    with opened(path, 1) as sink:
        sink.sendRow(row(1))
    assert rt.describeStream(path).rows == 1
    old.sendRow(row(2))
    with pytest.raises(rt.DataLostError):
        old.flush()
    with pytest.raises(rt.DataLostError):
        old.abandon()


def test_a_stream_that_was_altered_is_opened_again(path: str) -> None:
    with opened(path, 0) as old:
        rt.alterStream(path, add="coupon STRING")
        with opened(path, 1) as new, opened(path, 2) as beside:
            assert new._store is beside._store
            new.sendRow((*row(1), "ten percent"))
            old.sendRow(row(1))
    found = [(r["n"], r["coupon"]) for train in rt.openReader(path) for r in train.rows.to_pylist()]
    assert sorted(found, key=str) == [(1, "ten percent"), (1, None)]


def test_a_stream_is_busy_until_the_last_sink_is_closed(path: str, tmp_path: Path) -> None:
    to = str(tmp_path / "to.rowtime")
    first, second = opened(path, 0), opened(path, 1)
    first.close()
    with pytest.raises(rt.StreamBusyError):
        rt.renameStream(path, to)
    second.close()
    rt.renameStream(path, to)
    rt.createStream(path, SCHEMA)
    with opened(to, 0) as renamed, opened(path, 0) as new:
        assert renamed._store is not new._store
        renamed.sendRow(row(1))
        new.sendRow(row(1))
        new.sendRow(row(2))
    assert [rt.describeStream(name).rows for name in (to, path)] == [1, 2]


@pytest.mark.parametrize("step", ["_land", "_writer", "_land of memory"])
def test_a_call_within_another_call_is_refused(path: str, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """As by a signal's handler that interrupts a commit, or the write of its rows. The interrupted call lands."""
    if step == "_land of memory":
        path = "memory://interrupted"
        rt.createStream(path, SCHEMA)
    outer, inner = opened(path, 0, linger="1 hour"), opened(path, 1, linger="1 hour")
    for sink in (outer, inner):
        sink.sendRow(row(0))
        sink.flush()
        sink.sendRow(row(1))
    store, refused = outer._store, []
    assert store is inner._store
    owner, name = (store._writer, "append") if step == "_writer" else (Ledger, "_land")
    original = getattr(owner, name)

    def interrupted(*arguments: Any) -> Any:
        if not refused:
            with pytest.raises(rt.StoreUnavailableError) as error:
                inner.flush()
            refused.append(error)
        return original(*arguments)

    monkeypatch.setattr(owner, name, interrupted)
    outer.flush()
    assert refused
    inner.flush()
    for sink in (outer, inner):
        sink.close()
    assert rt.describeStream(path).rows == 4


def test_a_fork_opens_a_store_of_its_own(path: str) -> None:
    with opened(path, 0) as sink:
        sink.sendRow(row(0))
        child = os.fork()
        if child == 0:
            try:
                with opened(path, 1) as own:
                    own.sendRow(row(1))
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        sink.sendRow(row(1))
    assert rt.describeStream(path).rows == 3


def test_a_lease_is_renewed_with_others_from_the_half_of_its_pause_on(path, clock):
    """But not where the sink has ended, was taken over, or must not be used any more."""
    sink = new_sink(path, "P", now=clock, lease=60_000_000)
    lease = sink._scheduler.lease
    lease.lives = True
    lease.renewed()
    clock.advance(9_999_999)
    assert not lease.soon_due
    clock.advance(1)
    assert lease.soon_due
    lease.lives = False
    assert not lease.soon_due
    lease.lives, lease.fenced = True, rt.ProducerFencedError("taken over")
    assert not lease.soon_due
    lease.fenced, sink._outbox.interrupt_guard.broken = None, True
    assert not lease.soon_due
