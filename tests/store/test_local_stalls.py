"""What a producer cannot do while another process has the catalog locked is not held against it."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from spark_rowtime.store.local import LocalStore
from spark_rowtime.store.steady import Reading
from tests.store.streams import SECOND, Writer, at

Open = Callable[..., LocalStore]
LEASE = 30 * SECOND


def test_a_lease_does_not_count_the_time_in_which_the_catalog_was_locked(open_here: Open, local_path: str) -> None:
    """A minute, in which nobody could renew: whoever gets the lock first must not judge by it, nor those after it."""
    time, asked = [0], threading.Event()

    def steady() -> Reading:
        asked.set()
        return Reading("boot", time[0])

    writer, later = (open_here(steady=steady, now=lambda: 0, busy_timeout=60) for _ in "ab")
    quiet, busy = Writer(writer, "quiet", lease=LEASE), Writer(writer, "busy")
    quiet.send([10], floor=10)
    busy.send([20], floor=20)
    lock = sqlite3.connect(Path(local_path) / "catalog.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    asked.clear()
    thread = threading.Thread(target=busy.send, args=([21],), kwargs={"floor": 21})
    thread.start()
    assert asked.wait(30)
    time[0] = 60 * SECOND
    lock.execute("COMMIT")
    lock.close()
    thread.join(30)
    assert later.due() == []
    assert later.head().floor == at(10), "the quiet one holds the clock"
    time[0] += LEASE + 1
    assert later.expire()
