"""The difference of two positions: which trains, and which of their rows, lie between them."""

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.store.base import Position
from spark_rowtime.types.schema import rowtime_micros


def between(after: Position, upto: Position, seq: int, least: int, largest: int) -> bool:
    """Returns whether a train may have a row in the difference of the two regions, as ``Store.slices`` defines it."""
    if seq > upto.seq or (upto.cut is not None and least >= upto.cut):
        return False
    if seq > after.seq:
        return True
    return after.cut is not None and largest >= after.cut and (upto.cut is None or after.cut < upto.cut)


def rows_between(rows: pa.RecordBatch, seq: int, after: Position, upto: Position) -> pa.RecordBatch:
    """Returns the rows of the train ``seq`` that lie in the difference of the two regions, in their order."""
    low = after.cut if seq <= after.seq else None
    times = rowtime_micros(rows)
    if low is not None:
        rows = rows.filter(pc.greater_equal(times, low))
        times = rowtime_micros(rows)
    return rows if upto.cut is None else rows.filter(pc.less(times, upto.cut))
