"""The ledger's commits, exhaustively: every state of processes that die, and of messages and answers that are lost.

Two processes share the producer ``a`` and take it from each other, a third one has the producer ``b``. Each has one
commit at a time, with a row, a bound or both, which it sends again until it has an answer. A message may land once,
several times, late or never, also when its process is dead; any process dies at any moment, any number of times, and
another one begins in its place; a lease ends at any moment; a producer leaves. The real ledger decides each
transaction, over a page in memory.

A search visits each distinct state once, so that lives of any length are covered. Epochs and numbers count only by how
they compare with those of the producer, so states that differ in nothing else are one state. ``pytest -s`` prints how
many there are.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from spark_rowtime.errors import DataLostError, ProducerFencedError
from spark_rowtime.store import ledger
from spark_rowtime.store.commits import Commit, Receipt, Staged
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.limits import Cut, Limits
from spark_rowtime.store.record import Held, ProducerRecord
from spark_rowtime.store.settings import StreamSettings
from tests.store.small_page import LATE, Stream, decided

LEASE = 1
ACCEPTED, REJECTED = "accepted", "rejected"
Content = tuple[int, int]
"""A commit's row and bound; 0: it has none."""
ANY = 1, 0
FEW: tuple[Content, ...] = ((1, 1), (0, 2))
ALL: tuple[Content, ...] = (*FEW, ANY, (0, 1), (1, 2))


class Sent(NamedTuple):
    """A commit on its way. ``epoch``: whether it is the producer's; ``number``: by its last; ``done``: the outcome."""

    producer: str
    epoch: bool
    number: int
    content: Content
    done: str = ""


class Process(NamedTuple):
    """A process with a sink. ``number``: that of its last commit, by the producer's; ``sends``: its commit."""

    producer: str
    holds: bool = False
    epoch: bool = False
    number: int = 0
    sends: Sent | None = None


class State(NamedTuple):
    """All of it between two steps. ``messages``: those on their way."""

    stream: Stream
    processes: tuple[Process, ...]
    messages: frozenset[Sent]


class Search(NamedTuple):
    """``contents``: what a commit may have, whatever was promised, since a process may know less than the stream.

    ``copies``: how many messages may be on their way at once.
    """

    producers: str
    contents: tuple[Content, ...]
    copies: int
    settings: StreamSettings = StreamSettings()

    def run(self) -> tuple[int, int]:
        """The numbers of states and of transitions. Each is checked on the way."""
        start = State(Stream(), tuple(map(Process, self.producers)), frozenset())
        found, frontier, transitions = {start}, deque([start]), 0
        while frontier:
            state = frontier.popleft()
            for after in self.steps(state):
                transitions += 1
                if (reached := plain(after)) not in found:
                    found.add(reached)
                    frontier.append(reached)
        return len(found), transitions

    def steps(self, state: State) -> Iterator[State]:
        """All that can happen next."""
        for at, process in enumerate(state.processes):
            yield from self.of_process(state, at, process)
        for message in state.messages:
            yield state._replace(messages=state.messages - {message})  # it is lost
            yield from self.arrive(state, message)
        for name, *_ in state.stream.records:
            yield self.detached(state, name)

    def of_process(self, state: State, at: int, process: Process) -> Iterator[State]:
        def with_process(other: Process, state: State = state) -> State:
            return state._replace(processes=(*state.processes[:at], other, *state.processes[at + 1 :]))

        if not process.holds:
            yield self.attach(state, at)
            return
        yield with_process(Process(process.producer))  # it dies
        if process.sends is None:
            known = state.stream.record(process.producer)
            assert known is not None
            yield from (
                with_process(process._replace(sends=Sent(process.producer, process.epoch, process.number + 1, content)))
                for content in self.contents
            )
            if process.epoch:
                left = self.decide(state, lambda led: led.leave(Held(process.producer, known.epoch)))
                yield with_process(Process(process.producer), left)
                yield self.decide(state, lambda led: led.renew(Held(process.producer, known.epoch), sends=True))
        elif len(state.messages) < self.copies:
            yield state._replace(messages=state.messages | {process.sends})

    def decide(self, state: State, decision: Callable[[Ledger], Any]) -> State:
        return state._replace(stream=decided(state.stream, decision, self.settings)[1])

    def detached(self, state: State, name: str) -> State:
        """Its lease ends."""
        return self.decide(state, lambda led: led.detach(name))

    def attach(self, state: State, at: int) -> State:
        """Another process begins. What it had before it died is behind the old epoch, or with its producer gone."""
        name = state.processes[at].producer
        before = state.stream.record(name) or ProducerRecord(name)
        info, stream, _ = decided(
            state.stream, lambda led: led.attach(name, f"{before.epoch + 1}", "{}", LEASE), self.settings
        )
        assert info.epoch == before.epoch + 1
        assert info.number == before.number
        others = [
            one._replace(epoch=False, sends=one.sends and one.sends._replace(epoch=False))
            if one.producer == name
            else one
            for one in state.processes
        ]
        others[at] = Process(name, True, True, info.number)
        messages = {one._replace(epoch=False) if one.producer == name else one for one in state.messages}
        return State(stream, tuple(others), frozenset(messages))

    def arrive(self, state: State, message: Sent) -> Iterator[State]:
        """The store gets the message. Then the answer is lost, or comes; and another copy of it stays on its way."""
        before = state.stream.record(message.producer)
        assert before is not None
        epoch = before.epoch if message.epoch else before.epoch - 1
        try:
            receipt, stream, landed = self.commit(state.stream, message, epoch)
        except (ProducerFencedError, DataLostError) as error:
            refused(message, error)
            yield State(state.stream, told(state, message, None), state.messages - {message})
            return
        after = stream.record(message.producer)
        assert after is not None
        assert message.epoch, "a commit of an older epoch lands nothing"
        repeated = after.number == before.number
        done = message.done if repeated else REJECTED if receipt.rejected else ACCEPTED
        rows = int(message.content[0] > 0)
        assert bool(repeated) == bool(message.done), "each commit lands once, and is answered as landed only if it is"
        assert bool(receipt.rejected) == (done == REJECTED), "a repeated answer is the first one"
        assert len(landed) == (0 if repeated or done == REJECTED else rows)
        assert after.accepted + after.rejected - before.accepted - before.rejected == (0 if repeated else rows)
        known = with_outcome(state._replace(stream=stream), message, done)
        yield known
        yield known._replace(messages=known.messages - {message._replace(done=done)})
        yield State(stream, told(known, message, done), known.messages - {message._replace(done=done)})

    def commit(self, stream: Stream, message: Sent, epoch: int) -> tuple[Receipt, Stream, list[Any]]:
        row, bound = message.content
        trains = (Staged(1, row, row, message.content),) if row else ()
        commit = Commit(message.producer, epoch, message.number, trains, bound or None)
        made, after, landed = decided(stream, lambda led: led.commit(commit, {}), self.settings)
        if not isinstance(made, Receipt):
            cuts = {0: Cut(None, LATE.rows, [])}
            made, after, landed = decided(stream, lambda led: led.commit(commit, cuts), self.settings)
        assert isinstance(made, Receipt)
        return made, after, landed


def fenced(process: Process) -> Process:
    """The process behind a takeover."""
    return process._replace(epoch=False, sends=process.sends and process.sends._replace(epoch=False))


def refused(message: Sent, error: Exception) -> None:
    """Checks that a message is refused for the right reason. Nothing of it can be in the stream by what follows."""
    assert isinstance(error, DataLostError) == message.epoch, (message, error)
    assert not message.epoch or (message.number == -1 and message.done)


def same(one: Sent | None, message: Sent) -> bool:
    return one is not None and one._replace(done="") == message._replace(done="")


def with_outcome(state: State, message: Sent, done: str) -> State:
    """What landed is known of all copies of it."""
    processes = tuple(
        one._replace(sends=one.sends._replace(done=done)) if one.sends and same(one.sends, message) else one
        for one in state.processes
    )
    copies = {one._replace(done=done) if same(one, message) else one for one in state.messages}
    return State(state.stream, processes, frozenset(copies))


def told(state: State, message: Sent, done: str | None) -> tuple[Process, ...]:
    """The processes behind the answer: what its sender has acknowledged is in the stream; without one, it ends."""
    return tuple(
        (one._replace(number=message.number, sends=None) if done else Process(one.producer))
        if same(one.sends, message)
        else one
        for one in state.processes
    )


def plain(state: State) -> State:
    """The state by what decides: epochs and numbers as they compare with the producer's, no counts, no places."""
    base = {one[0]: ProducerRecord(*one).number for one in state.stream.records}
    processes = [plain_process(one, base[one.producer]) if one.holds else one for one in state.processes]
    return State(
        state.stream.plain(),
        tuple(sorted(processes, key=repr)),
        frozenset(plain_message(one, base[one.producer]) for one in state.messages),
    )


def plain_process(process: Process, last: int) -> Process:
    number = process.number - last if process.epoch else 0
    return process._replace(number=number, sends=process.sends and plain_message(process.sends, last))


def plain_message(message: Sent, last: int) -> Sent:
    """What the ledger does with a commit of an older epoch, or with one that has landed, is all the same for each."""
    number = message.number - last
    if not message.epoch:
        return Sent(message.producer, False, 1, ANY)
    return message._replace(number=max(number, -1), content=message.content if number > 0 else ANY)


ASKED = pytest.mark.long, pytest.mark.skipif("ROWTIME_EXHAUSTIVE" not in os.environ, reason="ROWTIME_EXHAUSTIVE=1")
"""Minutes of a core."""


@pytest.mark.parametrize(
    "search",
    [
        Search("aa", ALL, 2),
        Search("ab", FEW[:1], 1),
        pytest.param(Search("aab", FEW, 2), marks=[*ASKED, pytest.mark.timeout(3600)]),
        pytest.param(Search("ab", (*FEW, ANY), 1), marks=pytest.mark.long),
        pytest.param(Search("ab", FEW, 1, StreamSettings(boundsBeforeRows=False)), marks=pytest.mark.long),
        pytest.param(Search("ab", FEW, 1, StreamSettings(maxLag=1)), marks=pytest.mark.long),
    ],
    ids=lambda search: f"{search.producers}-{len(search.contents)}-{search.copies}",
)
def test_every_state_of_commits(search: Search) -> None:
    states, transitions = search.run()
    print(f"{search}: {states} states, {transitions} transitions")
    assert states > 1000


MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "each number is the next": (ledger, "is_next", lambda *_: True),
    "each number is a repeated one": (ledger, "is_next", lambda *_: False),
    "each epoch is the producer's": (Ledger, "_current", lambda self, held: self._known(held.producer)),
    "no row is late": (Limits, "allow", lambda *_: True),
}
"""Rules of the ledger that do not hold."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_does_not_hold_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises(AssertionError):
        Search("aab", FEW, 1).run()
