"""Drains and readers when something fails in their midst, and with several threads: each row comes once."""

import threading
from contextlib import nullcontext
from itertools import repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from unit_support import clock_times, new_sink, new_stream, row, rows, stream_floor, us, when

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.memory import STREAMS
from tests.failing import Failing

TRAINS = (("10:00", "10:01"), ("10:02",), ("10:03", "10:04"))
ALL = [time for train in TRAINS for time in train]


@pytest.fixture
def path() -> str:
    """Three trains, read as arrival."""
    path = new_stream()
    sink = new_sink(path, order={"rowsImplyBounds": False})
    for train in TRAINS:
        sink.sendRows(rows(*train))
    sink.sendRowtimeBound(when("10:30"))
    sink.close()
    return path


def by_train(path: str) -> rt.RowReader:
    """A reader that hands the trains out one by one: the sinks of these tests fail at the second."""
    reader = rt.openReader(path, order="arrival")
    reader._how = type(reader._how)("arrival", max_rows=1)
    return reader


def arrived(path: str) -> list[str]:
    with rt.openReader(path, order="arrival") as reader:
        return [time for train in reader for time in clock_times(train.rows)]


def test_no_row_is_visible_without_its_position(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not one of the first train, so that the next drain does not send it again."""
    target = new_stream()
    pump = new_sink(target, "pump", order={"rowsImplyBounds": False})
    monkeypatch.setattr(pump, "flush", Failing(pump.flush, 2, ConnectionError()))
    with pytest.raises(ConnectionError):
        by_train(path).drainTo(pump)
    pump.abandon()
    assert arrived(target) == []
    with new_sink(target, "pump", order={"rowsImplyBounds": False}) as again:
        by_train(path).drainTo(again)
    assert arrived(target) == ALL


@pytest.mark.parametrize("same_reader", [True, False])
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("step", ["stage", "commit"])
def test_a_drain_into_a_sink_whose_flush_failed_goes_on_with_that_flush(
    path: str, monkeypatch: pytest.MonkeyPatch, step: str, behind: bool, same_reader: bool
) -> None:
    target = new_stream()
    sink, reader = new_sink(target, "pump", order={"rowsImplyBounds": False}), by_train(path)
    store = STREAMS[target]
    fail = Failing(getattr(store, step), 2 if step == "stage" else 3, rt.StoreUnavailableError("no room"), behind)
    with monkeypatch.context() as broken:
        broken.setattr(type(store), step, lambda _, *given: fail(*given))
        with pytest.raises(rt.StoreUnavailableError):
            reader.drainTo(sink)
    (reader if same_reader else by_train(path)).drainTo(sink)
    sink.close()
    assert arrived(target) == ALL
    assert stream_floor(target) == us("10:30")


@pytest.mark.parametrize("call", ["sendRows", "sendRowtimeBound"])
def test_a_drain_goes_on_with_the_call_that_took_nothing(path: str, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    target = new_stream()
    sink, reader = new_sink(target, "pump", order={"rowsImplyBounds": False}), by_train(path)
    with monkeypatch.context() as broken:
        broken.setattr(sink, call, Failing(getattr(sink, call), 1, rt.StoreUnavailableError("no room")))
        with pytest.raises(rt.StoreUnavailableError):
            reader.drainTo(sink)
    reader.drainTo(sink)
    sink.close()
    assert (arrived(target), stream_floor(target)) == (ALL, us("10:30"))


def test_a_drain_that_was_interrupted_in_a_call_is_refused_until_the_sink_is_opened_again(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, order = new_stream(), {"rowsImplyBounds": False}
    sink, reader = new_sink(target, "pump", order=order), by_train(path)
    with monkeypatch.context() as broken:
        broken.setattr(sink, "sendRows", Failing(sink.sendRows, 2, KeyboardInterrupt(), behind=True))
        with pytest.raises(KeyboardInterrupt):
            reader.drainTo(sink)
    with pytest.raises(rt.SinkClosedError, match=r"open a sink under its name \('pump'\) again: a drain"):
        reader.drainTo(sink)
    sink.abandon()
    with new_sink(target, "pump", order=order) as again:
        reader.drainTo(again)
    assert arrived(target) == ALL


class Consumer:
    """The least that drainTo needs."""

    def __init__(self) -> None:
        self.got: list[str] = []

    def sendRows(self, rows: pa.RecordBatch) -> None:
        self.got += clock_times(rows)

    def sendRowtimeBound(self, t: Any, strict: bool = False) -> None:
        pass


class Transaction(Consumer):
    """One whose rows are gone when its flush fails."""

    checkpoint: str | None = None

    def flush(self, checkpoint: str | None = None) -> None:
        self.checkpoint = checkpoint


def test_a_consumer_without_flush_gets_the_call_that_failed_again(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    consumer, reader = Consumer(), by_train(path)
    with monkeypatch.context() as broken:
        broken.setattr(consumer, "sendRows", Failing(consumer.sendRows, 2, ConnectionError("gone")))
        with pytest.raises(ConnectionError):
            reader.drainTo(consumer)
    reader.drainTo(consumer)
    assert consumer.got == ALL
    reader.drainTo(consumer)
    assert consumer.got == ALL


class Gathering(Transaction):
    """One that gathers trains, and whose next commit is due after so many looks without a new one."""

    commits, taken, looks, due_after = 0, None, 0, 1000

    def flush(self, checkpoint: str | None = None) -> None:
        self.taken, self.looks = checkpoint, 0

    def commit(self) -> None:
        self.commits += 1
        self.checkpoint = self.taken

    def commitDue(self) -> float | None:
        self.looks += 1
        if self.looks == self.due_after:
            return self.commit()
        return 1000.0 / self.due_after


@pytest.mark.parametrize("follow", [False, True])
def test_a_named_reader_confirms_the_last_commit_of_a_sink_that_gathers(
    path: str, follow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of a drain, and while one that follows waits: else retention keeps what is in the table."""
    sink = Gathering()
    with rt.openReader(path, order="arrival", follow=follow, name="lake") as reader, open_store(path) as store:
        last = store.head().seq
        sink.due_after = 10**6 if follow else 1000
        looks = repeat(sink.due_after - 1, 1000)

        def wait(seen: int, seconds: float) -> None:
            sink.looks = next(looks)
            if [one.seq for one in rt.describeStream(path).readers] == [last]:
                raise KeyboardInterrupt

        monkeypatch.setattr(reader._store, "wait", wait)
        with pytest.raises(KeyboardInterrupt) if follow else nullcontext():
            reader.drainTo(sink)
    assert [(one.seq, one.unread) for one in rt.describeStream(path).readers] == [(last, 0)]


def test_a_drain_to_the_end_does_not_wait_for_the_next_commit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink, reader = Gathering(), by_train(path)
    monkeypatch.setattr(reader._store, "wait", lambda *_: pytest.fail("it waits"))
    reader.drainTo(sink)
    assert (sink.got, sink.commits) == (ALL, 2)


def test_another_consumer_gets_the_whole_train_on_which_one_failed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, reader = Consumer(), Consumer(), by_train(path)
    monkeypatch.setattr(first, "sendRows", Failing(first.sendRows, 2, ConnectionError("gone")))
    with pytest.raises(ConnectionError):
        reader.drainTo(first)
    reader.drainTo(second)
    assert (first.got, second.got) == (list(TRAINS[0]), ALL[2:])


@pytest.mark.parametrize("call", ["sendRows", "flush"])
def test_a_consumer_with_a_flush_that_failed_is_refused_and_a_new_one_resumes(
    path: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    consumer, reader = Transaction(), by_train(path)
    monkeypatch.setattr(consumer, call, Failing(getattr(consumer, call), 2, ConnectionError("gone")))
    with pytest.raises(ConnectionError):
        reader.drainTo(consumer)
    with pytest.raises(
        rt.SinkClosedError, match="Create a new Transaction: a drain into the new one begins at its checkpoint"
    ):
        reader.drainTo(consumer)
    again = Transaction()
    again.checkpoint = consumer.checkpoint
    reader.drainTo(again)
    assert again.got == ALL[2:]


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["Train", "one_batch", "as_bound"])
def test_a_train_that_could_not_be_made_is_the_next_one(
    path: str, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    from spark_rowtime.reader import reader as module

    reader, got = by_train(path), []
    with monkeypatch.context() as broken:
        broken.setattr(module, step, Failing(getattr(module, step), 2, error, behind=True))
        with pytest.raises(type(error)):
            got += [time for train in reader for time in clock_times(train.rows)]
    position = reader.position
    rest = [time for train in reader for time in clock_times(train.rows)]
    assert rest == ALL[2:]
    with rt.openReader(path, order="arrival", start=position) as again:
        assert [time for train in again for time in clock_times(train.rows)] == ALL[2:]


def test_four_threads_share_the_rows_of_one_reader(tmp_path: Path) -> None:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path) as sink:
        for n in range(200):
            sink.sendRow(("2006-09-11T10:00:00Z", n))
            sink.flush()
    together, got = threading.Barrier(4), []

    with rt.openReader(path, order="arrival") as reader:
        reader._how = type(reader._how)("arrival", max_rows=1)

        def iterate() -> None:
            together.wait()
            for train in reader:
                got.append(train.rows.column("n").to_pylist())

        threads = [threading.Thread(target=iterate) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(n for ns in got for n in ns) == list(range(200))


def test_a_reader_that_another_thread_drains_is_refused(path: str) -> None:
    refused: list[BaseException] = []

    class Meanwhile(Consumer):
        def sendRows(self, rows: pa.RecordBatch) -> None:
            for call in (reader.read, lambda: reader.read(timeout=0), lambda: reader.drainTo(Consumer())):
                thread = threading.Thread(target=self.refused, args=(call,))
                thread.start()
                thread.join(240)
            super().sendRows(rows)

        def refused(self, call: Any) -> None:
            with pytest.raises(rt.InvalidOptionError, match="Another thread uses this reader") as caught:
                call()
            refused.append(caught.value)

    reader, consumer = rt.openReader(path), Meanwhile()
    reader.drainTo(consumer)
    assert (consumer.got, len(refused)) == (ALL, 3)
    assert reader.read() is None, "and it is free again"


def test_a_thread_that_waits_for_its_turn_waits_no_longer_than_it_said(path: str) -> None:
    reader, inside, done = rt.openReader(path, follow=True), threading.Event(), []
    list(iter(lambda: reader.read(timeout=0), None))
    store = STREAMS[path]
    wait = store.wait

    class Waiting:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def wait(self, seq: int, timeout: float | None) -> bool:
            inside.set()
            return wait(seq, timeout)

    reader._store = Waiting()  # type: ignore[assignment]
    thread = threading.Thread(target=lambda: done.append(reader.read(timeout=240)), daemon=True)
    thread.start()
    inside.wait(240)
    assert reader.read(timeout=0.01) is None
    sink = new_sink(path)
    sink.sendRow(row("10:40"))
    thread.join(240)
    assert clock_times(done[0].rows) == ["10:40"] or done[0].bound is not None
