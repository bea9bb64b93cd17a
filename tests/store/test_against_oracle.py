"""Random lives of a stream: each store shows what an oracle derives from the laws alone."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.errors import (
    DataLostError,
    InvalidOptionError,
    ProducerFencedError,
    RowtimeAheadError,
    StreamCompleteError,
)
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import create_local, open_local
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.position import Position
from spark_rowtime.store.postgres import inline
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import READS_STREAM, READS_TOPIC
from spark_rowtime.types.timestamps import END as END_OF_TIME
from tests.store.oracle import END, NOTHING, Oracle
from tests.store.streams import SCHEMA, SECOND, START, Writer, at, infos, read, seconds

NAMES = st.sampled_from(["a", "b", "c"])
TIMES = st.integers(1, 40)
TRAINS = st.lists(st.lists(TIMES, min_size=1, max_size=4), max_size=3)
CUTS = st.dictionaries(st.integers(0, 1), st.integers(0, 3), min_size=1)
"""How much further each partition of a topic is than in the producer's earlier cuts."""
BOUNDS = st.lists(st.tuples(st.integers(0, 9), st.none() | CUTS | CUTS), min_size=1, max_size=3)
"""By how much each bound is above the one before it, and its cut."""
COMMANDS = st.one_of(
    st.tuples(st.just("attach"), NAMES, st.sampled_from(["x", "y"]), st.sampled_from([None, 10, 30])),
    st.tuples(st.just("send"), NAMES, TRAINS, st.none() | TIMES, st.lists(TIMES, max_size=2)),
    st.tuples(st.just("send"), NAMES, TRAINS, TIMES, st.just([])),
    st.tuples(st.just("rest"), NAMES, TRAINS, st.none() | TIMES, st.none() | CUTS),
    st.tuples(st.just("leave"), NAMES),
    st.tuples(st.just("promise"), NAMES, BOUNDS),
    st.tuples(st.just("promise"), NAMES, BOUNDS),
    st.tuples(st.just("leave"), NAMES, CUTS),
    st.tuples(st.just("detach"), NAMES),
    st.tuples(st.just("complete"), NAMES, TRAINS),
    st.tuples(st.just("close"), NAMES, st.booleans()),
    st.tuples(st.just("expire")),
    st.tuples(st.just("wait"), st.sampled_from([1, 5, 11, 31])),
    st.tuples(st.just("come back"), NAMES, st.booleans()),
    st.tuples(st.just("take over"), NAMES),
    st.tuples(st.just("go for a day"), NAMES),
    st.tuples(st.just("settle"), st.integers(20, 40), st.booleans()),
    st.tuples(st.just("redeclare"), NAMES),
    st.tuples(
        st.just("keep"), st.sampled_from("rst"), st.integers(0, 20), st.none() | st.integers(0, 42), st.booleans()
    ),
    st.tuples(st.just("forget"), st.sampled_from("rst")),
)
LIVES = st.lists(COMMANDS, min_size=6, max_size=25)
STARTS = st.lists(NAMES, min_size=1, max_size=3, unique=True)
"""Who is attached at first, without a lease."""
EXPECTED = st.lists(NAMES, max_size=3, unique=True)
"""Whom the stream expects from its creation on."""
REGIONS = st.tuples(st.integers(0, 40), st.none() | st.integers(0, 42))
STREAMS = st.tuples(
    st.booleans(), st.none() | st.integers(0, 20), st.sampled_from([None, 10, 20]), st.sampled_from([None, None, 25])
)


class Life:
    """A stream and its oracle, which are told the same."""

    def __init__(self, store: Store, oracle: Oracle) -> None:
        self.store, self.oracle = store, oracle
        self.writers: dict[str, Writer] = {}
        self.ends: dict[str, dict[int, int]] = {}
        """By producer and partition, the offset of its last cut."""
        self.closed: set[str] = set()
        """Whose writers are fenced."""
        self.old: dict[str, Writer] = {}
        """The writers that others have taken the place of."""
        store.now = lambda: oracle.now * SECOND

    def attach(self, who: str, holder: str, lease: int | None) -> None:
        epoch = self.oracle.attach(who, holder, lease)
        if epoch is None:
            with pytest.raises(StreamCompleteError, match=who):
                Writer(self.store, who, holder)
            return
        before = self.writers.get(who)
        self.writers[who] = Writer(self.store, who, holder, lease=None if lease is None else lease * SECOND)
        self.closed.discard(who)
        assert self.writers[who].epoch == epoch
        if before is not None and before.epoch < epoch:
            self.old[who] = before

    def take_over(self, who: str) -> None:
        """Somebody else opens the producer; who had it before is fenced."""
        holder = self.oracle.members[who].holder if who in self.oracle.members else ""
        self.attach(who, "y" if holder == "x" else "x", None)
        self.stale(who)

    def stale(self, who: str) -> None:
        """A holder that was taken over, also if the producer was forgotten since, changes nothing any more."""
        if who in self.old and who in self.oracle.members:
            old, before = self.old[who], self.store.head()
            for call in (lambda: old.send([30], floor=30), old.leave, lambda: self.store.renew(who, old.epoch)):
                with pytest.raises(ProducerFencedError, match=f"epoch {old.epoch}"):
                    call()
            assert self.store.head() == before

    def redeclare(self, who: str) -> None:
        """A producer keeps the order that it has declared."""
        if not self.oracle.may_attach(who, "other"):
            with pytest.raises(InvalidOptionError, match="was declared as"):
                Writer(self.store, who, "z", "other")

    def come_back(self, who: str, sends: bool) -> None:
        """A producer whose lease has ended renews it."""
        self.attach(who, "x", 10)
        self.wait(11)
        self.expire()
        if self.sends(who) and self.oracle.members[who].lease is not None:
            right = self.oracle.renew(who, sends)
            if right is None:
                with pytest.raises(StreamCompleteError):
                    self.store.renew(who, self.writers[who].epoch, sends=sends)
            else:
                assert self.store.renew(who, self.writers[who].epoch, sends=sends) == right

    def keep(self, reader: str, seq: int, cut: int | None, of_topic: bool) -> None:
        self.store.keep(reader, Position(seq, at(cut), None), READS_TOPIC if of_topic else READS_STREAM)
        self.oracle.readers[reader] = (seq, float("inf") if cut is None else cut)
        (self.oracle.queries.add if of_topic else self.oracle.queries.discard)(reader)

    def forget(self, reader: str) -> None:
        if self.oracle.readers.pop(reader, None) is None:
            with pytest.raises(InvalidOptionError, match="registered"):
                self.store.forget(reader)
        else:
            self.store.forget(reader)

    def settle(self, floor: int, force: bool) -> None:
        """All promise the same, and what the bound has released then may be removed."""
        for who in list(self.writers):
            self.send(who, [], floor, [])
        self.gc(force)

    def go_for_a_day(self, who: str) -> None:
        """A producer leaves, is forgotten, and opens again."""
        self.leave(who)
        self.wait(90_000)
        self.gc(True)
        self.attach(who, "z", None)
        self.stale(who)

    def gc(self, force: bool) -> None:
        found = self.store.gc(age=0, force=force)
        assert (found.rows, found.forgotten) == self.oracle.gc(force)
        for who in self.writers.keys() - self.oracle.members.keys():
            self.old[who] = self.writers.pop(who)

    def sends(self, who: str) -> bool:
        """Whether ``who`` is open; one that somebody else has closed is refused."""
        if who in self.closed and who in self.writers:
            with pytest.raises(ProducerFencedError, match="was closed by somebody else"):
                self.writers[who].send([30], floor=30)
        return who in self.writers and who not in self.closed

    def refused(self, who: str, floor: float | None, send: Callable[[], Any]) -> bool:
        """Whether the bound is too far ahead; then what is sent with it changes nothing."""
        if floor is None or not self.oracle.refuses(who, floor):
            return False
        before, number = self.store.head(), self.writers[who].number
        with pytest.raises(RowtimeAheadError, match=f"'{who}' lies"):
            send()
        self.writers[who].number = number
        assert self.store.head() == before
        return True

    def send(self, who: str, trains: Any, floor: int | None, late: Any) -> None:
        if self.sends(who) and not self.refused(who, floor, lambda: self.writers[who].send(*trains, floor=floor)):
            # A rejection that the sink makes names the floor that it knew, here the one of the commit.
            late = late if floor is not None else []
            self.writers[who].send(*trains, floor=floor, late=late)
            self.oracle.send(who, [tuple(t) for t in trains], NOTHING if floor is None else floor, tuple(late))

    def rest(self, who: str, trains: Any, floor: int | None, cut: Any = None) -> None:
        if self.sends(who) and not self.refused(who, floor, lambda: self.writers[who].send(floor=floor, idle=True)):
            ends = None if cut is None else self.moved(who, cut)
            self.writers[who].send(*trains, floor=floor, idle=True, behind=None if ends is None else topic_cut(ends))
            behind = None if ends is None else tuple(ends.items())
            known = NOTHING if floor is None else floor
            self.oracle.send(who, [tuple(t) for t in trains], known, (), idle=True, behind=behind)

    def complete(self, who: str, trains: Any) -> None:
        if self.sends(who):
            self.writers[who].complete(*trains)
            self.oracle.send(who, [tuple(t) for t in trains], END, ())

    def promise(self, who: str, steps: Any) -> None:
        if self.sends(who):
            floor, bounds = self.oracle.own_floor(who, len(self.oracle.log)), []
            for step, cut in steps:
                floor = max(floor, 0) + step
                bounds.append((floor, None if cut is None else self.moved(who, cut)))
            given = [(f, None if c is None else topic_cut(c)) for f, c in bounds]
            if floor < END and not self.refused(who, floor, lambda: self.writers[who].promise(*given)):
                self.writers[who].promise(*given)
                self.oracle.promise(who, [(f, None if c is None else tuple(c.items())) for f, c in bounds])

    def moved(self, who: str, cut: dict[int, int]) -> dict[int, int]:
        """The producer's next cut: in each partition that it names, further by so much."""
        ends = self.ends.setdefault(who, {})
        ends |= {partition: ends.get(partition, 0) + more for partition, more in cut.items()}
        return {partition: ends[partition] for partition in cut}

    def leave(self, who: str, cut: Any = None) -> None:
        if self.sends(who):
            ends = None if cut is None else self.moved(who, cut)
            self.writers[who].leave(None if ends is None else topic_cut(ends))
            self.oracle.leave(who, None if ends is None else tuple(ends.items()))

    def detach(self, who: str) -> None:
        if who in self.oracle.members:
            self.store.detach(who)
            self.oracle.detach(who)

    def close(self, who: str, complete: bool) -> None:
        if who in self.oracle.members:
            before = self.oracle.members[who].epoch
            self.store.close_producer(who, complete=complete)
            self.oracle.close(who, complete)
            if self.oracle.members[who].epoch > before:
                self.closed.add(who)

    def expire(self) -> None:
        self.store.expire()
        self.oracle.expire()

    def wait(self, time: int) -> None:
        self.oracle.now += time

    def compare(self) -> None:
        """What anybody can ask of the log, the clock, the producers and the rejected rows."""
        oracle, end = self.oracle, len(self.oracle.log)
        if oracle.horizon > 1:
            with pytest.raises(DataLostError):
                self.store.at(oracle.horizon - 1)
        assert self.store.horizon().seq == oracle.horizon
        for seq in range(oracle.horizon, end + 1):
            times = oracle.rows_until(seq)
            floor, largest = at_or_none(oracle.floor(seq)), at(max(times, default=None))
            assert self.store.at(seq) == (seq, floor, largest, len(times)), seq
        assert self.store.head().seq == end
        events = self.store.bounds().select(["event", "producer", "rows"]).to_pylist()
        kept = oracle.log[max(oracle.horizon - 1, 0) :]
        assert [tuple(e.values()) for e in events] == [(e.what, e.who, len(e.rows)) for e in kept]
        assert {known.name for known in infos(self.store)} == oracle.members.keys()
        assert self.store.summary().forgotten == oracle.times_forgotten
        for known in infos(self.store):
            member = oracle.members[known.name]
            assert (known.status.value, known.floor) == (
                oracle.status(known.name, end),
                at_or_none(oracle.own_floor(known.name, end)),
            )
            assert (known.epoch, known.number) == (member.epoch, member.commits)
            assert (known.accepted, known.rejected) == (member.accepted, member.rejected)
        rejected = self.store.rejected()
        bounds = [None if b is None else b for b in rejected.column("bound").cast("int64").to_pylist()]
        found = zip(rejected.column("producer").to_pylist(), bounds, seconds(rejected), strict=True)
        assert sorted(found) == sorted((who, at_or_none(bound), time) for who, bound, time in oracle.rejections)

    def compare_cuts(self, offsets: list[dict[int, int]]) -> None:
        """The bound at any offsets, as of any event; a reader that begins anywhere finds the same.

        At offsets below cuts that were folded it may be weaker.
        """
        once = CutFloors(self.store)
        right = [[at_or_none(floor) for floor in self.oracle.floors_at(ends)] for ends in offsets]
        kept = range(self.oracle.horizon, len(self.oracle.log) + 1)
        for seq in kept:
            for ends, floors in zip(offsets, right, strict=True):
                found = once.floorAt(seq, {"orders": ends})
                assert found == floors[seq] if self.oracle.passed(ends) else (found or 0) <= (floors[seq] or 0), seq
        late = CutFloors(self.store)
        if self.oracle.passed(offsets[0]):
            assert [late.floorAt(seq, {"orders": offsets[0]}) for seq in kept[::-3]] == [
                right[0][seq] for seq in kept[::-3]
            ]

    def compare_regions(self, regions: list[Any]) -> None:
        """The rows between any two positions."""
        for after in regions:
            for upto in regions:
                one, other = ((seq, float("inf") if cut is None else cut) for seq, cut in (after, upto))
                places = [Position(seq, at(cut), None) for seq, cut in (after, upto)]
                if self.oracle.is_lost(one):
                    with pytest.raises(DataLostError):
                        read(self.store, *places)
                    continue
                assert read(self.store, *places) == [time for _, time in self.oracle.rows_between(one, other)]


def topic_cut(ends: dict[int, int]) -> TopicCut:
    return TopicCut({"orders": ends}, whole=False)


def at_or_none(floor: float) -> int | None:
    if floor == END:
        return END_OF_TIME
    return None if floor == NOTHING else at(floor)


NewStore = Callable[[StreamSettings, list[str]], Store]


@pytest.fixture
def new_store(new_place: Callable[[], str]) -> NewStore:
    """Creates a stream in a store that processes share, and opens it."""

    def create(declared: StreamSettings, expected: list[str]) -> Store:
        path = new_place()
        create_store(path, SCHEMA, declared, expected)
        return open_store(path)

    return create


def memory_store(declared: StreamSettings, expected: list[str]) -> MemoryStore:
    store = MemoryStore("memory://compared", SCHEMA, declared)
    store.expect(expected)
    return store


LIFE = {
    "how": STREAMS, "expected": EXPECTED, "starts": STARTS, "commands": LIVES,
    "regions": st.lists(REGIONS, min_size=2, max_size=4),
    "offsets": st.lists(st.dictionaries(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=4),
}  # fmt: skip
LIVES_OF_A_STORE = int(os.environ.get("ROWTIME_ORACLE_LIVES", "100"))
HOW = settings(
    max_examples=LIVES_OF_A_STORE, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.search
@HOW
@given(**LIFE)
def test_a_store_shows_what_the_laws_say(new_store: NewStore, **life: Any) -> None:
    live(new_store, **life)


@pytest.fixture
def store_in_objects(
    postgres: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> NewStore:
    """The same in PostgreSQL, with a location in which every train is an object."""
    monkeypatch.setattr(inline, "OBJECT_BYTES", 0)

    def create(declared: StreamSettings, expected: list[str]) -> Store:
        folder = tmp_path_factory.mktemp("location")
        path = postgres.url(f"in objects/{folder.name}")
        create_store(path, SCHEMA, replace(declared, location=f"file://{folder}"), expected)
        return open_store(path)

    return create


@settings(HOW, max_examples=20)
@given(**LIFE)
def test_a_stream_with_a_location_shows_what_the_laws_say(store_in_objects: NewStore, **life: Any) -> None:
    live(store_in_objects, **life)


@HOW
@given(**LIFE)
def test_memory_shows_what_the_laws_say(**life: Any) -> None:
    live(memory_store, **life)


CUT_STEPS = st.lists(st.tuples(st.integers(1, 3), st.none() | CUTS | CUTS | CUTS), min_size=1, max_size=2)
CUT_COMMANDS = st.one_of(
    st.tuples(st.just("promise"), st.sampled_from(["a", "b"]), CUT_STEPS),
    st.tuples(st.just("promise"), st.just("a"), CUT_STEPS),
    st.tuples(st.just("detach"), st.just("a")),
    st.tuples(st.just("leave"), st.just("a"), st.none() | CUTS),
    st.tuples(st.just("rest"), st.just("a"), st.just([]), st.none(), st.none() | CUTS),
    st.tuples(st.just("attach"), st.just("a"), st.sampled_from(["x", "y"]), st.none()),
)
GRID = [{0: one, 1: other} for one in (0, 1, 2, 4, 6) for other in (0, 2, 8)]


@settings(max_examples=200)
@given(commands=st.lists(CUT_COMMANDS, min_size=4, max_size=9))
def test_the_bound_beside_a_topic_is_what_the_laws_say(commands: list[Any]) -> None:
    """Two producers with cuts, of which one rests, leaves, is detached and joins again, at many offsets."""
    life = Life(memory_store(StreamSettings(), []), Oracle())
    for who in ("b", "a"):
        life.attach(who, "x", None)
    for command, *arguments in commands:
        getattr(life, command)(*arguments)
    life.compare_cuts(GRID)


def live(
    new_store: NewStore,
    how: Any,
    expected: list[str],
    starts: list[str],
    commands: list[Any],
    regions: list[Any],
    offsets: list[Any],
) -> None:
    before_rows, lag, idle, ahead = how
    declared = StreamSettings(
        before_rows,
        *(None if s is None else s * SECOND for s in (lag, idle)),
        None if ahead is None else START + ahead * SECOND,  # the clocks begin at 0, and the rowtimes at START
    )
    store = new_store(declared, expected)
    life = Life(store, Oracle(before_rows, lag, idle, ahead))
    for who in expected:
        life.oracle.expect(who)
    for who in starts:
        life.attach(who, "x", None)
    for command, *arguments in commands:
        getattr(life, command.replace(" ", "_"))(*arguments)
    life.compare()
    life.compare_cuts([*offsets, {}, {0: 60, 1: 60}])
    life.compare_regions([*regions, (0, None), (60, None)])
    store.close()


def test_a_fenced_writer_changes_nothing_in_either(tmp_path: Path) -> None:
    create_local(str(tmp_path / "s"), SCHEMA, StreamSettings())
    life = Life(open_local(str(tmp_path / "s")), Oracle())
    life.attach("a", "x", None)
    old = life.writers["a"]
    life.attach("a", "y", None)
    with pytest.raises(ProducerFencedError):
        old.send([3], floor=3)
    life.compare()
    life.store.close()
