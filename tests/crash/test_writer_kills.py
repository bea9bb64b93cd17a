"""kill -9 of writers and consumers at random moments.

A few times in CI, ROWTIME_KILLS times by the command
``ROWTIME_KILLS=100 python -m pytest tests/crash``, which prints the table of docs/guarantees.md.
"""

import random
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.bounds.disorder import declared
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.base import Store
from tests.crash import feeds
from tests.crash.checks import PATIENCE, check_log, kill_at_random, numbers
from tests.crash.orphans import named_objects, remove_orphans
from tests.crash.places import PLACES, location_of, stream_in
from tests.crash.tally import Tally
from tests.crash.victims import KILLED, Victim, how_many
from tests.s3server import environment
from tests.store.streams import infos

FEW, FEW_WITH_OBJECTS = 4, 1
WRITERS = ("a", "b", "c")


@pytest.mark.each
@pytest.mark.parametrize("place", PLACES)
def test_writers_killed_at_random_moments(
    place: str, tmp_path: Path, placed: Callable[[Path, str], Path], tally: Callable[[str], Tally]
) -> None:
    """Three producers at once, grouped by linger; what a flush has acknowledged is there, the rest by whole calls."""
    folder = placed(tmp_path / "streams", place)
    path, location = stream_in(folder, "s"), location_of(folder)
    dice, line = random.Random(3), tally(f"kill -9 of one of 3 writers{PLACES[place]}")
    store = new_stream(path, *WRITERS, location=location)

    def started(name: str, generation: int) -> Victim:
        if location is None:
            return Victim(feeds.pour, path, name, generation)
        return Victim(feeds.pour_objects, environment(), path, name, generation)

    kills = how_many(FEW if location is None else FEW_WITH_OBJECTS)
    flushed = killed_one_by_one(lambda: nullcontext(store), started, kills, dice, line)
    check_calls(store, flushed, line)
    check_log(store)
    if location is not None:
        before, orphans = numbers(store), remove_orphans(path)
        print(f"{orphans} objects that no commit had named were removed")
        assert named_objects(store)
        line.account(numbers(store), before, before)
    store.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the child does not die with its parent")
def test_forked_writers_killed_at_random_moments(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """Each is a child of a process that had the stream open when it forked, and closed it while the child wrote.

    Nobody else has the stream open: a child whose locks do not count would lose the log of the catalog then.
    """
    path, line = str(tmp_path / "s"), tally("kill -9 of one of 3 forked writers and its parent")
    new_stream(path, *WRITERS).close()
    flushed = killed_one_by_one(
        lambda: open_store(path),
        lambda *who: Victim(feeds.pour_in_child, path, *who),
        how_many(FEW),
        random.Random(4),
        line,
    )
    with open_store(path) as store:
        check_calls(store, flushed, line)
        check_log(store)
    assert check_store(path).damage == []


def killed_one_by_one(
    opened: Callable[[], AbstractContextManager[Store]],
    started: Callable[[str, int], Victim],
    kills: int,
    dice: random.Random,
    line: Tally,
) -> dict[tuple[str, int], int]:
    """Kills writers, and starts others in their places; returns by writer and generation what was flushed."""
    pouring = {name: (0, started(name, 0)) for name in WRITERS}
    flushed: dict[tuple[str, int], int] = {}
    for turn in range(kills + len(WRITERS)):
        name = dice.choice(sorted(pouring))
        generation, victim = pouring.pop(name)
        assert kill_at_random(victim, dice)
        line.fault()
        flushed[name, generation], floor = victim.heard[-1] if victim.heard else (0, None)
        with opened() as store:
            (known,) = [p for p in infos(store) if p.name == name]
        assert floor is None or (known.floor is not None and known.floor >= floor)
        if turn < kills:
            pouring[name] = generation + 1, started(name, generation + 1)
    return flushed


def new_stream(path: str, *names: str, **settings: Any) -> Store:
    """These producers have joined before anyone's rows, so that nobody joins behind the stream."""
    rt.createStream(path, feeds.DDL, **settings)
    store = open_store(path)
    for name in names:
        store.attach(name, "nobody", declared(store.schema).declaration)
    return store


def check_calls(store: Store, flushed: dict[tuple[str, int], int], line: Tally) -> None:
    """Of each process the rows of its first calls, whole and in order, and at least those that it had flushed."""
    calls = list(accumulate(map(feeds.call_size, range(100_000)), initial=0))
    for name in {name for name, _ in flushed}:
        rows = numbers(store, name)
        generations = [generation for of, generation in flushed if of == name]
        sent: list[int] = []
        for generation in generations:
            mine = [n % 10**9 for n in rows if n // 10**9 == generation]
            assert len(mine) in calls, "a call is whole or not there"
            line.account(mine, range(flushed[name, generation]), range(len(mine)))
            sent += [generation * 10**9 + n for n in range(len(mine))]
        assert rows == sent


def test_consumers_and_pumps_killed_at_random_moments(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """While two producers write: a ledger with the position in it, and a stream with the position as checkpoint."""
    source, target, ledger = (str(tmp_path / name) for name in ("s", "t", "ledger"))
    store, pumped = new_stream(source, "a", "b"), new_stream(target)
    dice, line = random.Random(5), tally("kill -9 of a consumer")
    pouring = [Victim(feeds.pour, source, name, 0, 40 * how_many(FEW)) for name in ("a", "b")]
    for turn in range(how_many(FEW)):
        work, to = (feeds.drain, ledger) if turn % 2 else (feeds.pump, target)
        assert kill_at_random(Victim(work, source, to), dice, patience=0.5)
        line.fault()
    assert [victim.end()[1] for victim in pouring] == [0, 0]
    everything = numbers(store)
    finish(Victim(feeds.drain, source, ledger), lambda: len(drained(ledger)) >= len(everything))
    finish(Victim(feeds.pump, source, target), lambda: pumped.head()[1] == store.head().floor)
    line.account(drained(ledger), everything, everything)
    assert drained(ledger) == everything
    line.account(numbers(pumped), everything, everything)
    check_log(pumped)


def test_a_pump_that_dies_before_its_first_position_is_stored_repeats_nothing(
    tmp_path: Path, tally: Callable[[str], Tally]
) -> None:
    """Nothing of the first train is seen by then, whatever the sink's linger."""
    source, target, line = str(tmp_path / "s"), str(tmp_path / "t"), tally("kill -9 of a consumer")
    store, pumped = new_stream(source), new_stream(target)
    assert Victim(feeds.pour, source, "a", 0, 20).end()[1] == 0
    assert Victim(feeds.pump, source, target, True).end()[1] == KILLED
    line.fault()
    finish(Victim(feeds.pump, source, target), lambda: pumped.head()[1] == store.head().floor)
    line.account(numbers(pumped), numbers(store), numbers(store))


def drained(ledger: str) -> list[int]:
    return [n for line in feeds.lines(ledger) for n in line["n"]]


def finish(victim: Victim, done: Callable[[], bool]) -> None:
    """Lets it run until all is done; it says when there is something new to look at."""
    while not done():
        assert victim.listen(PATIENCE, len(victim.heard) + 1)
    assert victim.kill()
