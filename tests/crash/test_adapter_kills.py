"""kill -9 of hosted adapters at random moments.

A few times in CI, ROWTIME_KILLS times by the command
``ROWTIME_KILLS=100 python -m pytest tests/crash``, which prints the table of docs/guarantees.md.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store.local import open_local
from tests.crash import feeds
from tests.crash.checks import kill_at_random
from tests.crash.tally import Tally
from tests.crash.victims import Victim, how_many
from tests.store.streams import EMPTY, WHOLE, infos

FEW = 4
STEPS = 60


def history(path: str) -> dict[str, Any]:
    """All that a stream says, but for how often its producers joined and left."""
    store = open_local(path)
    log = [e for e in store.bounds().drop_columns(["seq"]).to_pylist() if e["event"] not in ("joined", "left")]
    rows = [store.read(piece).to_pylist() for piece in store.slices(EMPTY, WHOLE)]
    with rt.openReader(path) as reader:
        trains = [(train.rows.to_pylist(), train.bound) for train in reader]
    return {
        "log": log,
        "rows": rows,
        "trains": trains,
        "rejected": store.rejected().drop_columns(["rejectedAt"]).to_pylist(),
        "counts": [(p.name, p.accepted, p.rejected, p.checkpoint, p.number, p.status) for p in infos(store)],
        "head": store.head()[1:],
    }


@pytest.mark.parametrize("feed", ["InOrder", "Late", "KSorted", "Captured", "Fleet", "TwoShops"])
def test_an_adapter_killed_and_restarted_gives_the_same_stream(
    tmp_path: Path, tally: Callable[[str], Tally], feed: str
) -> None:
    dice, line, killed = random.Random(feed), tally("kill -9 of a hosted adapter with checkpoints"), 0
    assert Victim(feeds.hosted, feed, str(tmp_path / "unkilled"), STEPS).end() == ([*range(1, STEPS + 1)], 0)
    expected = history(str(tmp_path / "unkilled"))
    everything = [row["n"] for train in expected["rows"] for row in train]
    assert feed == "Captured" or expected["rejected"]
    while killed < how_many(FEW):
        path, before = str(tmp_path / str(killed)), killed
        while kill_at_random(Victim(feeds.hosted, feed, path, STEPS), dice):
            killed += 1
        found = history(path)
        line.fault(killed - before)
        line.account([row["n"] for train in found["rows"] for row in train], everything, everything)
        assert found == expected
