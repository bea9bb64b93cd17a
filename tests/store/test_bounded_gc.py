"""gc of a long log: nobody waits for more than a portion of it, and a wrong wall clock changes nothing."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.store.local import LocalStore, create_local, open_local
from spark_rowtime.store.retention import MOST_PORTIONS, PORTION_EVENTS
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from tests.sparksession import wait_for
from tests.store.streams import SCHEMA, SECOND, NewStream, Writer, place, read

Open = Callable[..., LocalStore]
DAY, YEAR = 86_400 * SECOND, 365 * 86_400 * SECOND


def long_log(store: LocalStore, events: int) -> Writer:
    """A producer that has sent so many trains, all of the same bytes."""
    writer = Writer(store, "busy")
    commit = writer.commit([1], floor=2)
    store.commit(type(commit)("busy", writer.epoch, 1, commit.trains * events, commit.floor))
    return writer


def test_another_producer_commits_between_the_portions(open_here: Open) -> None:
    """At each end of a transaction of gc another one, which waits for nobody, commits."""
    store, removed = open_here(), []
    long_log(store, 5 * PORTION_EVENTS)
    other = Writer(open_here(busy_timeout=0), "other")
    execute, begun = store._catalog.execute, [""]

    def between(sql: str, values: Any = ()) -> Any:
        if sql.startswith("BEGIN"):
            begun[0] = sql
        found = execute(sql, values)
        if sql == "COMMIT" and begun[0] == "BEGIN IMMEDIATE":
            other.send([5], floor=3)
            removed.append(other.store.horizon().rows)
        return found

    store._catalog.execute = between
    assert store.gc(age=0).rows == 5 * PORTION_EVENTS
    assert max(after - before for before, after in zip([0, *removed], removed, strict=False)) <= PORTION_EVENTS
    assert other.store.head().rows == 5 * PORTION_EVENTS + len(removed)


@pytest.mark.long
def test_flushes_land_while_a_gc_goes_on(open_here: Open) -> None:
    """Really, in two threads with a connection each. The gc waits at each tenth of its commits until one has landed."""
    store, landed, done = open_here(), [0], threading.Event()
    long_log(store, 100_000)
    other = Writer(open_here(), "other")

    def flush() -> None:
        while not done.is_set():
            other.send([5], floor=3)
            landed[0] += 1

    execute, commits = store._catalog.execute, [0]

    def waiting(sql: str, values: Any = ()) -> Any:
        found = execute(sql, values)
        commits[0] += sql == "COMMIT"
        if sql == "COMMIT" and commits[0] % 10 == 0:
            seen = landed[0]
            wait_for(lambda: landed[0] > seen, "a flush beside the gc")
        return found

    store._catalog.execute = waiting
    thread = threading.Thread(target=flush)
    thread.start()
    try:
        assert store.gc(age=0).rows >= 100_000
    finally:
        done.set()
        thread.join()
    assert commits[0] >= 100


def test_a_reader_that_registers_in_the_midst_of_it_keeps_what_it_needs(open_here: Open) -> None:
    store, late = open_here(), open_here()
    long_log(store, 3 * PORTION_EVENTS)
    execute = store._catalog.execute

    def registering(sql: str, values: Any = ()) -> Any:
        if sql == "BEGIN IMMEDIATE" and not late.snapshot().readers and late.horizon().rows:
            late.keep("late", place(PORTION_EVENTS + 7))
        return execute(sql, values)

    store._catalog.execute = registering
    collected = store.gc(age=0)
    assert collected.kept_for == "reader 'late' needs it"
    assert late.horizon().seq == PORTION_EVENTS + 7
    late.slices(place(PORTION_EVENTS + 7), place(1 << 40))


def test_a_commit_removes_a_bounded_part_and_the_next_go_on(tmp_path: Path) -> None:
    create_local(str(tmp_path / "s"), SCHEMA, StreamSettings(retainAge=DAY))
    time = [0]
    store = open_local(str(tmp_path / "s"), steady=lambda: Reading("boot", time[0]))
    count = (MOST_PORTIONS + 5) * PORTION_EVENTS
    writer = long_log(store, count)
    time[0] = DAY
    writer.number = 1
    writer.send([3], floor=3)
    first = store.horizon().rows
    assert 0 < first <= MOST_PORTIONS * PORTION_EVENTS
    writer.send([4], floor=4)
    assert store.horizon().rows == count
    store.close()


def test_a_wrong_wall_clock_at_one_commit_does_not_keep_the_rest(new_stream: NewStream) -> None:
    store = new_stream()()
    wall, running = [1_700_000_000 * SECOND], [0]
    store.now, store.steady = lambda: wall[0], lambda: Reading("boot", running[0])
    writer = Writer(store, "a")
    for second in range(1, 50):
        wrong = YEAR if second == 5 else -YEAR if second == 20 else 0
        wall[0], running[0] = wall[0] + wrong, running[0] + DAY
        writer.send([second], floor=second)
        wall[0] += DAY - wrong
    assert store.gc(age=10 * DAY).rows == 39
    assert read(store, place(store.horizon().seq)) == list(range(40, 50))


def test_a_wrong_wall_clock_of_the_collector_removes_nothing_that_is_young(new_stream: NewStream) -> None:
    store = new_stream(retainAge=30 * DAY)()
    wall, running = [1_700_000_000 * SECOND], [0]
    store.now, store.steady = lambda: wall[0], lambda: Reading("boot", running[0])
    writer = Writer(store, "a")
    for second in range(1, 49):
        running[0] += SECOND
        writer.send([second], floor=second)
    wall[0] += YEAR
    running[0] += SECOND
    writer.send([49], floor=49)
    assert store.gc().rows == 0
    assert len(read(store)) == 49
