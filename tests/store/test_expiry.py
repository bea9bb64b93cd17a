"""Leases and idleness: statements of the wall clock that become events of the log."""

import pytest

from spark_rowtime.bounds.clock import Status
from spark_rowtime.errors import ProducerFencedError
from spark_rowtime.store.base import Store
from tests.store.streams import NewStream, Writer, at, infos, read, seconds

LEASE = 30_000_000


class Hands:
    """A wall clock that stands still until it is set, in seconds."""

    def __init__(self, store: Store) -> None:
        self.store, self.time = store, 0
        store.now = lambda: self.time * 1_000_000


def kinds(store: Store) -> list[tuple[str, str]]:
    """The log's events and whose they are."""
    table = store.bounds().to_pylist()
    return [(row["event"], row["producer"]) for row in table]


def leased(store: Store, name: str) -> Writer:
    return Writer(store, name, lease=LEASE)


def lost_and_alive(store: Store) -> tuple[Hands, Writer, Writer]:
    """At 10 and at 20, both with a lease of 30 seconds from 0 on; the first is not heard of again."""
    hands = Hands(store)
    lost, alive = leased(store, "lost"), leased(store, "alive")
    lost.send([10], floor=10)
    alive.send([20], floor=20)
    return hands, lost, alive


def quiet_and_busy(store: Store) -> tuple[Hands, Writer, Writer]:
    """The first sent 10 at 0 seconds and is silent since, the second 20 at 50; now it is 61."""
    hands = Hands(store)
    quiet, busy = Writer(store, "quiet"), Writer(store, "busy")
    quiet.send([10], floor=10)
    hands.time = 50
    busy.send([20], floor=20)
    hands.time = 61
    return hands, quiet, busy


def test_a_lost_producer_holds_the_clock_until_its_lease_ends(new_stream: NewStream) -> None:
    store = new_stream()()
    hands, _, alive = lost_and_alive(store)
    hands.time = 30
    assert not store.expire()
    assert store.head().floor == at(10)
    store.renew("alive", alive.epoch)
    hands.time = 31
    assert store.expire()
    assert store.head().floor == at(20)
    assert kinds(store)[-1] == ("detached", "lost")
    assert not store.expire(), "once"


def test_the_next_commit_logs_what_has_expired(new_stream: NewStream) -> None:
    store = new_stream()()
    hands, _, alive = lost_and_alive(store)
    hands.time = 31
    assert alive.send([21], floor=21).floor == at(21)
    assert [kind for kind, name in kinds(store) if name == "lost"] == ["joined", "sent", "detached"]


def test_late_after_the_lease_is_rejected_visibly(new_stream: NewStream) -> None:
    store = new_stream()()
    hands, lost, alive = lost_and_alive(store)
    hands.time = 31
    alive.send(floor=21)
    receipt = lost.send([15, 25], floor=25)
    assert [seconds(rejected.rows) for rejected in receipt.rejected] == [[15]]
    assert read(store) == [10, 20, 25]
    info = {p.name: p for p in infos(store)}["lost"]
    assert (info.status, info.accepted, info.rejected) == (Status.ATTACHED, 2, 1)


def test_a_restart_within_the_lease_carries_on(new_stream: NewStream) -> None:
    store = new_stream()()
    hands = Hands(store)
    first = leased(store, "feed")
    first.send([10], floor=10)
    hands.time = 29
    second = Writer(store, "feed", "another process", lease=LEASE)
    assert second.epoch == first.epoch + 1
    assert store.head().floor == at(10)
    with pytest.raises(ProducerFencedError):
        store.renew("feed", first.epoch)
    hands.time = 58
    assert not store.expire()


def test_without_a_lease_it_holds_on_until_it_is_detached(new_stream: NewStream) -> None:
    store = new_stream()()
    hands = Hands(store)
    Writer(store, "patient").send([10], floor=10)
    Writer(store, "other").send([20], floor=20)
    hands.time = 10**6
    assert not store.expire()
    store.detach("patient")
    assert store.head().floor == at(20)


def test_a_silent_producer_stops_counting_until_it_sends_again(new_stream: NewStream) -> None:
    store = new_stream(idleTimeout=60_000_000)()
    _, quiet, busy = quiet_and_busy(store)
    assert store.expire()
    assert store.head().floor == at(20)
    quiet.send([22], floor=22)
    busy.send([30], floor=30)
    assert store.head().floor == at(22), "it counts again"


def test_if_all_are_idle_the_bound_stays(new_stream: NewStream) -> None:
    store = new_stream(idleTimeout=60_000_000)()
    hands = Hands(store)
    Writer(store, "a").send([10], floor=10)
    Writer(store, "b").send([20], floor=20)
    hands.time = 61
    assert store.expire()
    assert store.head().floor == at(10)


def test_the_order_of_those_that_go_at_once_is_fixed(new_stream: NewStream) -> None:
    store = new_stream(idleTimeout=60_000_000)()
    hands = Hands(store)
    for name in "cadbe":
        Writer(store, name)
    Writer(store, "f").send(floor=20)
    hands.time = 61
    assert store.expire()
    assert kinds(store)[-6:] == [("idled", name) for name in "fabcde"]


def test_its_own_silence_does_not_make_a_commit_late(new_stream: NewStream) -> None:
    store = new_stream(idleTimeout=60_000_000)()
    _, quiet, _ = quiet_and_busy(store)
    assert quiet.send([15], floor=15).rejected == ()
    assert store.head().floor == at(15)


def test_a_heartbeat_does_not_keep_from_being_idle(new_stream: NewStream) -> None:
    store = new_stream(idleTimeout=60_000_000)()
    hands = Hands(store)
    quiet = leased(store, "quiet")
    quiet.send([10], floor=10)
    for hands.time in (25, 50, 61):
        store.renew("quiet", quiet.epoch)
    assert store.expire()
    assert kinds(store)[-1] == ("idled", "quiet")
