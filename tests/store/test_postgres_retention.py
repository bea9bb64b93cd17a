"""Retention in a database: in portions of events, and not again and again while a reader needs everything."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread, stack_size
from typing import Any

import pytest

from spark_rowtime.errors import DataLostError
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.postgres import removal
from spark_rowtime.store.postgres.background import Background
from spark_rowtime.store.postgres.removal import PORTION_BYTES
from spark_rowtime.store.retention import PORTION_EVENTS
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.sparksession import wait_for
from tests.store.streams import EMPTY, SCHEMA, START, WHOLE, Writer, batch, place, read

NUMBERS = itertools.count(1)
_BOUNDS = (
    "INSERT INTO rowtime.events SELECT {0}, seq + n, 'sent', 'a', 0, stream_floor, stream_floor, stream_largest, "
    "stream_rows FROM rowtime.events, generate_series(1, {1}) n WHERE stream = {0} AND seq = {2}"
)


def create(postgres: PostgresServer, **settings: Any) -> str:
    path = postgres.url(f"retention/{next(NUMBERS)}")
    create_store(path, SCHEMA, StreamSettings(**settings))
    return path


@pytest.fixture
def store(postgres: PostgresServer) -> Iterator[Store]:
    with open_store(create(postgres)) as store:
        yield store


def add_bounds(postgres: PostgresServer, store: Store, count: int) -> None:
    """Makes the log longer by bounds."""
    stream, seq = store.number, store.head().seq
    postgres.execute(_BOUNDS.format(stream, count, seq))
    postgres.execute(f"UPDATE rowtime.heads SET seq = {seq + count} WHERE stream = {stream}")


def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What each transaction removes: from which event to which."""
    found: list[tuple[int, int]] = []
    remove = removal._Removal._remove

    def noting(self: Any, transaction: Any, last: Any, size: int) -> None:
        found.append((transaction.head.horizon, last[0]))
        remove(self, transaction, last, size)

    monkeypatch.setattr(removal._Removal, "_remove", noting)
    return found


def test_a_portion_counts_events_with_and_without_rows(
    postgres: PostgresServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(store, "a")
    writer.send([1], floor=2)
    add_bounds(postgres, store, 3 * PORTION_EVENTS)
    writer.send([3], floor=4)
    add_bounds(postgres, store, PORTION_EVENTS // 2)
    end = store.head().seq
    writer.send([9])
    removed = steps(monkeypatch)
    assert store.gc(age=0).rows == 2
    assert max(upto - after for after, upto in removed) == PORTION_EVENTS
    assert store.horizon() == (end - PORTION_EVENTS // 2, START + 4_000_000, START + 3_000_000, 2)
    assert read(store, place(store.horizon().seq)) == [9]
    assert check_store(store.path).damage == []


def test_a_portion_removes_a_limited_number_of_bytes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, rows = Writer(store, "a"), PORTION_BYTES // 64
    for start in (1, 2, 3, 4, 5, 6, 7, 8):
        commit = writer.commit(floor=start + 1)
        store.commit(replace(commit, trains=(store.stage(wide(start, rows)),)))
    removed = steps(monkeypatch)
    assert store.gc(age=0).rows == 8 * rows
    assert len(removed) == 3


def wide(second: int, rows: int) -> Any:
    """A train of 16 bytes a row: with its head more than a quarter of PORTION_BYTES, so three are a portion."""
    return batch(*[second] * rows)


def test_a_reader_that_needs_everything_costs_the_commits_nothing(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing may go, it is looked at again once there is an eighth more. Afterwards all goes that may."""
    looks: list[int] = []
    look = removal._Removal._look
    monkeypatch.setattr(removal._Removal, "_look", lambda self: (looks.append(1), look(self)))
    monkeypatch.setattr(Background, "start", lambda _, work: work())
    with open_store(create(postgres, retainBytes=1000)) as store:
        store.keep("slow", EMPTY)
        writer = Writer(store, "a")
        for second in range(1, 300):
            writer.send([second], floor=second)
        assert store.horizon().rows == 0
        assert len(looks) < 60
        store.forget("slow")
        for second in range(300, 400):
            writer.send([second], floor=second)
        kept = sum(piece.size for piece in store.slices(place(store.horizon().seq), WHOLE))
        assert kept <= 1000 * 9 / 8 + 1000


def test_a_sink_that_ends_has_removed_what_was_due(postgres: PostgresServer) -> None:
    """A thread of the process removes; a store that is opened for each commit waits for it at its end."""
    path = create(postgres, retainBytes=1000)
    for second in range(1, 30):
        with open_store(path) as store:
            Writer(store, f"p{second}").send([second], floor=second)
            store.close_producer(f"p{second}")
    with open_store(path) as store:
        assert store.horizon().rows > 15


def test_a_commit_lands_where_no_thread_can_be_started(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The removal of old rows is tried again by a later commit."""
    with open_store(create(postgres, retainBytes=100)) as store:
        writer = Writer(store, "a")
        before = stack_size(1 << 46)  # no machine has memory for such a thread
        try:
            assert [writer.send([second], floor=second).seq for second in (1, 2, 3)] == [2, 3, 4]
        finally:
            stack_size(before)
        assert "the next commits will try again" in caplog.text
        assert store.horizon().rows == 0
        writer.send([4], floor=4)
        wait_for(lambda: store.horizon().rows > 0, "the removal beside")
    assert check_store(store.path).damage == []


@pytest.mark.usefixtures("patient", "stands_still")
def test_a_reader_that_registers_waits_for_the_removal_that_goes_on(
    postgres: PostgresServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the removal knows of the reader, or the reader learns at once that its rows are gone."""
    writer = Writer(store, "a")
    for second in (1, 2, 3):
        writer.send([second], floor=second + 1)
    registered: list[bool] = []
    cut = removal._Removal._cut

    def registering(self: Any, transaction: Any) -> None:
        cut(self, transaction)
        thread = Thread(target=lambda: (reader.keep("late", EMPTY), registered.append(True)))
        thread.start()
        while not registered and not postgres.execute(waiting):
            assert thread.is_alive()
        threads.append(thread)
        assert not registered

    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
    threads: list[Thread] = []
    with open_store(store.path) as reader, open_store(store.path) as collecting:
        monkeypatch.setattr(removal._Removal, "_cut", registering)
        assert collecting.gc(age=0).rows == 3
        threads[0].join(300)
        assert registered == [True]
        with pytest.raises(DataLostError, match="no longer has"):
            reader.slices(EMPTY, WHOLE)


def test_two_commits_at_once_begin_one_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    background, leave, begun = Background("removal"), Event(), list[int]()
    start, others = Thread.start, list[Thread]()

    def work() -> None:
        begun.append(1)
        leave.wait()

    def start_beside(thread: Thread) -> None:
        if not others:
            others.append(Thread(target=background.start, args=(work,)))
            start(others[0])
            others[0].join(300)  # it leaves the work to this one
            assert not others[0].is_alive()
        start(thread)

    monkeypatch.setattr(Thread, "start", start_beside)
    background.start(work)
    others[0].join()
    leave.set()
    background.end(10)
    assert begun == [1]
