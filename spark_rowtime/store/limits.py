"""Limits: from which to which rowtime the rows of a commit land, and what becomes of the others."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Rejected, Staged
from spark_rowtime.types.schema import rowtime_micros

WhoseBound = Callable[[int], BoundOrigin | None]
"""Says whose bound the given one is."""


class Limits(NamedTuple):
    """Rows below ``floor`` are late, rows above ``ceiling`` too far ahead, in microseconds; None: no limit.

    ``floor`` is the bound in force; ``ceiling`` lies ``maxAhead`` after the clock, see ``reach``.
    """

    floor: int | None
    ceiling: int | None = None

    def allow(self, train: Staged) -> bool:
        """Returns whether all rows of the train lie between the limits."""
        return (self.floor is None or train.least >= self.floor) and (
            self.ceiling is None or train.largest <= self.ceiling
        )


class Cut(NamedTuple):
    """A train that was cut at limits: what fits, staged again, and the other rows. ``fits`` is None if nothing does."""

    fits: Staged | None
    late: pa.RecordBatch
    ahead: list[Rejected]


Cuts = Mapping[int, Cut]
"""The trains of a commit that were cut, by their place in it."""


def cut(store: Store, trains: Sequence[Staged], limits: Limits) -> dict[int, Cut]:
    """Cuts the trains that have rows beyond the limits. It reads and writes rows: call it without any lock."""
    return {place: _cut(store, train, limits) for place, train in enumerate(trains) if not limits.allow(train)}


def _cut(store: Store, train: Staged, limits: Limits) -> Cut:
    near, ahead = split_ahead(store.read(train), limits.ceiling)
    fits, late = _split_late(near, limits.floor)
    return Cut(store.stage(fits) if fits.num_rows else None, late, ahead)


def split_ahead(rows: pa.RecordBatch, ceiling: int | None) -> tuple[pa.RecordBatch, list[Rejected]]:
    """Returns the rows up to ``ceiling``, and those above it as they are rejected, if there are any."""
    near = None if ceiling is None else pc.less_equal(rowtime_micros(rows), ceiling)
    if near is None or pc.all(near).as_py():
        return rows, []
    return rows.filter(near), [Rejected("ahead", ceiling, rows.filter(pc.invert(near)))]


def _split_late(rows: pa.RecordBatch, floor: int | None) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    fits = pc.greater_equal(rowtime_micros(rows), 0 if floor is None else floor)
    return rows.filter(fits), rows.filter(pc.invert(fits))


def fitting(trains: Sequence[Staged], cuts: Cuts) -> tuple[Staged, ...]:
    """Returns the trains, of those that were cut what fits."""
    if not cuts:
        return tuple(trains)
    found = [cuts[place].fits if place in cuts else train for place, train in enumerate(trains)]
    return tuple(train for train in found if train is not None)


def cut_off(cuts: Cuts, floor: int | None, whose: WhoseBound) -> tuple[Rejected, ...]:
    """Returns the rows that were cut off, in the order of their trains. Late rows lie below ``floor``."""
    origin = whose(floor) if floor is not None and any(one.late.num_rows for one in cuts.values()) else None
    found: list[Rejected] = []
    for _, one in sorted(cuts.items()):
        found += [Rejected("late", floor, one.late, origin)] if one.late.num_rows else []
        found += one.ahead
    return tuple(found)


def admit(
    store: Store, trains: Sequence[Staged], floor: int | None, whose: WhoseBound
) -> tuple[tuple[Staged, ...], tuple[Rejected, ...]]:
    """Splits ``trains`` by a ``floor``: the rows that are not below it, and those below it."""
    cuts = cut(store, trains, Limits(floor))
    return fitting(trains, cuts), cut_off(cuts, floor, whose)
