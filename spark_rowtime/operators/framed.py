"""Computes the aggregates over the frame of each row, for all keys and rows at once."""

import pyarrow as pa

from spark_rowtime.operators.aggregates import Aggregate
from spark_rowtime.operators.frames import Frame
from spark_rowtime.operators.places import Places


def framed(
    fresh: pa.Table, others: pa.Table, by: list[str], time: str, frame: Frame, what: list[Aggregate]
) -> pa.Table:
    """Returns ``fresh`` with a column for each aggregate.

    The rows of ``others`` and ``fresh`` that lie in a row's frame are aggregated.
    ``others`` has the columns ``by``, ``time`` and those that are aggregated. Rows of one key and
    time count in the order in which they are given, those of ``others`` first.
    """
    rows = pa.concat_tables([others, fresh.select(others.column_names)])
    places = Places(rows, by, time, others.num_rows)
    used = list(dict.fromkeys(aggregate.column for aggregate in what if aggregate.column != "*"))
    ranges, ordered = frame.ranges(places), rows.select(used).take(pa.array(places.order))
    for aggregate in what:
        fresh = fresh.append_column(aggregate.name, places.in_row_order(aggregate.over(ordered, ranges)))
    return fresh
