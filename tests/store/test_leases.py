"""Leases go by a clock that does not jump, and a producer whose lease ended though it lives joins again."""

from contextlib import AbstractContextManager, nullcontext
from threading import Thread
from typing import Any

import pytest

from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.disorder import declared
from spark_rowtime.diagnosis.causes import Cause, Finding
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.producer.timer import Timer
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Receipt
from spark_rowtime.store.local.store import LocalStore
from spark_rowtime.store.steady_clock import Reading
from tests.store.streams import SCHEMA, SECOND, NewStream, Opener, Writer, at, batch, place, read

LEASE = 30 * SECOND
YEAR = 365 * 86_400 * SECOND


class Machine:
    """A machine's clocks: the wall clock, which jumps, and the other, which begins again at each start."""

    def __init__(self) -> None:
        self.wall, self.boot, self.running = 1_700_000_000 * SECOND, "first start", 0

    def opened(self, open_stream: Opener) -> Store:
        store = open_stream()
        store.now = lambda: self.wall
        store.steady = lambda: Reading(self.boot, self.running)
        return store

    def sink(self, store: Store, name: str, **options: Any) -> StreamSink:
        now, steady = (lambda: self.wall), (lambda: self.running)
        return StreamSink(store, name, declared(SCHEMA), lease=LEASE, now=now, steady=steady, **options)

    def passes(self, seconds: float) -> None:
        self.wall += round(seconds * SECOND)
        self.running += round(seconds * SECOND)


def quiet_and_other(store: Store) -> tuple[Writer, Writer]:
    quiet, other = Writer(store, "quiet", lease=LEASE), Writer(store, "other")
    quiet.send([10], floor=10)
    other.send([20], floor=20)
    return quiet, other


def events(store: Store, name: str) -> list[str]:
    return [row["event"] for row in store.bounds().to_pylist() if row["producer"] == name]


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_a_jump_of_the_wall_clock_ends_no_lease(new_stream: NewStream, jump: int) -> None:
    machine = Machine()
    store = machine.opened(new_stream())
    quiet_and_other(store)
    machine.wall += jump
    assert not store.expire()
    machine.passes(31)
    assert store.expire()
    assert events(store, "quiet")[-1] == "detached"


def test_a_lease_is_not_counted_while_the_machine_is_off(new_stream: NewStream) -> None:
    """In the store of one process there is no such time."""
    open_stream, machine = new_stream(), Machine()
    store = machine.opened(open_stream)
    if "://" in store.path:
        return
    quiet_and_other(store)
    machine.passes(20)
    store.keep("reader", place(4))
    machine.wall, machine.boot, machine.running = machine.wall + YEAR, "second start", 5 * SECOND
    again = machine.opened(open_stream)
    assert again.snapshot().due == []
    machine.passes(9)
    assert not again.expire()
    again.keep("reader", place(4))
    machine.passes(22)
    assert again.expire()


def test_after_a_restart_it_is_not_said_that_what_ran_before_runs(new_stream: NewStream) -> None:
    """Until somebody commits, the uptime stands still, and all seem to have been seen just now."""
    open_stream, machine = new_stream(), Machine()
    store = machine.opened(open_stream)
    if type(store).__name__ not in ("LocalStore", "PostgresStore"):
        return  # it ends with its process
    quiet_and_other(store)
    found = Finding(Cause.PRODUCER_BEHIND, "quiet", "It sends.", "Wait.")
    assert StreamState.of(store.snapshot()).told(found) == found
    machine.boot, machine.running = "second start", 5 * SECOND
    again = machine.opened(open_stream)
    told = StreamState.of(again.snapshot(full=True)).told(found)
    assert told is not None
    assert "was restarted, and nothing was committed since: whether what ran before runs now is not known." in told.note
    again.expire()
    assert StreamState.of(again.snapshot()).told(found) == found


def test_a_lease_that_ended_is_taken_up_again(new_stream: NewStream) -> None:
    """As after a freeze of its container: it holds the clock again, at the stream's bound."""
    machine = Machine()
    store = machine.opened(new_stream())
    quiet, other = quiet_and_other(store)
    machine.passes(31)
    assert store.expire()
    assert store.head().floor == at(20)
    assert store.renew("quiet", quiet.epoch), "its caller is told"
    assert not store.renew("quiet", quiet.epoch), "once"
    assert events(store, "quiet") == ["joined", "sent", "detached", "joined"]
    other.send([30], floor=30)
    assert store.head().floor == at(20), "it holds the clock"
    assert quiet.send([25], floor=25).rejected == ()
    assert store.head().floor == at(25)
    machine.passes(31)
    assert store.expire(), "the lease is counted again"


def test_what_it_had_promised_still_holds(new_stream: NewStream) -> None:
    machine = Machine()
    store = machine.opened(new_stream())
    ahead, slow = Writer(store, "ahead", lease=LEASE), Writer(store, "slow")
    ahead.send(floor=50)
    slow.send([20], floor=20)
    machine.passes(31)
    assert store.expire()
    assert store.renew("ahead", ahead.epoch)
    slow.send([60], floor=60)
    assert store.head().floor == at(50)


def test_one_that_was_detached_by_hand_stays_so_until_it_sends(new_stream: NewStream) -> None:
    machine = Machine()
    store = machine.opened(new_stream())
    quiet, _ = quiet_and_other(store)
    store.detach("quiet")
    machine.passes(40)
    assert not store.renew("quiet", quiet.epoch)
    assert events(store, "quiet")[-1] == "detached"
    quiet.send([25], floor=25)
    machine.passes(31)
    assert store.expire(), "its lease counts again"
    assert store.renew("quiet", quiet.epoch)


def test_one_that_left_is_not_brought_back(new_stream: NewStream) -> None:
    store = Machine().opened(new_stream())
    quiet, _ = quiet_and_other(store)
    quiet.leave()
    assert not store.renew("quiet", quiet.epoch)
    assert events(store, "quiet")[-1] == "left"


def test_what_is_true_now_is_shown_without_writing(new_stream: NewStream) -> None:
    machine = Machine()
    store = machine.opened(new_stream(idleTimeout=60 * SECOND))
    quiet_and_other(store)
    machine.passes(31)
    now = store.snapshot()
    assert (now.clock.floor, now.clock.holder()) == (at(20), "other")
    assert {name: info.status for name, info in now.producers.items()} == {
        "quiet": Status.DETACHED,
        "other": Status.ATTACHED,
    }
    assert (store.head().floor, store.head().seq) == (at(10), 4)
    machine.passes(30)
    assert store.snapshot().producers["other"].status is Status.IDLE
    assert store.expire()
    now = store.snapshot()
    assert (now.clock, now.due) == (now.logged_clock, [])


def busy(store: Store) -> AbstractContextManager[object]:
    """What a call that writes its rows keeps: in PostgreSQL the store's connection, in a directory its lock."""
    if isinstance(store, LocalStore):
        return store._guard
    connection = getattr(store, "_connection", None)
    return nullcontext() if connection is None else connection.lent()


def renewed_beside(sink: StreamSink, call: AbstractContextManager[object]) -> None:
    beside = Thread(target=sink._scheduler.lease.watch.run)
    with call:
        beside.start()
        beside.join()


def test_a_commit_of_another_sink_that_takes_longer_than_the_lease_keeps_it(
    new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one of the timer's thread, which renews the leases of all sinks of the process otherwise."""
    monkeypatch.setattr(Timer, "wake", lambda _: None)
    open_stream, machine = new_stream(), Machine()
    store, other = machine.opened(open_stream), machine.opened(open_stream)
    names = ("slow", "quiet", "third")
    slow, quiet, _ = (machine.sink(store, name, linger=SECOND) for name in names)
    quiet.sendRows(batch(1))
    quiet.flush()
    commit = store.commit

    def slowly_committed(made: Any) -> Receipt:
        for _ in range(4):
            machine.passes(15)
            renewed_beside(quiet, busy(store))
            assert not other.expire()
        return commit(made)

    monkeypatch.setattr(store, "commit", slowly_committed)
    slow.sendRows(batch(2))
    machine.passes(1)
    slow._scheduler.timer.run()
    assert read(other) == [1, 2]
    assert machine.running == 61 * SECOND
    assert {event for name in names for event in events(other, name)} == {"joined", "sent"}
    monkeypatch.undo()
    slow.close()


def test_a_call_that_takes_longer_than_the_lease_keeps_it(
    new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread renews the lease beside the call, here while rows are written and while they are committed."""
    open_stream, machine = new_stream(), Machine()
    store, other = machine.opened(open_stream), machine.opened(open_stream)
    sink = machine.sink(store, "feed", linger=YEAR, maxTrainRows=2)
    Writer(other, "other").send([20], floor=20)
    stage, commit = store.stage, store.commit

    def takes_long() -> None:
        for _ in range(4):
            machine.passes(10)
            renewed_beside(sink, busy(store))
            assert not other.expire()

    def slowly_staged(*train: Any) -> Any:
        takes_long()
        return stage(*train)

    def slowly_committed(made: Any) -> Receipt:
        takes_long()
        return commit(made)

    monkeypatch.setattr(store, "stage", slowly_staged)
    monkeypatch.setattr(store, "commit", slowly_committed)
    sink.sendRows(batch(1, 2, 3, 4))
    sink.flush()
    assert read(other) == [20, 1, 2, 3, 4]
    assert machine.running == 120 * SECOND, "two trains and a commit"
    assert events(other, "feed") == ["joined", "sent", "sent"]
    monkeypatch.undo()
    sink.close()


def test_a_renewal_that_fails_is_tried_again_before_the_lease_ends(
    new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it fails with."""
    monkeypatch.setattr(Timer, "wake", lambda _: None)
    machine = Machine()
    store = machine.opened(new_stream())
    sink = machine.sink(store, "feed", linger=YEAR)
    renew, tries = store.renew_beside, []

    def fails(producers: Any) -> Any:
        tries.append(machine.running // SECOND)
        if len(tries) < 3:
            raise (StoreUnavailableError("away"), OSError("too many open files"))[len(tries) - 1]
        return renew(producers)

    monkeypatch.setattr(store, "renew_beside", fails)
    for _ in range(40):
        machine.passes(1)
        renewed_beside(sink, nullcontext())
        assert not store.expire()
    assert tries == [15, 19, 23, 38]
    monkeypatch.undo()
    sink.close()


def test_a_producer_that_joins_again_beside_a_call_says_so(
    new_stream: NewStream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Timer, "wake", lambda _: None)  # its thread would renew the lease before it ends
    open_stream, machine = new_stream(), Machine()
    store, other = machine.opened(open_stream), machine.opened(open_stream)
    sink = machine.sink(store, "feed", linger=YEAR)
    sink.sendRows(batch(1))
    sink.flush()
    machine.passes(31)
    assert other.expire()
    with sink._lock:
        renewed_beside(sink, busy(store))
    assert events(other, "feed") == ["joined", "sent", "detached", "joined"]
    assert "its rows before the stream's bound are late now" in caplog.text
    sink.close()
