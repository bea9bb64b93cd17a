"""Each store, in real processes that are killed, does what the reference in memory does: random lives of a stream.

A few examples in CI; ``ROWTIME_KILLS=500 python -m pytest tests/crash/test_machine.py`` for many.
"""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from spark_rowtime.producer import scheduler
from spark_rowtime.reader.release import Release
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.position import Position
from spark_rowtime.store.settings import StreamSettings
from tests.crash.desk import Desk, Still, serve
from tests.crash.tally import FAULTS, Tally
from tests.crash.victims import Victim, how_many
from tests.store.streams import SCHEMA, SECOND, START, at
from tests.store.visible import rows_of, visible

FEW = {"local": 8, "postgres": 4}
HOUR = 3_600_000_000
ORDERS: dict[str, dict[str, Any]] = {
    "in order": {},
    "any": {"rowsImplyBounds": False},
    "late": {"lateness": "5 seconds"},
    "per n": {"inOrderPer": "n", "keyIdle": 20 * SECOND},
}
"""How the producers of these names are declared."""
NAMES = st.sampled_from(list(ORDERS))
DESKS = st.integers(0, 3)
"""Two desks, and the desks in the processes that were last forked from theirs."""
SEATS = st.integers(0, 1)
TIMES = st.integers(1, 60)
HOW = st.fixed_dictionaries(
    {
        "onLate": st.sampled_from(["reject", "raise"]),
        "linger": st.sampled_from([0, SECOND, HOUR]),
        "lease": st.sampled_from([None, 10 * SECOND]),
        "maxTrainRows": st.sampled_from([2, 100]),
    }
)
SETTINGS = st.builds(
    StreamSettings,
    boundsBeforeRows=st.booleans(),
    maxLag=st.sampled_from([None, None, 10 * SECOND]),
    idleTimeout=st.sampled_from([None, 20 * SECOND]),
    maxAhead=st.sampled_from([None, None, 40 * SECOND]),
)
RELEASES = [Release("arrival"), Release("rowtime"), Release("rowtime", hold=5 * SECOND, max_rows=3)]
POSITIONS = st.builds(lambda seq, cut: Position(seq, at(cut), None), st.integers(0, 40), st.none() | st.integers(0, 62))


class Streams(RuleBasedStateMachine):
    """Two desks in processes of their own at one stream, and two in this one at its model.

    The stream is in the ``database`` of that URL, or in a directory.
    """

    database: str | None = None

    @initialize(how=SETTINGS, expected=st.lists(NAMES, max_size=2, unique=True))
    def create(self, how: StreamSettings, expected: list[str]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        place = Path(self.folder.name)
        self.path, self.time = f"{self.database}/{place.name}" if self.database else str(place / "s"), START
        create_store(self.path, SCHEMA, how, expected)
        self.model = MemoryStore("memory://model", SCHEMA, how, now=lambda: self.time)
        self.model.expect(expected)
        self.store = open_store(self.path)
        self.store.now = lambda: self.time
        self.desks = [self.new_desk(), self.new_desk()]
        self.dead: list[Desk | None] = []
        """The models of desks that were killed. If they were garbage collected, their sinks would commit."""
        self.readers: list[Position | None] = [None] * len(RELEASES)
        self.defaults = {"onLate": "reject", "linger": HOUR, "lease": None, "maxTrainRows": 100}

    def new_desk(self) -> tuple[Victim, Desk]:
        return Victim(serve, self.path, self.time), Desk(lambda: self.model, self.time)

    def tell(self, which: int, *command: Any) -> Any:
        victim, desk = self.desks[which % 2]
        if self.model_of(which) is not desk:
            command = ("in_child", *command)
        expected = desk.do(*command)
        assert victim.ask(*command) == expected, command
        return expected

    def model_of(self, which: int) -> Desk:
        """The desk that does it: without a child, the parent."""
        desk = self.desks[which % 2][1]
        return desk.child if which >= 2 and desk.child is not None else desk

    def tell_sink(self, which: int, what: str, name: str, *arguments: Any) -> None:
        if name not in self.model_of(which).sinks:
            self.open(which, name, self.defaults)
        if name in self.model_of(which).sinks:
            self.tell(which, what, name, *arguments)

    @rule(which=DESKS, name=NAMES, how=HOW)
    def open(self, which: int, name: str, how: dict[str, Any]) -> None:
        """Opens, opens again, or takes over from the other desk."""
        self.tell(which, "open", name, ORDERS[name], how)

    @rule(which=DESKS, name=NAMES, seconds=st.lists(TIMES, min_size=1, max_size=5), in_order=st.booleans())
    def send(self, which: int, name: str, seconds: list[int], in_order: bool) -> None:
        self.tell_sink(which, "send", name, sorted(seconds) if in_order else seconds)

    @rule(which=DESKS, name=NAMES, second=TIMES)
    def send_one(self, which: int, name: str, second: int) -> None:
        self.tell_sink(which, "send_one", name, second)

    @rule(which=DESKS, name=NAMES, second=TIMES, strict=st.booleans())
    def bound(self, which: int, name: str, second: int, strict: bool) -> None:
        self.tell_sink(which, "bound", name, second, strict)

    @rule(which=DESKS, name=NAMES, checkpoint=st.sampled_from([None, "c", "d"]))
    def flush(self, which: int, name: str, checkpoint: str | None) -> None:
        self.tell_sink(which, "flush", name, checkpoint)

    @rule(which=DESKS, name=NAMES, what=st.sampled_from(["close", "complete", "abandon", "beat", "beat"]))
    def end_or_beat(self, which: int, name: str, what: str) -> None:
        self.tell_sink(which, what, name)

    @rule(which=SEATS)
    def fork(self, which: int) -> None:
        """The desk's process forks while it has the stream open. A child that it had before gets kill -9."""
        self.dead.append(self.desks[which][1].child)
        self.tell(which, "fork")

    @rule(which=SEATS)
    def kill(self, which: int) -> None:
        """kill -9; what the process had not committed is gone, and another sits down at its desk."""
        assert self.desks[which][0].kill()
        self.dead.append(self.desks[which][1])
        self.desks[which] = self.new_desk()
        expected = rows_of(visible(self.model))
        line = FAULTS.setdefault("kill -9 of a process under the state machine", Tally())
        line.fault()
        line.account(rows_of(visible(self.store)).elements(), expected.elements(), expected.elements())

    @rule(seconds=st.sampled_from([0.5, 2, 11, 21]))
    def pass_time(self, seconds: float) -> None:
        """Leases end and producers go idle by this clock alone."""
        self.time += round(seconds * SECOND)
        for which in (0, 1):
            self.tell(which, "pass_time", round(seconds * SECOND))

    @rule(which=DESKS, name=NAMES)
    def detach(self, which: int, name: str) -> None:
        self.tell(which, "detach", name)

    @rule(which=DESKS, name=NAMES, complete=st.sampled_from([False, False, True]))
    def close_for_another(self, which: int, name: str, complete: bool) -> None:
        self.tell(which, "close_producer", name, complete)

    @rule(which=DESKS)
    def expire(self, which: int) -> None:
        self.tell(which, "expire")

    @rule(which=DESKS, after=POSITIONS, upto=POSITIONS)
    def read(self, which: int, after: Position, upto: Position) -> None:
        self.tell(which, "read", after, upto)

    @rule(which=DESKS, reader=st.integers(0, len(RELEASES) - 1))
    def step(self, which: int, reader: int) -> None:
        """A reader goes on from where it was, in whichever process."""
        answer = self.tell(which, "step", RELEASES[reader], self.readers[reader])
        if isinstance(answer[0], Position):
            self.readers[reader] = answer[0]

    @rule(which=DESKS, reader=st.integers(0, len(RELEASES) - 1))
    def keep(self, which: int, reader: int) -> None:
        """A reader says where it is: what it has not read stays."""
        position = self.readers[reader]
        if position is not None:
            self.tell(which, "keep", f"reader {reader}", position)

    @rule(which=DESKS, reader=st.integers(0, len(RELEASES) - 1))
    def forget(self, which: int, reader: int) -> None:
        self.tell(which, "forget", f"reader {reader}")

    @rule(which=DESKS, age=st.sampled_from([0, 0, 5 * SECOND]), force=st.booleans())
    def gc(self, which: int, age: int, force: bool) -> None:
        self.tell(which, "gc", age, force)

    @invariant()
    def same(self) -> None:
        """What anybody can see of the stream is what the model shows."""
        if hasattr(self, "store"):
            assert visible(self.store) == visible(self.model)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            for victim, _ in self.desks:
                victim.kill()
            self.store.close()
            self.folder.cleanup()


@pytest.mark.parametrize("kind", ["local", "postgres"])
def test_a_store_in_processes_does_what_memory_does(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "Timer", Still)
    if kind == "postgres":
        monkeypatch.setattr(Streams, "database", request.getfixturevalue("postgres").url("machine"))
    run_state_machine_as_test(Streams, settings=settings(max_examples=how_many(FEW[kind]), stateful_step_count=30))
