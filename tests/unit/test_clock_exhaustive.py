"""The clock's merge, exhaustively: every state that up to three producers reach with four times, in any interleaving.

Breadth first over distinct states, so that interleavings of any length are covered; producers are
alike, so states that differ only in their names are one. ``pytest -s`` prints how many there are.
"""

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import pytest

from spark_rowtime.bounds.clock import (
    COUNTING,
    Detached,
    Event,
    Expected,
    Idled,
    Joined,
    Left,
    ProducerClock,
    Sent,
    Status,
    StreamClock,
    completes,
)
from spark_rowtime.bounds.members import SortedMembers
from spark_rowtime.types.timestamps import END

NAMES = ("a", "b", "c")
TIMES = (1, 2, 3, 4)
FLOORS = (*TIMES, 5)
"""What a promise may be: a time, or, strictly after the last, one more."""

Known = tuple[Status, int | None]
State = tuple[int | None, int | None, tuple[Known, ...]]
"""The stream's floor, the largest rowtime, and the attached producers', sorted."""


def high(floor: int | None) -> int:
    return 0 if floor is None else floor


def order(known: Known) -> tuple[str, int]:
    return known[0].value, high(known[1])


def state_of(clock: StreamClock) -> State:
    known = ((p.status, p.floor) for p in clock.producers.values())
    return clock.floor, clock.largest, tuple(sorted(known, key=order))


def clock_at(state: State, **settings: Any) -> StreamClock:
    floor, largest, known = state
    producers = SortedMembers({name: ProducerClock(*k) for name, k in zip(NAMES, known, strict=False)})
    return StreamClock(**settings, floor=floor, largest=largest, producers=producers)


def steps(clock: StreamClock) -> Iterator[tuple[Event, int]]:
    """All that can happen next, with the least row of it (0: no row): what the store lets in, and nothing else."""
    present = list(clock.producers)
    if len(present) < len(NAMES) and clock.floor != END:
        yield Joined(NAMES[len(present)]), 0
        if not any(p.status is not Status.EXPECTED for p in clock.producers.values()) and clock.largest is None:
            yield Expected(NAMES[len(present)]), 0
    for name in present:
        yield Joined(name), 0  # a takeover, or an expected producer comes
        yield Left(name), 0
        yield Detached(name), 0
        yield Sent(name, END), 0
        if clock.producers[name].status is Status.EXPECTED:
            continue
        yield from ((Sent(name, END, largest), largest) for largest in TIMES if largest >= high(clock.in_force(name)))
        if clock.producers[name].status is Status.ATTACHED:
            yield Idled(name), 0
        yield from ((Sent(name, floor), 0) for floor in FLOORS)
        for least, largest in combinations_with_replacement(TIMES, 2):
            if least >= high(clock.in_force(name)):
                yield Sent(name, largest, largest), least  # rows in order
                yield Sent(name, None, largest), least  # rows in any order


@pytest.mark.parametrize("settings", [{}, {"bounds_before_rows": False}, {"max_lag": 1}], ids=str)
def test_every_state_of_three_producers(settings: dict[str, Any]) -> None:
    start = state_of(StreamClock(**settings))
    found, frontier, transitions = {start}, [start], 0
    while frontier:
        state = frontier.pop()
        for event, least in steps(clock_at(state, **settings)):
            clock = clock_at(state, **settings)
            after = clock.apply(event)
            transitions += 1
            check(state, event, least, after, clock)
            if state_of(clock) not in found:
                found.add(state_of(clock))
                frontier.append(state_of(clock))
    print(f"{settings}: {len(found)} states, {transitions} transitions")
    assert len(found) > 1000


def check(before: State, event: Event, least: int, after: int | None, clock: StreamClock) -> None:
    """Safe, monotone, weakest, remembers, end and holder, each said anew without the clock's own code."""
    floor, largest, _ = before
    assert not least or least >= high(floor), "no accepted row lies below a published floor"
    assert high(after) >= high(floor), "the floor never falls"
    assert after == clock.floor
    counting = [high(p.floor) for p in clock.producers.values() if p.status in COUNTING]
    assert all(p.floor is None for p in clock.producers.values() if p.status is Status.EXPECTED)
    assert all(high(p.floor) < END for p in clock.producers.values()), "a complete producer is waited for no more"
    if completes(event) and not clock.producers:
        expected = END
    elif not clock.bounds_before_rows and clock.largest is None:
        expected = 0
    elif clock.producers:
        lag = max(counting, default=0) - clock.max_lag if clock.max_lag is not None else 0
        expected = max(min(counting, default=0), lag)
    else:
        expected = high(largest) if isinstance(event, Left) else 0
    assert high(after) == max(high(floor), expected), (before, event)
    members = sorted(
        (high(p.floor), p.status is Status.ATTACHED, name)
        for name, p in clock.producers.items()
        if p.status in COUNTING
    )
    assert clock.holder() == (members[0][-1] if members else None)
    reached = max(members[0][0], high(clock.floor)) if members else 0
    assert clock.holders() == [name for floor, _, name in members if floor <= reached]
    assert high(clock.producers.strongest()) == (members[-1][0] if members else 0)


def test_a_promise_that_is_kept_is_enough() -> None:
    """Where nobody is idle, detached or outrun, a row that keeps its producer's own bound keeps the stream's."""
    start = state_of(StreamClock())
    found, frontier = {start}, [start]
    while frontier:
        state = frontier.pop()
        for name, known in clock_at(state).producers.items():
            assert high(known.floor) >= high(state[0]), (state, name)
        for event, _ in steps(clock_at(state)):
            if isinstance(event, Idled | Detached | Expected):
                continue
            clock = clock_at(state)
            clock.apply(event)
            if state_of(clock) not in found:
                found.add(state_of(clock))
                frontier.append(state_of(clock))
    print(f"without idleness and leases: {len(found)} states")
    assert len(found) > 100
