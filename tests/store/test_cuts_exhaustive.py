"""Bounds with cuts, exhaustively: every state of a topic, of producers that write into it, and of bounds beside it.

Producers write messages into one partition, each at the bound that it keeps itself, and send bounds with the offset
that they follow, or about the whole topic. A commit lands later, once, or never; a process dies at any moment, and
another begins under its name; the lease of a dead one ends; a producer leaves, or rests. The real ledger decides each
transaction over a page in memory, and the real ``UnreachedCuts`` the bound at each offset. See
test_ledger_exhaustive.py.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from spark_rowtime.bounds import unreached_cuts
from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.topic_cut import CutBound, LoggedCut, TopicCut
from spark_rowtime.bounds.unreached_cuts import UnreachedCuts
from spark_rowtime.store import cut_folding, ledger
from spark_rowtime.store.commits import Commit
from spark_rowtime.store.cut_folding import folded
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.record import Held
from spark_rowtime.store.settings import StreamSettings
from tests.store.small_page import Stream, decided

SETTINGS = StreamSettings()
NEVER_LATE = 9


class Process(NamedTuple):
    """A producer's process. ``bound``: what it keeps; ``sends``: its bound that has not landed, with the cut."""

    alive: bool = False
    bound: int = 0
    sends: tuple[int, int | None] | None = None


class State(NamedTuple):
    """All of it between two steps. ``topic``: producer and time of each message; ``processes``: by producer."""

    stream: Stream = Stream()
    topic: tuple[tuple[str, int], ...] = ()
    processes: tuple[Process, ...] = ()

    def with_process(self, at: int, process: Process, stream: Stream | None = None) -> "State":
        """The state with another process, and perhaps another stream."""
        others = (*self.processes[:at], process, *self.processes[at + 1 :])
        return self._replace(processes=others, stream=stream or self.stream)


class Search(NamedTuple):
    """``times``, ``messages``, ``cuts``: how many at most."""

    producers: str
    times: int
    messages: int
    cuts: int

    def run(self) -> tuple[int, int]:
        """The numbers of states and of transitions. Each is checked."""
        start = State(processes=tuple(Process() for _ in self.producers))
        found, frontier, transitions = {start}, deque([start]), 0
        while frontier:
            state = frontier.popleft()
            for after in self.steps(state):
                transitions += 1
                check(state, after, self.messages)
                reached = after._replace(stream=after.stream.plain())
                if reached not in found:
                    check_folding(after.stream, self.messages)
                    found.add(reached)
                    frontier.append(reached)
        return len(found), transitions

    def steps(self, state: State) -> Iterator[State]:
        """All that can happen next."""
        for at, (name, process) in enumerate(zip(self.producers, state.processes, strict=True)):
            if process.alive:
                yield from self.of_process(state, at, name, process)
            else:
                yield attached(state, at, name)
                if state.stream.record(name):
                    yield detached(state, name)
            if process.sends and len(state.stream.cuts) < self.cuts:
                yield state.with_process(at, process._replace(sends=None), landed(state.stream, name, process.sends))

    def of_process(self, state: State, at: int, name: str, process: Process) -> Iterator[State]:
        end = len(state.topic)
        yield state.with_process(at, Process(sends=process.sends))  # it dies
        least = max(process.bound, 1)  # a later one would keep more than it has to
        if end < self.messages and least <= self.times:
            yield state._replace(topic=(*state.topic, (name, least)))
        if process.sends:
            return
        for bound in range(process.bound + 1, self.times + 1):
            yield state.with_process(at, process._replace(bound=bound, sends=(bound, end)))
            if all(time >= bound for who, time in state.topic if who == name):
                yield state.with_process(at, process._replace(bound=bound, sends=(bound, None)))
        if len(state.stream.cuts) < self.cuts:
            gone = ledger_does(state.stream, lambda led: led.leave(Held(name, 1), cut_at(end)))
            yield state.with_process(at, Process(), gone)
            yield state.with_process(at, Process(), rested(state.stream, name, end))


def ledger_does(stream: Stream, decision: Callable[[Ledger], Any]) -> Stream:
    return decided(stream, decision, SETTINGS)[1]


def cut_at(end: int | None) -> TopicCut | None:
    return None if end is None else TopicCut({"topic": {0: end}})


def attached(state: State, at: int, name: str) -> State:
    """Another process begins, and keeps the bound in force. What the one before has on its way is fenced.

    One that has rested counts again, from a commit on.
    """
    stream = ledger_does(state.stream, lambda led: led.attach(name, "2", "{}", 1))
    record = stream.record(name)
    assert record is not None
    if record.status is Status.IDLE:
        commit = Commit(name, record.epoch, 1, (), record.floor)
        stream = ledger_does(stream, lambda led: led.commit(commit, {}))
    return state.with_process(at, Process(True, max(record.floor or 0, stream.floor or 0)), stream)


def detached(state: State, name: str) -> State:
    """The lease of a dead process ends. The stream waits no more for those that read its messages; they may be late."""
    topic = tuple((who, NEVER_LATE if who == name else time) for who, time in state.topic)
    return state._replace(topic=topic, stream=ledger_does(state.stream, lambda led: led.detach(name)))


def landed(stream: Stream, name: str, sent: tuple[int, int | None]) -> Stream:
    bound, end = sent
    commit = Commit(name, 1, 1, (), bound, bounds=(CutBound(bound, cut_at(end)),))
    return ledger_does(stream, lambda led: led.commit(commit, {}))


def rested(stream: Stream, name: str, end: int) -> Stream:
    record = stream.record(name)
    assert record is not None
    commit = Commit(name, 1, 1, (), record.floor, idle=True, behind=cut_at(end))
    return ledger_does(stream, lambda led: led.commit(commit, {}))


@lru_cache(maxsize=1 << 16)
def told(stream: Stream, seq: int, floor: int | None, messages: int) -> list[int]:
    """The bound at each offset as of the event ``seq``, when the stream's was ``floor``."""
    return told_by(logged(stream), seq, floor, messages)


def logged(stream: Stream) -> list[LoggedCut]:
    return [LoggedCut(at, producer, floor, cut_at(end)) for at, producer, floor, end in stream.cuts]


def told_by(cuts: Iterable[LoggedCut], seq: int, floor: int | None, messages: int) -> list[int]:
    found_at = UnreachedCuts()
    for cut in cuts:
        found_at.add(cut)
    found = [found_at.weakest(seq, {"topic": {0: offset}}) for offset in range(messages + 1)]
    return [floor or 0 if held is None else min(floor or 0, held.floor or 0) for held in found]


def told_now(stream: Stream, messages: int) -> list[int]:
    return told(Stream(cuts=stream.cuts), stream.seq, stream.floor, messages)


def check(state: State, after: State, messages: int) -> None:
    """The laws at each offset; what was told as of an earlier event is told again, whatever came since."""
    before, now = told_now(state.stream, messages), told_now(after.stream, messages)
    for offset, floor in enumerate(now):
        below = [one for one in after.topic[offset:] if one[1] < floor]
        assert not below, "no message lies below the bound that is told at its offset or before"
    assert all(one <= other for one, other in pairwise(now)), "at a larger offset the bound is not weaker"
    assert all(one <= other for one, other in zip(before, now, strict=True)), "the bound at an offset never falls"
    assert now[-1] == (after.stream.floor or 0), "where all cuts are reached, it is the stream's own bound"
    again = told(Stream(cuts=after.stream.cuts), state.stream.seq, state.stream.floor, messages)
    assert again == before, "a bound that was told is told again"


def check_folding(stream: Stream, messages: int) -> None:
    """The laws of folding, of the cuts up to any event: weaker, and the same for who has reached all of them."""
    cuts, now = logged(stream), told_now(stream, messages)
    for count in range(1, len(cuts) + 1):
        passed = folded(cuts[:count])
        after = told_by([*passed, *cuts[count:]], stream.seq, stream.floor, messages)
        assert all(one <= other for one, other in zip(after, now, strict=True)), "folded, a bound is weaker"
        reached = max((end for _, _, _, end in stream.cuts[:count] if end is not None), default=0)
        assert after[reached:] == now[reached:], "who has reached all folded cuts is told the same"


@pytest.mark.parametrize(
    "search",
    [
        Search("a", 2, 2, 3),
        pytest.param(Search("a", 3, 2, 3), marks=pytest.mark.long),
        pytest.param(Search("ab", 1, 1, 2), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_every_state_of_bounds_with_cuts(search: Search) -> None:
    states, transitions = search.run()
    print(f"{search}: {states} states, {transitions} transitions")
    assert states > 500


LEAVE, LANDING = Ledger.leave, ledger.landing
MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "each cut is reached": (unreached_cuts._Chain, "first_unreached", lambda *_: None),
    "a cut holds the bound at what it promises": (
        CutBound,
        "logged",
        lambda self, seq, producer, _: LoggedCut(seq, producer, self.floor, self.cut),
    ),
    "a folded cut is at the first of its offsets": (cut_folding, "merged", lambda chain: chain[0].cut),
    "who leaves holds nothing": (Ledger, "leave", lambda self, held, _: LEAVE(self, held)),
    "who rests holds nothing": (ledger, "landing", lambda commit, *more: LANDING(replace(commit, behind=None), *more)),
}
"""Rules that do not floor."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_does_not_hold_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises(AssertionError):
        Search("ab", 2, 2, 2).run()
