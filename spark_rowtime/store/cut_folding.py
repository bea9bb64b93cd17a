"""Folding: of each producer, the cuts that all registered queries beside topics have passed become one.

Law (*a reader lets nothing go*; tests/store/test_postgres_folding.py): what a user registers who may only read keeps
cuts, and lets none be folded, but for those that are older than ``retainAge``.

A query is registered at an event up to which its offsets have reached all cuts. So it needs only the cuts behind that
event, also when it runs its last batch again. A query that begins below what is left gets its first bound there.
"""

from collections.abc import Iterable
from dataclasses import replace

from spark_rowtime.bounds.topic_cut import LoggedCut, merged
from spark_rowtime.store.snapshot import READS_STREAM, READS_TOPIC, ReaderInfo
from spark_rowtime.types.timestamps import DAY_MICROS, HOUR_MICROS

PORTION_CUTS = 10_000
"""How many cuts are read at a time."""
FOLD_EVENTS = 1000
"""After how many events a commit of bounds also folds cuts, and removes the events of bounds before the first rows."""

FOLD_AGE_MICROS = HOUR_MICROS
"""How old, by the uptime, cuts are at least that commits fold: an hour, for queries that are not registered."""
KEPT_MICROS = DAY_MICROS
"""How long the events of such bounds stay in the log at least: a day."""


def fold_due(last: int, bounds: int) -> bool:
    """Whether a commit of so many bounds, the last of which is the event ``last``, folds cuts, too."""
    return (last - bounds) // FOLD_EVENTS != last // FOLD_EVENTS


def passed(readers: Iterable[ReaderInfo], *, trusted: bool = True) -> int:
    """Returns the event up to which all queries beside topics have passed the cuts; 0 without any.

    With ``trusted``, one of them has to be that of a user who may write. Readers of the stream do not count, and those
    of which it is not known what they read only keep cuts.
    """
    queries = [one for one in readers if one.reads != READS_STREAM]
    folds = any(one.reads == READS_TOPIC and (one.trusted or not trusted) for one in queries)
    return min(one.position.seq for one in queries) if folds else 0


def reached_by_all(readers: Iterable[ReaderInfo], folded_upto: int) -> int:
    """Returns the event up to which events of bounds may go, too: no reader has to read rows before it."""
    return min([folded_upto, *(one.position.seq for one in readers)])


def portion(producers: int) -> int:
    """How many cuts are folded at a time. Of each producer one may be folded already, and others come behind these."""
    return max(PORTION_CUTS, 2 * producers)


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
