"""A snapshot is one moment of a stream while others commit: in processes, or in threads of a store in one process."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

import spark_rowtime as rt
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.topic_cut import CutBound, TopicCut, merged
from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store.base import Store
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.snapshot import WRITER, Snapshot
from tests.store.processes import start
from tests.store.streams import NewStream, Writer, at, place

NAMES = ("a", "b")
LOOKS = 25
KEPT = '{"rowsImplyBounds": false}'


def work(store: Store, name: str, goes_on: Callable[[], bool] = lambda: True) -> None:
    """Commits again and again: everything that a commit can bring tells its number."""
    writer = Writer(store, name, declaration=KEPT)
    while goes_on():
        number = writer.number + 1
        bound = CutBound(at(number) or 0, TopicCut({"orders": {0: number}}))
        text = str(number)
        keys = KeyChanges(True, text.encode())
        more = {"checkpoint": text, "query_status": text, "keys": keys, "bounds": (bound,)}
        receipt = store.commit(writer.commit([number], floor=number, late=[0], **more))
        with suppress(StoreUnavailableError):  # a reader does not wait for a writer that stands still
            store.keep(name, place(receipt.seq))


def require_whole(snapshot: Snapshot) -> None:
    """Everything tells the same number of each producer, and the totals are theirs."""
    statuses = {status.name: status.content for status in snapshot.statuses if status.role == WRITER}
    for name, record in snapshot.records.items():
        cut = merged(snapshot.cuts.get(name, ()))
        told = [record.accepted, record.rejected, int(statuses.get(name, 0)), int(str(record.checkpoint or 0))]
        told += [int(b"".join(snapshot.keys.get(name, [b"0"]))), cut.offsets["orders"][0] if cut else 0]
        assert told == [record.number] * len(told), name
        assert record.floor is None or record.number == 0 or record.floor == at(record.number)
    records = snapshot.records.values()
    assert snapshot.head.rows == snapshot.rejected == snapshot.rejections == sum(record.number for record in records)
    assert snapshot.clock.floor == snapshot.head.floor == min((record.floor or 0 for record in records), default=0)
    assert snapshot.head.seq == max(record.receipt_seq for record in records)
    assert all(reader.position.seq <= snapshot.head.seq for reader in snapshot.readers)


@contextmanager
def busy(open_stream: Callable[[], Store]) -> Iterator[Store]:
    """Others commit until the block ends. Yields the stream when each of them has committed."""
    store = open_stream()
    store.expect(NAMES)  # so that none is late, whoever begins
    if isinstance(store, MemoryStore):
        with in_threads(open_stream):
            yield until_all_have_sent(store)
        return
    script = (
        f"from {__name__} import work\nfrom spark_rowtime.store import open_store\nwork(open_store(path), sys.argv[2])"
    )
    processes = [start(script, store.path, name) for name in NAMES]
    try:
        yield until_all_have_sent(store, lambda: [p.communicate() for p in processes if p.poll() is not None])
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@contextmanager
def in_threads(open_stream: Callable[[], Store]) -> Iterator[None]:
    ended, interval = threading.Event(), sys.getswitchinterval()
    threads = [
        threading.Thread(target=work, args=(open_stream(), name, lambda: not ended.is_set()), daemon=True)
        for name in NAMES
    ]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        ended.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()


def until_all_have_sent(store: Store, failed: Callable[[], list[object]] = list) -> Store:
    while not all((known := store.producer(name)) and known.number for name in NAMES):
        assert not failed()
        store.wait(store.head().seq, 1)
    return store


def test_one_moment(new_stream: NewStream) -> None:
    with busy(new_stream()) as store:
        last = store.snapshot(full=True)
        for _ in range(LOOKS):
            store.wait(last.head.seq, 300)
            snapshot = store.snapshot(full=True)
            require_whole(snapshot)
            assert snapshot.head.seq > last.head.seq
            last = snapshot


def test_what_is_described_is_one_moment(new_stream: NewStream) -> None:
    with busy(new_stream()) as store:
        for _ in range(LOOKS):
            store.wait(store.head().seq, 300)
            info = rt.describeStream(store.path)
            assert info.rows == info.rejected == sum(producer.accepted for producer in info.producers)
            assert info.bound == min(p.bound for p in info.producers if p.bound is not None)
            assert sum(reader.unread > info.rows for reader in info.readers) == 0
            weakest = min(producer.accepted for producer in info.producers)
            assert info.rowsHeldBack == sum(producer.accepted - weakest for producer in info.producers)


def test_a_brief_one_has_all_but_what_takes_longer(new_stream: NewStream) -> None:
    store = new_stream()()
    writer = Writer(store, "a", declaration=KEPT)
    writer.send([1], floor=1, keys=KeyChanges(True, b"1"))
    brief, full = store.snapshot(), store.snapshot(full=True)
    assert (brief.moved, brief.keys, brief.cuts) == (None, {}, {})
    assert full.moved is not None
    assert full.keys == {"a": [b"1"]}
    assert (brief.head, brief.records.keys(), brief.settings) == (full.head, full.records.keys(), full.settings)


def test_it_has_the_settings_of_its_moment(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    rt.alterStream(store.path, maxAhead="3 days", add="city STRING")
    snapshot = store.snapshot()
    assert (snapshot.settings.maxAhead, snapshot.schema.names[-1]) == (3 * 86_400_000_000, "city")
    assert store.settings.maxAhead is None, "what is open keeps its own"


def test_a_deleted_stream_has_none(new_stream: NewStream) -> None:
    store = new_stream()()
    rt.deleteStream(store.path, force=True)
    with pytest.raises(rt.DataLostError):
        store.snapshot()
