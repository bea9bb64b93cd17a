"""StreamClock: the laws of its docstring, and the stream clock's worked example."""

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import HOUR, MINUTE, us

from spark_rowtime.bounds.clock import COUNTING, Detached, Expected, Idled, Joined, Left, Sent, Status, StreamClock
from spark_rowtime.types.timestamps import END

NAMES = st.sampled_from(["a", "b", "c"])
FLOORS = st.none() | st.integers(1, 60) | st.just(END)
EVENTS = st.lists(
    st.one_of(
        st.builds(Expected, NAMES),
        st.builds(Joined, NAMES),
        st.builds(Sent, NAMES, FLOORS, st.none() | st.integers(1, 60)),
        st.builds(Left, NAMES),
        st.builds(Idled, NAMES),
        st.builds(Detached, NAMES),
    ),
    max_size=40,
)
CLOCKS = st.builds(StreamClock, st.booleans(), st.none() | st.integers(0, 20))


def floors(clock: StreamClock, events) -> list[int | None]:
    return [clock.apply(event) for event in events]


def high(floor: int | None) -> float:
    return float("-inf") if floor is None else floor


@given(CLOCKS, EVENTS)
def test_monotone(clock, events):
    """monotone: the floor never falls."""
    seen = [high(f) for f in floors(clock, events)]
    assert seen == sorted(seen)


@given(CLOCKS, st.data())
def test_safe(clock, data):
    """safe: rows at or above their producer's bound in force are never below a floor published before."""
    published = float("-inf")
    for event in data.draw(EVENTS):
        if isinstance(event, Sent) and (clock.in_force(event.producer) or 1) < END:  # no row follows the end
            least = data.draw(st.integers(clock.in_force(event.producer) or 1, 80))
            event = replace(event, largest=least)
            assert least >= published
        published = max(published, high(clock.apply(event)))


@given(st.data())
def test_safe_by_its_own_bound(data):
    """safe: while nobody is idle, detached or outrun, a producer's own bound alone keeps its rows in order.

    So nothing that one producer does can make another, which keeps its own promises, late.
    """
    clock = StreamClock(data.draw(st.booleans()))
    for name, sends in data.draw(st.lists(st.tuples(NAMES, st.booleans()), max_size=40)):
        known = clock.producers.get(name)
        if known is None or known.status is not Status.ATTACHED:
            clock.apply(Joined(name))
        elif sends:
            least = data.draw(st.integers(known.floor or 1, 90))
            assert least >= high(clock.floor)
            clock.apply(Sent(name, least, least))
        else:
            clock.apply(Left(name))


@given(st.booleans(), EVENTS)
def test_weakest(before_rows, events):
    """weakest: the weakest of the expected and of the attached that are not idle, but never less than it was."""
    clock = StreamClock(before_rows)
    for event in events:
        was = clock.floor
        floor = clock.apply(event)
        there = [p for p in clock.producers.values() if p.status in (*COUNTING, Status.IDLE)]
        counting = [high(p.floor) for p in there if p.status in COUNTING]
        if not there or (not before_rows and clock.largest is None):
            continue
        assert high(floor) == max(high(was), min(counting, default=float("-inf")))


@given(CLOCKS, EVENTS, NAMES)
def test_idle(clock, events, name):
    """idle: one that becomes idle raises the floor at most to what the others have promised."""
    clock.replay(events)
    was = clock.floor
    others = [high(p.floor) for n, p in clock.producers.items() if p.status in COUNTING and n != name]
    promised = min(others, default=high(None)) if clock.max_lag is None else max(others, default=high(None))
    assert high(clock.apply(Idled(name))) <= max(high(was), promised)


@given(CLOCKS, EVENTS)
def test_remembers(clock, events):
    """remembers: when the last producer leaves, the floor is at least the largest rowtime accepted."""
    clock.replay([*events, Joined("a"), Sent("a", None, 7)])
    names = list(clock.producers)
    was = clock.floor
    for name in names:
        clock.apply(Left(name))
    assert clock.floor is not None
    assert clock.floor >= max(clock.largest, high(was))


@given(CLOCKS, EVENTS)
def test_end(clock, events):
    """end: when the last producer becomes complete, the floor is END, also if there never was a row."""
    clock.replay([*events, Joined("a"), Expected("d")])
    for name in list(clock.producers):
        was = clock.floor
        floor = clock.apply(Sent(name, END))
        assert (floor == END) is (not clock.producers or was == END)
        assert name not in clock.producers
    assert clock.floor == END


@given(CLOCKS, EVENTS, st.integers(0, 40))
def test_replay(clock, events, cut):
    """replay: the same events give the same floors, also where the fold is taken up half-way."""
    first, second = copy.deepcopy(clock), copy.deepcopy(clock)
    expected = floors(first, events)
    assert second.replay(events[:cut]) == (expected[:cut] or [None])[-1]
    resumed = second.copy()
    assert floors(resumed, events[cut:]) == expected[cut:]
    assert resumed == first


def test_worked_example():
    """The example of bounds before rows, to the letter."""
    clock = StreamClock(bounds_before_rows=False)
    assert clock.floor is None
    clock.apply(Joined("P1"))
    assert clock.apply(Sent("P1", us("10:00"))) is None
    assert clock.in_force("P1") == us("10:00")
    assert clock.apply(Sent("P1", us("10:00"), us("10:00"))) == us("10:00")
    assert clock.apply(Joined("P2")) == us("10:00")
    assert clock.apply(Sent("P2", us("10:05"))) == us("10:00")
    assert clock.apply(Sent("P2", us("10:05"), us("10:05"))) == us("10:00")
    assert clock.in_force("P2") > us("9:59")
    assert clock.apply(Left("P1")) == us("10:05")
    assert clock.apply(Left("P2")) == us("10:05")
    assert clock.apply(Joined("P3")) == us("10:05")
    assert clock.in_force("P3") > us("10:04")


@pytest.mark.parametrize(("before_rows", "expected"), [(True, [5, 7, 7]), (False, [None, None, 7])])
def test_bounds_before_rows(before_rows, expected):
    clock = StreamClock(before_rows)
    clock.apply(Joined("a"))
    assert floors(clock, [Sent("a", 5), Sent("a", 7), Sent("a", 7, 7)]) == expected


def test_without_rows_leaving_keeps_a_late_start_undefined():
    clock = StreamClock(bounds_before_rows=False)
    assert floors(clock, [Joined("a"), Sent("a", 5), Left("a")]) == [None, None, None]


def test_one_that_has_said_nothing_counts_as_minus_infinity():
    clock = StreamClock()
    assert floors(clock, [Joined("a"), Joined("b"), Sent("a", 9, 9), Sent("b", 3)]) == [None, None, None, 3]


def test_a_newcomer_starts_at_the_stream_and_does_not_pull_it_back():
    clock = StreamClock()
    assert floors(clock, [Joined("a"), Sent("a", 8), Joined("b"), Sent("a", 9)])[-2:] == [8, 8]
    assert clock.producers["b"].floor == 8
    assert clock.apply(Sent("b", 20)) == 9


def test_leaving_lets_the_stream_go_to_the_others():
    clock = StreamClock()
    clock.replay([Joined("a"), Joined("b"), Sent("a", 3, 3), Sent("b", 9, 11)])
    assert clock.apply(Left("a")) == 9
    assert clock.apply(Left("b")) == 11


def test_detaching_the_last_releases_nothing():
    clock = StreamClock()
    clock.replay([Joined("a"), Sent("a", 3, 8)])
    assert clock.apply(Detached("a")) == 3


def test_a_detached_producer_holds_nothing_and_comes_back_at_the_stream():
    clock = StreamClock()
    clock.replay([Joined("a"), Joined("b"), Sent("a", 3, 3), Sent("b", 9, 9)])
    assert clock.apply(Detached("a")) == 9
    assert clock.apply(Joined("a")) == 9
    assert clock.producers["a"].floor == 9
    assert clock.producers["a"].status is Status.ATTACHED


def test_a_takeover_carries_the_bound_on():
    clock = StreamClock()
    clock.replay([Joined("a"), Joined("b"), Sent("a", 9), Sent("b", 3)])
    assert clock.apply(Joined("a")) == 3
    assert clock.in_force("a") == 9


def test_idle_stops_counting_until_it_sends():
    clock = StreamClock()
    clock.replay([Joined("a"), Joined("b"), Sent("a", 3, 3), Sent("b", 9, 9)])
    assert clock.apply(Idled("a")) == 9
    assert clock.holder() == "b"
    assert clock.apply(Sent("b", 12, 12)) == 12
    assert clock.in_force("a") == 12
    assert clock.apply(Sent("a", 13, 13)) == 12
    assert clock.apply(Sent("b", 20, 20)) == 13


def test_all_idle_keeps_the_bound():
    clock = StreamClock()
    clock.replay([Joined("a"), Joined("b"), Sent("a", 3, 30), Sent("b", 9, 9), Idled("a")])
    assert clock.apply(Idled("b")) == 9
    assert clock.holder() is None


def test_an_expected_producer_holds_the_stream_until_it_comes_and_promises():
    clock = StreamClock()
    clock.replay([Expected("a"), Expected("b"), Joined("b")])
    assert clock.apply(Sent("b", 9, 9)) is None
    assert clock.holder() == "a"
    assert clock.apply(Joined("a")) is None
    assert clock.apply(Sent("a", 4)) == 4


@pytest.mark.parametrize(("event", "expected"), [(Left("a"), 11), (Detached("a"), None), (Sent("a", END), END)])
def test_an_expected_producer_is_let_go(event, expected):
    """Also as the last one: then only leaving counts the rows."""
    clock = StreamClock()
    clock.replay([Expected("a"), Joined("b"), Sent("b", 9, 11), Left("b")])
    assert clock.floor is None
    assert clock.apply(event) == expected


def test_the_last_one_decides():
    """A complete producer does not count: what the last of the others does is what happens."""
    clock = StreamClock()
    assert floors(clock, [Joined("a"), Joined("b"), Sent("a", END, 8), Sent("b", 3, 7)]) == [None, None, None, 3]
    assert copy.deepcopy(clock).apply(Left("b")) == 8
    assert copy.deepcopy(clock).apply(Detached("b")) == 3
    assert clock.apply(Sent("b", END)) == END


def test_the_end_of_one_does_not_pull_the_others_by_max_lag():
    clock = StreamClock(max_lag=10 * MINUTE)
    clock.replay([Joined("a"), Joined("b"), Sent("b", us("9:00")), Sent("a", END)])
    assert clock.floor == us("9:00")


def test_a_stream_that_ends_without_a_row_ends():
    clock = StreamClock(bounds_before_rows=False)
    assert floors(clock, [Joined("a"), Sent("a", END)]) == [None, END]


def test_max_lag_bounds_how_far_the_slowest_holds_back():
    clock = StreamClock(max_lag=HOUR)
    clock.replay([Joined("slow"), Joined("fast"), Sent("slow", us("9:00"), us("9:00"))])
    assert clock.apply(Sent("fast", us("9:30"))) == us("9:00")
    assert clock.apply(Sent("fast", us("10:30"))) == us("9:30")
    assert clock.in_force("slow") == us("9:30")
    assert clock.apply(Sent("slow", us("10:00"), us("10:00"))) == us("10:00")


def test_max_lag_speaks_for_one_that_has_said_nothing():
    clock = StreamClock(max_lag=10 * MINUTE)
    clock.replay([Joined("mute"), Joined("fast")])
    assert clock.apply(Sent("fast", us("10:00"))) == us("9:50")


def test_max_lag_is_no_promise_before_time_began():
    """Near 1970 the strongest less the lag may be no time at all; that is no bound, not a negative one."""
    clock = StreamClock(max_lag=HOUR)
    clock.replay([Joined("mute"), Joined("fast")])
    assert (clock.apply(Sent("fast", MINUTE)) or 1) >= 1


@given(EVENTS)
def test_max_lag_never_weakens(events):
    """The bound with maxLag is at least the bound without."""
    plain, lagging = StreamClock(), StreamClock(max_lag=5)
    for event in events:
        assert high(lagging.apply(event)) >= high(plain.apply(event))


def test_holder_is_the_weakest_that_counts():
    clock = StreamClock()
    assert clock.holder() is None
    clock.replay([Joined("a"), Joined("b"), Sent("a", 9), Sent("b", 3)])
    assert clock.holder() == "b"
    clock.apply(Left("b"))
    assert clock.holder() == "a"
    clock.apply(Joined("c"))
    clock.apply(Sent("a", 12))
    assert clock.holder() == "c"


@given(EVENTS)
def test_holders_are_all_who_must_move_before_the_bound_does(events):
    clock = StreamClock()
    clock.replay(events)
    holders = clock.holders()
    assert holders[:1] == ([] if clock.holder() is None else [clock.holder()])
    for stays in holders:
        others = copy.deepcopy(clock)
        others.replay(Sent(name, 100) for name, p in clock.producers.items() if name != stays)
        assert others.floor == clock.floor
    all_move = copy.deepcopy(clock)
    all_move.replay(Sent(name, 100) for name in holders)
    assert not holders or high(all_move.floor) > high(clock.floor) or clock.floor == END


def test_with_max_lag_the_holders_are_those_at_the_bound_and_below():
    clock = StreamClock(max_lag=10 * MINUTE)
    clock.replay([Joined("mute"), Joined("slow"), Joined("fast"), Sent("slow", us("9:50")), Sent("fast", us("10:00"))])
    assert clock.floor == us("9:50")
    assert clock.holders() == ["mute", "slow"]
