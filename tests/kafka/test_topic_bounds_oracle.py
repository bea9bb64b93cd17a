"""Random lives of producers, a topic and a query: an oracle says the floor of each batch, and which rows are late.

CI tries few; more:
``ROWTIME_TOPIC_BOUNDS_LIVES=50 pytest --hypothesis-profile=explore tests/kafka/test_topic_bounds_oracle.py``.
"""

import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.kafka.topic_bounds import TopicBounds
from tests.spark.observed_query import Repeated, clock_of_micros, micros
from tests.store.oracle import NOTHING, Oracle
from tests.streams import at

LIVES = int(os.environ.get("ROWTIME_TOPIC_BOUNDS_LIVES", "2"))
START = micros("10:00")
SECOND = 1_000_000
PER_BATCH = 3
NAMES = st.sampled_from(["a", "b", "c"])
PARTITIONS = st.integers(0, 2)
WRITE = st.tuples(st.just("write"), NAMES, PARTITIONS, st.integers(0, 6))
BOUND = st.tuples(
    st.just("bound"), NAMES, st.integers(1, 5), st.dictionaries(PARTITIONS, st.integers(1, 2), max_size=1)
)
COMMANDS = st.one_of(
    *(WRITE, WRITE, WRITE, BOUND, BOUND),
    st.tuples(st.just("stray"), PARTITIONS, st.integers(-9, 9)),
    st.tuples(st.just("takeOver"), NAMES),
    st.tuples(st.just("leave"), NAMES),
    st.tuples(st.just("lose"), NAMES),
    st.tuples(st.just("step")),
    st.tuples(st.just("restart"), st.booleans()),
)


def lively(commands: list[Any]) -> bool:
    """Whether something of each kind happens: rows in time and late ones, bounds, producers that go, a restart."""
    kinds = Counter(command for command, *_ in commands)
    goes = kinds["leave"] + kinds["lose"] + kinds["takeOver"]
    return min(kinds["write"], kinds["bound"]) >= 4 and min(kinds["stray"], kinds["restart"], goes) >= 1


class Remembering(Oracle):
    """An oracle that computes each floor once: the log only grows."""

    def __init__(self) -> None:
        super().__init__()
        self._floors: dict[Any, float] = {}

    def floor(self, seq: int) -> float:
        if seq not in self._floors:
            self._floors[seq] = super().floor(seq)
        return self._floors[seq]

    def own_floor(self, who: str, seq: int) -> float:
        if (who, seq) not in self._floors:
            self._floors[who, seq] = super().own_floor(who, seq)
        return self._floors[who, seq]


class Life:
    """A topic, producers whose bounds lie beside it, a query with a limit, and the oracle of the bounds.

    Seconds count from ``START``. ``kept`` has the messages of those who keep what they promise.
    """

    def __init__(self, topic_bounds: TopicBounds, folder: Path) -> None:
        self.topic_bounds, self.oracle = topic_bounds, Remembering()
        self.messages: list[list[tuple[str, int]]] = [[], [], []]
        self.kept: dict[tuple[int, int], str] = {}
        self.cuts: dict[str, dict[int, int]] = {}
        self.sinks: dict[str, Any] = {}
        self.query = Repeated(self.frame(), folder)
        self.query.__enter__()

    def frame(self) -> DataFrame:
        """The rows of the topic and their places."""
        time = f.from_json(f.col("value").cast("string"), "ts TIMESTAMP").getField("ts")
        messages = self.topic_bounds.read(maxOffsetsPerTrigger=PER_BATCH)
        rows = messages.select(time.alias("ts"), "partition", "offset").where("ts IS NOT NULL")
        return rt.punctuate(rows, "ts", bounds=self.topic_bounds.bounds)

    def apply(self, command: str, *arguments: Any) -> None:
        """Does something; the stream and the oracle have the same log after it."""
        getattr(self, command)(*arguments)
        assert rt.describeStream(self.topic_bounds.bounds).seq == len(self.oracle.log)

    def sink(self, who: str) -> Any:
        """The sink of ``who``, which joins if it is not attached."""
        if who not in self.sinks:
            self.oracle.attach(who, f"holder {len(self.oracle.log)}", None)
            self.sinks[who] = rt.openSink(self.topic_bounds.bounds, producer=who, lease=None, linger="1 hour")
        return self.sinks[who]

    def floor(self, who: str) -> int:
        """The least second that is not late for ``who``, as its sink says it."""
        known = self.sink(who).requireInTime(1 << 53)
        said = self.oracle.in_force(who, len(self.oracle.log))
        assert known == (0 if said == NOTHING else START + said * SECOND)
        return 0 if said == NOTHING else int(said)

    def write(self, who: str, partition: int, ahead: int) -> None:
        """A message at the bound in force or above."""
        self.kept[partition, len(self.messages[partition])] = who
        self.stray(partition, self.floor(who) + ahead)

    def stray(self, partition: int, time: int) -> None:
        """A message of any time."""
        clock = clock_of_micros(START + time * SECOND)
        self.messages[partition].append((clock, START + time * SECOND))
        self.topic_bounds.put(partition, (clock, "k"))

    def ends(self, **more: int) -> dict[int, int]:
        """The ends of the topic."""
        return {partition: len(found) for partition, found in enumerate(self.messages)}

    def cut(self, who: str, ends: dict[int, int]) -> dict[str, dict[int, int]]:
        """A cut of ``who``, which never goes back."""
        before = self.cuts.get(who, {})
        self.cuts[who] = {partition: max(end, before.get(partition, 0)) for partition, end in ends.items()}
        return {self.topic_bounds.topics[0]: self.cuts[who]}

    def bound(self, who: str, step: int, beyond: dict[int, int]) -> None:
        """Its cut is the end of the topic, or lies beyond it in a partition."""
        floor = self.floor(who) + step
        cut = self.cut(who, {p: end + beyond.get(p, 0) for p, end in self.ends().items()})
        self.sink(who).sendRowtimeBound(at(clock_of_micros(START + floor * SECOND)), cut=cut)
        self.sink(who).flush()
        self.oracle.promise(who, [(floor, tuple(self.cuts[who].items()))])

    def takeOver(self, who: str) -> None:
        """Another process opens the name, and has all that is in the topic as its past."""
        if who in self.sinks:
            self.sinks.pop(who).abandon()
        self.sink(who)

    def leave(self, who: str) -> None:
        """Leaves behind all messages."""
        self.sink(who).close(cut=self.cut(who, self.ends()))
        self.oracle.leave(who, tuple(self.cuts[who].items()))
        del self.sinks[who]

    def lose(self, who: str) -> None:
        """The process is killed and detached; nobody knows of its messages behind its last cut."""
        self.sink(who).abandon()
        del self.sinks[who]
        rt.detachProducer(self.topic_bounds.bounds, who)
        self.oracle.detach(who)
        end = self.cuts.get(who, {})
        lost = [(p, n) for (p, n), name in self.kept.items() if name == who and n >= end.get(p, 0)]
        for place in lost:
            del self.kept[place]

    def step(self) -> None:
        """The query processes all that is there."""
        self.query.step()

    def restart(self, crashed: bool) -> None:
        """The query stops and starts; ``crashed``: its last batch runs again."""
        self.query.step()
        self.query.__exit__()
        if crashed and self.query.first:
            self.query.lose_commit()
        self.query.__enter__()

    def end(self) -> None:
        """Ends everything."""
        self.query.__exit__()
        for sink in self.sinks.values():
            sink.abandon()

    def check(self) -> None:
        """Compares each batch with the oracle at its offsets."""
        late, before, floor = [], {0: 0, 1: 0, 2: 0}, NOTHING
        for batch, (rows, promised) in sorted(self.query.first.items()):
            ends = self.topic_bounds.read_up_to(self.query, batch)
            new = [(p, n) for p in ends for n in range(before[p], ends[p])]
            below = [place for place in new if self.time(*place) < floor]
            assert rows == sorted([(self.clock(*place), *place) for place in new if place not in below], key=str), batch
            assert not set(below) & self.kept.keys(), "a row that keeps the promise is late"
            late += [(*place, self.clock(*place), clock_of_micros(int(floor))) for place in below]
            told = self.oracle.floors_at(ends)[self.seq(batch)]
            before, floor = ends, told if told == NOTHING else START + told * SECOND
            assert promised.get("ts") == (None if floor == NOTHING else clock_of_micros(int(floor))), (batch, ends)
        assert sorted((p, n, clock, bound) for p, n, clock, _, bound in self.topic_bounds.rejected) == sorted(late)
        assert before == self.ends()

    def time(self, partition: int, offset: int) -> int:
        return self.messages[partition][offset][1]

    def clock(self, partition: int, offset: int) -> str:
        return self.messages[partition][offset][0]

    def seq(self, batch: int) -> int:
        """The event of the stream of bounds up to which the batch has read."""
        lines = (self.query.checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]
        [seq] = [read["seq"] for line in lines if "stream" in (read := json.loads(line))]
        return int(seq)


@pytest.mark.long
def test_each_batch_has_the_floor_of_the_oracle(spark: Any, kafka: Any, tmp_path: Path) -> None:
    @settings(max_examples=LIVES, phases=(Phase.generate,), suppress_health_check=[HealthCheck.filter_too_much])
    @given(st.lists(COMMANDS, min_size=14, max_size=24).filter(lively))
    def live(commands: list[Any]) -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        life = Life(TopicBounds(spark, kafka, folder), folder)
        try:
            for command in commands:
                life.apply(*command)
            life.restart(crashed=True)
            life.step()
        finally:
            life.end()
        life.check()

    live()
