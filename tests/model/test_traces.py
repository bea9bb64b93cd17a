"""Real streams go through nothing that the model of commits does not have; and where a rule is broken, it says so."""

import random
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from model.traces import JOINED, Trace, admitted, excerpts
from spark_rowtime.store import create_store, ledger, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.limits import Limits
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.settings import StreamSettings
from tests.crash import feeds
from tests.crash.tally import Tally
from tests.crash.test_writer_kills import WRITERS, killed_one_by_one, new_stream
from tests.crash.victims import Victim
from tests.model.recorded import Recorded, live, log_of
from tests.store.streams import SCHEMA

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java"),
    pytest.mark.timeout(1200),
    pytest.mark.long,
]


def recorded() -> Recorded:
    return Recorded(MemoryStore("memory://traced", SCHEMA, StreamSettings()))


def repeats(stream: Recorded) -> None:
    stream.join("a0", "a")
    stream.send("a0", 3, floor=3)
    stream.repeat("a0")


def is_taken_over(stream: Recorded) -> None:
    stream.join("a0", "a")
    stream.join("a1", "a")
    stream.send("a0", 3, floor=4)


def is_late(stream: Recorded) -> None:
    stream.join("a0", "a")
    stream.send("a0", floor=5)
    stream.die("a0")
    stream.join("a1", "a")
    stream.send("a1", 3, floor=6)


def waits(stream: Recorded) -> None:
    stream.join("a0", "a")
    stream.join("b0", "b")
    stream.send("a0", floor=5)


MUTANTS: dict[str, tuple[Callable[[Recorded], None], Any, str, Any]] = {
    "each number is the next": (repeats, ledger, "is_next", lambda *_: True),
    "each epoch is the producer's": (is_taken_over, Ledger, "_current", lambda self, held: self._known(held.producer)),
    "no row is late": (is_late, Limits, "allow", lambda *_: True),
    "the bound is that of the strongest": (
        waits,
        ledger._PageMembers,
        "weakest",
        lambda self: ("", self.strongest()),
    ),
}
"""A life, and a rule of the code that it needs."""


def test_a_life_is_admitted() -> None:
    stream = recorded()
    waits(stream)
    stream.send("b0", 3, floor=4)
    stream.repeat("b0")
    stream.join("a1", "a")
    stream.send("a0", 6)
    stream.die("b0")
    stream.expire()
    assert {step.what for step in stream.steps} >= {"repeated", "fenced", "expired"}
    assert admitted([stream.trace]) == [True]


@pytest.mark.night
def test_a_broken_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {mutant: lives(mutant, monkeypatch) for mutant in MUTANTS}
    assert all(right.steps != wrong.steps for right, wrong in found.values())
    verdicts = iter(admitted([trace for pair in found.values() for trace in pair]))
    assert dict(zip(found, zip(verdicts, verdicts, strict=True), strict=True)) == dict.fromkeys(MUTANTS, (True, False))


def lives(mutant: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Trace, Trace]:
    """The same life, by the rule and without it."""
    life, *broken = MUTANTS[mutant]
    right, wrong = recorded(), recorded()
    life(right)
    with monkeypatch.context() as patched:
        patched.setattr(*broken)
        life(wrong)
    return right.trace, wrong.trace


@pytest.mark.parametrize("kind", ["local", pytest.param("postgres", marks=pytest.mark.night)])
def test_random_lives_are_admitted(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    traces = []
    for seed in range(2):
        path = (
            str(tmp_path / f"s{seed}") if kind == "local" else request.getfixturevalue("postgres").url(f"traced{seed}")
        )
        create_store(path, SCHEMA, StreamSettings())
        with open_store(path) as store:
            stream = Recorded(store)
            live(stream, random.Random(seed), 10)
            traces.append(stream.trace)
    assert admitted(traces) == [True] * len(traces)


@pytest.mark.night
def test_logs_of_killed_writers_are_admitted(tmp_path: Path) -> None:
    """Three writers, of which one after the other gets kill -9 at a random moment."""
    path = str(tmp_path / "s")
    store: Store = new_stream(path, *WRITERS)
    killed_one_by_one(
        lambda: nullcontext(store), lambda *who: Victim(feeds.pour, path, *who), 6, random.Random(5), Tally()
    )
    log = log_of(store)
    store.close()
    found = [trace for trace in excerpts(log, 4) if any(step.what == JOINED for step in trace.steps)]
    assert len(found) >= 3
    assert admitted(found[:3]) == [True] * len(found[:3])
    assert admitted([raised(next(one for one in excerpts(log, 4) if one.steps[-1].bound))]) == [False]


def raised(trace: Trace) -> Trace:
    """The trace, where the last bound is stronger than what anybody has promised."""
    *steps, last = trace.steps
    return trace._replace(steps=(*steps, last._replace(bound=max(s.floor for s in (*steps, last)) + last.bound)))
