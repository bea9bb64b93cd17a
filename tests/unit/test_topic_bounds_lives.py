"""Random lives of producers whose messages are in a topic: no message below a bound that was told at or before it."""

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import spark_rowtime as rt
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.store import open_store

NUMBERS = itertools.count(1)
PARTITIONS = 2
SECOND = 1_000_000
NAMES = st.sampled_from(["a", "b"])
COMMANDS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.integers(0, PARTITIONS - 1), st.integers(0, 6)),
    st.tuples(st.just("write"), NAMES, st.integers(0, PARTITIONS - 1), st.integers(0, 6)),
    st.tuples(st.just("bound"), NAMES, st.integers(1, 5), st.integers(0, 2)),
    st.tuples(st.just("bound"), NAMES, st.integers(1, 5), st.just(0)),
    st.tuples(st.just("flush"), NAMES),
    st.tuples(st.just("restart"), NAMES),
    st.tuples(st.just("leave"), NAMES),
    st.tuples(st.just("lose"), NAMES),
    st.tuples(st.just("batch"), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("batch"), st.integers(0, 3), st.integers(0, 3)),
)


class Life:
    """A topic, producers with sinks of a stream beside it, and a query that reads both with limits."""

    def __init__(self) -> None:
        self.path = f"memory://topic-{next(NUMBERS)}"
        rt.createStream(self.path, "rowtime TIMESTAMP NOT NULL", producers=["a", "b"])
        self.messages: list[list[tuple[str, int]]] = [[] for _ in range(PARTITIONS)]
        self.sinks: dict[str, rt.StreamSink] = {}
        self.lost: set[tuple[int, int]] = set()
        """Messages of a producer that was lost, behind its last cut, of which nobody knows."""
        self.read = [0] * PARTITIONS
        self.told: list[tuple[int, list[int], int]] = []
        self.store = open_store(self.path)
        self.floors = CutFloors(self.store)

    def sink(self, who: str) -> rt.StreamSink:
        """The sink of ``who``; opened, it has all that is in the topic as its past, as rt.KafkaBounds has."""
        if who not in self.sinks:
            self.sinks[who] = rt.openSink(self.path, producer=who, lease=None, linger="1 hour")
        return self.sinks[who]

    def ends(self) -> dict[int, int]:
        return {partition: len(found) for partition, found in enumerate(self.messages)}

    def write(self, who: str, partition: int, ahead: int) -> None:
        """A message at the bound in force or above; a late one is refused."""
        floor = self.sink(who).requireInTime(1 << 50)
        self.messages[partition].append((who, floor + ahead * SECOND))

    def bound(self, who: str, step: int, beyond: int) -> None:
        """Its cut is the end of the topic, or lies beyond it."""
        floor = self.sink(who).requireInTime(1 << 50) + step * SECOND
        cut = {"orders": {partition: end + beyond for partition, end in self.ends().items()}}
        self.sink(who).sendRowtimeBound(rt.RowtimeBound.fromFloor(floor), cut=self.forward(who, cut))

    def forward(self, who: str, cut: Any) -> Any:
        """A cut that lay beyond the topic's end may lie above this one; cuts never go back."""
        before = self.sink(who)._outbox.cuts.end
        known = {} if before is None else before.offsets["orders"]
        return {"orders": {partition: max(end, known.get(partition, 0)) for partition, end in cut["orders"].items()}}

    def flush(self, who: str) -> None:
        self.sink(who).flush()

    def restart(self, who: str) -> None:
        """The process is killed; another one opens its name."""
        self.kill(who)
        self.sink(who)

    def kill(self, who: str) -> None:
        """What was not flushed is gone."""
        if who in self.sinks:
            self.sinks.pop(who)._end()

    def leave(self, who: str) -> None:
        self.sink(who).close(cut=self.forward(who, {"orders": self.ends()}))
        del self.sinks[who]

    def lose(self, who: str) -> None:
        """The process is killed, and somebody detaches it."""
        self.sink(who)
        self.kill(who)
        cuts = [one.cut.offsets["orders"] for one in self.store.cuts() if one.producer == who and one.cut]
        end = {partition: max((c.get(partition, 0) for c in cuts), default=0) for partition in range(PARTITIONS)}
        for partition, found in enumerate(self.messages):
            self.lost |= {(partition, n) for n, (name, _) in enumerate(found) if name == who and n >= end[partition]}
        rt.detachProducer(self.path, who)

    def batch(self, *more: int) -> None:
        """The query reads so many messages more of each partition, and is told the bound."""
        self.read = [min(at + step, len(m)) for at, step, m in zip(self.read, more, self.messages, strict=True)]
        seq = self.store.head().seq
        floor = self.floors.floorAt(seq, {"orders": dict(enumerate(self.read))}) or 0
        assert not self.told or floor >= self.told[-1][2], "it never falls"
        self.told.append((seq, list(self.read), floor))

    def check(self) -> None:
        """No message at or beyond the offsets of a batch is below its bound; a batch that runs again has the same."""
        again = CutFloors(self.store)
        for seq, read, floor in reversed(self.told):
            assert (again.floorAt(seq, {"orders": dict(enumerate(read))}) or 0) == floor
            for partition, found in enumerate(self.messages):
                for n, (who, time) in enumerate(found[read[partition] :], read[partition]):
                    assert time >= floor or (partition, n) in self.lost, (who, partition, n, seq, read)
        for who in list(self.sinks):
            self.flush(who)
            self.kill(who)
        head = self.store.head()
        assert again.floorAt(head.seq, {"orders": dict.fromkeys(range(PARTITIONS), 1 << 40)}) == head.floor


@settings(max_examples=150)
@given(st.lists(COMMANDS, min_size=10, max_size=40))
def test_no_message_is_below_a_bound_that_was_told_before_it(commands: list[Any]) -> None:
    life = Life()
    for command, *arguments in commands:
        getattr(life, command)(*arguments)
    life.batch(9, 9)
    life.check()
