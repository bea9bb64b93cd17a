"""Which right row each left row of an as-of join gets."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_rowtime.operators.chunks import nullable_micros
from spark_rowtime.operators.sorted_rows import Index, key_codes


@dataclass(frozen=True)
class AsOf:
    """An as-of join. ``tolerance`` is in microseconds.

    Laws: a left row gets a right row of its key, within ``tolerance`` of its time: the last one at or before it
    (``backward``), the first one at or after it (``forward``), or the nearer of the two (``nearest``; the earlier one
    if both are as near). Of several right rows at that time it gets the last that arrived. A key with a null equals
    no key.
    """

    by: list[str]
    on: str
    direction: str
    tolerance: int | None

    def __str__(self) -> str:
        within = "" if self.tolerance is None else f" within {self.tolerance}L"
        return f"the {self.direction} right row{within}"

    @property
    def following(self) -> int:
        """For how long after a left row a right row may come that it gets, in microseconds."""
        return 0 if self.direction == "backward" else self.tolerance or 0

    def times(self, rows: pa.Table) -> Index:
        """Returns the times of rows in microseconds."""
        return nullable_micros(rows, self.on)

    def matches(self, left: pa.Table, right: pa.Table) -> pa.Array:
        """Returns for each row of ``left`` the number of its row of ``right``, or null.

        ``right`` is in the order of arrival, and has no nulls in its keys.
        """
        found = _Sorted(self, left, right)
        if self.direction == "backward":
            at, far = found.before()
        elif self.direction == "forward":
            at, far = found.after()
        else:
            at, far = _nearer(found.before(), found.after())
        most = _NEVER - 1 if self.tolerance is None else self.tolerance
        return pa.array(at, mask=far > most)

    def latest(self, rows: pa.Table) -> pa.Table:
        """Returns the last row of each key, by time and then in the given order."""
        codes = key_codes(rows, self.by)
        order = np.lexsort((self.times(rows), codes))
        last = np.append(np.diff(codes[order]) != 0, True) if len(order) else np.empty(0, np.bool_)
        return rows.take(pa.array(order[last]))


_NEVER = np.iinfo(np.int64).max
"""The distance to a row that is not there."""


class _Sorted:
    """The right rows by key, time and arrival, and the place of each left row among them."""

    def __init__(self, asof: AsOf, left: pa.Table, right: pa.Table) -> None:
        keys = [rows.select([*asof.by, asof.on]) for rows in (right, left)]
        codes = key_codes(pa.concat_tables(keys, promote_options="default"), asof.by)
        self._times, self._of = asof.times(right), asof.times(left)
        distinct, rank = np.unique(np.concatenate([self._times, self._of]), return_inverse=True)
        places, count = codes * len(distinct) + rank, right.num_rows
        self._order = np.argsort(places[:count], kind="stable").astype(np.int64)
        self._sorted, self._places = places[:count][self._order], places[count:]
        self._starts = codes[count:] * len(distinct)
        self._ends = self._starts + len(distinct)

    def before(self) -> tuple[Index, Index]:
        """Returns the number of the last right row at or before each left row, and how far it is."""
        at = np.searchsorted(self._sorted, self._places, "right") - 1
        return self._found(at, at >= np.searchsorted(self._sorted, self._starts, "left"))

    def after(self) -> tuple[Index, Index]:
        """Returns the number of the last one of the first right rows at or after each left row, and how far it is."""
        first = np.searchsorted(self._sorted, self._places, "left")
        there = first < np.searchsorted(self._sorted, self._ends, "left")
        place = self._sorted[np.where(there, first, 0)] if len(self._sorted) else self._places
        return self._found(np.searchsorted(self._sorted, place, "right") - 1, there)

    def _found(self, at: Index, there: npt.NDArray[np.bool_]) -> tuple[Index, Index]:
        if not len(self._order):
            return np.zeros(len(at), np.int64), np.full(len(at), _NEVER)
        number = self._order[np.where(there, at, 0)]
        return number, np.where(there, np.abs(self._times[number] - self._of), _NEVER)


def _nearer(one: tuple[Index, Index], other: tuple[Index, Index]) -> tuple[Index, Index]:
    first = one[1] <= other[1]
    return np.where(first, one[0], other[0]), np.where(first, one[1], other[1])
