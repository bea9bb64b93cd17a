"""Aggregates over the frame of each row, for all keys and rows at once."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.operators.aggregates import Aggregate
from spark_rowtime.operators.chunks import micros
from spark_rowtime.operators.frames import Frame

Codes = npt.NDArray[np.int64]


def framed(fresh: pa.Table, past: pa.Table, by: list[str], time: str, frame: Frame, what: list[Aggregate]) -> pa.Table:
    """``fresh`` with a column for each aggregate, over the rows of ``past`` and ``fresh`` in each row's frame.

    ``past`` has the columns ``by``, ``time`` and those that are aggregated. Rows are sorted once, by
    key and time; a frame is then a range between two places, which two binary searches find.
    """
    rows = pa.concat_tables([past, fresh.select(past.column_names)])
    times, rank = np.unique(micros(rows, time), return_inverse=True)
    keys = key_codes(rows, by) * len(times)
    places, new = keys + rank, slice(past.num_rows, None)
    order = np.argsort(places, kind="stable")
    since = np.searchsorted(times, frame.since(times), "left")[rank[new]]
    low = np.searchsorted(places[order], keys[new] + since, "left")
    high = np.searchsorted(places[order], places[new], "right")
    ranged = rows.take(pa.array(order))
    for aggregate in what:
        fresh = fresh.append_column(aggregate.name, aggregate.over(ranged, low, high))
    return fresh


def key_codes(rows: pa.Table, by: list[str]) -> Codes:
    """A small whole number for each row's key: equal keys, nulls included, have equal numbers."""
    codes = np.zeros(rows.num_rows, np.int64)
    for name in by:
        values = rows.column(name).combine_chunks()
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 and 0.0 are one key, as in SQL
        found = pc.dictionary_encode(values, null_encoding="encode")
        joined = codes * len(found.dictionary) + found.indices.to_numpy()
        codes = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    return codes
