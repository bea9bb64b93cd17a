"""Random commands: each store does what the memory store does, through two handles at once."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_rowtime.errors import DataLostError, RowtimeError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Commit, Rejected
from spark_rowtime.store.difference import rows_between
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.position import Position
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.timestamps import END
from tests.store.streams import SCHEMA, at, batch, infos, without_times

LIVES = int(os.environ.get("ROWTIME_MODEL_LIVES", "80"))
NAMES = st.sampled_from(["a", "b", "ü"])
TIMES = st.lists(st.integers(1, 40), min_size=1, max_size=4)
LAST = 41
"""Stands for the end of time."""
FLOORS = st.none() | st.integers(1, LAST)
EXPECTED = st.lists(NAMES, max_size=2, unique=True)
COMMANDS = st.one_of(
    st.tuples(st.just("attach"), NAMES, st.sampled_from(["x", "y"]), st.sampled_from(["{}", "{}", "{}", "other"])),
    st.tuples(st.just("leave"), NAMES, st.integers(0, 1)),
    st.tuples(st.just("detach"), NAMES),
    st.tuples(st.just("close"), NAMES, st.booleans()),
    st.tuples(st.just("again"), NAMES),
    st.tuples(st.just("keep"), NAMES, st.integers(0, 20), st.none() | st.integers(0, 42)),
    st.tuples(st.just("forget"), NAMES),
    st.tuples(st.just("gc"), st.booleans()),
    st.tuples(
        st.just("send"), NAMES, st.integers(0, 1), st.lists(TIMES, max_size=3), FLOORS, st.lists(TIMES, max_size=1)
    ),
    st.tuples(st.just("send"), NAMES, st.just(0), st.lists(TIMES, max_size=3), FLOORS, st.just([])),
    st.tuples(
        *(st.just("send"), NAMES, st.just(0), st.lists(TIMES, max_size=1), FLOORS, st.just([])),
        st.sampled_from([-2, 0, 1]),
    ),
)
POSITIONS = st.tuples(st.integers(0, 40), st.none() | st.integers(0, 42))
SETTINGS = st.builds(StreamSettings, st.booleans(), st.none() | st.integers(0, 20_000_000))


class Driver:
    """Makes commands into calls on one store; what a call gives, or its error, is the outcome."""

    def __init__(self, *handles: Store) -> None:
        self.handles = handles
        self.last: dict[str, Commit] = {}

    def run(self, number: int, command: Any) -> Any:
        store = self.handles[number % len(self.handles)]
        try:
            return getattr(self, command[0])(store, *command[1:]), store.head(), store.snapshot().logged_clock
        except RowtimeError as error:
            return type(error), str(error), store.head()

    def attach(self, store: Store, name: str, holder: str, declaration: str) -> Any:
        return store.attach(name, holder, declaration)

    def leave(self, store: Store, name: str, behind: int) -> None:
        store.leave(name, self._epoch(store, name) - behind)

    def detach(self, store: Store, name: str) -> None:
        store.detach(name)

    def close(self, store: Store, name: str, complete: bool) -> None:
        store.close_producer(name, complete=complete)

    def again(self, store: Store, name: str) -> Any:
        return store.commit(self.last[name]) if name in self.last else None

    def keep(self, store: Store, name: str, seq: int, cut: int | None) -> None:
        store.keep(name, Position(seq, at(cut), None))

    def forget(self, store: Store, name: str) -> None:
        store.forget(name)

    def gc(self, store: Store, force: bool) -> Any:
        collected = store.gc(age=0, force=force)
        return collected.rows, collected.kept_for, store.horizon()

    def send(
        self, store: Store, name: str, behind: int, trains: Any, floor: int | None, late: Any, left_out: int = 0
    ) -> Any:
        staged = tuple(store.stage(batch(*train)) for train in trains)
        rejected = tuple(Rejected("late", at(floor), batch(*rows)) for rows in late)
        epoch, number = self._epoch(store, name) - behind, self._number(store, name) + 1 + left_out
        bound = END if floor == LAST else at(floor)
        self.last[name] = Commit(name, epoch, number, staged, bound, rejected, str(number), str(floor))
        return store.commit(self.last[name])

    def _number(self, store: Store, name: str) -> int:
        return next((p.number for p in infos(store) if p.name == name), 0)

    def _epoch(self, store: Store, name: str) -> int:
        return next((p.epoch for p in infos(store) if p.name == name), 0)


def parts(store: Store, after: Position, upto: Position) -> list[Any]:
    """The slices between two positions, without what is the store's own, and their rows."""
    try:
        found = store.slices(after, upto)
    except DataLostError as error:
        return [error.values["horizon"]]
    rows = [rows_between(store.read(piece), piece.seq, after, upto).to_pylist() for piece in found]
    return [(p.seq, p.producer, p.rows, p.least, p.largest, r) for p, r in zip(found, rows, strict=True)]


@pytest.mark.search
@settings(max_examples=LIVES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    how=SETTINGS,
    expected=EXPECTED,
    commands=st.lists(COMMANDS, max_size=30),
    ends=st.lists(POSITIONS, min_size=2, max_size=6),
)
def test_a_store_does_what_memory_does(
    new_place: Callable[[], str], how: StreamSettings, expected: list[str], commands: list[Any], ends: list[Any]
) -> None:
    path = new_place()
    create_store(path, SCHEMA, how, expected)
    model = MemoryStore(path, SCHEMA, how)
    model.expect(expected)
    with ExitStack() as opened:
        handles = [opened.enter_context(open_store(path)) for _ in range(2)]
        drivers = Driver(model), Driver(*handles)
        for number, command in enumerate(commands):
            right, found = (driver.run(number, command) for driver in drivers)
            assert found == right, command
        for store in [*handles, opened.enter_context(open_store(path))]:
            same(store, model, ends)


def positions(store: Store) -> list[tuple[str, Position]]:
    """Those of the registered readers."""
    return [(reader.name, reader.position) for reader in store.snapshot().readers]


def same(store: Store, model: Store, ends: list[Any]) -> None:
    """Whatever can be asked of ``store`` is as in ``model``."""
    assert store.snapshot().due == model.snapshot().due
    assert infos(store) == infos(model)
    assert store.bounds() == model.bounds()
    assert without_times(store.rejected()) == without_times(model.rejected())
    assert store.snapshot().logged_clock == model.snapshot().logged_clock
    kept = range(model.horizon().seq, model.head().seq + 1)
    assert [store.at(seq) for seq in kept] == [model.at(seq) for seq in kept]
    assert store.horizon() == model.horizon()
    assert positions(store) == positions(model)
    places = [Position(seq, at(cut), None) for seq, cut in ends]
    for after in places:
        for upto in places:
            assert parts(store, after, upto) == parts(model, after, upto)
