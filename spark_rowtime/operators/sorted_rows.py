"""Finds the place of each row among the rows of its key, in the order of time."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.operators.chunks import micros

Index = npt.NDArray[np.int64]


class Ranges(NamedTuple):
    """For each row: the rows with low <= place < high count, and ``own`` is the place of the row itself."""

    low: Index
    high: Index
    own: Index


class SortedRows:
    """Rows sorted once by key and time, so that two binary searches find the range of a key and an interval of times.

    ``order`` contains the numbers of the rows in sorted order, ``times`` each distinct time. Ranges are returned for
    the rows from number ``first`` on, in sorted order: what is then read, one range after the other, lies side by side
    in memory. ``in_row_order`` puts the results back.
    """

    def __init__(self, rows: pa.Table, by: list[str], time: str, first: int = 0) -> None:
        self.times, rank = np.unique(micros(rows, time), return_inverse=True)
        starts = key_codes(rows, by) * len(self.times)
        places = starts + rank
        self.order = np.argsort(places, kind="stable").astype(np.int64)
        self._sorted = places[self.order]
        self._own = np.flatnonzero(self.order >= first).astype(np.int64)
        mine = self.order[self._own]
        self._starts, self._rank, self._rows = starts[mine], rank[mine], mine - first

    def between(self, since: Index, until: Index) -> Ranges:
        """Returns the rows of the key from ``since`` to ``until``, both inclusive and given for each of ``times``."""
        least = np.searchsorted(self.times, since, "left")[self._rank]
        past = np.searchsorted(self.times, until, "right")[self._rank]
        return Ranges(self._at(self._starts + least), self._at(self._starts + past), self._own)

    def last(self, count: int) -> Ranges:
        """Returns the last ``count`` rows of the key, including the row itself."""
        low = np.maximum(self._at(self._starts), self._own - count + 1)
        return Ranges(low, self._own + 1, self._own)

    def among_last(self, count: int) -> npt.NDArray[np.bool_]:
        """Returns, in the order of the rows, whether each is one of the last ``count`` rows of its key."""
        among = np.empty(len(self._own), np.bool_)
        among[self._rows] = self._at(self._starts + len(self.times)) - self._own <= count
        return among

    def in_row_order(self, found: pa.Array) -> pa.Array:
        """Returns values, one for each range, in the order of the rows from number ``first`` on."""
        at = np.empty(len(self._rows), np.int64)
        at[self._rows] = np.arange(len(self._rows))
        return found.take(pa.array(at))

    def _at(self, places: Index) -> Index:
        """The places rise, so each search begins where the one before it ended."""
        return np.searchsorted(self._sorted, places, "left").astype(np.int64)


def in_sequence(rows: pa.Table, columns: list[str]) -> pa.Table:
    """Returns the rows in Spark's order of ``columns``: nulls first and NaN last."""
    keys = {}
    for number, name in enumerate(columns):
        values = rows.column(name)
        keys[f"kind{number}"] = pc.cast(pc.is_valid(values), pa.int8())
        if pa.types.is_floating(values.type):
            is_nan = pc.fill_null(pc.is_nan(values), False)
            keys[f"kind{number}"] = pc.add(keys[f"kind{number}"], pc.cast(is_nan, pa.int8()))
            values = pc.if_else(is_nan, 0.0, values)
        keys[f"value{number}"] = values
    order = [(name, "ascending") for name in keys]
    return rows.take(pc.sort_indices(pa.table(keys), order)) if keys else rows


def key_codes(rows: pa.Table, by: list[str]) -> Index:
    """Returns a small whole number for each row's key. Equal keys, also with nulls, have equal numbers."""
    codes = np.zeros(rows.num_rows, np.int64)
    for number, name in enumerate(by):
        values = rows.column(name).combine_chunks()
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 and 0.0 are one key, as in SQL
        found = pc.dictionary_encode(values, null_encoding="encode")
        codes = codes * len(found.dictionary) + found.indices.to_numpy()
        if number:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return codes
