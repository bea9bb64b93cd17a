"""Helpers of the tests that kill processes: kills at random moments, and checks that hold for any log."""

import random
from itertools import pairwise

import pyarrow.compute as pc

from spark_rowtime.store.base import Store
from tests.crash.victims import Victim
from tests.store.streams import EMPTY, WHOLE, infos

PATIENCE = 240.0


def kill_at_random(victim: Victim, dice: random.Random, patience: float = PATIENCE) -> bool:
    """Kills a process after some random progress, at most ``patience`` seconds; False if it had ended by itself."""
    victim.listen(patience, len(victim.heard) + dice.randrange(8))
    victim.listen(dice.uniform(0, 0.02))
    return victim.kill()


def numbers(store: Store, producer: str | None = None) -> list[int]:
    """``n`` of the producer's rows, or of all, in the order of the log."""
    pieces = [p for p in store.slices(EMPTY, WHOLE) if producer in (None, p.producer)]
    return [n for p in pieces for n in store.read(p).column("n").to_pylist()]


def check_log(store: Store) -> None:
    """Checks that the bound never falls, no row is below the bound before it, and the counts match the rows."""
    heads = [store.at(seq) for seq in range(store.head().seq + 1)]
    assert all((a.floor or 0) <= (b.floor or 0) for a, b in pairwise(heads))
    pieces = store.slices(EMPTY, WHOLE)
    assert all(p.least >= (heads[p.seq - 1].floor or 0) for p in pieces)
    for known in infos(store):
        assert known.accepted == sum(p.rows for p in pieces if p.producer == known.name)
        assert known.rejected == store.rejected().filter(pc.field("producer") == known.name).num_rows
