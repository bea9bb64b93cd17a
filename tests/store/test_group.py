"""Commits of several threads in one transaction: as if each had one of its own, with one sync for all."""

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.errors import DataLostError, LateRowError, ProducerFencedError, RowtimeError, StoreUnavailableError
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.commits import Commit
from spark_rowtime.store.local import LocalStore
from spark_rowtime.store.local.segment import SegmentWriter
from tests.sparksession import wait_for
from tests.store.streams import Writer, batch, read, seconds
from tests.store.streams import at as micros

Open = Callable[..., LocalStore]


@contextmanager
def together(store: LocalStore, commits: Sequence[Commit]) -> Iterator[list[Future[Any]]]:
    """Commits in threads that wait for the store, in this order, until the block ends."""
    with ThreadPoolExecutor(len(commits)) as threads, store._guard:
        found = []
        for n, commit in enumerate(commits, 1):
            found.append(threads.submit(store.commit, commit))
            wait_for(lambda n=n: len(store._group._waiting) == n, "the thread to wait")  # type: ignore[misc]
        yield found


def outcome(call: Callable[[], Any]) -> Any:
    """What a commit gave, without its seq: the type of its error, or the floor and the late rows."""
    try:
        receipt = call()
    except RowtimeError as error:
        return type(error)
    return receipt.floor, [seconds(one.rows) for one in receipt.rejected]


def joining(threads: ThreadPoolExecutor, store: LocalStore, commit: Commit) -> Future[Any]:
    """A commit of a thread that waits now for the one that leads."""
    before = len(store._group._waiting)
    found = threads.submit(store.commit, commit)
    wait_for(lambda: len(store._group._waiting) > before, "the thread to wait")
    return found


@pytest.fixture
def transactions(open_here: Open) -> tuple[LocalStore, list[str]]:
    """A store with durability power, and the statements that end its transactions."""
    store, ended = open_here(durability="power"), list[str]()
    store._catalog._db.set_trace_callback(lambda sql: ended.append(sql) if sql in ("COMMIT", "ROLLBACK") else None)
    return store, ended


def test_threads_share_a_sync(transactions: tuple[LocalStore, list[str]]) -> None:
    store, ended = transactions
    commits = [Writer(store, f"p{n}").commit([n + 1], floor=n + 1) for n in range(20)]
    ended.clear()
    with together(store, commits) as found:
        pass
    assert sorted(future.result().seq for future in found) == list(range(21, 41))
    assert ended == ["COMMIT"]
    assert sorted(read(store)) == list(range(1, 21))
    assert check_store(store.path).damage == []


def test_as_if_alone(open_here: Open, tmp_path: Any) -> None:
    """Rows of several threads, late ones, refused commits of all kinds, and one twice: as one after the other."""
    store, alone = open_here(), str(tmp_path / "alone")
    rt.createStream(alone, store.schema)
    with closing(open_store(alone)) as other:
        given, expected = (_commits(one) for one in (store, other))
        with together(store, given) as found:
            pass
        outcomes = [outcome(future.result) for future in found]
        assert outcomes == [outcome(lambda commit=commit: other.commit(commit)) for commit in expected]  # type: ignore[misc]
        assert {ProducerFencedError, DataLostError, LateRowError} <= {one for one in outcomes if isinstance(one, type)}
        assert [one for one in outcomes if isinstance(one, tuple) and one[1]] == [(micros(3), [[2.0]])]
        assert (sorted(read(store)), store.head()) == (sorted(read(other)), other.head())
        for name in ("late", "strict", "wrong"):
            assert store.producer(name) == other.producer(name)
    assert check_store(store.path).damage == []


def _commits(store: LocalStore) -> list[Commit]:
    names = ("good", "late", "strict", "wrong", "fenced", "more")
    good, late, strict, wrong, fenced, more = (Writer(store, name) for name in names)
    for name in names[1:]:
        store.detach(name)
    first = good.commit([3, 4], floor=3)
    return [
        first,
        late.commit([5], [2], floor=1),
        replace(strict.commit([2], [6]), all_or_nothing=True),
        replace(wrong.commit([7]), number=5),
        replace(fenced.commit([8]), epoch=9),
        first,
        more.commit([9], floor=9),
    ]


def test_what_fails_together_is_tried_alone(open_here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the thread whose commit cannot be written gets the error."""
    store, decided = open_here(), LocalStore._decided_alone

    def failing(self: LocalStore, member: Any) -> Any:
        if member.commit.producer == "bad":
            raise OSError(28, "No space left on device")
        return decided(self, member)

    monkeypatch.setattr(LocalStore, "_decided_alone", failing)
    with together(store, [Writer(store, name).commit([1]) for name in ("a", "bad", "b")]) as found:
        pass
    assert [outcome(one.result) for one in found] == [(None, []), StoreUnavailableError, (None, [])]
    assert read(store) == [1, 1]
    assert not store._group._waiting


def test_whoever_is_interrupted_leaves_the_others_to_land(open_here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    store, land, interrupted = open_here(), LocalStore._land, list[bool]()

    def stopped(self: LocalStore, members: Any) -> None:
        if len(members) > 1 and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        land(self, members)

    monkeypatch.setattr(store._group, "_land", lambda members: stopped(store, members))
    with together(store, [Writer(store, name).commit([1]) for name in ("a", "b", "c")]) as found:
        pass
    assert sorted(type(one.exception()) is KeyboardInterrupt for one in found) == [False, False, True]
    assert read(store) == [1, 1]
    assert not store._group._waiting


def test_a_commit_that_is_given_up_while_it_waits_does_not_land(open_here: Open) -> None:
    store = open_here()
    own, other = Writer(store, "own"), Writer(store, "other")
    holds, ends = threading.Event(), threading.Event()

    def hold() -> None:
        with store._guard:
            holds.set()
            wait_for(lambda: bool(store._group._waiting), "the main thread to wait")
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            ends.wait(60)

    def give_up(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, give_up)
    thread = threading.Thread(target=hold)
    try:
        thread.start()
        holds.wait(60)
        with pytest.raises(TimeoutError):
            own.send(floor=5)
    finally:
        ends.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    other.send([1])
    assert (read(store), store.producer("own").number) == ([1], 0)


def test_rows_are_written_while_another_thread_commits(open_here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may wait for the disk. Who closes the store meanwhile waits for both."""
    store, append, begun = open_here(), SegmentWriter.append, threading.Event()
    with store._guard, ThreadPoolExecutor(1) as threads:
        staged = threads.submit(store.stage, batch(1)).result(60)
    writer = Writer(store, "a")
    store.commit(replace(writer.commit(), trains=(staged,)))
    assert read(store) == [1]

    def slow(rows: Any) -> Any:
        begun.set()
        wait_for(lambda: store._guard._closed, "the store to close")
        return append(store._writer, rows)

    monkeypatch.setattr(store._writer, "append", slow)
    with ThreadPoolExecutor(1) as threads:
        last = threads.submit(store.stage, batch(2))
        begun.wait(60)
        store.close()
        assert last.done()
        assert last.result().rows == 1
    with pytest.raises(rt.SinkClosedError):
        store.stage(batch(3))


def test_who_has_landed_does_not_wait_for_the_next_one_that_leads(open_here: Open) -> None:
    """It may prepare its next commit meanwhile."""
    store, found, led = open_here(), list[Future[Any]](), list[int]()
    land, (first, *others, last) = store._group._land, [Writer(store, name).commit([1]) for name in "abcd"]

    def landing(members: Any) -> None:
        led.append(len(members))
        for commit in {1: others, 2: [last]}.get(len(led), []):
            found.append(joining(threads, store, commit))
        if len(led) == 3:
            wait_for(lambda: all(one.done() for one in found[:2]), "those that have landed to return")
        land(members)

    store._group._land = landing
    with ThreadPoolExecutor(4) as threads:
        assert threads.submit(store.commit, first).result(60).seq
        assert len([one.result(60) for one in found]) == 3
    assert (led, read(store)) == ([1, 2, 1], [1] * 4)


def test_who_is_not_woken_waits_no_longer_than_its_patience(open_here: Open) -> None:
    """An interrupt may come between any two steps of the one that leads."""
    store = open_here()
    writer, store._group._leader = Writer(store, "a"), -1
    writer.send([1])
    assert (read(store), store._group._leader) == ([1], None)


def test_who_is_interrupted_when_it_is_to_lead_wakes_the_next_one(
    open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_rowtime.store.local.group.PATIENCE_SECONDS", 60.0)
    store, found, woken = open_here(), list[Future[Any]](), list[str]()
    land, lead = store._group._land, store._group._lead
    first, *others = [Writer(store, name).commit([1]) for name in "abc"]

    def landing(members: Any) -> None:
        found.extend(joining(threads, store, commit) for commit in (others if not found else []))
        land(members)

    def interrupted(own: Any) -> None:
        woken.append(own.commit.producer)
        if own.commit.producer == "b":
            raise KeyboardInterrupt
        lead(own)

    store._group._land, store._group._lead = landing, interrupted  # type: ignore[method-assign]
    with ThreadPoolExecutor(3) as threads:
        assert threads.submit(store.commit, first).result(60).seq
        assert isinstance(found[0].exception(60), KeyboardInterrupt)
        assert found[1].result(10).seq
    assert (woken, read(store)) == (["a", "b", "c"], [1, 1])


def test_who_closes_the_store_takes_no_receipt_away(open_here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that has landed is no error, though the store is closed before its thread is told."""
    store, commits = open_here(durability="power"), 4
    land, landed = store._group._land, threading.Event()

    def then_closed(members: Any) -> None:
        land(members)
        landed.set()
        wait_for(lambda: store._guard._closed, "the store to close")

    monkeypatch.setattr(store._group, "_land", then_closed)
    given = [Writer(store, f"p{n}").commit([1]) for n in range(commits)]
    with ThreadPoolExecutor(1) as closer, together(store, given) as found:
        closer.submit(lambda: (landed.wait(60), store.close()))
    assert [future.result().floor for future in found] == [None] * commits
    assert read(open_here()) == [1] * commits


def test_no_more_commits_in_a_transaction_than_may(
    transactions: tuple[LocalStore, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_rowtime.store.local.group.MOST_COMMITS", 3)
    store, ended = transactions
    commits = [Writer(store, f"p{n}").commit([1]) for n in range(7)]
    ended.clear()
    with together(store, commits) as found:
        pass
    assert len([future.result() for future in found]) == 7
    assert ended == ["COMMIT"] * 3


def test_behind_a_lock_of_another_process_nobody_waits_twice(open_here: Open) -> None:
    store = open_here(busy_timeout=0.0)
    commits, tries = [Writer(store, f"p{n}").commit([1]) for n in range(3)], list[int]()
    land = store._group._land
    store._group._land = lambda members: (tries.append(len(members)), land(members))[1]
    with closing(sqlite3.connect(store._catalog.file, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with together(store, commits) as found:
            pass
        assert [outcome(future.result) for future in found] == [StoreUnavailableError] * 3
        assert tries == [3, 2, 1]


def test_a_signals_handler_waits_for_no_thread_that_waits_for_it(
    open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while rows are written, for which the commit of another thread waits."""
    store, append = open_here(), SegmentWriter.append
    commit, said, other = Writer(store, "other").commit([1]), list[Any](), list[Future[Any]]()
    with ThreadPoolExecutor(1) as threads:

        def handled(rows: Any) -> Any:
            other.append(threads.submit(store.commit, commit))
            wait_for(lambda: is_held(store), "the other thread to have the store")
            said.append(outcome(store.head))
            return append(store._writer, rows)

        monkeypatch.setattr(store._writer, "append", handled)
        store.stage(batch(2))
        assert other[0].result(60).seq
    assert said == [StoreUnavailableError]


def is_held(store: LocalStore) -> bool:
    """Whether another thread has the store's lock."""
    lock = store._guard._lock
    if free := lock.acquire(blocking=False):
        lock.release()
    return not free
