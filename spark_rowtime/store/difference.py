"""The difference of two positions: which trains, and which of their rows, lie between them."""

import numpy as np
import pyarrow as pa

from spark_rowtime.bounds.train import Timed
from spark_rowtime.store.position import Position


def between(after: Position, upto: Position, seq: int, least: int, largest: int) -> bool:
    """Returns whether a train may have a row in the difference of the two regions, as ``Store.slices`` defines it."""
    if seq > upto.seq or (upto.cut is not None and least >= upto.cut):
        return False
    if seq > after.seq:
        return True
    return after.cut is not None and largest >= after.cut and (upto.cut is None or after.cut < upto.cut)


def rows_between(rows: pa.RecordBatch, seq: int, after: Position, upto: Position) -> pa.RecordBatch:
    """Returns the rows of the train ``seq`` that lie in the difference of the two regions, in their order.

    Of rows that are in order of rowtime it is a slice without a copy.
    """
    low = after.cut if seq <= after.seq else None
    if (low is None and upto.cut is None) or not rows.num_rows:
        return rows
    times = Timed(rows)
    if times.rises:
        first, end = (None if cut is None else int(times.micros.searchsorted(cut)) for cut in (low, upto.cut))
        return rows[first:end]
    inside = np.ones(rows.num_rows, bool) if low is None else times.micros >= low
    return rows.filter(pa.array(inside if upto.cut is None else inside & (times.micros < upto.cut)))
