"""Folding: of each producer, the cuts that all registered queries have passed become one.

A query is registered at an event up to which its offsets have reached all cuts. So it needs only the cuts behind that
event, also when it runs its last batch again. A query that begins below what is left gets its first bound there.
"""

from collections.abc import Iterable
from dataclasses import replace

from spark_rowtime.bounds.topic_cut import LoggedCut, merged
from spark_rowtime.store.base import Position

FOLD_EVENTS = 1000
"""After how many events a commit of bounds also folds cuts, and removes the events of bounds before the first rows."""

FOLD_AGE_MICROS = 3_600_000_000
"""How old, by the uptime, cuts are at least that commits fold: an hour, for queries that are not registered."""
KEPT_MICROS = 86_400_000_000
"""How long the events of such bounds stay in the log at least: a day."""


def fold_due(last: int, bounds: int) -> bool:
    """Whether a commit of so many bounds, the last of which is the event ``last``, folds cuts, too."""
    return (last - bounds) // FOLD_EVENTS != last // FOLD_EVENTS


def passed(positions: Iterable[Position]) -> int:
    """Returns the event up to which cuts may be folded: nobody registered at these needs one of them. 0 without any."""
    return min((position.seq for position in positions), default=0)


def portion(producers: int, usual: int) -> int:
    """How many cuts are folded at a time. Of each producer one may be folded already, and others come behind these."""
    return max(usual, 2 * producers)


def folded(cuts: Iterable[LoggedCut]) -> list[LoggedCut]:
    """Returns one cut for each producer in the place of its ``cuts``, in the order of their events.

    Laws, which tests/unit/test_cut_folding.py has by definition:

    - *weaker*: with it, the bound at any offsets is not above that with ``cuts``.
    - *passed*: where the offsets have reached all of ``cuts``, it is the same.
    - *again*: what is folded in portions is what is folded at once.

    A bound without a cut among ``cuts`` counts for offsets that have not reached a cut before it; without it the bound
    there is weaker.
    """
    chains: dict[str, list[LoggedCut]] = {}
    for logged in cuts:
        if logged.cut is not None:
            chains.setdefault(logged.producer, []).append(logged)
    return sorted(map(_one, chains.values()), key=lambda logged: logged.seq)


def _one(chain: list[LoggedCut]) -> LoggedCut:
    floors = [logged.floor for logged in chain if logged.floor is not None]
    cut = merged(chain)
    assert cut is not None, "all of them have cuts"
    floor = min(floors) if len(floors) == len(chain) else None
    return chain[-1]._replace(floor=floor, cut=replace(cut, whole=True, folded=True))
