"""What a producer cannot do while another process has the catalog locked is not held against it."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rowtime.errors import ProducerFencedError, StoreUnavailableError
from spark_rowtime.store.local import LocalStore
from spark_rowtime.store.local.uptime import STALL_MICROS
from spark_rowtime.store.steady_clock import Reading
from tests.store.streams import SECOND, Writer, at, place

Open = Callable[..., LocalStore]
LEASE = 30 * SECOND
START_FLOOR = at(10)
COUNTED = STALL_MICROS
"""What is counted of each stall."""


def test_a_lease_does_not_count_the_time_in_which_the_catalog_was_locked(open_here: Open, local_path: str) -> None:
    """A minute, in which nobody could renew: whoever gets the lock first must not judge by it, nor those after it."""
    time, asked = [0], threading.Event()

    def steady() -> Reading:
        reading = Reading("boot", time[0])
        asked.set()
        return reading

    writer, later = (open_here(steady=steady, now=lambda: 0, busy_timeout=240) for _ in "ab")
    quiet, busy = Writer(writer, "quiet", lease=LEASE), Writer(writer, "busy")
    quiet.send([10], floor=10)
    busy.send([20], floor=20)
    lock = sqlite3.connect(Path(local_path) / "catalog.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    asked.clear()
    thread = threading.Thread(target=busy.send, args=([21],), kwargs={"floor": 21})
    thread.start()
    assert asked.wait(240)
    time[0] = 60 * SECOND
    lock.execute("COMMIT")
    lock.close()
    thread.join(240)
    assert later.snapshot().due == []
    assert later.head().floor == at(10), "the quiet one holds the clock"
    time[0] += LEASE + 1
    assert later.expire()


def test_a_time_in_which_nobody_wanted_to_write_counts(open_here: Open) -> None:
    """Ten seconds between calls of all kinds are no wait for a lock."""
    time = [0]
    store = open_here(steady=lambda: Reading("boot", time[0]), now=lambda: 0)
    quiet = Writer(store, "quiet", lease=LEASE)
    quiet.send([10], floor=10)
    for call in (store.snapshot, store.head, store.expire, lambda: store.keep("reader", place(1)), store.summary):
        time[0] += 6 * SECOND + 1
        call()
    assert store.expire()


def test_after_a_reboot_a_lease_ends_though_nobody_writes(open_here: Open) -> None:
    """A reader without a name only polls."""
    boot, time = ["first"], [0]
    store = open_here(steady=lambda: Reading(boot[0], time[0]), now=lambda: 0)
    lost, alive = Writer(store, "lost", lease=LEASE), Writer(store, "alive")
    lost.send([10], floor=10)
    alive.send([20], floor=20)
    boot[0], time[0] = "second", 5 * SECOND
    assert not store.expire()
    time[0] += LEASE + 1
    assert store.expire()
    assert store.head().floor == at(20)


def test_a_wait_that_several_processes_shared_is_taken_out_once(open_here: Open, local_path: str) -> None:
    time = [0]
    handles = [open_here(steady=lambda: Reading("boot", time[0]), now=lambda: 0, busy_timeout=0) for _ in "abc"]
    quiet = Writer(handles[0], "quiet", lease=LEASE)
    quiet.send([10], floor=10)
    lock = sqlite3.connect(Path(local_path) / "catalog.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    for handle in handles:
        with pytest.raises(StoreUnavailableError):
            handle.renew("quiet", quiet.epoch)
    time[0] += 14 * SECOND
    lock.execute("COMMIT")
    lock.close()
    for handle in handles:
        handle.keep("reader", place(1))
    time[0] += LEASE - COUNTED
    assert not handles[0].expire()
    time[0] += 1
    assert handles[0].expire()


class Contended:
    """A process that fails to get the lock at 0 s, and gets it when it tries again."""

    def __init__(self, open_here: Open, local_path: str) -> None:
        self.time = [0]
        self.waits, self.others = (
            open_here(steady=lambda: Reading("boot", self.time[0]), now=lambda: 0, busy_timeout=0) for _ in "ab"
        )
        self.quiet, self.busy = Writer(self.others, "quiet", lease=LEASE), Writer(self.others, "busy")
        self.quiet.send([10], floor=10)
        lock = sqlite3.connect(Path(local_path) / "catalog.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError):
            self.waits.keep("reader", place(1))
        lock.execute("COMMIT")
        lock.close()

    def others_write(self, start: int, end: int) -> None:
        """The others commit every tenth of a second."""
        for tenth in range(start * 10, end * 10):
            self.time[0] = tenth * SECOND // 10
            self.busy.send([20], floor=20)

    def lease_ends_after(self, end: int) -> None:
        """Checks that the lease of the quiet producer ends at this time, and not before."""
        self.time[0] = end
        assert not self.waits.expire()
        self.time[0] += 1
        assert self.waits.expire()


def test_a_wait_in_which_others_wrote_counts(open_here: Open, local_path: str) -> None:
    """Where sixteen processes contend for the lock, each waits for longer than a stall now and then."""
    contended = Contended(open_here, local_path)
    contended.others_write(0, 14)
    contended.waits.keep("reader", place(1))
    contended.lease_ends_after(LEASE)


def test_the_part_of_a_wait_in_which_nobody_wrote_does_not_count(open_here: Open, local_path: str) -> None:
    contended = Contended(open_here, local_path)
    contended.others_write(0, 4)
    contended.time[0] = 14 * SECOND
    contended.waits.keep("reader", place(1))
    contended.lease_ends_after(LEASE + 10 * SECOND + SECOND // 10 - COUNTED)


def test_a_wait_is_taken_out_after_a_transaction_that_failed(open_here: Open, local_path: str) -> None:
    """A commit that is refused after a long wait takes nothing back of what is known about the wait.

    It lasts until somebody has written.
    """
    contended = Contended(open_here, local_path)
    contended.time[0] = 14 * SECOND
    with pytest.raises(ProducerFencedError):
        contended.waits.renew("quiet", contended.quiet.epoch + 1)
    contended.time[0] = 29 * SECOND
    contended.waits.keep("reader", place(1))
    contended.lease_ends_after(LEASE + 29 * SECOND - COUNTED)


class Stopped:
    """A clock of one process, which is stopped for a minute before it looks at the clock for the ``at``-th time."""

    def __init__(self, at: int) -> None:
        self.micros, self.left = 0, -1
        self.at = at

    def read(self) -> Reading:
        self.left -= 1
        if self.left == 0:
            self.micros += 60 * SECOND
        return Reading("boot", self.micros)

    def stops(self) -> None:
        """The minute is within the calls that follow."""
        self.left = self.at


def refused(store: LocalStore, busy: Writer) -> None:
    with pytest.raises(ProducerFencedError):
        store.renew("busy", busy.epoch + 1)


WORK: dict[str, Callable[[LocalStore, Writer], object]] = {
    "commit": lambda _, busy: busy.send([21], floor=21),
    "renew": lambda store, busy: store.renew("busy", busy.epoch),
    "refused": refused,
}


@pytest.mark.parametrize(
    ("work", "at"),
    [(work, at) for work in WORK for at in ("waits", "works", "ends") if (work, at) != ("refused", "ends")],
)
def test_who_stood_still_with_the_lock_ends_no_lease(open_here: Open, work: str, at: str) -> None:
    """A minute passes for all between two steps of its transaction. Its next one judges the others by it."""
    clock = Stopped({"waits": 2, "works": 3, "ends": 4}[at])
    stopped, others = (open_here(steady=clock.read, now=lambda: 0) for _ in "ab")
    quiet, busy = Writer(others, "quiet", lease=LEASE), Writer(stopped, "busy", lease=10 * LEASE)
    quiet.send([10], floor=10)
    busy.send([20], floor=20)
    clock.stops()
    WORK[work](stopped, busy)
    busy.send([22], floor=22)
    assert others.head().floor == START_FLOOR, "the quiet one holds the clock"
    clock.micros += LEASE + 1
    assert others.expire()


@pytest.mark.parametrize("durations", [[SECOND], [SECOND // 4, SECOND // 2]])
def test_a_lease_ends_though_every_commit_is_slow(open_here: Open, durations: list[int]) -> None:
    """On a slow disk each commit holds the lock for longer than a stall, and one follows the other."""
    clock, slow = [0], [0]

    def wall() -> int:  # looked at within the transaction
        clock[0] += slow[0]
        return 0

    store = open_here(steady=lambda: Reading("boot", clock[0]), now=wall)
    quiet, busy = Writer(store, "quiet", lease=LEASE), Writer(store, "busy")
    quiet.send([10], floor=10)
    for second in range(20, 220):
        slow[0] = durations[second % len(durations)]
        busy.send([second], floor=second, late=[1])
    assert store.head().floor == at(219)
