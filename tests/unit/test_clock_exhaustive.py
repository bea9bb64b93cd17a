"""The clock's merge, exhaustively: every state that up to three producers reach with a few times, in any interleaving.

The search visits each distinct state once, so that interleavings of any length are covered. Producers are alike: states
that differ only in their names are one state, and of producers with the same state only the first makes the next step.
``pytest -s`` prints how many states and transitions there are.
"""

from collections.abc import Iterator
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
Known = tuple[Status, int]
"""A producer's status and floor; 0: it has none."""
State = tuple[int | None, int | None, tuple[Known, ...]]
"""The stream's floor, the largest rowtime, and the attached producers', sorted."""


def high(floor: int | None) -> int:
    return 0 if floor is None else floor


def state_of(clock: StreamClock) -> State:
    return clock.floor, clock.largest, tuple(sorted([(p.status, p.floor or 0) for p in clock.producers.values()]))


def clock_at(state: State, **settings: Any) -> StreamClock:
    floor, largest, known = state
    clocks = [ProducerClock(status, own or None) for status, own in known]
    producers = SortedMembers(dict(zip(NAMES, clocks, strict=False)))
    return StreamClock(**settings, floor=floor, largest=largest, producers=producers)


def steps(clock: StreamClock, last: int) -> Iterator[tuple[Event, int]]:
    """All that can happen next, with the least row of it (0: no row): what the store lets in, and nothing else.

    ``last``: the last time of a row. A promise may be a time, or, strictly after the last, one more.
    """
    present = list(clock.producers)
    different = {clock.producers[name]: name for name in reversed(present)}
    if len(present) < len(NAMES) and clock.floor != END:
        yield Joined(NAMES[len(present)]), 0
        if not any(p.status is not Status.EXPECTED for p in clock.producers.values()) and clock.largest is None:
            yield Expected(NAMES[len(present)]), 0
    for name in different.values():
        yield Joined(name), 0  # a takeover, or an expected producer comes
        yield Left(name), 0
        yield Detached(name), 0
        yield Sent(name, END), 0
        if clock.producers[name].status is Status.EXPECTED:
            continue
        least = max(high(clock.in_force(name)), 1)  # a larger one would make the same events
        yield from ((Sent(name, END, largest), least) for largest in range(least, last + 1))
        if clock.producers[name].status is Status.ATTACHED:
            yield Idled(name), 0
        yield from ((Sent(name, floor), 0) for floor in range(1, last + 2))
        for largest in range(least, last + 1):
            yield Sent(name, largest, largest), least  # rows in order
            yield Sent(name, None, largest), least  # rows in any order


@pytest.mark.parametrize(
    ("last", "settings"),
    [
        (3, {}),
        pytest.param(3, {"bounds_before_rows": False}, marks=pytest.mark.long),
        pytest.param(3, {"max_lag": 1}, marks=pytest.mark.long),
        pytest.param(4, {}, marks=pytest.mark.night),
    ],
    ids=str,
)
def test_every_state_of_three_producers(last: int, settings: dict[str, Any]) -> None:
    start = state_of(StreamClock(**settings))
    found, frontier, transitions, named = {start}, [start], 0, set[tuple[object, ...]]()
    while frontier:
        state = frontier.pop()
        for event, least in steps(clock_at(state, **settings), last):
            clock = clock_at(state, **settings)
            after = clock.apply(event)
            transitions += 1
            check(state, event, least, after, clock)
            names = after, *[(name, p.status, p.floor) for name, p in clock.producers.items()]
            if names not in named:
                named.add(names)
                check_holders(clock)
            if (reached := state_of(clock)) not in found:
                found.add(reached)
                frontier.append(reached)
    print(f"{settings}: {len(found)} states, {transitions} transitions")
    assert len(found) > 1000


def check(before: State, event: Event, least: int, after: int | None, clock: StreamClock) -> None:
    """Safe, monotone, weakest, remembers and end, each stated again without the clock's own code."""
    floor, largest, _ = before
    known = list(clock.producers.values())
    assert not least or least >= high(floor), "no accepted row lies below a published floor"
    assert high(after) >= high(floor), "the floor never falls"
    assert after == clock.floor
    counting = [high(p.floor) for p in known if p.status in COUNTING]
    for p in known:
        assert p.floor is None or p.status is not Status.EXPECTED
        assert high(p.floor) < END, "a complete producer is waited for no more"
    weakest, strongest = min(counting, default=0), max(counting, default=0)
    if completes(event) and not known:
        expected = END
    elif not clock.bounds_before_rows and clock.largest is None:
        expected = 0
    elif known:
        expected = weakest if clock.max_lag is None else max(weakest, strongest - clock.max_lag)
    else:
        expected = high(largest) if isinstance(event, Left) else 0
    assert high(after) == max(high(floor), expected), (before, event)
    found = clock.producers.weakest()
    assert (found is not None) == bool(counting)
    assert found is None or high(found[1]) == weakest
    assert high(clock.producers.strongest()) == strongest


def check_holders(clock: StreamClock) -> None:
    """Who holds the clock back, in order, stated again by a scan."""
    members = sorted(
        (high(p.floor), p.status is Status.ATTACHED, name)
        for name, p in clock.producers.items()
        if p.status in COUNTING
    )
    assert clock.holder() == (members[0][-1] if members else None)
    reached = max(members[0][0], high(clock.floor)) if members else 0
    assert clock.holders() == [name for floor, _, name in members if floor <= reached]


def test_a_promise_that_is_kept_is_enough() -> None:
    """Where nobody is idle, detached or outrun, a row that keeps its producer's own bound keeps the stream's."""
    start = state_of(StreamClock())
    found, frontier = {start}, [start]
    while frontier:
        state = frontier.pop()
        for name, known in clock_at(state).producers.items():
            assert high(known.floor) >= high(state[0]), (state, name)
        for event, _ in steps(clock_at(state), last=4):
            if isinstance(event, Idled | Detached | Expected):
                continue
            clock = clock_at(state)
            clock.apply(event)
            if (reached := state_of(clock)) not in found:
                found.add(reached)
                frontier.append(reached)
    print(f"without idleness and leases: {len(found)} states")
    assert len(found) > 100
