"""RowReader over memory streams: the examples of SQLstream s-Server's rowtime bounds, positions, draining."""

import json
import threading
from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import SCHEMA, HandClock, clock_times, new_sink, new_stream, row, rows, stream_floor, us, when

import spark_rowtime as rt
from spark_rowtime.store import open_store


def bound(text, strict=False):
    return rt.RowtimeBound(when(text), strict)


def times(trains):
    return [t for train in trains for t in clock_times(train.rows)]


def drained(reader):
    return times(list(reader))


class Consumer:
    """The least that drainTo needs."""

    def __init__(self):
        self.got = []

    def sendRows(self, rows):
        self.got += clock_times(rows)

    def sendRowtimeBound(self, t, strict=False):
        self.got.append(rt.RowtimeBound(t, strict))


class CheckpointedConsumer(Consumer):
    """One that keeps the reader's position, as a table with a transaction would; may fail before it."""

    def __init__(self, checkpoint=None, fail_at=None):
        super().__init__()
        self.checkpoint, self.kept, self.flushes, self.fail_at = checkpoint, [], 0, fail_at

    def flush(self, checkpoint=None):
        self.flushes += 1
        if self.flushes == self.fail_at:
            raise ConnectionError("gone")
        self.checkpoint, self.kept, self.got = checkpoint, self.kept + self.got, []


# ---- the examples


def test_s1_send_a_bound(path):
    sink = new_sink(path)
    for text, ticker in (("12:00", "ORCL"), ("12:01", "MSFT"), ("12:02", "IBM")):
        sink.sendRow(row(text, ticker))
    sink.sendRowtimeBound(when("12:05"))
    with rt.openReader(path) as reader:
        trains = list(reader)
    assert times(trains) == ["12:00", "12:01", "12:02"]
    assert [r["ticker"] for train in trains for r in train.rows.to_pylist()] == ["ORCL", "MSFT", "IBM"]
    assert trains[-1].bound == bound("12:05")
    assert not trains[-1].bound.strict
    with pytest.raises(rt.LateRowError):
        sink.sendRow(row("12:04:59.999"))
    sink.sendRow(row("12:05"))


def test_s2_late_rows_are_in_no_output(path):
    sink = new_sink(path, onLate="reject")
    sink.sendRow(row("10:00"))
    for late in ("9:58", "9:47", "9:59"):
        sink.sendRow(row(late))
    sink.sendRow(row("10:00"))
    assert drained(rt.openReader(path)) == ["10:00", "10:00"]
    assert drained(rt.openReader(path, order="arrival")) == ["10:00", "10:00"]
    assert clock_times(open_store(path).rejected()) == ["09:58", "09:47", "09:59"]


def test_s2_the_stream_time_may_come_from_a_bound(path):
    sink = new_sink(path, onLate="reject")
    sink.sendRowtimeBound(when("10:00"))
    sink.sendRows(rows("9:58", "9:47", "9:59", "10:00"))
    assert drained(rt.openReader(path)) == ["10:00"]


def test_s3_implicit_bounds(path):
    new_sink(path).sendRows(rows("12:00", "12:01", "12:02"))
    [train] = rt.openReader(path)
    assert clock_times(train.rows) == ["12:00", "12:01", "12:02"]
    assert train.bound == bound("12:02")


def test_s7_a_readers_bound_is_non_strict(path):
    new_sink(path).sendRowtimeBound(when("5:00"), strict=True)
    reader = rt.openReader(path)
    list(reader)
    assert reader.getRowtimeBound() == bound("5:00", strict=True)
    assert reader.getRowtimeBound().time == when("5:00:00.000001")
    assert not reader.getRowtimeBound().strict


def test_s10_merging_two_streams(path):
    p, q = new_sink(path, "P"), new_sink(path, "Q")
    reader = rt.openReader(path)
    p.sendRow(row("1:00"))
    q.sendRow(row("1:01"))
    q.sendRow(row("1:04"))
    p.sendRow(row("1:06"))
    assert drained(reader) == ["01:00", "01:01", "01:04"]
    q.sendRowtimeBound(when("1:05"))
    assert drained(reader) == []
    q.sendRowtimeBound(when("1:10"))
    assert drained(reader) == ["01:06"]


def test_s11_union_all(path):
    orders, trades = new_sink(path, "Orders"), new_sink(path, "Trades")
    reader = rt.openReader(path)
    trades.sendRow(row("10:02", "YHOO"))
    orders.sendRow(row("10:01", "ORCL"))
    orders.sendRow(row("10:04", "MSFT"))
    trades.sendRow(row("10:03", "IBM"))
    assert drained(reader) == ["10:01", "10:02", "10:03"]
    orders.sendRowtimeBound(when("10:06"))
    assert drained(reader) == []
    trades.sendRow(row("10:03:30", "GOOG"))
    assert drained(reader) == ["10:03:30.000000"]


@pytest.mark.parametrize("by", ["bound", "row"])
def test_s11_then_either_a_bound_or_a_row_lets_it_flow(path, by):
    orders, trades = new_sink(path, "Orders"), new_sink(path, "Trades")
    orders.sendRow(row("10:04", "MSFT"))
    orders.sendRowtimeBound(when("10:06"))
    trades.sendRow(row("10:03:30", "GOOG"))
    reader = rt.openReader(path)
    list(reader)
    if by == "bound":
        trades.sendRowtimeBound(when("10:05"))
    else:
        trades.sendRow(row("10:05:30", "IBM"))
    assert drained(reader)[0] == "10:04"


def test_s12_producers_entering_and_leaving():
    path = new_stream(boundsBeforeRows=False)
    reader = rt.openReader(path)
    assert rt.describeStream(path).bound is None
    p1 = new_sink(path, "P1")
    p1.sendRowtimeBound(when("10:00"))
    assert rt.describeStream(path).bound is None
    assert reader.read() is None
    p1.sendRow(row("10:00"))
    assert rt.describeStream(path).bound == bound("10:00")
    assert drained(reader) == ["10:00"]
    p2 = new_sink(path, "P2")
    p2.sendRowtimeBound(when("10:05"))
    p2.sendRow(row("10:05"))
    assert reader.read() is None
    with pytest.raises(rt.LateRowError):
        p2.sendRow(row("9:59"))
    p1.close()
    assert rt.describeStream(path).bound == bound("10:05")
    assert drained(reader) == ["10:05"]
    p2.close()
    assert rt.describeStream(path).bound == bound("10:05")
    with pytest.raises(rt.LateRowError):
        new_sink(path, "P3").sendRow(row("10:04"))
    assert drained(reader) == []


def test_s12_a_newcomers_row_out_of_sequence_is_discarded(path):
    new_sink(path, "first").sendRow(row("11:10"))
    new_sink(path, "newcomer", onLate="reject").sendRow(row("11:00"))
    assert drained(rt.openReader(path)) == ["11:10"]
    assert rt.describeStream(path).rejected == 1


def test_s13_the_slowest_producer_sets_the_speed(path):
    slow, fast = new_sink(path, "slow"), new_sink(path, "fast")
    reader = rt.openReader(path)
    fast.sendRows(rows("10:00", "11:00", "12:00"))
    assert rt.describeStream(path).holder == "slow"
    for promise, flows in (("9:00", []), ("10:30", ["10:00"]), ("11:00", ["11:00"])):
        slow.sendRowtimeBound(when(promise))
        assert drained(reader) == flows
    slow.close()
    assert rt.describeStream(path).holder == "fast"
    assert drained(reader) == ["12:00"]


def test_s13_max_lag_bounds_how_slow():
    path = new_stream(maxLag="90 minutes")
    new_sink(path, "slow")
    new_sink(path, "fast").sendRows(rows("10:00", "11:00", "12:00"))
    assert drained(rt.openReader(path)) == ["10:00"]


def test_s17_a_readers_bound_may_rise(path):
    sink, other = new_sink(path), new_sink(path)
    reader = rt.openReader(path)
    assert reader.getRowtimeBound() is None
    other.sendRowtimeBound(when("12:00"))
    sink.sendRows(rows("10:00", "10:30"))
    list(reader)
    assert reader.getRowtimeBound() == bound("10:30")
    sink.sendRowtimeBound(when("11:00"))
    assert reader.getRowtimeBound() == bound("10:30")
    list(reader)
    assert reader.getRowtimeBound() == bound("11:00")


def test_f4_hold():
    path = new_stream()
    sink = new_sink(path, order={"rowsImplyBounds": False})
    reader = rt.openReader(path, order="arrival", hold="1 hour")
    steps = []
    for text in ("2006-09-12T00:00", "2006-09-12T02:00", "2006-09-12T00:30", "2006-09-12T03:00"):
        sink.sendRow(row(text))
        steps.append(drained(reader))
    assert steps == [[], ["00:00"], ["00:30"], ["02:00"]]
    assert rt.describeStream(path).rejected == 0


# ---- order


def test_rows_of_one_rowtime_come_in_the_order_of_their_commits(path):
    a, b = new_sink(path, "A"), new_sink(path, "B")
    a.sendRow(row("10:00", "first"))
    b.sendRow(row("10:00", "second"))
    a.sendRows([row("10:00", "third"), row("10:00", "fourth"), row("10:01", "later")])
    found = [r["ticker"] for train in rt.openReader(path) for r in train.rows.to_pylist()]
    assert found == ["first", "second", "third", "fourth"]


def test_a_stream_out_of_order_is_read_sorted(path):
    sink = new_sink(path, order={"kSort": 2})
    sink.sendRows(rows("10:02", "10:01", "10:00", "10:04", "10:03"))
    assert drained(rt.openReader(path)) == ["10:00", "10:01", "10:02"]
    assert drained(rt.openReader(path, order="arrival")) == ["10:02", "10:01", "10:00", "10:04", "10:03"]
    sink.close()
    assert drained(rt.openReader(path)) == ["10:00", "10:01", "10:02", "10:03", "10:04"]


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 59), min_size=1, max_size=4)), max_size=15))
def test_ordered_and_truthful(sends):
    """Each row once, sorted, none below a bound that was handed out before it."""
    path = new_stream()
    sinks = [new_sink(path, order={"lateness": "10 minutes"}, onLate="reject") for _ in range(3)]
    reader = rt.openReader(path)
    trains = []
    for who, minutes in sends:
        sinks[who].sendRows(rows(*[f"10:{minute:02}" for minute in minutes]))
        trains += list(reader)
    for sink in sinks:
        sink.close()
    trains += list(reader)
    found = times(trains)
    assert found == sorted(found)
    assert len(found) == rt.describeStream(path).rows
    told = None
    for train in trains:
        assert told is None or all(us(t) >= told.floor for t in clock_times(train.rows))
        assert train.bound is None or told is None or train.bound >= told
        told = train.bound


# ---- reading


def test_read_says_what_is_there_and_no_more(path):
    sink = new_sink(path)
    reader = rt.openReader(path)
    assert reader.read() is None
    assert reader.read(timeout=0) is None
    sink.sendRow(row("10:00"))
    assert clock_times(reader.read().rows) == ["10:00"]
    assert reader.read() is None


def test_a_bound_without_rows_is_a_train_without_rows(path):
    new_sink(path).sendRowtimeBound(when("12:05"))
    train = rt.openReader(path).read()
    assert train.rows.num_rows == 0
    assert train.rows.schema == open_store(path).schema
    assert train.bound == bound("12:05")


def test_in_arrival_order_a_train_may_have_no_bound_yet(path):
    new_sink(path, "quiet")
    new_sink(path).sendRow(row("10:00"))
    [train] = rt.openReader(path, order="arrival")
    assert (clock_times(train.rows), train.bound) == (["10:00"], None)


def test_read_waits_for_what_comes(path):
    reader = rt.openReader(path)
    sink = new_sink(path)
    sender = threading.Thread(target=sink.sendRow, args=(row("10:00"),))
    sender.start()
    train = reader.read(timeout=240)
    sender.join()
    assert clock_times(train.rows) == ["10:00"]


def test_a_reader_that_follows_does_not_end(path):
    sink = new_sink(path)
    trains = iter(rt.openReader(path, follow=True))
    sink.sendRow(row("10:00"))
    assert clock_times(next(trains).rows) == ["10:00"]
    sender = threading.Thread(target=sink.sendRow, args=(row("10:01"),))
    sender.start()
    assert clock_times(next(trains).rows) == ["10:01"]
    sender.join()


@pytest.mark.parametrize("timeout", [0, 0.0, "0 s", timedelta(0)])
def test_a_timeout_is_a_number_of_seconds_or_an_interval(path, timeout):
    assert rt.openReader(path, follow=True).read(timeout=timeout) is None


@pytest.mark.parametrize("timeout", ["1", "-1 s", "soon", float("nan"), [1], 1j])
def test_a_timeout_of_another_form_is_refused_by_its_name(path, timeout):
    with pytest.raises(rt.InvalidOptionError, match=r"^timeout") as caught:
        rt.openReader(path).read(timeout=timeout)
    assert caught.value.values["option"] == "timeout"


@pytest.mark.parametrize(("timeout", "least", "most"), [(None, 100, 100), (1000, 100, 100), (90, 30, 90)])
def test_a_reader_that_waits_looks_for_ended_leases_now_and_then(path, monkeypatch, timeout, least, most):
    """It waits for what it has not seen, no longer than it may, and no longer than between two looks."""
    reader, waits = rt.openReader(path, follow=True), []
    monkeypatch.setattr("spark_rowtime.reader.reader.EXPIRY_CHECK_SECONDS", 100)

    def wait(seq, seconds):
        waits.append((seq, seconds))
        new_sink(path).sendRow(row("10:00"))

    monkeypatch.setattr(reader._store, "wait", wait)
    seen = open_store(path).head().seq
    assert clock_times(reader.read(timeout=timeout).rows) == ["10:00"]
    [(seq, seconds)] = waits
    assert seq == seen
    assert least <= seconds <= most


def test_a_reader_that_is_refused_closes_the_stream(path, monkeypatch):
    closed, store = [], open_store(path)
    monkeypatch.setattr(store, "close", lambda: closed.append(True))
    monkeypatch.setattr("spark_rowtime.reader.reader.open_store", lambda _: store)
    with pytest.raises(rt.InvalidOptionError):
        rt.openReader(path, start="nonsense")
    assert closed == [True]


def test_a_read_that_failed_within_a_step_gives_the_bound_of_what_is_there_now(path, monkeypatch):
    """What was read before is kept only for the same step: another server, with another log, may have taken over."""
    with new_sink(path) as sink, rt.openReader(path, order="arrival") as reader:
        for time in ("10:00", "10:01"):
            sink.sendRow(row(time))
            sink.flush()
        read, failing = reader._store.read, [True]

        def fails_once(piece):
            if piece.least == us("10:01") and failing:
                failing.pop()
                raise rt.StoreUnavailableError("gone")
            return read(piece)

        monkeypatch.setattr(reader._store, "read", fails_once)
        with pytest.raises(rt.StoreUnavailableError):
            reader.read()
        sink.sendRow(row("10:02"))
        sink.flush()
        train = reader.read()
    assert (train.rows.num_rows, failing) == (3, [])
    assert train.bound == bound("10:02")


def test_the_schema_is_the_streams(path):
    assert rt.openReader(path).schema.names == ["rowtime", "ticker"]


def test_rows_are_one_batch_of_the_schema(path):
    sink = new_sink(path)
    sink.sendRow(row("10:00", "a"))
    sink.sendRow(row("10:01", "b"))
    [train] = rt.openReader(path)
    assert isinstance(train.rows, pa.RecordBatch)
    assert train.rows.schema == open_store(path).schema
    assert train.rows.column("ticker").to_pylist() == ["a", "b"]


# ---- where to start


def test_start_latest(path):
    sink = new_sink(path)
    sink.sendRow(row("10:00"))
    reader = rt.openReader(path, start="latest")
    assert reader.getRowtimeBound() == bound("10:00")
    assert drained(reader) == []
    sink.sendRow(row("10:01"))
    assert drained(reader) == ["10:01"]


@pytest.mark.parametrize("start", [when("10:01"), "2006-09-11T10:01:00", rt.RowtimeBound(when("10:01"))])
def test_start_at_a_time(path, start):
    new_sink(path).sendRows(rows("10:00", "10:01", "10:02"))
    assert drained(rt.openReader(path, start=start)) == ["10:01", "10:02"]


def test_start_after_a_strict_bound(path):
    new_sink(path).sendRows(rows("10:00", "10:01", "10:02"))
    assert drained(rt.openReader(path, start=bound("10:01", strict=True))) == ["10:02"]


def test_start_at_nonsense(path):
    with pytest.raises(rt.InvalidOptionError):
        rt.openReader(path, start="yesterday")


@pytest.mark.parametrize("order", ["rowtime", "arrival"])
def test_resume_from_a_position(path, order):
    sink, other = new_sink(path), new_sink(path)
    other.sendRowtimeBound(when("10:30"))
    sink.sendRows(rows("10:00", "10:40"))
    first = rt.openReader(path, order=order)
    before = drained(first)
    other.sendRow(row("10:45"))
    sink.sendRow(row("10:50"))
    second = rt.openReader(path, order=order, start=first.position)
    assert second.getRowtimeBound() == first.getRowtimeBound()
    assert drained(second) == drained(first)
    assert second.position == first.position
    assert {"rowtime": ["10:00", "10:40"], "arrival": ["10:00", "10:40"]}[order][: len(before)] == before


def test_a_position_remembers_the_time_it_was_started_at(path):
    sink = new_sink(path, order={"rowsImplyBounds": False})
    first = rt.openReader(path, order="arrival", start=when("10:01"))
    assert "since" in json.loads(first.position)
    sink.sendRows(rows("10:00", "10:01", "10:02"))
    second = rt.openReader(path, order="arrival", start=first.position)
    assert drained(second) == ["10:01", "10:02"]


def test_a_position_of_another_order_or_stream_is_an_error(path):
    position = rt.openReader(path).position
    with pytest.raises(rt.InvalidOptionError, match="order"):
        rt.openReader(path, order="arrival", start=position)
    with pytest.raises(rt.InvalidOptionError, match="stream"):
        rt.openReader(new_stream(), start=position)


def test_options_are_checked(path):
    with pytest.raises(rt.InvalidOptionError):
        rt.openReader(path, order="sideways")
    with pytest.raises(rt.InvalidOptionError):
        rt.openReader(path, hold="long")
    with pytest.raises(rt.StreamNotFoundError):
        rt.openReader("memory://nowhere")


# ---- draining


def test_drain_gives_rows_and_bounds_in_order(path):
    sink = new_sink(path)
    sink.sendRow(row("10:00"))
    reader, consumer = rt.openReader(path), Consumer()
    reader.drainTo(consumer)
    sink.sendRow(row("10:01"))
    sink.sendRowtimeBound(when("10:05"))
    reader.drainTo(consumer)
    assert consumer.got == ["10:00", bound("10:00"), "10:01", bound("10:05")]


def test_drain_into_a_stream_is_a_pump(path):
    """The bounds of the source are passed on, and a restart goes on where it was."""
    target = new_stream()
    sink = new_sink(path)
    sink.sendRows(rows("10:00", "10:01"))
    with rt.openReader(path) as reader, new_sink(target, "pump") as pump:
        reader.drainTo(pump)
    sink.sendRow(row("10:02"))
    sink.sendRowtimeBound(when("10:30"))
    with rt.openReader(path) as reader, new_sink(target, "pump") as pump:
        reader.drainTo(pump)
        assert stream_floor(target) == us("10:30")
    assert drained(rt.openReader(target)) == ["10:00", "10:01", "10:02"]


def test_drain_resumes_from_the_checkpoint(path):
    sink = new_sink(path)
    sink.sendRow(row("10:00"))
    first = CheckpointedConsumer()
    rt.openReader(path).drainTo(first)
    sink.sendRow(row("10:01"))
    second = CheckpointedConsumer(first.checkpoint)
    rt.openReader(path).drainTo(second)
    assert first.kept == ["10:00", bound("10:00")]
    assert second.kept == ["10:01", bound("10:01")]


def test_a_drain_that_fails_before_its_checkpoint_is_repeated_from_there(path):
    sink = new_sink(path)
    consumer = CheckpointedConsumer(fail_at=2)
    reader = rt.openReader(path)
    sink.sendRow(row("10:00"))
    reader.drainTo(consumer)
    sink.sendRow(row("10:01"))
    with pytest.raises(ConnectionError):
        reader.drainTo(consumer)
    again = CheckpointedConsumer(consumer.checkpoint)
    rt.openReader(path).drainTo(again)
    assert consumer.kept + again.kept == ["10:00", bound("10:00"), "10:01", bound("10:01")]


def test_drain_into_a_foreign_checkpoint_is_an_error(path):
    with pytest.raises(rt.InvalidOptionError, match="not a position"):
        rt.openReader(path).drainTo(CheckpointedConsumer("row 17"))


# ---- streams


def test_describe_stream(path):
    a, b = new_sink(path, "A", onLate="reject"), new_sink(path, "B")
    a.sendRows(rows("10:00", "9:00"))
    b.sendRowtimeBound(when("10:30"))
    b.flush(checkpoint="b-1")
    info = rt.describeStream(path)
    assert (info.path, info.bound, info.rows, info.rejected, info.holder) == (path, bound("10:00"), 1, 1, "A")
    assert info.schema.names == ["rowtime", "ticker"]
    assert [(p.name, p.bound, p.accepted, p.rejected, p.epoch, p.checkpoint) for p in info.producers] == [
        ("A", bound("10:00"), 1, 1, 1, None),
        ("B", bound("10:30"), 0, 0, 1, "b-1"),
    ]


def test_create_stream_refuses_what_is_there(path):
    with pytest.raises(rt.StreamExistsError):
        rt.createStream(path, SCHEMA)
    rt.createStream(path, SCHEMA, existOk=True)
    with pytest.raises(rt.SchemaMismatchError):
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL", existOk=True)


def test_create_stream_says_which_producers_a_stream_that_is_there_does_not_wait_for(caplog):
    path = new_stream(producers=["Berlin"])
    rt.createStream(path, SCHEMA, producers=["Berlin"], existOk=True)
    assert not caplog.records
    rt.createStream(path, SCHEMA, producers=["Berlin", "Oslo"], existOk=True)
    assert "it does not know 'Oslo'. If it is to wait for them, call rt.alterStream" in caplog.text


def test_create_stream_does_not_ignore_settings_that_the_stream_does_not_have():
    path = new_stream(maxLag="1 hour")
    rt.createStream(path, SCHEMA, maxLag="60 minutes", existOk=True)
    for other, said in (
        ({"maxLag": "2 hours"}, "maxLag at 1:00:00, and 2:00:00"),
        ({"maxAhead": "2 days"}, "its default"),
        ({"maxAhead": "unlimited"}, "its default, and None"),
    ):
        with pytest.raises(rt.InvalidOptionError, match=said):
            rt.createStream(path, SCHEMA, existOk=True, **other)


@pytest.mark.parametrize("setting", ["maxLag", "idleTimeout", "maxAhead"])
def test_create_stream_checks_its_settings(setting):
    with pytest.raises(rt.InvalidOptionError, match=setting):
        new_stream(**{setting: "a while"})


def test_create_stream_keeps_its_settings():
    path = new_stream(boundsBeforeRows=False, maxLag="1 ms", idleTimeout="2 ms", maxAhead="3 ms")
    settings = open_store(path).settings
    found = (settings.boundsBeforeRows, settings.maxLag, settings.idleTimeout, settings.maxAhead)
    assert found == (False, 1000, 2000, 3000)


def test_paths_of_no_store_are_refused():
    with pytest.raises(rt.InvalidOptionError, match="carrier-pigeon"):
        rt.createStream("carrier-pigeon://loft/orders", SCHEMA)


def test_hand_clock_is_not_read_by_readers(path):
    """What a reader gives depends on the log alone."""
    clock = HandClock()
    sink = new_sink(path, now=clock)
    sink.sendRow(row("10:00"))
    position = rt.openReader(path).read()
    clock.advance(10**12)
    assert rt.openReader(path).read() == position


def test_a_polling_reader_logs_the_end_of_a_lease(path):
    store, hands = open_store(path), [us("12:00")]
    store.now = lambda: hands[0]
    lost = rt.openSink(path, producer="lost", lease="30 s")
    lost.sendRow((when("10:00"), "lost"))
    lost.abandon()
    with rt.openSink(path, producer="alive", lease=None) as alive, rt.openReader(path) as reader:
        alive.sendRowtimeBound(when("11:00"))
        assert reader.read() is not None
        assert reader.read() is None
        hands[0] += 31_000_000
        train = reader.read()
        assert train is not None
        assert train.bound == rt.RowtimeBound(when("11:00"))


def test_a_named_reader_that_begins_before_its_registered_position_registers_that(path):
    """Else ``gc`` removes what it has not read yet."""
    sink = new_sink(path)
    sink.sendRows(rows("10:00", "10:01"))
    sink.flush()
    registered = []
    for start in ("latest", "earliest"):
        with rt.openReader(path, order="arrival", name="late", start=start), open_store(path) as store:
            registered.append(store.snapshot().position_of("late").seq)
    assert registered[1] < registered[0]
