"""Release by position: its laws over random streams, and what each way of handing out gives."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit_support import HOUR, clock_times, new_sink, new_stream, row, rows, us, when, whole_log

import spark_rowtime as rt
from spark_rowtime import InvalidOptionError, RowtimeBound
from spark_rowtime.reader.release import (
    Release,
    dump_position,
    least_left,
    least_sent,
    load_position,
    release,
    start_bound,
)
from spark_rowtime.store import open_store
from spark_rowtime.store.position import Position
from spark_rowtime.types.schema import rowtime_micros
from spark_rowtime.types.timestamps import to_micros
from tests.store.streams import infos

EPOCH = datetime.fromtimestamp(0, UTC)
TIMES = st.integers(1, 40)
ORDERS = {"ordered": {}, "any": {"rowsImplyBounds": False}, "late": {"lateness": "5 us"}}


def actions_of(names) -> st.SearchStrategy:
    """What these producers do, and the reader: a step now and then, or after each."""
    name = st.sampled_from(sorted(names))
    rows = st.tuples(st.just("rows"), name, st.lists(TIMES, min_size=1, max_size=6))
    step = st.tuples(st.just("step"), name, st.none())
    other = st.tuples(st.just("bound"), name, TIMES) | st.tuples(st.just("leave"), name, st.none())
    eager = st.lists(rows | rows | rows | other, max_size=12)
    return st.lists(rows | step | other, max_size=25) | eager.map(lambda does: [a for d in does for a in (d, STEP)])


STEP = ("step", "", None)
ACTIONS = st.sets(st.sampled_from(sorted(ORDERS)), min_size=1).flatmap(actions_of)
WAYS = st.builds(
    Release,
    st.sampled_from(["arrival", "rowtime"]),
    st.none() | st.integers(0, 15),
    st.none(),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(1, 100),
)


def at_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


class World:
    """A stream whose producers do as they are told, and a reader that steps through it."""

    def __init__(self, way: Release) -> None:
        self.path = new_stream()
        self.store, self.way, self.sinks, self.serial = open_store(self.path), way, {}, 0
        self.positions, self.handed = [way.earliest(self.store)], []

    def act(self, action) -> None:
        kind, name, value = action
        if kind == "step":
            self.step()
        elif kind == "leave":
            if name in self.sinks:
                self.sinks.pop(name).close()
        else:
            sink = self.sink(name)
            if kind == "rows":
                sink.sendRows([(at_micros(t), self.label()) for t in value])
            elif value >= (sink._outbox.floors.promised or 0):
                sink.sendRowtimeBound(at_micros(value))

    def sink(self, name):
        if name not in self.sinks:
            options = {"onLate": "reject", "maxTrainRows": 2, "order": ORDERS[name]}
            self.sinks[name] = new_sink(self.path, name, **options)
        return self.sinks[name]

    def label(self) -> str:
        self.serial += 1
        return str(self.serial)

    def step(self) -> bool:
        at = self.positions[-1]
        to = self.way.step(self.store, at)
        if to == at:
            return False
        self.positions.append(to)
        self.handed.append(self.between(at, to))
        return True

    def between(self, at, to):
        pieces = self.way.slices(self.store, at, to)
        return [found for piece in pieces for found in listed(self.way.rows(self.store, piece, at, to))]

    def log(self):
        """(seq, rowtime, label) of every committed row, without the code under test."""
        return [
            (entry.head.seq, time, label)
            for entry in self.store.state.log
            if entry.train is not None
            for time, label in listed(entry.train.location)
        ]

    def region(self, position):
        return [
            (time, label)
            for seq, time, label in self.log()
            if seq <= position.seq and (position.cut is None or time < position.cut)
        ]

    def finish(self) -> None:
        for sink in self.sinks.values():
            sink.close()
        while self.step():
            pass


def listed(batch):
    return list(zip(rowtime_micros(batch).to_pylist(), batch.column("ticker").to_pylist(), strict=True))


def played(way: Release, actions) -> World:
    world = World(way)
    for action in actions:
        world.act(action)
    world.finish()
    return world


def high(value: int | None) -> float:
    return float("-inf") if value is None else value


@settings(max_examples=100)
@given(WAYS, ACTIONS)
def test_exactly_once(way, actions):
    """exactly once: the steps from the start to a position hand out each row in its region once."""
    world = played(way, actions)
    seen = []
    for position, handed in zip(world.positions[1:], world.handed, strict=True):
        seen += handed
        assert sorted(seen) == sorted(world.region(position))


@settings(max_examples=100)
@given(WAYS, ACTIONS)
def test_floor(way, actions):
    """floor: min(the stream's floor at seq, the least rowtime not handed out); exactly."""
    world = played(way, actions)
    for position in world.positions[1:]:
        left = [
            time
            for seq, time, _ in world.log()
            if seq <= position.seq and position.cut is not None and time >= position.cut
        ]
        stream = world.store.at(position.seq).floor
        expected = None if stream is None else min([stream, *left])
        assert position.floor == expected


@settings(max_examples=100)
@given(WAYS, ACTIONS)
def test_grow(way, actions):
    """grow: no coordinate ever falls; and but for what is held the floor never passes the cut."""
    world = played(way, actions)
    for at, to in zip(world.positions, world.positions[1:], strict=False):
        assert to.seq >= at.seq
        assert high(to.floor) >= high(at.floor)
        assert (at.cut is None) == (to.cut is None)
        assert to.cut is None or to.cut >= at.cut
        assert to.cut is None or way.hold is not None or high(to.floor) <= to.cut


@settings(max_examples=100)
@given(WAYS, ACTIONS)
def test_moves_for_a_reason(way, actions):
    """moves for a reason: a step goes on only where it hands out rows or the floor has moved."""
    world = played(way, actions)
    for at, to, handed in zip(world.positions, world.positions[1:], world.handed, strict=False):
        assert handed or to.floor != at.floor


@settings(max_examples=50)
@given(WAYS, ACTIONS)
def test_replay(way, actions):
    """The rows between two positions are the same whenever they are read, also across several steps."""
    world = played(way, actions)
    steps = zip(world.positions, world.positions[1:], world.handed, strict=False)
    for at, to, handed in steps:
        assert world.between(at, to) == handed
    everything = world.between(world.positions[0], world.positions[-1])
    assert sorted(everything) == sorted(found for handed in world.handed for found in handed)


@settings(max_examples=50)
@given(WAYS, ACTIONS)
def test_truth(way, actions):
    """No row is handed out below a floor that was handed out before."""
    world = played(way, actions)
    told = float("-inf")
    for position, handed in zip(world.positions[1:], world.handed, strict=True):
        assert all(time >= told for time, _ in handed)
        told = high(position.floor)


@settings(max_examples=50)
@given(WAYS, ACTIONS)
def test_complete(way, actions):
    """When all producers have left, everything is handed out, but for what ``hold`` holds."""
    world = played(way, actions)
    log = world.log()
    largest = max((time for _, time, _ in log), default=0)
    floor = world.store.head().floor or 0
    due = [(t, n) for _, t, n in log if way.hold is None or t <= max(largest, floor) - way.hold]
    if all(info.status == "left" for info in infos(world.store)):
        assert sorted(f for handed in world.handed for f in handed) == sorted(due)


@settings(max_examples=50)
@given(WAYS, ACTIONS, TIMES)
def test_since(way, actions, since):
    """Rows below ``since`` are left out, all others are as without."""
    plain, world = played(way, actions), played(replace(way, since=since), actions)
    expected = [f for handed in plain.handed for f in handed if f[0] >= since]
    assert sorted(f for handed in world.handed for f in handed) == sorted(expected)
    for at, to, handed in zip(world.positions, world.positions[1:], world.handed, strict=False):
        assert handed or to.floor != at.floor


@settings(max_examples=50)
@given(WAYS, ACTIONS)
def test_latest(way, actions):
    """``latest`` is after all that could be handed out; nothing of it comes again."""
    world = World(way)
    for action in actions:
        world.act(action)
    latest = way.latest(world.store)
    before = world.region(latest)
    world.positions, world.handed = [latest], []
    world.finish()
    rest = [f for handed in world.handed for f in handed]
    assert not set(rest) & set(before)
    unlimited = replace(way, max_rows=None, max_bytes=None)
    assert unlimited.step(world.store, latest, upto=latest.seq) == latest


@settings(max_examples=50)
@given(WAYS, ACTIONS, st.integers(0, 30))
def test_upto(way, actions, upto):
    """A step is never beyond ``upto``, and does not fall where it is beyond already."""
    world = World(way)
    for action in actions:
        world.act(action)
    upto = min(upto, world.store.head().seq)
    for at in list(world.positions):
        to = way.step(world.store, at, upto)
        assert to.seq <= max(upto, at.seq)
        assert high(to.floor) >= high(at.floor)
        assert to.seq >= at.seq


# ---- by example


def handed_out(store, way, at):
    """The rowtimes of one step, and where it ends."""
    to = way.step(store, at)
    pieces = way.slices(store, at, to) if to != at else []
    return [t for p in pieces for t in clock_times(way.rows(store, p, at, to))], to


FAR = st.integers(1, 12).map(lambda k: 11**k)
"""Microseconds to weeks: a search that widens its span passes through all of its stages."""


@given(st.lists(st.lists(FAR, min_size=1, max_size=3)), FAR, st.integers(-1, 1), st.integers(0, 12))
def test_least_sent(trains, cut, beside, seq):
    """The least rowtime at or above a time in the log up to a seq, which later trains do not change."""
    world = World(Release())
    for train in trains:
        world.act(("rows", "any", train))
    seq, cut = min(seq, world.store.head().seq), cut + beside
    expected = min((time for at, time, _ in world.log() if at <= seq and time >= cut), default=None)
    assert least_sent(world.store, seq, cut) == expected


def test_what_retention_has_left_has_a_least_rowtime():
    rt.createStream("memory://least-left", "rowtime TIMESTAMP NOT NULL")
    with open_store("memory://least-left") as store, rt.openSink("memory://least-left", rowsImplyBounds=False) as sink:
        assert least_left(store, store.head().seq) is None
        for minute in (30, 10, 50):
            sink.sendRow((f"2006-09-11T12:{minute}:00Z",))
            sink.flush()
        assert least_left(store, store.head().seq) == to_micros("2006-09-11T12:10:00Z")
        sink.sendRowtimeBound("2006-09-11T12:40:00Z")
        sink.flush()
        assert store.gc(age=0).rows == 2
        assert least_left(store, store.head().seq) == to_micros("2006-09-11T12:50:00Z")
        assert least_left(store, 1) is None


def test_arrival_gives_rows_as_they_are_committed():
    path = new_stream()
    fast, slow = new_sink(path), new_sink(path)
    store, way = open_store(path), release("arrival")
    fast.sendRow(row("10:05"))
    found, at = handed_out(store, way, way.earliest(store))
    assert (found, at.floor) == (["10:05"], None)
    slow.sendRow(row("10:00"))
    found, at = handed_out(store, way, at)
    assert (found, at.cut, at.floor) == (["10:00"], None, us("10:00"))


def test_rowtime_gives_rows_as_they_are_released():
    path = new_stream()
    fast, slow = new_sink(path), new_sink(path)
    store, way = open_store(path), release("rowtime")
    fast.sendRows(rows("10:00", "10:05"))
    assert handed_out(store, way, way.earliest(store)) == ([], way.earliest(store))
    slow.sendRowtimeBound(when("10:03"))
    found, at = handed_out(store, way, way.earliest(store))
    assert (found, at.cut, at.floor) == (["10:00"], us("10:03") + 1, us("10:03"))
    slow.sendRowtimeBound(when("10:05"))
    found, at = handed_out(store, way, at)
    assert (found, at.floor) == (["10:05"], us("10:05"))


def test_hold_waits_for_what_comes_that_much_later():
    """Feldera's WATERMARK: W = 1 h, rows 00:00, 02:00, 00:30, then 03:00."""
    path = new_stream()
    sink = new_sink(path, order={"rowsImplyBounds": False})
    store, way = open_store(path), release("arrival", "1 hour")
    at = way.earliest(store)
    steps = []
    for text in ("2006-09-12T00:00", "2006-09-12T02:00", "2006-09-12T00:30", "2006-09-12T03:00"):
        sink.sendRow(row(text))
        found, at = handed_out(store, way, at)
        steps.append(found)
    assert steps == [[], ["00:00"], ["00:30"], ["02:00"]]


def test_hold_is_ended_by_a_bound_too():
    path = new_stream()
    sink = new_sink(path)
    store, way = open_store(path), release("arrival", "1 hour")
    sink.sendRow(row("10:00"))
    sink.sendRowtimeBound(when("10:59"))
    found, at = handed_out(store, way, way.earliest(store))
    assert (found, at.floor) == ([], us("10:00"))
    sink.sendRowtimeBound(when("11:00"))
    assert handed_out(store, way, at)[0] == ["10:00"]


def test_hold_never_tells_more_than_it_gave():
    path = new_stream()
    sink = new_sink(path)
    store, way = open_store(path), release("arrival", "1 hour")
    sink.sendRows(rows("10:00", "10:30", "11:10"))
    found, at = handed_out(store, way, way.earliest(store))
    assert (found, at.floor) == (["10:00"], us("10:30"))


def test_no_step_for_a_train_that_only_spans_the_difference():
    """A held train may reach over the rows that a step would add without having one there."""
    path = new_stream()
    sink = new_sink(path, order={"rowsImplyBounds": False})
    store, way = open_store(path), release("arrival", "1 hour")
    sink.sendRows(rows("1:00", "10:00"))
    found, at = handed_out(store, way, way.earliest(store))
    assert found == ["01:00"]
    sink.sendRow(row("10:30"))
    assert way.step(store, at) == at


def test_a_limit_does_not_stop_where_a_train_has_no_row():
    """The first train spans the difference without a row in its first part: the step goes on to one that has."""
    path = new_stream()
    sink = new_sink(path, order={"rowsImplyBounds": False})
    store, way = open_store(path), release("arrival", "1 hour", max_rows=1)
    sink.sendRows(rows("1:00", "10:00"))
    found, at = handed_out(store, way, way.earliest(store))
    assert found == ["01:00"]
    sink.sendRow(row("9:30"))
    sink.sendRow(row("10:45"))
    assert handed_out(store, way, at)[0] == ["09:30"]


def test_max_rows_cuts_between_index_entries_in_arrival_order():
    path = new_stream()
    sink = new_sink(path)
    store, way = open_store(path), release("arrival", max_rows=3)
    for first in (10, 11, 12, 13):
        sink.sendRows(rows(f"{first}:00", f"{first}:30"))
    at, sizes, floors = way.earliest(store), [], []
    while True:
        found, to = handed_out(store, way, at)
        if to == at:
            break
        at = to
        sizes.append(len(found))
        floors.append(at.floor)
    assert sizes == [2, 2, 2, 2]
    assert floors == [us("10:30"), us("11:30"), us("12:30"), us("13:30")]


def test_max_rows_cuts_by_rowtime_in_rowtime_order():
    path = new_stream()
    sink = new_sink(path)
    store, way = open_store(path), release("rowtime", max_rows=3)
    for first in (10, 11, 12):
        sink.sendRows(rows(f"{first}:00", f"{first}:30"))
    found, at = handed_out(store, way, way.earliest(store))
    assert (found, at.floor) == (["10:00", "10:30"], us("11:00"))
    found, at = handed_out(store, way, at)
    assert (found, at.floor) == (["11:00", "11:30"], us("12:00"))


def test_a_train_larger_than_the_limit_comes_all_the_same():
    path = new_stream()
    sink = new_sink(path)
    sink.sendRows(rows(*["10:00"] * 10))
    way = release("arrival", max_rows=3)
    assert len(handed_out(open_store(path), way, way.earliest(open_store(path)))[0]) == 10


def test_max_bytes_limits_too():
    path = new_stream()
    sink = new_sink(path)
    for first in (10, 11, 12):
        sink.sendRow(row(f"{first}:00"))
    way = release("arrival", max_bytes=1)
    assert handed_out(open_store(path), way, way.earliest(open_store(path)))[0] == ["10:00"]


def test_limits_may_be_reached_but_not_passed():
    path = new_stream()
    sink = new_sink(path)
    for first in (10, 11, 12):
        sink.sendRows(rows(f"{first}:00", f"{first}:30"))
    store = open_store(path)
    sizes = [piece.size for piece in store.slices(*whole_log(store))]
    for limits, trains in (
        ({"max_rows": 4}, 2), ({"max_rows": 5}, 2), ({"max_rows": 6}, 3), ({"max_rows": 6, "max_bytes": 1}, 1),
        ({"max_bytes": sum(sizes[:2])}, 2), ({"max_bytes": sum(sizes[:2]) - 1}, 1),
    ):  # fmt: skip
        way = release("arrival", **limits)
        assert len(handed_out(store, way, way.earliest(store))[0]) == 2 * trains, limits


def test_a_step_up_to_an_earlier_event_stays():
    """As where a query goes on that has read further than its target."""
    path = new_stream()
    sink = new_sink(path)
    sink.sendRow(row("10:00"))
    store, way = open_store(path), release("arrival")
    first = store.head().seq
    sink.sendRow(row("10:01"))
    at = way.step(store, way.earliest(store))
    sink.sendRow(row("10:02"))
    assert way.step(store, at, upto=first) == at
    assert way.step(store, at).seq == store.head().seq


def test_an_empty_stream_gives_no_step():
    store = open_store(new_stream())
    for order in ("arrival", "rowtime"):
        way = release(order)
        assert way.step(store, way.earliest(store)) == way.earliest(store)
        assert way.latest(store).seq == 0


def test_options_are_checked():
    with pytest.raises(InvalidOptionError, match="sideways"):
        release("sideways")
    with pytest.raises(InvalidOptionError, match="hold"):
        release("arrival", "long")
    assert release("arrival", "1 hour").hold == HOUR


def test_start_bound():
    assert start_bound("2006-09-11T10:00:00Z") == us("10:00")
    assert start_bound(RowtimeBound(when("10:00"), strict=True)) == us("10:00") + 1


def test_position_goes_through_json():
    for position in (Position(3, None, None), Position(7, us("10:00"), us("9:00"), us("9:30"))):
        fields = dump_position(position, "stream", "rowtime")
        assert load_position(fields, "stream", "rowtime") == position
        assert load_position(json.dumps(fields), "stream", "rowtime") == position


def test_a_position_of_another_stream_or_order_is_an_error():
    fields = dump_position(Position(3, None, None), "stream", "arrival")
    with pytest.raises(InvalidOptionError, match="other"):
        load_position(fields, "other", "arrival")
    with pytest.raises(InvalidOptionError, match="order=rowtime"):
        load_position(fields, "stream", "rowtime")


NEVER = json.dumps(dump_position(Position(3, None, None, 1 << 62), "s", "arrival"))


@pytest.mark.parametrize("text", ["{", "[]", "{}", "offset 7", '{"stream": "s", "order": "arrival"}', NEVER])
def test_what_is_no_position_is_an_error(text):
    with pytest.raises(InvalidOptionError, match="not a position"):
        load_position(text, "s", "arrival")
