"""Rows that are in order per value of a column: what is late, the bound, what is stored, and both ways to send."""

import decimal
import itertools
import tracemalloc
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import HOUR, HandClock, accepted, new_sink, new_stream, us, when

import spark_rowtime as rt
from spark_rowtime.bounds import key_floors
from spark_rowtime.bounds.key_floors import MOST_BYTES_PER_BYTE, MOST_PARTS, KeyFloors
from spark_rowtime.bounds.key_order import InOrderPer, weakest_known
from spark_rowtime.bounds.key_parts import UNKNOWN, KeyParts
from spark_rowtime.store import open_store
from spark_rowtime.types.schema import rows_to_batch, stream_schema
from spark_rowtime.types.timestamps import from_micros

SCHEMA = "rowtime TIMESTAMP NOT NULL, device STRING"
PER_DEVICE = {"inOrderPer": "device"}
ARROW = stream_schema(SCHEMA)
DEVICES = st.sampled_from(["a", "b", "c", None])
TIMES = st.integers(1, 12)
CALLS = st.lists(st.lists(st.tuples(TIMES, DEVICES), min_size=1, max_size=6), max_size=6)
IDLE = st.none() | st.integers(0, 6)


def fleet(path=None, producer="fleet", order=None, **options):
    path = path or new_stream(SCHEMA)
    return new_sink(path, producer, order=order or PER_DEVICE, **options)


def bound(sink):
    known = sink.getRowtimeBound()
    return None if known is None else f"{known.time:%H:%M}"


class Model:
    """The rules stated again, one row at a time: each value's floor, and the producer's."""

    def __init__(self, idle=None):
        self.idle, self.floors, self.floor, self.largest = idle, {}, 0, 0

    def call(self, rows):
        """Which of the rows of one call are in time."""
        reached, fits = {}, []
        for time, device in rows:
            start = max(self.floor, self.floors.get(device, 0), reached.get(device, 0))
            fits.append(time >= start)
            if time >= start:
                reached[device] = time
        self.floors |= reached
        self.end()
        return fits

    def promise_of(self, device, time):
        self.floors[device] = max(time, self.floors.get(device, 0), self.floor)
        self.end()

    def close(self, device):
        self.floors.pop(device, None)
        self.end()

    def end(self):
        self.largest = max([self.largest, *self.floors.values()])
        if self.idle is not None:
            self.floors = {d: f for d, f in self.floors.items() if f >= self.largest - self.idle}
        self.floor = max(self.floor, min(self.floors.values(), default=0))


def sent(rows):
    return [(from_micros(time), device) for time, device in rows]


def order_of(idle):
    return PER_DEVICE | ({} if idle is None else {"keyIdle": idle})


def stored(path):
    with_rows = [open_store(path).read(piece) for piece in open_store(path).slices(*whole(path))]
    return [(t.value, d) for rows in with_rows for t, d in zip(rows.column(0), rows.column(1).to_pylist(), strict=True)]


def whole(path):
    from unit_support import whole_log

    return whole_log(open_store(path))


@given(CALLS, IDLE, st.booleans())
def test_it_does_what_the_rules_say(calls, idle, arrow):
    """Each call by Arrow, or as Python rows; the rows that are kept, the bound, and what is stored of it."""
    path, model, kept = new_stream(SCHEMA), Model(idle), []
    sink = fleet(path, order=order_of(idle), onLate="reject")
    for rows in calls:
        sink.sendRows(rows_to_batch(sent(rows), ARROW) if arrow else sent(rows))
        kept += itertools.compress(rows, model.call(rows))
        assert (sink.getRowtimeBound().floor if model.floor else None) == (model.floor or None)
    sink.flush()
    assert stored(path) == kept
    assert open_store(path).producer("fleet").floor == (model.floor or None)


@given(st.lists(st.tuples(TIMES, DEVICES), max_size=25), IDLE, st.integers(1, 30))
def test_one_by_one_is_call_by_call(rows, idle, linger):
    """The fast path for single rows says of each row what a call with this row says."""
    path, model, kept = new_stream(SCHEMA), Model(idle), []
    clock = HandClock()
    sink = fleet(path, order=order_of(idle), onLate="reject", now=clock, linger=linger)
    for row in rows:
        clock.advance(1)
        sink.sendRow(sent([row])[0])
        kept += itertools.compress([row], model.call([row]))
    assert (sink.getRowtimeBound() is None) == (model.floor == 0)
    assert model.floor == 0 or sink.getRowtimeBound().floor == model.floor
    sink.flush()
    assert stored(path) == kept


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.lists(st.tuples(TIMES, DEVICES), min_size=1, max_size=4)),
        st.tuples(st.just("each"), st.lists(st.tuples(TIMES, DEVICES), min_size=1, max_size=4)),
        st.tuples(st.just("bound"), DEVICES, TIMES),
        st.tuples(st.just("close"), DEVICES),
        st.tuples(st.just("flush")),
        st.tuples(st.just("restart")),
    ),
    max_size=15,
)


@given(STEPS, IDLE)
def test_a_restart_changes_nothing(steps, idle):
    """A sink that is replaced after each flush keeps and rejects what one does that was never replaced."""
    sinks = [fleet(new_stream(SCHEMA), order=order_of(idle), onLate="reject", linger=HOUR) for _ in range(2)]
    model = Model(idle)
    paths = [sink._store.path for sink in sinks]
    for what, *given_ in steps:
        for at, sink in enumerate(sinks):
            play(sink, what, *given_)
            if what == "restart" and at:
                sinks[1] = fleet(paths[1], order=order_of(idle), onLate="reject", linger=HOUR)
        tell(model, what, *given_)
        assert sinks[0].getRowtimeBound() == sinks[1].getRowtimeBound()
        assert (sinks[0].getRowtimeBound() or rt.RowtimeBound.fromFloor(0)).floor == model.floor
    for sink in sinks:
        sink.flush()
    assert stored(paths[0]) == stored(paths[1])
    weakest = [sorted(map(str, sink._disorder.keys.known())) for sink in sinks]
    assert weakest[0] == weakest[1]


def tell(model, what, *given_):
    if what == "rows":
        model.call(given_[0])
    elif what == "each":
        for row in given_[0]:
            model.call([row])
    elif what == "bound":
        model.promise_of(*given_)
    elif what == "close":
        model.close(*given_)


def play(sink, what, *given_):
    if what == "rows":
        sink.sendRows(sent(given_[0]))
    elif what == "each":
        for row in sent(given_[0]):
            sink.sendRow(row)
    elif what == "bound":
        key, time = given_
        floor = sink._disorder.keys.of(key)
        sink.sendRowtimeBound(from_micros(max(time, floor or 0)), key=key)
    elif what == "close":
        sink.closeKey(given_[0])
    else:
        sink.flush()


def known(sink):
    return sorted(sink._disorder.keys.known())


def test_what_is_dropped_after_a_checkpoint_raises_no_bound():
    sink = fleet(linger=HOUR, onLate="reject")
    sink.sendRows([(when("9:00"), "a"), (when("9:00"), "b")])
    sink.flush(checkpoint="1")
    stored_there = known(sink)
    sink.sendRows([(when("9:30"), "a"), (when("8:00"), "b"), (when("9:10"), "c")])
    sink.closeKey("b")
    sink.abandon()
    again = fleet(sink._store.path, linger=HOUR, onLate="reject")
    assert known(again) == stored_there
    assert bound(again) == "09:00"


@pytest.mark.parametrize("lands", [True, False])
def test_a_commit_that_raised_is_repeated_with_its_floors(monkeypatch, lands):
    """Whether it had landed or not, the next commit stores what the state has then."""
    sink = fleet(linger=HOUR)
    sink.sendRows([(when("9:00"), "a"), (when("9:00"), "b")])
    commit, failures = sink._store.commit, ["the signal's handler"]

    def failing(store, made):
        receipt = commit(made) if lands or not failures else None
        if failures:
            raise RuntimeError(failures.pop())
        return receipt

    monkeypatch.setattr(type(sink._store), "commit", failing)
    sink.sendRow((when("9:10"), "a"))
    with pytest.raises(RuntimeError):
        sink.flush()
    sink.sendRow((when("9:20"), "a"))
    sink.closeKey("b")
    sink.flush()
    monkeypatch.undo()
    assert known(fleet(sink._store.path)) == known(sink) == [("a", us("9:20"))]
    assert accepted(sink._store.path) == ["09:00", "09:00", "09:10", "09:20"]


# ---- as a user meets it


def test_a_gateway_of_three_devices():
    path = new_stream(SCHEMA)
    sink = fleet(path)
    sink.sendRows([(when("10:00"), "a"), (when("9:00"), "b"), (when("9:30"), "c")])
    assert bound(sink) == "09:00", "that of the weakest"
    sink.sendRow((when("9:10"), "b"))
    sink.sendRow((when("9:40"), "c"))
    with pytest.raises(rt.LateRowError, match="its own 'device'"):
        sink.sendRow((when("9:39"), "c"))
    sink.closeKey("b")
    assert bound(sink) == "09:40"
    assert open_store(path).head().floor == sink.getRowtimeBound().floor


def test_a_new_value_starts_at_the_bound_or_is_named_before():
    sink = fleet()
    sink.sendRowtimeBound(when("9:00"), key="slow")
    sink.sendRow((when("10:00"), "a"))
    assert bound(sink) == "09:00"
    sink.sendRow((when("9:00"), "slow"))
    with pytest.raises(rt.LateRowError):
        sink.sendRow((when("8:59"), "new"))
    sink.sendRow((when("9:01"), "new"))
    assert bound(sink) == "09:00"


def test_a_bound_for_all_values():
    sink = fleet()
    sink.sendRows([(when("10:00"), "a"), (when("9:00"), "b")])
    sink.sendRowtimeBound(when("9:30"))
    assert bound(sink) == "09:30"
    with pytest.raises(rt.LateRowError):
        sink.sendRow((when("9:20"), "b"))
    sink.sendRowtimeBound(when("9:45"), key="b", strict=True)
    assert sink.getRowtimeBound() == rt.RowtimeBound(when("9:45"), strict=True)


def test_a_value_that_is_far_behind_does_not_count():
    path = new_stream(SCHEMA)
    sink = new_sink(path, "fleet", order=PER_DEVICE | {"keyIdle": HOUR}, onLate="reject")
    sink.sendRows([(when("9:00"), "a"), (when("9:00"), "b")])
    sink.sendRow((when("10:00"), "a"))
    assert bound(sink) == "09:00", "not further behind than keyIdle"
    sink.sendRow((when("10:01"), "a"))
    assert bound(sink) == "10:01"
    sink.sendRows([(when("9:02"), "b"), (when("10:01"), "b")])
    assert rt.describeStream(path).rejected == 1, "late, visibly"
    sink.sendRow((when("10:30"), "a"))
    assert bound(sink) == "10:01", "b counts again"


def test_a_bound_of_a_value_is_not_taken_back():
    sink = fleet()
    sink.sendRowtimeBound(when("10:00"), key="a")
    with pytest.raises(rt.BoundRegressionError):
        sink.sendRowtimeBound(when("9:59"), key="a")
    again = fleet(sink._store.path)
    again.sendRowtimeBound(when("9:59"), key="a")
    assert bound(again) == "10:00"


def test_a_late_row_takes_no_bound_of_a_value_back():
    """Rows that came before the bound stay below it, also where the call after it raises."""
    sink = fleet(linger=HOUR)
    sink.sendRows([(when("9:00"), "a"), (when("8:00"), "b")])
    sink.sendRow((when("9:10"), "a"))
    sink.sendRow((when("9:20"), "a"))
    sink.sendRowtimeBound(when("10:00"), key="a")
    with pytest.raises(rt.LateRowError):
        sink.sendRow((when("7:00"), "b"))
    with pytest.raises(rt.LateRowError):
        sink.sendRow((when("9:50"), "a"))
    assert dict(known(sink)) == {"a": us("10:00"), "b": us("8:00")}


def test_rows_of_unknown_values_ahead_of_all_others():
    """They are taken without a look at their value; it is known when it is asked for, and from the next row below."""
    sink = fleet(linger=HOUR)
    sink.sendRows([(when("9:00"), "a"), (when("8:00"), "b")])
    for minute in range(40):
        sink.sendRow((when(f"10:{minute:02}"), f"new {minute % 20}"))
    sink.sendRow((when("8:30"), "b"))
    with pytest.raises(rt.LateRowError, match="its own 'device'"):
        sink.sendRow((when("10:38"), "new 19"))
    sink.sendRow((when("10:38"), "new 18"))
    sink.flush()
    assert bound(sink) == "08:30"
    assert len(known(sink)) == 22
    assert dict(known(sink))["new 0"] == us("10:20")


def test_what_a_sink_without_keys_refuses():
    sink = new_sink(new_stream(SCHEMA))
    with pytest.raises(rt.InvalidOptionError, match="inOrderPer"):
        sink.sendRowtimeBound(when("10:00"), key="a")
    with pytest.raises(rt.InvalidOptionError, match="inOrderPer"):
        sink.closeKey("a")


@pytest.mark.parametrize("odd", [5, b"x", 1.5, ["a"]])
def test_a_key_that_the_column_cannot_hold(odd):
    with pytest.raises(rt.InvalidOptionError, match="'device'"):
        fleet().closeKey(odd)


KINDS = {
    "STRING": ("ä", ""),
    "BINARY": (b"x", b""),
    "BOOLEAN": (True, False),
    "TINYINT": (1, -1),
    "BIGINT": (2**62, 0),
    "DATE": (date(2026, 1, 5), date(1970, 1, 1)),
    "DECIMAL(10,2)": (decimal.Decimal("1.50"), decimal.Decimal("-2.00")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_type_of_a_key(kind):
    path = new_stream(f"rowtime TIMESTAMP NOT NULL, key {kind}")
    keys = [*KINDS[kind], None]
    sink = new_sink(path, "p", order={"inOrderPer": "key"}, onLate="reject")
    for minute, key in itertools.product(range(2), keys):
        sink.sendRow((when(f"10:0{1 + minute}"), key))
        sink.sendRow((when("10:00"), key))
    sink = new_sink(path, "p", order={"inOrderPer": "key"}, onLate="reject")
    schema = open_store(path).schema
    sink.sendRows(rows_to_batch([(when("10:01"), key) for key in keys] + [(when("10:05"), keys[0])], schema))
    assert accepted(path) == ["10:01"] * 3 + ["10:02"] * 3 + ["10:05"]
    for key in keys[1:]:
        sink.closeKey(key)
    assert bound(sink) == "10:05"


def test_describe_shows_the_weakest_values():
    path = new_stream(SCHEMA)
    sink = fleet(path)
    sink.sendRows([(when(f"10:{n:02}"), f"d{n}") for n in range(20)])
    [producer] = rt.describeStream(path).producers
    assert producer.keys == 20
    assert [(value, f"{floor.time:%H:%M}") for value, floor in producer.weakestKeys] == [
        ("d0", "10:00"), ("d1", "10:01"), ("d2", "10:02"),
    ]  # fmt: skip


@given(st.dictionaries(DEVICES, TIMES), st.integers(0, 5))
def test_the_weakest_values_known(floors, most):
    keys = KeyFloors(pa.string())
    for device, floor in floors.items():
        keys.set_one(device, floor)
    made = keys.changes()
    declaration = InOrderPer(ARROW, "device").declaration
    found = weakest_known(declaration, ARROW, [] if made is None else [made.content], most)
    first = sorted(floors.items(), key=lambda pair: (pair[1], str(pair[0])))[:most]
    assert found == (len(floors), first)


# ---- what it costs


def many(values, first=1):
    names = pa.array([f"device-{n:06}" for n in range(values)])
    floors = np.arange(first, first + values, dtype=np.int64)
    return names, floors


def test_a_value_that_is_not_known_has_no_floor():
    """Neither one that has no slot, beside one that has, nor one that was let go."""
    keys = KeyFloors(pa.string())
    keys.set_one("a", 5)
    keys.set_one("b", 7)
    keys.remove(keys.slots["b"])
    assert keys.at(keys.find(pa.array(["new", "a"]))).tolist() == [0, 5]
    assert keys.at(keys.find(pa.array(["b", "a"]))).tolist() == [0, 5]


def test_parts_do_not_outgrow_the_whole_state():
    """However few of them there are."""
    keys, whole, later = KeyFloors(pa.string()), 0, []
    names, floors = many(5000)
    for round_ in range(60):
        keys.set(names, keys.find(names), floors + 10_000 * round_)
        made = keys.changes()
        keys.landed(made)
        whole, later = (len(made.content), []) if made.whole else (whole, [*later, len(made.content)])
        assert sum(later[:-1]) <= MOST_BYTES_PER_BYTE * whole
    assert len(later) < 59


def test_a_commit_stores_what_changed():
    """Ten of many values: as much as of few; and all of them again, once the parts have outgrown them."""
    sizes = []
    for values in (20, 20_000):
        keys = KeyFloors(pa.string())
        names, floors = many(values)
        keys.set(names, keys.find(names), floors)
        keys.landed(keys.changes())
        assert keys.changes() is None
        parts, ten = [], names.slice(values // 2, 10)
        for round_ in range(MOST_PARTS + 1):
            keys.set(ten, keys.find(ten), np.arange(10, dtype=np.int64) + 10**6 + round_)
            parts.append(keys.changes())
            keys.landed(parts[-1])
        sizes.append(sorted(len(part.content) for part in parts)[MOST_PARTS // 2])
        assert any(part.whole for part in parts)
    assert sizes[1] <= 1.1 * sizes[0]


FAR = 2**62
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), DEVICES, st.sampled_from([1, 2, 300, 70_000, FAR])),
        st.tuples(st.just("close"), DEVICES, st.just(0)),
        st.tuples(st.just("store"), st.booleans(), st.just(0)),
    ),
    max_size=30,
)


@given(CHANGES, st.integers(1, 4))
def test_what_is_stored_is_what_is_known(changes, most_parts):
    """Whatever commits land or fail; values that come again, after a whole state too; floors of any size."""
    keys, known, parts = KeyFloors(pa.string()), {}, []
    with pytest.MonkeyPatch.context() as few:
        few.setattr(key_floors, "MOST_PARTS", most_parts)
        for what, device, floor in [*changes, ("store", True, 0)]:
            if what == "set":
                keys.set_one(device, floor)
                known[device] = floor
            elif what == "close" and known.pop(device, None):
                keys.remove(keys.slots[device])
            elif what == "store" and (made := keys.changes()) and device:
                parts = [*([] if made.whole else parts), made.content]
                keys.landed(made)
    again = KeyFloors(pa.string())
    again.restore(parts)
    assert dict(again.known()) == dict(keys.known()) == known
    assert again.changes() is None
    assert len(parts) <= most_parts


@pytest.mark.parametrize("one_by_one", [False, True])
def test_memory_per_value(one_by_one):
    values = 100_000
    schema = stream_schema(SCHEMA)
    disorder = InOrderPer(schema, "device")
    names, floors = many(values)
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    disorder.keys.set(names, disorder.keys.find(names), floors)
    disorder.keys.landed(disorder.keys.changes())
    assert (disorder.keys.find(names) == np.arange(values)).all()
    if one_by_one:
        disorder.keys.one_by_one()[:values] = [timedelta(microseconds=n) for n in range(values)]
    used = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    assert used / values < 300


def test_values_that_come_and_go_leave_nothing():
    keys, parts = KeyFloors(pa.int64()), []
    for number in range(1000):
        keys.set_one(number, number + 1)
        if number >= 10:
            keys.remove(keys.slots[number - 10])
        made = keys.changes()
        parts = [*([] if made.whole else parts), made.content]
        keys.landed(made)
        again = KeyFloors(pa.int64())
        again.restore(parts)
        assert sorted(again.known()) == sorted(keys.known())
    assert sorted(keys.known()) == [(n, n + 1) for n in range(990, 1000)]
    assert len(keys.slots) < 200


def test_a_bound_for_all_values_counts_for_those_that_are_not_known():
    """weakest value: unless a floor for all values is above it; also after a restart."""
    keys, again = InOrderPer(ARROW, "device"), InOrderPer(ARROW, "device")
    keys.promise(10)
    keys.promise(5)
    again.restore(keys.state())
    for known in (keys, again):
        assert (known.weakest(), known.floor_of("a")) == (10, 10)
        known.promise_of("a", 7)
        assert (known.weakest(), known.floor_of("a")) == (10, 10)
        known.promise_of("a", 12)
        assert (known.weakest(), known.floor_of("b")) == (12, 10)


def test_a_bound_of_a_value_lets_those_go_that_are_far_behind_it():
    keys = InOrderPer(ARROW, "device", idle=5)
    keys.promise_of("a", 1)
    keys.promise_of("b", 6)
    assert keys.weakest() == 1, "not further behind than keyIdle"
    keys.promise_of("b", 7)
    assert keys.weakest() == 7


def test_a_removed_value_costs_no_more_than_another():
    packed = [
        len(KeyParts(pa.string()).pack(pa.array(["a", "b"]), np.arange(2), np.array([5, t]))) for t in (6, UNKNOWN)
    ]
    assert packed[0] == packed[1]
