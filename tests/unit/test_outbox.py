"""Outbox: all or nothing, in the order of the calls, each row once."""

from inspect import isfunction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sink_support import producer, rejected, tickers
from unit_support import HOUR, SCHEMA, accepted, new_sink, new_stream, row, rows, us, when, whole_log

import spark_rowtime as rt
from spark_rowtime.bounds.disorder import InOrder, KSorted
from spark_rowtime.bounds.train import Timed
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.producer.staging import SMALL_BATCH_ROWS
from spark_rowtime.store import STREAMS, open_store
from spark_rowtime.store.commits import Rejected
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.types.schema import rows_to_batch, stream_schema
from spark_rowtime.types.timestamps import from_micros

STREAM_SCHEMA = stream_schema(SCHEMA)


class FaultyStore(MemoryStore):
    """A store whose commits raise ``error`` before or after they have landed."""

    fault = ""
    error: BaseException = rt.StoreUnavailableError("the disk is full")

    def commit(self, commit):
        fault, self.fault = self.fault, ""
        if fault == "before":
            raise self.error
        receipt = super().commit(commit)
        if fault == "after":
            raise self.error
        return receipt


@pytest.fixture
def store(path):
    made = STREAMS[path]
    STREAMS[path] = FaultyStore(path, made.schema, made.settings)
    return STREAMS[path]


def new_outbox(store, *, disorder=None, max_train_rows=65536, name="P"):
    disorder = disorder or InOrder()
    info = store.attach(name, "holder", disorder.declaration)
    return Outbox(store, info, disorder, max_train_rows, True)


def batch(*texts, ticker="X"):
    return Timed(rows_to_batch([row(text, ticker) for text in texts], STREAM_SCHEMA))


def late(text):
    return [Rejected("late", us("10:00"), rows_to_batch(rows(text), STREAM_SCHEMA))]


def take(outbox, text, ticker="X"):
    """One row by the fast path."""
    outbox.start_fast_path(None)
    assert outbox.rows.take((when(text), ticker))


# ---- one commit


def test_one_commit_has_the_rows_the_floor_the_rejections_and_the_checkpoint(path, store):
    outbox = new_outbox(store)
    outbox.add_batch(batch("10:00", "10:01"))
    outbox.floors.promise(us("10:05"))
    outbox.reject(late("9:00"))
    seq = store.head().seq
    outbox.commit("offset 2", 0)
    assert outbox.late == []
    assert (store.head().seq, store.head().floor) == (seq + 1, us("10:05"))
    assert accepted(path) == ["10:00", "10:01"]
    assert rejected(path) == [("P", "late", when("10:00"), "09:00", "X")]
    assert (producer(path, "P").checkpoint, outbox.checkpoint) == ("offset 2", "offset 2")
    assert producer(path, "P").bound == rt.RowtimeBound(when("10:05"))


def test_a_commit_without_a_checkpoint_keeps_the_stored_one(path, store):
    outbox = new_outbox(store)
    outbox.commit("one", 0)
    outbox.add_batch(batch("10:00"))
    outbox.commit(None, 0)
    assert (producer(path, "P").checkpoint, outbox.checkpoint) == ("one", "one")


def test_pending_is_whether_there_is_anything_to_commit(store):
    outbox = new_outbox(store)
    assert not outbox.pending
    for add in (
        lambda: outbox.add_batch(batch("10:00")),
        lambda: take(outbox, "10:01"),
        lambda: outbox.floors.promise(us("10:02")),
        lambda: outbox.reject(late("9:00")),
    ):
        add()
        assert outbox.pending
        outbox.commit(None, 0)
        assert not outbox.pending


def test_a_weaker_promise_leaves_the_floor(store):
    outbox = new_outbox(store)
    outbox.floors.promise(us("10:05"))
    outbox.floors.promise(us("10:04"))
    outbox.commit(None, 0)
    assert store.head().floor == us("10:05")


# ---- trains


def test_rows_of_both_paths_are_counted_and_keep_their_order(path, store):
    outbox = new_outbox(store)
    take(outbox, "10:00", "a")
    take(outbox, "10:00", "b")
    outbox.add_batch(batch("10:00", ticker="c"))
    take(outbox, "10:00", "d")
    assert outbox.count == 4
    outbox.commit(None, 0)
    assert outbox.count == 0
    assert tickers(path) == ["a", "b", "c", "d"]


def test_small_batches_share_a_train_and_no_train_is_larger_than_allowed(store):
    outbox = new_outbox(store, max_train_rows=3)
    for texts in (("10:00",), ("10:01", "10:02", "10:03", "10:04"), ("10:05", "10:06")):
        outbox.add_batch(batch(*texts))
    outbox.commit(None, 0)
    assert [n for n in store.bounds().column("rows").to_pylist() if n] == [3, 3, 1]


def test_a_large_batch_is_not_copied():
    """Its train has the memory of the batch, whatever batches are next to it."""
    path = new_stream("rowtime TIMESTAMP NOT NULL, n BIGINT")
    store = STREAMS[path]
    outbox = new_outbox(store)
    times = pa.array(range(1, SMALL_BATCH_ROWS + 1), pa.timestamp("us", "UTC"))
    large = pa.record_batch([times, pa.array(range(SMALL_BATCH_ROWS))], schema=store.schema)
    small = large.slice(0, 1)
    for one in (small, large, large, small, small):
        outbox.add_batch(Timed(one))
    outbox.commit(None, 0)
    trains = [piece.location for piece in store.slices(*whole_log(store))]
    addresses = [train.column("n").buffers()[1].address for train in trains]
    assert [train.num_rows for train in trains] == [1, SMALL_BATCH_ROWS, SMALL_BATCH_ROWS, 2]
    assert addresses[1] == addresses[2] == large.column("n").buffers()[1].address


def test_the_fast_path_takes_one_row_less_than_fills_the_train(store):
    outbox = new_outbox(store, max_train_rows=4)
    outbox.add_batch(batch("10:00"))
    outbox.start_fast_path(None)
    assert [outbox.rows.take((when("10:01"), "X")) for _ in range(3)] == [True, True, False]
    assert not outbox.full
    outbox.add_batch(batch("10:01"))
    assert outbox.full


# ---- all or nothing


def test_a_commit_that_fails_leaves_everything_pending(path, store):
    outbox = new_outbox(store)
    outbox.add_batch(batch("10:00"))
    outbox.floors.promise(us("10:01"))
    outbox.reject(late("9:00"))
    store.fault = "before"
    with pytest.raises(rt.StoreUnavailableError):
        outbox.commit("one", 0)
    assert (accepted(path), rejected(path), outbox.checkpoint, outbox.pending) == ([], [], None, True)
    outbox.add_batch(batch("10:02"))
    outbox.commit(None, 0)
    assert store.head().floor == us("10:01")
    assert accepted(path) == ["10:00", "10:02"]
    assert len(rejected(path)) == 1
    assert producer(path, "P").checkpoint is None, "a checkpoint belongs to the call that gave it"


@pytest.mark.parametrize("error", [rt.StoreUnavailableError("gone"), KeyboardInterrupt(), TimeoutError("an alarm")])
def test_a_commit_that_landed_and_raised_is_not_repeated(path, store, error):
    outbox = new_outbox(store)
    outbox.add_batch(batch("10:00"))
    outbox.reject(late("9:00"))
    store.fault, store.error = "after", error
    with pytest.raises(type(error)):
        outbox.commit("one", 0)
    outbox.add_batch(batch("10:01"))
    outbox.reject(late("9:01"))
    outbox.commit(None, 0)
    assert accepted(path) == ["10:00", "10:01"]
    assert [r[3] for r in rejected(path)] == ["09:00", "09:01"]
    assert (outbox.checkpoint, producer(path, "P").accepted) == ("one", 2)


def test_what_the_store_rejected_in_a_commit_that_raised_is_returned_by_the_next():
    path = new_stream(maxLag="10 minutes")
    made = STREAMS[path]
    store = STREAMS[path] = FaultyStore(path, made.schema, made.settings)
    slow, fast = new_outbox(store, name="slow"), new_outbox(store, name="fast")
    slow.add_batch(batch("10:00"))
    fast.add_batch(batch("11:00"))
    fast.floors.promise(us("11:00"))
    slow.commit(None, 0)
    fast.commit(None, 0)
    slow.add_batch(batch("10:01"))
    store.fault = "after"
    with pytest.raises(rt.StoreUnavailableError):
        slow.commit(None, 0)
    slow.commit(None, 0)
    assert [(r.reason, r.rows.num_rows) for r in slow.late] == [("late", 1)]
    assert producer(path, "slow").rejected == 1


CALLS = st.lists(st.sampled_from(["row", "batch", "promise", "reject", "commit", "before", "after"]), max_size=14)


@given(CALLS, st.integers(1, 4))
def test_all_or_nothing(calls, most):
    """Whatever fails and when: each row lands once, in the order of the calls, and so do floor and rejections."""
    path = new_stream()
    made = STREAMS[path]
    store = STREAMS[path] = FaultyStore(path, made.schema, made.settings)
    outbox, sent, floor, refused = new_outbox(store, max_train_rows=most), [], None, 0
    for at, call in enumerate([*calls, "commit"], 1):
        if call == "row":
            outbox.start_fast_path(None)
            if outbox.rows.take((from_micros(at), str(at))):
                sent, floor = [*sent, str(at)], at
        elif call == "batch":
            outbox.add_batch(Timed(rows_to_batch([(from_micros(at), f"{at} {n}") for n in range(2)], made.schema)))
            sent += [f"{at} {n}" for n in range(2)]
        elif call == "promise":
            floor = at
            outbox.floors.promise(at)
        elif call == "reject":
            refused += 1
            outbox.reject(late("9:00"))
        else:
            committed(outbox, store, call)
    info = producer(path, "P")
    assert tickers(path) == sent
    assert (info.accepted, info.rejected, store.producer("P").floor) == (len(sent), refused, floor)
    assert max(store.bounds().column("rows").to_pylist()) <= most
    assert not outbox.pending


def committed(outbox, store, fault):
    outbox.end_fast_path()
    store.fault = fault if outbox.pending else ""
    try:
        outbox.commit(None, 0)
    except rt.StoreUnavailableError:
        assert outbox.pending


# ---- dropping, failing, interrupts


def test_drop_forgets_rows_and_bounds_and_keeps_rejections(path, store):
    disorder = KSorted(0)
    outbox = new_outbox(store, disorder=disorder)
    for text in ("10:00", "11:00"):
        given = batch(text)
        disorder.take(given.rows)
        outbox.add_batch(given)
        outbox.floors.promise(us(text))
        if text == "10:00":
            outbox.commit("one", 0)
    take(outbox, "11:01")
    outbox.reject(late("9:00"))
    outbox.drop()
    assert (outbox.count, disorder.top) == (0, [us("10:00")])
    outbox.commit(None, 0)
    assert store.head().floor == us("10:00")
    assert accepted(path) == ["10:00"]
    assert len(rejected(path)) == 1


def test_a_failure_in_the_background_is_over_with_the_next_commit(store):
    outbox = new_outbox(store)
    outbox.add_batch(batch("10:00"))
    outbox.failed(7)
    assert (outbox.failing, outbox.committed_at) == (True, 7)
    outbox.commit(None, 9)
    assert (outbox.failing, outbox.committed_at) == (False, 9)


def test_an_interrupt_among_steps_that_belong_together_breaks_the_outbox(store):
    outbox = new_outbox(store)
    with pytest.raises(ValueError, match="no interrupt"), outbox.interrupt_guard:
        raise ValueError("no interrupt")
    assert not outbox.broken
    with pytest.raises(KeyboardInterrupt), outbox.interrupt_guard:
        raise KeyboardInterrupt
    assert outbox.broken


def test_join_again_and_leave_are_the_stores(path, store):
    outbox = new_outbox(store)
    assert (outbox.join_again(), outbox.is_detached()) == (False, False)
    store.detach("P")
    assert outbox.is_detached()
    assert (outbox.join_again(), outbox.is_detached()) == (True, False)
    outbox.leave()
    assert producer(path, "P").status == "left"
    new_outbox(store).commit("again", 0)
    store.attach("P", "another holder", "{}")
    with pytest.raises(rt.ProducerFencedError):
        outbox.join_again()


def test_a_mark_is_at_the_last_commit_of_this_sink_or_at_the_head(store):
    one, two = new_outbox(store, name="one"), new_outbox(store, name="two")
    assert one.mark().seq == store.head().seq, "nothing was sent: all that is there counts"
    for outbox, time in ((one, "10:00"), (two, "10:01")):
        outbox.rows.open(None, None, 9)
        outbox.rows.take((when(time), "X"))
        outbox.commit(None, 0)
    assert (one.mark().seq, two.mark().seq) == (store.head().seq - 1, store.head().seq)


def test_a_sink_uses_its_outbox_under_its_lock(path, monkeypatch):
    sink, used = new_sink(path, linger=HOUR, onLate="reject"), set()
    for name, method in list(vars(Outbox).items()):
        if isfunction(method) and name not in ("__init__", "floor_in_force"):
            monkeypatch.setattr(Outbox, name, under_lock(sink, name, method, used))
    sink.sendRow(row("10:00"))
    sink.sendRows(rows("10:01", "10:02"))
    sink.sendRows(one for one in rows("10:03"))
    sink.sendRow(row("9:00"))
    sink.getRowtimeBound()
    sink.requireInTime(when("10:03"))
    sink.flush()
    sink.sendRowtimeBound(when("10:05"))
    sink.flush(checkpoint="1")
    sink.sendRow(row("10:06"))
    sink._scheduler.lease.require_attached()
    with sink._lock:
        sink._scheduler.run_due()
    sink.close()
    assert used >= {"add_batch", "promise", "reject", "commit", "start_fast_path", "leave", "mark"}
    other = new_sink(path, linger=HOUR)
    other.sendRow(row("10:07"))
    other.abandon()


def under_lock(sink, name, method, used):
    def call(outbox, *arguments, **options):
        if outbox is sink._outbox:
            assert sink._lock._is_owned(), name
            used.add(name)
        return method(outbox, *arguments, **options)

    return call


def test_a_mark_is_behind_rows_whose_commit_landed_and_raised(store, monkeypatch):
    """Also where the commit after it failed, so that nothing is left to commit."""
    one, two, commit = new_outbox(store, name="one"), new_outbox(store, name="two"), store.commit
    for outbox, time in ((one, "10:00"), (two, "10:01")):
        outbox.rows.open(None, None, 9)
        outbox.rows.take((when(time), "X"))
    faults = iter(["behind", "", "before"])

    def faulty(given):
        fault = next(faults, "")
        receipt = None if fault == "before" else commit(given)
        if fault:
            raise rt.StoreUnavailableError("the disk is full")
        return receipt

    monkeypatch.setattr(store, "commit", faulty)
    for _ in range(2):
        with pytest.raises(rt.StoreUnavailableError):
            one.commit(None, 0)
    landed = store.head().seq
    two.commit(None, 0)
    assert (one.pending, one.mark().seq, two.mark().seq) == (False, landed, landed + 1)


def test_rows_with_another_nullability_are_stored_with_the_streams_schema(path):
    names, types = ["rowtime", "ticker"], [STREAM_SCHEMA.field(0).type, pa.string()]
    given = pa.schema(
        [pa.field(n, t, nullable=n == "rowtime", metadata={"a": "b"}) for n, t in zip(names, types, strict=True)]
    )
    with new_sink(path) as sink:
        sink.sendRows(pa.RecordBatch.from_arrays(rows_to_batch(rows("10:00"), STREAM_SCHEMA).columns, schema=given))
    store = open_store(path)
    [piece] = store.slices(*whole_log(store))
    assert store.read(piece).schema.equals(store.schema, check_metadata=True)
