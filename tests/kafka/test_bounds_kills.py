"""kill -9 of processes with rt.KafkaBounds, and of the broker: no row below a bound that was told, none lost.

A few times in CI; ROWTIME_KILLS=100 for many.
"""

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from tests.crash.checks import kill_at_random
from tests.crash.tally import Tally
from tests.crash.victims import Victim, how_many
from tests.kafka.test_bounds import read

pytest.importorskip("confluent_kafka")
FEW = 4


@pytest.mark.long
def test_processes_killed_at_random_moments(kafka: Any, tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """Two producers write at once. The one whose turn it is gets kill -9, and goes on under its name."""
    from tests.kafka import bounded

    line, dice, topic = tally("kill -9 of a process with rt.KafkaBounds"), random.Random(7), kafka.topic()
    path = str(tmp_path / "bounds")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL", producers=["a", "b"])
    running = {name: Victim(bounded.pour, kafka.bootstrap, topic, path, name, 0) for name in ("a", "b")}
    acknowledged: list[str] = []
    bounds: dict[str, int] = {}
    turns = [dice.choice("ab") for _ in range(how_many(FEW))]
    for turn, name in enumerate([*turns, "a", "b"]):
        victim = running.pop(name)
        victim.listen(240, 40)
        assert kill_at_random(victim, dice)
        line.fault()
        acknowledged += [value for what, value in victim.heard if what == "row"]
        bounds[name] = max([bounds.get(name, 0), *(value for what, value in victim.heard if what == "bound")])
        if turn < len(turns):
            running[name] = Victim(bounded.pour, kafka.bootstrap, topic, path, name, turn + 1)
    found = read(kafka, topic)
    values = [value for _, _, value in found]
    line.account(values, acknowledged, set(values))
    with open_store(path) as store:
        assert set(bounds) == {"a", "b"}
        check_floors(store, topic, found, min(bounds.values()))


def check_killed(victim: Victim, broker: Any, topic: str, path: str, line: Tally) -> None:
    """Kills a process that is all that writes, and checks its rows and its bounds."""
    assert victim.kill()
    acknowledged = [value for what, value in victim.heard if what == "row"]
    found = read(broker, topic)
    values = [value for _, _, value in found]
    line.account(values, acknowledged, set(values))
    with open_store(path) as store:
        check_floors(store, topic, found, max(value for what, value in victim.heard if what == "bound"))


def check_floors(store: Store, topic: str, found: list[tuple[int, int, str]], reached: int) -> None:
    """At any offsets, as of any event, no row at or beyond them is below the bound that a query is told there."""
    rows = [(partition, offset, int(value.split()[0])) for partition, offset, value in found]
    ends = {p: max((offset + 1 for at, offset, _ in rows if at == p), default=0) for p in range(3)}
    floors, last = CutFloors(store), store.head().seq
    assert (floors.floorAt(last, {topic: ends}) or 0) >= reached
    told = 0
    for parts in product(range(5), repeat=3):
        offsets = {p: ends[p] * part // 4 for p, part in enumerate(parts)}
        unread = [time for p, offset, time in rows if offset >= offsets[p]]
        for seq in (last // 2, last):
            floor = floors.floorAt(seq, {topic: offsets}) or 0
            told += floor > 0
            assert floor <= min(unread, default=floor), (seq, offsets)
    assert told > 30, "the bounds count somewhere"


@pytest.mark.night
def test_a_broker_that_is_killed_holds_the_bounds_until_it_is_back(
    kafka: Any, tmp_path: Path, tally: Callable[[str], Tally]
) -> None:
    from tests.kafka import bounded

    line, topic, path = tally("kill -9 of the broker under rt.KafkaBounds"), kafka.topic(), str(tmp_path / "bounds")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    victim = Victim(bounded.pour, kafka.bootstrap, topic, path, "a", 0)
    victim.listen(240, 100)
    kafka.kill()
    kafka.start()
    line.fault()
    assert victim.listen(240, len(victim.heard) + 60)
    check_killed(victim, kafka, topic, path, line)
